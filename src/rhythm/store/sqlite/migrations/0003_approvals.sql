-- Who started an execution, and how long a pause lasts.
ALTER TABLE executions ADD COLUMN started_by TEXT;
ALTER TABLE executions ADD COLUMN paused_until INTEGER;   -- when the pause ends by itself
ALTER TABLE executions ADD COLUMN paused_then TEXT;     -- and how: resume or cancel
CREATE INDEX executions_paused ON executions (paused_until) WHERE paused_until IS NOT NULL AND finished_at IS NULL;

-- Waits for decisions of people. They are kept after their end, as long as their executions are.
CREATE TABLE approvals (
  id TEXT NOT NULL UNIQUE,          -- <execution>.<n>
  execution_id TEXT NOT NULL, n INTEGER NOT NULL,
  role TEXT NOT NULL,               -- who may decide now
  reason TEXT NOT NULL, data TEXT NOT NULL, quorum INTEGER NOT NULL, four_eyes INTEGER NOT NULL,
  requested_by TEXT,               -- who started it all, and may not decide if four eyes are wanted
  stages TEXT NOT NULL,            -- JSON: to whom it may be escalated, in order
  notify TEXT NOT NULL,            -- JSON: the task that tells people, or null
  timeout_us INTEGER, on_deadline TEXT NOT NULL, deadline_at INTEGER,
  held INTEGER NOT NULL, created_at INTEGER NOT NULL, escalated INTEGER NOT NULL DEFAULT 0,
  status INTEGER, decision TEXT, decided_by TEXT, comment TEXT, ended_at INTEGER,
  PRIMARY KEY (execution_id, n)
) WITHOUT ROWID;
CREATE INDEX approvals_open ON approvals (created_at, id) WHERE ended_at IS NULL;
CREATE INDEX approvals_newest ON approvals (created_at, id);
CREATE INDEX approvals_due ON approvals (deadline_at) WHERE ended_at IS NULL AND deadline_at IS NOT NULL;

CREATE TABLE approval_decisions (
  approval_id TEXT NOT NULL, n INTEGER NOT NULL, actor TEXT NOT NULL, role TEXT NOT NULL, decision TEXT NOT NULL,
  comment TEXT NOT NULL, shown TEXT NOT NULL,
  key TEXT,                        -- by which the same call is known again
  token TEXT, at INTEGER NOT NULL,
  PRIMARY KEY (approval_id, n)
) WITHOUT ROWID;
CREATE UNIQUE INDEX decisions_once ON approval_decisions (approval_id, actor, role) WHERE decision <> 'escalate';

-- What let paused executions go on: who or what asked, and when the next turn was committed.
CREATE TABLE execution_resume_requests (
  id INTEGER PRIMARY KEY, execution_id TEXT NOT NULL,
  triggered_by TEXT NOT NULL,      -- approval, event, manual or timeout
  triggered_by_id TEXT NOT NULL, trigger_data TEXT NOT NULL, reason TEXT NOT NULL,
  requested_at INTEGER NOT NULL, executed_at INTEGER, error_message TEXT
);
CREATE INDEX resumes_of ON execution_resume_requests (execution_id, id);
CREATE INDEX resumes_pending ON execution_resume_requests (execution_id) WHERE executed_at IS NULL;
