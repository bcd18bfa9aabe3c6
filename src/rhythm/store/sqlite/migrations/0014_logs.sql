-- What executions have said: lines of their logs, progress and heartbeats, by root and position. A
-- position is the time of the write in microseconds, or one more than the last, so that whoever has
-- read up to one has missed nothing. They refer to no execution: a line of a task may come before
-- the row of the task, and after it was pruned.
CREATE TABLE log_lines (
  root_id TEXT NOT NULL, position INTEGER NOT NULL,
  execution_id TEXT NOT NULL,
  turn INTEGER NOT NULL,             -- of a workflow the seq of the turn, of a task the fence of the attempt
  n INTEGER NOT NULL,                -- the number of the line in that turn or attempt
  at INTEGER NOT NULL,               -- when it was said, on the database's clock
  kind INTEGER NOT NULL, level INTEGER NOT NULL, attempt INTEGER NOT NULL,
  name TEXT NOT NULL, worker TEXT NOT NULL, message TEXT NOT NULL, fields TEXT,
  PRIMARY KEY (root_id, position)
) WITHOUT ROWID;

-- How much is kept of each root, and how much was not.
CREATE TABLE log_totals (
  root_id TEXT PRIMARY KEY,
  lines INTEGER NOT NULL, bytes INTEGER NOT NULL, dropped INTEGER NOT NULL,
  position INTEGER NOT NULL,         -- the last one that was given
  oldest_at INTEGER NOT NULL         -- the first position that is kept, for the retention
) WITHOUT ROWID;
CREATE INDEX log_totals_oldest ON log_totals (oldest_at);
