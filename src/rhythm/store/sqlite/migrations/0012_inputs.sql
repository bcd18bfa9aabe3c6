-- The inputs that a workflow declares, as JSON Schema. NULL: it declares none, as all versions that
-- existed before this migration. The program stays the last column, so that lists of workflows need
-- not read past it.
CREATE TABLE definitions_with_inputs (
  name TEXT NOT NULL, version TEXT NOT NULL, language TEXT NOT NULL, file TEXT NOT NULL, registered_at INTEGER NOT NULL,
  registration INTEGER NOT NULL,     -- the highest one of a name is current, also after a return to older text
  source_hash TEXT NOT NULL,         -- of the file as it was when this version was new: the places in the program are places in it
  inputs TEXT,
  program TEXT NOT NULL,
  PRIMARY KEY (name, version)
);
INSERT INTO definitions_with_inputs (name, version, language, file, registered_at, registration, source_hash, program)
SELECT name, version, language, file, registered_at, registration, source_hash, program FROM workflow_definitions;
DROP TABLE workflow_definitions;
ALTER TABLE definitions_with_inputs RENAME TO workflow_definitions;
CREATE UNIQUE INDEX definitions_current ON workflow_definitions (name, registration);
CREATE INDEX definitions_source ON workflow_definitions (source_hash);
