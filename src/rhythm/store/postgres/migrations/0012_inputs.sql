ALTER TABLE workflow_definitions ADD COLUMN inputs text;
COMMENT ON COLUMN workflow_definitions.inputs IS
  'the inputs that it declares, as JSON Schema; NULL: it declares none, as all versions that existed before this column';
