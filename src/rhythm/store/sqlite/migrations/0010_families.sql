-- How many executions were started below each root, as far as they were counted: small turns are
-- counted by samples. Where the count goes over the limit, the live executions are counted.
CREATE TABLE families (
  root_id TEXT PRIMARY KEY, started INTEGER NOT NULL,
  full_at INTEGER                    -- when there were too many; they are not counted again at once
) WITHOUT ROWID;

-- Terminated executions, while anything below them is live: executions below them take no turn, and
-- are ended.
CREATE TABLE terminations (id TEXT PRIMARY KEY, requested_at INTEGER NOT NULL) WITHOUT ROWID;
