-- name: forget_triggers
-- Deletes event triggers that a workflow no longer names, within its registration.
DELETE FROM event_triggers t WHERE t.workflow = ANY(%(names)s::text[]) AND NOT EXISTS (
  SELECT 1 FROM unnest(%(type)s::text[], %(workflow)s::text[]) AS x(type, workflow) WHERE x.type = t.type AND x.workflow = t.workflow)

-- name: set_triggers
-- Stores the triggers of registered workflows, with the version that an event starts.
-- Unchanged rows are not written: every process that starts registers its workflows.
INSERT INTO event_triggers ({Trigger}) SELECT {x.Trigger} FROM unnest({%Trigger}) AS x({Trigger})
ON CONFLICT (type, workflow) DO UPDATE SET {Trigger = excluded but type, workflow}
WHERE (event_triggers.version, event_triggers.queue, event_triggers.timeout_s)
  IS DISTINCT FROM (excluded.version, excluded.queue, excluded.timeout_s)

-- name: triggers
-- All event triggers, to show which events start which workflows.
SELECT {Trigger} FROM event_triggers ORDER BY type, workflow

-- name: triggers_of
-- Event triggers of the types that were just published, to start their workflows.
SELECT {Trigger} FROM event_triggers WHERE type = ANY(%(types)s::text[]) ORDER BY type, workflow

-- name: senders
-- Who is behind the events and signals of these turns, for the audit and for permissions.
-- Returns who started the family of each execution, everyone who took part in it, and the
-- authority of the execution.
SELECT e.id, r.started_by, r.id AS root_id, e.authority,
  ARRAY(SELECT c.person FROM execution_contributors c WHERE c.root_id = e.root_id ORDER BY c.person) AS people
FROM executions e JOIN executions r ON r.id = ANY(ARRAY[e.root_id]) WHERE e.id = ANY(%(ids)s::text[])

-- name: insert_contributors
-- Adds people who gave data to executions to the contributors of their families.
-- Everyone is added once for each family; beyond the limit, one name stands for all. The rows are
-- sorted, so that two transactions that add the same people do not deadlock.
INSERT INTO execution_contributors (root_id, person, at)
SELECT DISTINCT e.root_id,
  CASE WHEN EXISTS (SELECT 1 FROM execution_contributors c WHERE c.root_id = e.root_id AND c.person = x.person)
      OR (SELECT count(*) FROM execution_contributors c WHERE c.root_id = e.root_id) < %(most)s
    THEN x.person ELSE %(everybody)s END,
  %(now)s::bigint
FROM unnest(%(id)s::text[], %(person)s::text[]) AS x(id, person) JOIN executions e ON e.id = ANY(ARRAY[x.id])
ORDER BY 1, 2 ON CONFLICT (root_id, person) DO NOTHING

-- name: copy_contributors
-- Gives a retry the contributors of the execution that it retries.
-- A retry goes on with the data that the first execution was given.
INSERT INTO execution_contributors (root_id, person, at)
SELECT %(id)s, person, %(now)s::bigint FROM execution_contributors WHERE root_id = %(retry_of)s

-- name: prune_contributors
-- Deletes the contributors of families that are pruned, given by their roots.
DELETE FROM execution_contributors WHERE root_id = ANY(%(ids)s::text[])

-- name: old_events
-- Events that are old enough to be pruned.
-- Events that an execution has taken and may still have to read are left out.
SELECT id, type FROM events e WHERE published_at < now_us() - %(age_us)s::bigint
  AND NOT EXISTS (SELECT 1 FROM event_waits w WHERE w.event_id = e.id AND NOT w.settled) ORDER BY published_at LIMIT %(limit)s

-- name: hold_types
-- Locks the types of events that are to be pruned, before they are deleted.
-- So a new wait cannot find an event that is being deleted.
SELECT type FROM event_types WHERE type = ANY(%(types)s::text[]) ORDER BY type FOR UPDATE

-- name: delete_events
-- Deletes events with their waits, and returns them; one that was taken meanwhile stays.
WITH gone AS (
  DELETE FROM events e WHERE e.id = ANY(%(ids)s::text[])
    AND NOT EXISTS (SELECT 1 FROM event_waits w WHERE w.event_id = e.id AND NOT w.settled) RETURNING e.id),
waits AS (DELETE FROM event_waits w WHERE w.event_id = ANY(ARRAY(SELECT gone.id FROM gone)))
SELECT gone.id FROM gone
