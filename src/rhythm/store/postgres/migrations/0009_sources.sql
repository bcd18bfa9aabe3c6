-- The text of a workflow file is stored once, however many workflows it holds, under its SHA-256.
CREATE TABLE workflow_sources (hash text COLLATE "C" PRIMARY KEY, text text NOT NULL);
ALTER TABLE workflow_definitions ADD COLUMN source_hash text COLLATE "C" NOT NULL DEFAULT '';
UPDATE workflow_definitions SET source_hash = encode(sha256(convert_to(source, 'UTF8')), 'hex');
INSERT INTO workflow_sources (hash, text)
SELECT DISTINCT ON (source_hash) source_hash, source FROM workflow_definitions ORDER BY source_hash;
ALTER TABLE workflow_definitions DROP COLUMN source, ALTER COLUMN source_hash DROP DEFAULT;
ALTER TABLE workflow_definitions ALTER COLUMN file TYPE text USING file || '';  -- written anew, which gives back the room of the texts
COMMENT ON COLUMN workflow_definitions.source_hash IS
  'of the file as it was when this version was new: the places in the program are places in it';
CREATE INDEX definitions_source ON workflow_definitions (source_hash);

-- A new number after every change of a schedule, never used twice. What becomes of its slots is
-- planned before the transaction that writes it, and the plan is valid only for the schedule as it
-- was read.
ALTER TABLE schedules ADD COLUMN revision bigint NOT NULL DEFAULT 0;
