-- How many children were started below an execution that nobody else started, as far as it was counted: small turns are counted by samples, so
-- that those of one family do not wait for each other. Where it goes over the limit, those who live are counted.
CREATE TABLE families (
  root_id text COLLATE "C" PRIMARY KEY, started bigint NOT NULL,
  full_at bigint                     -- when there were too many; they are not counted again at once
) WITH (fillfactor = 50);

-- Executions that were terminated, while anything below them lives: what is below takes no turn that is committed with locks, and is ended.
CREATE TABLE terminations (id text COLLATE "C" PRIMARY KEY, requested_at bigint NOT NULL);
