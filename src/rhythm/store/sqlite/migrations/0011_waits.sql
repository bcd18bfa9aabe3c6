-- By which an event finds those who may wait for it, among thousands that wait for its type: one of the values that they want. Empty:
-- only reading the wait tells, as for those that are there already.
ALTER TABLE event_waits ADD COLUMN key TEXT NOT NULL DEFAULT '';
DROP INDEX waits_open;
CREATE INDEX waits_open ON event_waits (type, key) WHERE ended_at IS NULL AND held = 0;
