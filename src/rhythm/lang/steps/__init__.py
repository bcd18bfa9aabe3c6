"""JSON steps: workflows as a list of named steps. Defined in docs/json-steps.md."""
