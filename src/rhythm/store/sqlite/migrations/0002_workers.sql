-- Every worker rewrites its row every few seconds, so there is no index besides the key.
CREATE TABLE worker_heartbeats (
  worker_id TEXT PRIMARY KEY NOT NULL, host TEXT NOT NULL, pid INTEGER NOT NULL,
  machine TEXT NOT NULL,             -- whose process id that is
  queues TEXT NOT NULL,              -- JSON
  concurrency INTEGER NOT NULL, running INTEGER NOT NULL, draining INTEGER NOT NULL, version TEXT NOT NULL,
  started_at INTEGER NOT NULL, beat_at INTEGER NOT NULL,
  dead_after_us INTEGER NOT NULL      -- silent for so long, it takes itself for dead; so do the others
) WITHOUT ROWID;

-- The paused queues; a queue that is not paused has no row.
CREATE TABLE queues (
  name TEXT PRIMARY KEY NOT NULL, paused_at INTEGER NOT NULL, paused_by TEXT NOT NULL, paused_reason TEXT NOT NULL
) WITHOUT ROWID;

-- Declarations of tasks, made by workers that have their handlers: the worker that plans a turn may
-- not have them.
CREATE TABLE task_declarations (
  name TEXT PRIMARY KEY NOT NULL, queue TEXT NOT NULL, retries INTEGER NOT NULL, timeout_s REAL,
  backoff TEXT NOT NULL,             -- JSON
  transactional INTEGER NOT NULL, declared_at INTEGER NOT NULL
) WITHOUT ROWID;
