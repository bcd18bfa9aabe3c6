-- How many executions were started below each root, as far as they were counted: small turns are
-- counted by samples, so that the turns of one family do not wait for each other. Where the count
-- goes over the limit, the live executions are counted.
CREATE TABLE families (
  root_id text COLLATE "C" PRIMARY KEY, started bigint NOT NULL,
  full_at bigint                     -- when there were too many; they are not counted again at once
) WITH (fillfactor = 50);

-- Terminated executions, while anything below them is live: executions below them cannot commit a
-- turn that needs locks, and are ended.
CREATE TABLE terminations (id text COLLATE "C" PRIMARY KEY, requested_at bigint NOT NULL);
