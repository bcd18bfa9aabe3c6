-- name: schedules_after
-- A page of schedules by name, for lists; `brief` leaves out their inputs.
SELECT {Schedule but inputs}, CASE WHEN %(brief)s THEN 'null' ELSE inputs END AS inputs FROM schedules WHERE name > %(after)s ORDER BY name LIMIT %(limit)s

-- name: schedules
-- Schedules by their names, without a lock, to show them or to plan what to fire.
SELECT {Schedule}, revision, now_us() AS now FROM schedules WHERE name = ANY(%(names)s::text[]) ORDER BY name

-- name: lock_schedules
-- Locks schedules that somebody changes; one that does not exist has no row.
SELECT {Schedule}, revision, now_us() AS now FROM schedules WHERE name = ANY(%(names)s::text[]) ORDER BY name FOR UPDATE

-- name: lock_free_schedules
-- Locks schedules that the service fires; those that another process has locked are left out.
SELECT name, revision, now_us() FROM schedules WHERE name = ANY(%(names)s::text[]) ORDER BY name FOR UPDATE SKIP LOCKED

-- name: lock_revisions
-- Locks schedules that an actor runs by hand; waits for other processes.
SELECT name, revision, now_us() FROM schedules WHERE name = ANY(%(names)s::text[]) ORDER BY name FOR UPDATE

-- name: lock_schedules_of
-- Locks the schedules that annotations of these workflows made, within their registration.
SELECT {Schedule}, revision, now_us() AS now FROM schedules WHERE origin = ANY(%(workflows)s::text[]) AND origin <> '' ORDER BY name FOR UPDATE

-- name: due_schedules
-- Schedules that the service may have to fire now, and when the next one is due.
-- Returns the next schedules, whether they are due or not, and those whose queued slot need not
-- wait any longer.
(SELECT name, next_at, now_us() FROM schedules
 WHERE paused_at IS NULL AND next_at IS NOT NULL AND name <> ALL(%(without)s::text[]) ORDER BY next_at, name LIMIT %(limit)s)
UNION ALL
(SELECT s.name, NULL, now_us() FROM schedules s
 WHERE s.queued_at IS NOT NULL AND s.paused_at IS NULL AND s.name <> ALL(%(without)s::text[]) AND NOT EXISTS (
   SELECT 1 FROM schedule_fires f JOIN executions e ON e.id = f.execution_id WHERE f.schedule = s.name AND f.open AND e.status < 5)
 ORDER BY s.name LIMIT %(limit)s)

-- name: put_schedules
-- Creates or changes schedules; the new revision invalidates plans for the old one.
INSERT INTO schedules ({Schedule}, revision)
SELECT {x.Schedule}, nextval('fences') FROM unnest({%Schedule}) AS x({Schedule})
ON CONFLICT (name) DO UPDATE SET {Schedule = excluded but name, created_at, created_by}, revision = excluded.revision

-- name: delete_schedules
-- Deletes schedules and their slots; the executions that they started stay.
WITH gone AS (DELETE FROM schedules WHERE name = ANY(%(names)s::text[]))
DELETE FROM schedule_fires WHERE schedule = ANY(%(names)s::text[])

-- name: move_schedules
-- Moves schedules on to their next slot after a fire, under a new revision.
-- Without a revision the slots stay as they are, but the new revision invalidates plans that were
-- made before.
UPDATE schedules s SET revision = nextval('fences'), next_at = CASE WHEN x.revision IS NULL THEN s.next_at ELSE x.next_at END,
  queued_at = CASE WHEN x.revision IS NULL THEN s.queued_at ELSE x.queued_at END
FROM unnest(%(name)s::text[], %(revision)s::bigint[], %(next_at)s::bigint[], %(queued_at)s::bigint[]) AS x(name, revision, next_at, queued_at)
WHERE s.name = x.name

-- name: settle_fires
-- Closes slots whose execution has ended, before a schedule fires.
UPDATE schedule_fires f SET open = false WHERE f.schedule = ANY(%(names)s::text[]) AND f.open
  AND NOT EXISTS (SELECT 1 FROM executions e WHERE e.id = f.execution_id AND e.status < 5 OFFSET 0)

-- name: running_fires
-- Live executions that these schedules started, to apply the rule for overlaps.
SELECT f.schedule, f.execution_id FROM schedule_fires f JOIN executions e ON e.id = f.execution_id AND e.status < 5
WHERE f.schedule = ANY(%(names)s::text[]) AND f.open ORDER BY f.schedule, f.slot_at

-- name: known_slots
-- Slots that have a row already, and are not fired again.
SELECT f.schedule, f.slot_at FROM unnest(%(schedule)s::text[], %(slot_at)s::bigint[]) AS x(schedule, slot_at)
JOIN schedule_fires f ON f.schedule = x.schedule AND f.slot_at = x.slot_at AND NOT f.manual

-- name: insert_fires
-- Stores what became of slots; one with an execution is open until that has ended.
INSERT INTO schedule_fires ({Fire but at}, at, open)
SELECT {x.Fire but at}, %(now)s, x.execution_id IS NOT NULL FROM unnest({%Fire but at}) AS x({Fire but at})

-- name: trim_fires
-- Deletes the oldest slots of schedules beyond the number that is kept; open ones stay.
DELETE FROM schedule_fires f USING (
  SELECT n.name, (SELECT o.slot_at FROM schedule_fires o WHERE o.schedule = n.name ORDER BY o.slot_at DESC OFFSET %(kept)s LIMIT 1) AS last
  FROM unnest(%(names)s::text[]) AS n(name)) AS x
WHERE f.schedule = x.name AND f.slot_at <= x.last AND NOT f.open

-- name: fires
-- Last slots of one schedule, newest first, to show what became of them.
SELECT {Fire} FROM schedule_fires
WHERE schedule = %(name)s ORDER BY slot_at DESC, n DESC LIMIT %(limit)s
