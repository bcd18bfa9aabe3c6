-- Who started an execution, and how long a pause lasts.
ALTER TABLE executions ADD COLUMN started_by text;
ALTER TABLE executions ADD COLUMN paused_until bigint;   -- when the pause ends by itself
ALTER TABLE executions ADD COLUMN paused_then text;     -- and how: resume or cancel
CREATE INDEX executions_paused ON executions (paused_until) WHERE paused_until IS NOT NULL AND finished_at IS NULL;

-- Waits for decisions of people. They are kept after their end, as long as their executions are.
CREATE TABLE approvals (
  id text COLLATE "C" NOT NULL UNIQUE,          -- <execution>.<n>
  execution_id text COLLATE "C" NOT NULL, n bigint NOT NULL,
  role text COLLATE "C" NOT NULL,               -- who may decide now
  reason text NOT NULL, data text NOT NULL, quorum integer NOT NULL, four_eyes boolean NOT NULL,
  requested_by text,               -- who started it all, and may not decide if four eyes are wanted
  stages text NOT NULL,            -- JSON: to whom it may be escalated, in order
  notify text NOT NULL,            -- JSON: the task that tells people, or null
  timeout_us bigint, on_deadline text NOT NULL, deadline_at bigint,
  held boolean NOT NULL, created_at bigint NOT NULL, escalated integer NOT NULL DEFAULT 0,
  status smallint, decision text, decided_by text, comment text, ended_at bigint,
  PRIMARY KEY (execution_id, n)
);
CREATE INDEX approvals_open ON approvals (created_at, id) WHERE ended_at IS NULL;
CREATE INDEX approvals_newest ON approvals (created_at, id);
CREATE INDEX approvals_due ON approvals (deadline_at) WHERE ended_at IS NULL AND deadline_at IS NOT NULL;

CREATE TABLE approval_decisions (
  approval_id text COLLATE "C" NOT NULL, n integer NOT NULL, actor text COLLATE "C" NOT NULL, role text NOT NULL, decision text NOT NULL,
  comment text NOT NULL, shown text NOT NULL,
  key text,                        -- by which the same call is known again
  token text, at bigint NOT NULL,
  PRIMARY KEY (approval_id, n)
);
CREATE UNIQUE INDEX decisions_once ON approval_decisions (approval_id, actor, role) WHERE decision <> 'escalate';

-- What let paused executions go on: who or what asked, and when the next turn was committed.
CREATE TABLE execution_resume_requests (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, execution_id text COLLATE "C" NOT NULL,
  triggered_by text NOT NULL,      -- approval, event, manual or timeout
  triggered_by_id text NOT NULL, trigger_data text NOT NULL, reason text NOT NULL,
  requested_at bigint NOT NULL, executed_at bigint, error_message text
);
CREATE INDEX resumes_of ON execution_resume_requests (execution_id, id);
CREATE INDEX resumes_pending ON execution_resume_requests (execution_id) WHERE executed_at IS NULL;
