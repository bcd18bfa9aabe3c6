-- name: forget_triggers
DELETE FROM event_triggers WHERE workflow IN (SELECT value FROM json_each(:names)) AND NOT EXISTS (
  SELECT 1 FROM json_each(:triggers) x
  WHERE json_extract(x.value, '$.type') = event_triggers.type AND json_extract(x.value, '$.workflow') = event_triggers.workflow)

-- name: set_triggers
INSERT INTO event_triggers ({Trigger}) SELECT {$Trigger} FROM json_each(:triggers) WHERE true
ON CONFLICT (type, workflow) DO UPDATE SET {Trigger = excluded but type, workflow}

-- name: triggers
SELECT {Trigger} FROM event_triggers ORDER BY type, workflow

-- name: triggers_of
SELECT {Trigger} FROM event_triggers WHERE type = ? ORDER BY workflow

-- name: sender
-- An execution whose turn publishes events or sends signals: who started its family, everyone who had a hand in it, and its authority.
SELECT r.started_by AS started_by, r.id AS root_id, e.authority AS authority,
  (SELECT json_group_array(c.person) FROM execution_contributors c WHERE c.root_id = e.root_id) AS people
FROM executions e JOIN executions r ON r.id = e.root_id WHERE e.id = ?

-- name: insert_contributor
-- Everyone once for each family; beyond the limit, one who stands for all.
INSERT INTO execution_contributors (root_id, person, at)
SELECT e.root_id,
  CASE WHEN EXISTS (SELECT 1 FROM execution_contributors c WHERE c.root_id = e.root_id AND c.person = :person)
      OR (SELECT count(*) FROM execution_contributors c WHERE c.root_id = e.root_id) < :most
    THEN :person ELSE :everybody END, :now
FROM executions e WHERE e.id = :id
ON CONFLICT (root_id, person) DO NOTHING

-- name: copy_contributors
-- A retry goes on with what the one before was given.
INSERT INTO execution_contributors (root_id, person, at) SELECT :id, person, :now FROM execution_contributors WHERE root_id = :retry_of

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
