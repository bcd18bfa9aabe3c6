-- Every worker rewrites its row every few seconds. Free space in the page, and no index besides the
-- key, make it an update in place.
CREATE TABLE worker_heartbeats (
  worker_id text COLLATE "C" PRIMARY KEY, host text NOT NULL, pid bigint NOT NULL,
  machine text NOT NULL,             -- whose process id that is
  queues text NOT NULL,              -- JSON
  concurrency integer NOT NULL, running integer NOT NULL, draining boolean NOT NULL, version text NOT NULL,
  started_at bigint NOT NULL, beat_at bigint NOT NULL,
  dead_after_us bigint NOT NULL      -- silent for so long, it takes itself for dead; so do the others
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- The paused queues; a queue that is not paused has no row.
CREATE TABLE queues (
  name text COLLATE "C" PRIMARY KEY, paused_at bigint NOT NULL, paused_by text NOT NULL, paused_reason text NOT NULL
);

-- Declarations of tasks, made by workers that have their handlers: the worker that plans a turn may
-- not have them.
CREATE TABLE task_declarations (
  name text COLLATE "C" PRIMARY KEY, queue text COLLATE "C" NOT NULL, retries integer NOT NULL, timeout_s double precision,
  backoff text NOT NULL,             -- JSON
  transactional boolean NOT NULL, declared_at bigint NOT NULL
);
