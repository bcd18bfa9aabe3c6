-- Times are microseconds since 1970 on the database's clock. JSON is stored as text, so it is read
-- exactly as it was written.

-- The time of the statement. A session may set its own clock (`rhythm.now_us`): tests do.
CREATE FUNCTION now_us() RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT coalesce(nullif(current_setting('rhythm.now_us', true), '')::bigint, (extract(epoch FROM statement_timestamp()) * 1000000)::bigint)
$$;

CREATE SEQUENCE fences;

-- Rows are inserted and deleted often, and every claim and beat rewrites one. So pages are kept
-- half empty, and vacuum runs by number of rows.
CREATE TABLE ready (
  id text COLLATE "C" PRIMARY KEY,   -- the task's id, or the workflow's (its resume)
  kind smallint NOT NULL,            -- 0 resume of a workflow, 1 task
  queue text COLLATE "C" NOT NULL,
  priority integer NOT NULL,
  order_key bigint NOT NULL,         -- when it was queued: first in, first out
  state smallint NOT NULL,           -- 0 free, 1 claimed, 2 delayed
  due_at bigint,                     -- of a delayed row
  claimed_by text COLLATE "C", claim_expires_at bigint, fence bigint,
  attempt integer NOT NULL DEFAULT 0,
  wakes bigint NOT NULL DEFAULT 0,
  crashes integer NOT NULL DEFAULT 0,
  crash_seq bigint,
  CHECK ((state = 1) = (fence IS NOT NULL)),
  CHECK ((state = 1) = (claimed_by IS NOT NULL)),
  CHECK ((state = 2) = (due_at IS NOT NULL))
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX ready_free ON ready (queue, priority DESC, order_key, id) WHERE state = 0;
CREATE INDEX ready_claimed ON ready (claimed_by) WHERE state = 1;
CREATE INDEX ready_due ON ready (due_at) WHERE state = 2;

CREATE TABLE workflow_definitions (
  name text COLLATE "C" NOT NULL, version text COLLATE "C" NOT NULL, language text NOT NULL, source text NOT NULL, program text NOT NULL,
  file text NOT NULL, registered_at bigint NOT NULL,
  registration bigint NOT NULL,      -- the highest one of a name is current, also after a return to older text
  PRIMARY KEY (name, version)
);
CREATE UNIQUE INDEX definitions_current ON workflow_definitions (name, registration);

CREATE TABLE executions (
  id text COLLATE "C" PRIMARY KEY, type smallint NOT NULL, name text COLLATE "C" NOT NULL, version text NOT NULL,
  queue text COLLATE "C" NOT NULL, priority integer NOT NULL, status smallint NOT NULL, parent_id text COLLATE "C",
  child_no bigint NOT NULL, root_id text COLLATE "C" NOT NULL, retry_of text COLLATE "C", attempt integer NOT NULL,
  max_attempts integer NOT NULL, held boolean NOT NULL DEFAULT false, fence bigint, worker text, key text COLLATE "C",
  options text NOT NULL, attributes text NOT NULL, inputs text NOT NULL, result text, error text,
  created_at bigint NOT NULL, started_at bigint, finished_at bigint,
  timeout_us bigint, timeout_at bigint, timed_out_at bigint, -- its time begins when it may begin
  cancel_requested_at bigint, paused_at bigint, paused_reason text, paused_by text,
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

-- Never add an index besides the key: with half-empty pages every turn is an update in place.
CREATE TABLE workflow_execution_context (
  execution_id text COLLATE "C" PRIMARY KEY, seq bigint NOT NULL, fence bigint NOT NULL, format smallint NOT NULL,
  statement integer NOT NULL, snapshot bytea, owned text NOT NULL, awaiting text NOT NULL, updated_at bigint NOT NULL
) WITH (fillfactor = 50);
ALTER TABLE workflow_execution_context ALTER COLUMN snapshot SET STORAGE EXTERNAL;

-- Large snapshots, already compressed; the context refers to its own with the byte `@`.
CREATE TABLE blobs (execution_id text COLLATE "C" PRIMARY KEY, data bytea NOT NULL);
ALTER TABLE blobs ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE TABLE history (
  execution_id text COLLATE "C" NOT NULL, seq bigint NOT NULL, fence bigint NOT NULL, worker text NOT NULL,
  from_status smallint NOT NULL, to_status smallint NOT NULL, cause text NOT NULL, statement integer NOT NULL,
  at bigint NOT NULL, error text,
  PRIMARY KEY (execution_id, seq)
);

CREATE TABLE timer_tasks (
  execution_id text COLLATE "C" NOT NULL, n bigint NOT NULL, delay_us bigint, until_at bigint,
  fire_at bigint, fired_at bigint, cancelled_at bigint,
  PRIMARY KEY (execution_id, n)
);
CREATE INDEX timers_due ON timer_tasks (fire_at) WHERE fired_at IS NULL AND cancelled_at IS NULL AND fire_at IS NOT NULL;

CREATE TABLE workflow_signals (
  id text COLLATE "C" PRIMARY KEY, execution_id text COLLATE "C" NOT NULL, n bigint NOT NULL, name text NOT NULL, payload text NOT NULL,
  received_at bigint NOT NULL, consumed_seq bigint,
  UNIQUE (execution_id, n)
);
CREATE INDEX signals_waiting ON workflow_signals (execution_id, n) WHERE consumed_seq IS NULL;

-- Publishers, and workflows that begin to wait, lock the type's row before any other, so that
-- neither misses what the other commits.
CREATE TABLE event_types (type text COLLATE "C" PRIMARY KEY, n bigint NOT NULL) WITH (fillfactor = 50);

CREATE TABLE events (
  id text COLLATE "C" PRIMARY KEY, type text COLLATE "C" NOT NULL, n bigint NOT NULL, data text NOT NULL, published_at bigint NOT NULL
);
CREATE UNIQUE INDEX events_of_type ON events (type, published_at, n);
CREATE INDEX events_published ON events (published_at);

CREATE TABLE event_waits (
  execution_id text COLLATE "C" NOT NULL, n bigint NOT NULL, type text COLLATE "C" NOT NULL, wanted text NOT NULL,
  since bigint NOT NULL,             -- older events are not for it: when its execution started
  timeout_us bigint, deadline_at bigint, held boolean NOT NULL,
  status smallint, event_id text COLLATE "C", ended_at bigint,
  PRIMARY KEY (execution_id, n)
);
CREATE INDEX waits_open ON event_waits (type) WHERE ended_at IS NULL AND NOT held;
CREATE INDEX waits_due ON event_waits (deadline_at) WHERE ended_at IS NULL AND deadline_at IS NOT NULL;
CREATE INDEX waits_taken ON event_waits (event_id) WHERE event_id IS NOT NULL;

-- Leases: which process does what one process at a time should do. Rows are never deleted, so that
-- fences only rise.
CREATE TABLE leases (name text COLLATE "C" PRIMARY KEY, holder text NOT NULL, fence bigint NOT NULL, expires_at bigint NOT NULL);
