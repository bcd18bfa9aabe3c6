-- Events that start workflows, as they were registered last: the version, queue and time limit of the executions they start.
CREATE TABLE event_triggers (
  type TEXT NOT NULL, workflow TEXT NOT NULL, version TEXT NOT NULL, queue TEXT NOT NULL, timeout_s REAL,
  PRIMARY KEY (type, workflow)
) WITHOUT ROWID;

-- A wait that took an event stays, since each event is seen once; when nobody will ask about it again, the event need not be kept for it.
ALTER TABLE event_waits ADD COLUMN settled INTEGER NOT NULL DEFAULT 0;
