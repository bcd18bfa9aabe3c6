-- What executions have said: lines of their logs, progress and heartbeats, by root and position. A
-- position is the time of the write in microseconds, or one more than the last, so that whoever has
-- read up to one has missed nothing. They refer to no execution: a line of a task may come before
-- the row of the task, and after it was pruned.
CREATE TABLE log_lines (
  root_id text COLLATE "C" NOT NULL, position bigint NOT NULL,
  execution_id text COLLATE "C" NOT NULL,
  turn bigint NOT NULL,              -- of a workflow the seq of the turn, of a task the fence of the attempt
  n integer NOT NULL,                -- the number of the line in that turn or attempt
  at bigint NOT NULL,                -- when it was said, on the database's clock
  kind smallint NOT NULL, level smallint NOT NULL, attempt integer NOT NULL,
  name text NOT NULL, worker text NOT NULL, message text NOT NULL, fields text,
  PRIMARY KEY (root_id, position)
);

-- How much is kept of each root, and how much was not. Writers of one root take turns at its row.
CREATE TABLE log_totals (
  root_id text COLLATE "C" PRIMARY KEY,
  lines bigint NOT NULL, bytes bigint NOT NULL, dropped bigint NOT NULL,
  position bigint NOT NULL,          -- the last one that was given
  oldest_at bigint NOT NULL          -- the first position that is kept, for the retention
) WITH (fillfactor = 50);
CREATE INDEX log_totals_oldest ON log_totals (oldest_at);
