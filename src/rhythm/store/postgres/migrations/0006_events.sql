-- Events that start workflows, as they were registered last: the version, queue and time limit of the executions they start.
CREATE TABLE event_triggers (
  type text COLLATE "C" NOT NULL, workflow text COLLATE "C" NOT NULL, version text NOT NULL, queue text COLLATE "C" NOT NULL,
  timeout_s double precision,
  PRIMARY KEY (type, workflow)
);
