-- The key by which an event finds the waits that may want it, among thousands for its type: a hash
-- of one wanted value. Empty: the wait itself must be read, as for waits that existed before this
-- migration.
ALTER TABLE event_waits ADD COLUMN key TEXT NOT NULL DEFAULT '';
DROP INDEX waits_open;
CREATE INDEX waits_open ON event_waits (type, key) WHERE ended_at IS NULL AND held = 0;
