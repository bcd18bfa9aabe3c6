-- How many children were started below an execution that nobody else started, as far as it was counted: small turns are counted by samples.
-- Where it goes over the limit, those who live are counted.
CREATE TABLE families (
  root_id TEXT PRIMARY KEY, started INTEGER NOT NULL,
  full_at INTEGER                    -- when there were too many; they are not counted again at once
) WITHOUT ROWID;

-- Executions that were terminated, while anything below them lives: what is below takes no turn, and is ended.
CREATE TABLE terminations (id TEXT PRIMARY KEY, requested_at INTEGER NOT NULL) WITHOUT ROWID;
