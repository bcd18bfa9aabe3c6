-- The text of a workflow file is stored once, however many workflows it holds, under its SHA-256.
-- Texts that existed before this migration have a number instead, since SQLite itself cannot hash.
CREATE TABLE workflow_sources (hash TEXT PRIMARY KEY NOT NULL, text TEXT NOT NULL);
INSERT INTO workflow_sources (hash, text)
SELECT 'before-' || rowid, source FROM workflow_definitions
WHERE rowid IN (SELECT min(rowid) FROM workflow_definitions GROUP BY source);

-- The program is the last column, so that lists of workflows need not read past it.
CREATE TABLE definitions_by_hash (
  name TEXT NOT NULL, version TEXT NOT NULL, language TEXT NOT NULL, file TEXT NOT NULL, registered_at INTEGER NOT NULL,
  registration INTEGER NOT NULL,     -- the highest one of a name is current, also after a return to older text
  source_hash TEXT NOT NULL,         -- of the file as it was when this version was new: the places in the program are places in it
  program TEXT NOT NULL,
  PRIMARY KEY (name, version)
);
INSERT INTO definitions_by_hash (name, version, language, file, registered_at, registration, source_hash, program)
SELECT name, version, language, file, registered_at, registration, 'before-' || min(rowid) OVER (PARTITION BY source), program
FROM workflow_definitions;
DROP TABLE workflow_definitions;
ALTER TABLE definitions_by_hash RENAME TO workflow_definitions;
CREATE UNIQUE INDEX definitions_current ON workflow_definitions (name, registration);
CREATE INDEX definitions_source ON workflow_definitions (source_hash);

-- A new number after every change of a schedule, never used twice. What becomes of its slots is
-- planned before the transaction that writes it, and the plan is valid only for the schedule as it
-- was read.
ALTER TABLE schedules ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
