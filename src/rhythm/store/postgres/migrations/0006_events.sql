-- Events that start workflows, as registered last: the version, queue and time limit of the
-- executions that they start.
CREATE TABLE event_triggers (
  type text COLLATE "C" NOT NULL, workflow text COLLATE "C" NOT NULL, version text NOT NULL, queue text COLLATE "C" NOT NULL,
  timeout_s double precision,
  PRIMARY KEY (type, workflow)
);

-- A wait that took an event is kept, since each execution sees an event once. When no turn will
-- read it again (`settled`), the event itself need not be kept for it.
ALTER TABLE event_waits ADD COLUMN settled boolean NOT NULL DEFAULT false;
