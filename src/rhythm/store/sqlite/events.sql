-- name: forget_triggers
-- Deletes event triggers that a workflow no longer names, within its registration.
DELETE FROM event_triggers WHERE workflow IN (SELECT value FROM json_each(:names)) AND NOT EXISTS (
  SELECT 1 FROM json_each(:triggers) x
  WHERE json_extract(x.value, '$.type') = event_triggers.type AND json_extract(x.value, '$.workflow') = event_triggers.workflow)

-- name: set_triggers
-- Stores the triggers of registered workflows, with the version that an event starts.
INSERT INTO event_triggers ({Trigger}) SELECT {$Trigger} FROM json_each(:triggers) WHERE true
ON CONFLICT (type, workflow) DO UPDATE SET {Trigger = excluded but type, workflow}

-- name: triggers
-- All event triggers, to show which events start which workflows.
SELECT {Trigger} FROM event_triggers ORDER BY type, workflow

-- name: triggers_of
-- Workflows that an event of this type starts, in the transaction that publishes it.
SELECT {Trigger} FROM event_triggers WHERE type = ? ORDER BY workflow

-- name: sender
-- Sender of a turn's events and signals: who started its family, its contributors and authority.
SELECT r.started_by AS started_by, r.id AS root_id, e.authority AS authority,
  (SELECT json_group_array(c.person) FROM execution_contributors c WHERE c.root_id = e.root_id) AS people
FROM executions e JOIN executions r ON r.id = e.root_id WHERE e.id = ?

-- name: insert_contributor
-- Records that the data of a person came into an execution, for all of its family.
-- Everyone is added once for each family; beyond the limit, one name stands for all.
INSERT INTO execution_contributors (root_id, person, at)
SELECT e.root_id,
  CASE WHEN EXISTS (SELECT 1 FROM execution_contributors c WHERE c.root_id = e.root_id AND c.person = :person)
      OR (SELECT count(*) FROM execution_contributors c WHERE c.root_id = e.root_id) < :most
    THEN :person ELSE :everybody END, :now
FROM executions e WHERE e.id = :id
ON CONFLICT (root_id, person) DO NOTHING

-- name: copy_contributors
-- Gives a retry the contributors of the execution that it retries.
-- A retry goes on with the data that the first execution was given.
INSERT INTO execution_contributors (root_id, person, at) SELECT :id, person, :now FROM execution_contributors WHERE root_id = :retry_of

-- name: settle_wait
-- Marks a wait whose event its workflow will not read again: the event may be pruned.
UPDATE event_waits SET settled = 1 WHERE execution_id = ? AND n = ? AND event_id IS NOT NULL

-- name: old_events
-- Events that are old enough to be pruned.
-- Events that an execution has taken and may still have to read are left out.
SELECT id FROM events e WHERE published_at < ? AND NOT EXISTS (SELECT 1 FROM event_waits w WHERE w.event_id = e.id AND w.settled = 0)
ORDER BY published_at LIMIT ?

-- name: forget_events
-- Deletes events that are pruned.
DELETE FROM events WHERE id IN (SELECT value FROM json_each(?))

-- name: forget_waits
-- Deletes the waits that took the events that are pruned.
DELETE FROM event_waits WHERE event_id IS NOT NULL AND event_id IN (SELECT value FROM json_each(?))
