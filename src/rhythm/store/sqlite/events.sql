-- name: forget_triggers
DELETE FROM event_triggers WHERE workflow IN (SELECT value FROM json_each(:names)) AND NOT EXISTS (
  SELECT 1 FROM json_each(:triggers) x
  WHERE json_extract(x.value, '$[0]') = event_triggers.type AND json_extract(x.value, '$[1]') = event_triggers.workflow)

-- name: set_triggers
INSERT INTO event_triggers (type, workflow, version, queue, timeout_s)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'), json_extract(value, '$[3]'),
  json_extract(value, '$[4]') FROM json_each(:triggers) WHERE true
ON CONFLICT (type, workflow) DO UPDATE SET version = excluded.version, queue = excluded.queue, timeout_s = excluded.timeout_s

-- name: triggers
SELECT type, workflow, version, queue, timeout_s FROM event_triggers ORDER BY type, workflow

-- name: triggers_of
SELECT type, workflow, version, queue, timeout_s FROM event_triggers WHERE type = ? ORDER BY workflow

-- name: starter_of
-- Who started the execution that publishes, or the one that it belongs to; else itself.
SELECT coalesce(r.started_by, 'execution:' || r.id) FROM executions e JOIN executions r ON r.id = e.root_id WHERE e.id = ?

-- name: settle_wait
UPDATE event_waits SET settled = 1 WHERE execution_id = ? AND n = ? AND event_id IS NOT NULL

-- name: old_events
-- Not what an execution has taken and may still have to read.
SELECT id FROM events e WHERE published_at < ? AND NOT EXISTS (SELECT 1 FROM event_waits w WHERE w.event_id = e.id AND w.settled = 0)
ORDER BY published_at LIMIT ?

-- name: forget_events
DELETE FROM events WHERE id IN (SELECT value FROM json_each(?))

-- name: forget_waits
DELETE FROM event_waits WHERE event_id IS NOT NULL AND event_id IN (SELECT value FROM json_each(?))
