-- name: forget_triggers
DELETE FROM event_triggers WHERE workflow = :workflow AND type NOT IN (SELECT value FROM json_each(:types))

-- name: set_triggers
INSERT INTO event_triggers (type, workflow, version, queue, timeout_s)
SELECT value, :workflow, :version, :queue, :timeout_s FROM json_each(:types) WHERE true
ON CONFLICT (type, workflow) DO UPDATE SET version = excluded.version, queue = excluded.queue, timeout_s = excluded.timeout_s

-- name: triggers
SELECT type, workflow, version, queue, timeout_s FROM event_triggers ORDER BY type, workflow

-- name: triggers_of
SELECT type, workflow, version, queue, timeout_s FROM event_triggers WHERE type = ? ORDER BY workflow

-- name: starter_of
-- Who started the execution that publishes, or the one that it belongs to; else itself.
SELECT coalesce(r.started_by, 'execution:' || r.id) FROM executions e JOIN executions r ON r.id = e.root_id WHERE e.id = ?

-- name: delete_events
-- Not what an execution has taken: it may still have to read it.
DELETE FROM events WHERE id IN (
  SELECT id FROM events e WHERE published_at < ? AND NOT EXISTS (SELECT 1 FROM event_waits w WHERE w.event_id = e.id)
  ORDER BY published_at LIMIT ?)
