-- Events that start workflows, as they were registered last: the version, queue and time limit of the executions they start.
CREATE TABLE event_triggers (
  type text COLLATE "C" NOT NULL, workflow text COLLATE "C" NOT NULL, version text NOT NULL, queue text COLLATE "C" NOT NULL,
  timeout_s double precision,
  PRIMARY KEY (type, workflow)
);

-- A wait that took an event stays, since each event is seen once; when nobody will ask about it again, the event need not be kept for it.
ALTER TABLE event_waits ADD COLUMN settled boolean NOT NULL DEFAULT false;
