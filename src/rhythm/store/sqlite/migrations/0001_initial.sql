-- Times are microseconds since 1970. Narrow tables that change often have no rowid; tables that only
-- grow have one.

CREATE TABLE fences (n INTEGER NOT NULL);
INSERT INTO fences VALUES (0);

CREATE TABLE ready (
  id TEXT PRIMARY KEY,               -- the task's id, or the workflow's (its resume)
  kind INTEGER NOT NULL,             -- 0 resume of a workflow, 1 task
  queue TEXT NOT NULL,
  priority INTEGER NOT NULL,
  order_key INTEGER NOT NULL,        -- when it was queued: first in, first out
  state INTEGER NOT NULL,            -- 0 free, 1 claimed, 2 delayed
  due_at INTEGER,                    -- of a delayed row
  claimed_by TEXT, claim_expires_at INTEGER, fence INTEGER,
  attempt INTEGER NOT NULL DEFAULT 0,
  wakes INTEGER NOT NULL DEFAULT 0,
  crashes INTEGER NOT NULL DEFAULT 0,
  crash_seq INTEGER,
  CHECK ((state = 1) = (fence IS NOT NULL)),
  CHECK ((state = 1) = (claimed_by IS NOT NULL)),
  CHECK ((state = 2) = (due_at IS NOT NULL))
) WITHOUT ROWID;
CREATE INDEX ready_free ON ready (queue, priority DESC, order_key, id) WHERE state = 0;
CREATE INDEX ready_claimed ON ready (claimed_by) WHERE state = 1;
CREATE INDEX ready_due ON ready (due_at) WHERE state = 2;

CREATE TABLE workflow_definitions (
  name TEXT NOT NULL, version TEXT NOT NULL, language TEXT NOT NULL, source TEXT NOT NULL, program TEXT NOT NULL,
  file TEXT NOT NULL, registered_at INTEGER NOT NULL,
  registration INTEGER NOT NULL,     -- the highest one of a name is current, also after a return to older text
  PRIMARY KEY (name, version)
);
CREATE UNIQUE INDEX definitions_current ON workflow_definitions (name, registration);

CREATE TABLE executions (
  id TEXT PRIMARY KEY NOT NULL, type INTEGER NOT NULL, name TEXT NOT NULL, version TEXT NOT NULL, queue TEXT NOT NULL,
  priority INTEGER NOT NULL, status INTEGER NOT NULL, parent_id TEXT, child_no INTEGER NOT NULL, root_id TEXT NOT NULL,
  retry_of TEXT, attempt INTEGER NOT NULL, max_attempts INTEGER NOT NULL, held INTEGER NOT NULL DEFAULT 0,
  fence INTEGER, worker TEXT, key TEXT, options TEXT NOT NULL, attributes TEXT NOT NULL,
  inputs TEXT NOT NULL, result TEXT, error TEXT,
  created_at INTEGER NOT NULL, started_at INTEGER, finished_at INTEGER,
  timeout_us INTEGER, timeout_at INTEGER, timed_out_at INTEGER, -- its time begins when it may begin
  cancel_requested_at INTEGER, paused_at INTEGER, paused_reason TEXT, paused_by TEXT,
  CHECK ((status >= 5) = (finished_at IS NOT NULL))
);
CREATE INDEX executions_unfinished ON executions (parent_id, child_no) WHERE finished_at IS NULL;
CREATE INDEX executions_failed ON executions (parent_id, child_no) WHERE status IN (6, 7, 8);
CREATE UNIQUE INDEX executions_key ON executions (name, key) WHERE key IS NOT NULL;
CREATE INDEX executions_roots ON executions (name, created_at, id) WHERE parent_id IS NULL;
CREATE INDEX executions_newest ON executions (created_at, id) WHERE parent_id IS NULL;
CREATE INDEX executions_ended ON executions (finished_at) WHERE parent_id IS NULL AND finished_at IS NOT NULL;
CREATE INDEX executions_retries ON executions (retry_of) WHERE retry_of IS NOT NULL;
CREATE INDEX executions_live ON executions (id) WHERE finished_at IS NULL AND type = 0;
CREATE INDEX executions_cancelled ON executions (cancel_requested_at) WHERE cancel_requested_at IS NOT NULL AND finished_at IS NULL;
CREATE INDEX executions_timeout ON executions (timeout_at) WHERE timeout_at IS NOT NULL AND timed_out_at IS NULL AND finished_at IS NULL;

