-- Events that start workflows, as they were registered last: the version, queue and time limit of the executions they start.
CREATE TABLE event_triggers (
  type TEXT NOT NULL, workflow TEXT NOT NULL, version TEXT NOT NULL, queue TEXT NOT NULL, timeout_s REAL,
  PRIMARY KEY (type, workflow)
) WITHOUT ROWID;
