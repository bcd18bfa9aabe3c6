-- Loops over signals and events: each finds the next one without passing those that it has taken, or
-- those that are for others.
CREATE INDEX signals_named ON workflow_signals (execution_id, name, n) WHERE consumed_seq IS NULL;
CREATE INDEX waits_seen ON event_waits (execution_id, type, key, n) WHERE event_id IS NOT NULL;
DROP INDEX waits_taken;
CREATE INDEX waits_taken ON event_waits (event_id, execution_id) WHERE event_id IS NOT NULL;