CREATE TABLE workflow_execution_context (
  execution_id TEXT PRIMARY KEY, seq INTEGER NOT NULL, fence INTEGER NOT NULL, format INTEGER NOT NULL,
  statement INTEGER NOT NULL, snapshot BLOB, owned TEXT NOT NULL, awaiting TEXT NOT NULL, updated_at INTEGER NOT NULL
) WITHOUT ROWID;

-- Large snapshots; the context refers to its own with the byte `@`.
CREATE TABLE blobs (execution_id TEXT PRIMARY KEY NOT NULL, data BLOB NOT NULL);

CREATE TABLE history (
  execution_id TEXT NOT NULL, seq INTEGER NOT NULL, fence INTEGER NOT NULL, worker TEXT NOT NULL,
  from_status INTEGER NOT NULL, to_status INTEGER NOT NULL, cause TEXT NOT NULL, statement INTEGER NOT NULL,
  at INTEGER NOT NULL, error TEXT,
  PRIMARY KEY (execution_id, seq)
);

CREATE TABLE timer_tasks (
  execution_id TEXT NOT NULL, n INTEGER NOT NULL, delay_us INTEGER, until_at INTEGER, fire_at INTEGER, fired_at INTEGER, cancelled_at INTEGER,
  PRIMARY KEY (execution_id, n)
) WITHOUT ROWID;
CREATE INDEX timers_due ON timer_tasks (fire_at) WHERE fired_at IS NULL AND cancelled_at IS NULL AND fire_at IS NOT NULL;

CREATE TABLE workflow_signals (
  id TEXT PRIMARY KEY NOT NULL, execution_id TEXT NOT NULL, n INTEGER NOT NULL, name TEXT NOT NULL, payload TEXT NOT NULL,
  received_at INTEGER NOT NULL, consumed_seq INTEGER,
  UNIQUE (execution_id, n)
);
CREATE INDEX signals_waiting ON workflow_signals (execution_id, n) WHERE consumed_seq IS NULL;

CREATE TABLE event_types (type TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE events (
  id TEXT PRIMARY KEY NOT NULL, type TEXT NOT NULL, n INTEGER NOT NULL, data TEXT NOT NULL, published_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX events_of_type ON events (type, published_at, n);
CREATE INDEX events_published ON events (published_at);

CREATE TABLE event_waits (
  execution_id TEXT NOT NULL, n INTEGER NOT NULL, type TEXT NOT NULL, wanted TEXT NOT NULL,
  since INTEGER NOT NULL,            -- older events are not for it: when its execution started
  timeout_us INTEGER, deadline_at INTEGER, held INTEGER NOT NULL,
  status INTEGER, event_id TEXT, ended_at INTEGER,
  PRIMARY KEY (execution_id, n)
) WITHOUT ROWID;
CREATE INDEX waits_open ON event_waits (type) WHERE ended_at IS NULL AND held = 0;
CREATE INDEX waits_due ON event_waits (deadline_at) WHERE ended_at IS NULL AND deadline_at IS NOT NULL;
CREATE INDEX waits_taken ON event_waits (event_id) WHERE event_id IS NOT NULL;

-- Leases: which process does what one process at a time should do. Rows are never deleted, so that
-- fences only rise.
CREATE TABLE leases (name TEXT PRIMARY KEY NOT NULL, holder TEXT NOT NULL, fence INTEGER NOT NULL, expires_at INTEGER NOT NULL);
