-- Lists by status, error, attribute, key and starter, along an index each. On a database with a
-- million executions this takes some ten seconds: each index reads the table once.

-- Plain attributes of roots, as JSON, in the order of lists. Long values are left out: nobody
-- searches for them.
CREATE TABLE execution_attributes (
  name TEXT NOT NULL, value TEXT NOT NULL, created_at INTEGER NOT NULL, execution_id TEXT NOT NULL,
  PRIMARY KEY (name, value, created_at, execution_id)
) WITHOUT ROWID;
CREATE INDEX attributes_of ON execution_attributes (execution_id, name);
INSERT INTO execution_attributes (name, value, created_at, execution_id)
SELECT x.name, x.value, x.created_at, x.id FROM (
  SELECT e.id, e.created_at, a.key AS name, CASE a.type WHEN 'text' THEN json_quote(a.value)
    WHEN 'integer' THEN CAST(a.value AS TEXT) WHEN 'real' THEN CAST(a.value AS TEXT) ELSE a.type END AS value
  FROM executions e CROSS JOIN json_each(e.attributes) a
  WHERE e.parent_id IS NULL AND e.attributes LIKE '{"%' AND a.type NOT IN ('array', 'object')) x
WHERE length(CAST(x.value AS BLOB)) <= 600;

-- Starts index the attributes of new roots themselves: a trigger would make every insert slower.
CREATE TRIGGER attributes_changed AFTER UPDATE OF attributes ON executions WHEN new.parent_id IS NULL
BEGIN
  DELETE FROM execution_attributes WHERE execution_id = new.id;
  INSERT INTO execution_attributes (name, value, created_at, execution_id)
  SELECT x.name, x.value, new.created_at, new.id FROM (
    SELECT a.key AS name, CASE a.type WHEN 'text' THEN json_quote(a.value)
      WHEN 'integer' THEN CAST(a.value AS TEXT) WHEN 'real' THEN CAST(a.value AS TEXT) ELSE a.type END AS value
    FROM json_each(new.attributes) a WHERE a.type NOT IN ('array', 'object')) x
  WHERE length(CAST(x.value AS BLOB)) <= 600;
END;

-- Roots that have not ended had an entry in `executions_unfinished`; now they have one here instead,
-- so a start writes as many entries as before.
DROP INDEX executions_unfinished;
CREATE INDEX executions_unfinished ON executions (parent_id, child_no) WHERE finished_at IS NULL AND parent_id IS NOT NULL;
CREATE INDEX executions_open ON executions (created_at, id) WHERE parent_id IS NULL AND finished_at IS NULL;
-- What few executions are: only these pay for the entry.
CREATE INDEX executions_held ON executions (created_at, id)
WHERE parent_id IS NULL AND status < 5 AND (status = 2 OR paused_at IS NOT NULL);
CREATE INDEX executions_ill ON executions (status, created_at, id) WHERE parent_id IS NULL AND status IN (6, 7, 8);
CREATE INDEX executions_errors ON executions (
  CASE WHEN json_valid(error) THEN substr(json_extract(error, '$.code'), 1, 200) END, created_at, id)
WHERE parent_id IS NULL AND status IN (6, 7, 8) AND error IS NOT NULL;
CREATE INDEX executions_starters ON executions (started_by, created_at, id) WHERE parent_id IS NULL AND started_by IS NOT NULL;
-- By key first, so that the beginning of a key finds executions of any name; it is as unique as before.
DROP INDEX executions_key;
CREATE UNIQUE INDEX executions_key ON executions (key, name) WHERE key IS NOT NULL;
