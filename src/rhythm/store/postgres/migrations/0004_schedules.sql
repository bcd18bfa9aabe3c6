-- What starts workflows by the clock.
CREATE TABLE schedules (
  name text COLLATE "C" PRIMARY KEY NOT NULL, workflow text COLLATE "C" NOT NULL,
  cron text, tz text NOT NULL, every_us bigint, anchor_at bigint NOT NULL, at bigint,
  inputs text NOT NULL,                -- JSON
  overlap text NOT NULL, catch_up integer NOT NULL,
  origin text COLLATE "C" NOT NULL,              -- the workflow by whose annotation it was made
  next_at bigint,                        -- the slot to come
  queued_at bigint,                      -- a slot that waits for the end of the execution before it
  paused_at bigint, paused_by text NOT NULL, paused_reason text NOT NULL,
  created_at bigint NOT NULL, created_by text NOT NULL, updated_at bigint NOT NULL,
  CHECK (num_nonnulls(cron, every_us, at) = 1)
);
CREATE INDEX schedules_due ON schedules (next_at, name) WHERE paused_at IS NULL AND next_at IS NOT NULL;
CREATE INDEX schedules_queued ON schedules (name) WHERE queued_at IS NOT NULL AND paused_at IS NULL;
CREATE INDEX schedules_origin ON schedules (origin) WHERE origin <> '';

-- What became of their slots, of each the last hundred. A slot has one row, ever: whoever writes it starts its execution.
CREATE TABLE schedule_fires (
  n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  schedule text COLLATE "C" NOT NULL, slot_at bigint NOT NULL, manual boolean NOT NULL, until_at bigint, outcome text NOT NULL,
  execution_id text COLLATE "C", detail text NOT NULL, at bigint NOT NULL,
  open boolean NOT NULL                  -- its execution had not ended when somebody last looked
);
CREATE UNIQUE INDEX fires_slot ON schedule_fires (schedule, slot_at) WHERE NOT manual;
CREATE INDEX fires_newest ON schedule_fires (schedule, slot_at);
CREATE INDEX fires_open ON schedule_fires (schedule) WHERE open;
