-- Events that start workflows, as registered last: the version, queue and time limit of the
-- executions that they start.
CREATE TABLE event_triggers (
  type TEXT NOT NULL, workflow TEXT NOT NULL, version TEXT NOT NULL, queue TEXT NOT NULL, timeout_s REAL,
  PRIMARY KEY (type, workflow)
) WITHOUT ROWID;

-- A wait that took an event is kept, since each execution sees an event once. When no turn will
-- read it again (`settled`), the event itself need not be kept for it.
ALTER TABLE event_waits ADD COLUMN settled INTEGER NOT NULL DEFAULT 0;
