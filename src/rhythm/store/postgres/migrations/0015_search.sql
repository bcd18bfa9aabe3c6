-- Lists by status, error, attribute, key and starter, along an index each. On a database with a
-- million executions this takes some ten seconds, during which nothing else is written: each index
-- reads the table once.

-- Plain attributes of roots, as JSON, in the order of lists. Long values are left out: nobody
-- searches for them, and an index has no room for them.
CREATE TABLE execution_attributes (
  execution_id text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL, value text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (execution_id, name)
);
INSERT INTO execution_attributes (execution_id, name, value, created_at)
SELECT e.id, a.key, a.value::text, e.created_at FROM executions e CROSS JOIN LATERAL json_each(e.attributes::json) a
WHERE e.parent_id IS NULL AND e.attributes LIKE '{"%' AND position('\u0000' IN e.attributes) = 0
  AND json_typeof(a.value) NOT IN ('array', 'object') AND octet_length(a.value::text) <= 600 AND octet_length(a.key) <= 800
ON CONFLICT DO NOTHING;
CREATE INDEX attributes_by_value ON execution_attributes (name, value, created_at, execution_id);

-- Whatever writes attributes of a root has them indexed, in the same round trip. Executions without
-- attributes only pay for the comparison in WHEN.
CREATE FUNCTION index_attributes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN
    DELETE FROM execution_attributes WHERE execution_id = OLD.id;
  END IF;
  IF TG_OP <> 'DELETE' AND position('\u0000' IN NEW.attributes) = 0 THEN
    INSERT INTO execution_attributes (execution_id, name, value, created_at)
    SELECT NEW.id, a.key, a.value::text, NEW.created_at FROM json_each(NEW.attributes::json) a
    WHERE json_typeof(a.value) NOT IN ('array', 'object') AND octet_length(a.value::text) <= 600 AND octet_length(a.key) <= 800
    ON CONFLICT DO NOTHING;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER attributes_given AFTER INSERT ON executions FOR EACH ROW
WHEN (NEW.attributes LIKE '{"%' AND NEW.parent_id IS NULL) EXECUTE FUNCTION index_attributes();
CREATE TRIGGER attributes_changed AFTER UPDATE OF attributes ON executions FOR EACH ROW
WHEN (NEW.attributes <> OLD.attributes AND NEW.parent_id IS NULL) EXECUTE FUNCTION index_attributes();
CREATE TRIGGER attributes_pruned AFTER DELETE ON executions FOR EACH ROW
WHEN (OLD.attributes LIKE '{"%' AND OLD.parent_id IS NULL) EXECUTE FUNCTION index_attributes();

-- Roots that have not ended had an entry in `executions_unfinished`; now they have one here instead,
-- so a start writes as many entries as before.
DROP INDEX executions_unfinished;
CREATE INDEX executions_unfinished ON executions (parent_id, child_no) WHERE finished_at IS NULL AND parent_id IS NOT NULL;
CREATE INDEX executions_open ON executions (status, created_at, id) WHERE parent_id IS NULL AND finished_at IS NULL;
-- What few executions are: only these pay for the entry.
CREATE INDEX executions_held ON executions (created_at, id)
WHERE parent_id IS NULL AND status < 5 AND (status = 2 OR paused_at IS NOT NULL);
CREATE INDEX executions_ill ON executions (status, created_at, id) WHERE parent_id IS NULL AND status IN (6, 7, 8);
CREATE INDEX executions_errors ON executions (substring(error from '^\{"code": ?"([^"\\]{1,200})"'), created_at, id)
WHERE parent_id IS NULL AND status IN (6, 7, 8) AND error IS NOT NULL;
CREATE INDEX executions_starters ON executions (started_by, created_at, id) WHERE parent_id IS NULL AND started_by IS NOT NULL;
-- By key first, so that the beginning of a key finds executions of any name; it is as unique as before.
DROP INDEX executions_key;
CREATE UNIQUE INDEX executions_key ON executions (key, name) WHERE key IS NOT NULL;
