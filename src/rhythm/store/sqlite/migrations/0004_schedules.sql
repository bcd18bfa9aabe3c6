-- Schedules, which start workflows by the clock.
CREATE TABLE schedules (
  name TEXT PRIMARY KEY NOT NULL, workflow TEXT NOT NULL,
  cron TEXT, tz TEXT NOT NULL, every_us INTEGER, anchor_at INTEGER NOT NULL, at INTEGER,
  inputs TEXT NOT NULL,                -- JSON
  overlap TEXT NOT NULL, catch_up INTEGER NOT NULL,
  origin TEXT NOT NULL,              -- the workflow by whose annotation it was made
  next_at INTEGER,                        -- the slot to come
  queued_at INTEGER,                      -- a slot that waits for the end of the execution before it
  paused_at INTEGER, paused_by TEXT NOT NULL, paused_reason TEXT NOT NULL,
  created_at INTEGER NOT NULL, created_by TEXT NOT NULL, updated_at INTEGER NOT NULL,
  CHECK ((cron IS NOT NULL) + (every_us IS NOT NULL) + (at IS NOT NULL) = 1)
);
CREATE INDEX schedules_due ON schedules (next_at, name) WHERE paused_at IS NULL AND next_at IS NOT NULL;
CREATE INDEX schedules_queued ON schedules (name) WHERE queued_at IS NOT NULL AND paused_at IS NULL;
CREATE INDEX schedules_origin ON schedules (origin) WHERE origin <> '';

-- What became of the last hundred slots of each schedule. A slot only ever has one row: the
-- transaction that writes it starts its execution.
CREATE TABLE schedule_fires (
  schedule TEXT NOT NULL, slot_at INTEGER NOT NULL, manual INTEGER NOT NULL, until_at INTEGER, outcome TEXT NOT NULL,
  execution_id TEXT, detail TEXT NOT NULL, at INTEGER NOT NULL,
  open INTEGER NOT NULL                  -- its execution had not ended when somebody last looked
);
CREATE UNIQUE INDEX fires_slot ON schedule_fires (schedule, slot_at) WHERE manual = 0;
CREATE INDEX fires_newest ON schedule_fires (schedule, slot_at);
CREATE INDEX fires_open ON schedule_fires (schedule) WHERE open = 1;
