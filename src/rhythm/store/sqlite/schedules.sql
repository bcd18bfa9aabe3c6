-- name: schedules_after
-- A page of schedules by name, for lists; `brief` leaves out their inputs.
SELECT {Schedule but inputs}, CASE WHEN :brief THEN 'null' ELSE inputs END AS inputs FROM schedules WHERE name > :after ORDER BY name LIMIT :limit

-- name: schedules
-- Schedules of these names with their revisions, to show, to change or to plan them.
SELECT {Schedule}, revision FROM schedules WHERE name IN (SELECT value FROM json_each(?)) ORDER BY name

-- name: schedules_of
-- Schedules that the annotations of these workflows have made, at their registration.
SELECT {Schedule}, revision FROM schedules WHERE origin <> '' AND origin IN (SELECT value FROM json_each(?)) ORDER BY name

-- name: due_schedules
-- Schedules that the service may have to fire now, and when the next one is due.
-- Returns the next schedules, whether they are due or not, and those whose queued slot need not
-- wait any longer.
SELECT * FROM (
  SELECT name, next_at, now_us() FROM schedules
  WHERE paused_at IS NULL AND next_at IS NOT NULL AND name NOT IN (SELECT value FROM json_each(:without)) ORDER BY next_at, name LIMIT :limit)
UNION ALL SELECT * FROM (
  SELECT s.name, NULL, now_us() FROM schedules s
  WHERE s.queued_at IS NOT NULL AND s.paused_at IS NULL AND s.name NOT IN (SELECT value FROM json_each(:without)) AND NOT EXISTS (
    SELECT 1 FROM schedule_fires f JOIN executions e ON e.id = f.execution_id WHERE f.schedule = s.name AND f.open = 1 AND e.finished_at IS NULL)
  ORDER BY s.name LIMIT :limit)

-- name: put_schedule
-- Stores a schedule that is new or has changed, under a new revision.
INSERT INTO schedules ({Schedule}, revision) VALUES ({:Schedule}, :revision)
ON CONFLICT (name) DO UPDATE SET {Schedule = excluded but name, created_at, created_by}, revision = excluded.revision

-- name: delete_schedule
-- Deletes a schedule; the rows of its slots are deleted with it.
DELETE FROM schedules WHERE name = ?

-- name: delete_fires
-- Deletes the rows of the slots of a schedule that is deleted.
DELETE FROM schedule_fires WHERE schedule = ?

-- name: move_schedule
-- Moves a schedule on to its next slot; zero rows: it was deleted, or changed since the plan.
-- Without a revision the slots stay as they are, but the new revision invalidates plans that were
-- made before.
UPDATE schedules SET revision = :new, next_at = CASE WHEN :revision IS NULL THEN next_at ELSE :next_at END,
  queued_at = CASE WHEN :revision IS NULL THEN queued_at ELSE :queued_at END
WHERE name = :name AND (:revision IS NULL OR revision = :revision)

-- name: settle_fires
-- Closes the slots of a schedule whose executions have ended or no longer exist.
UPDATE schedule_fires SET open = 0 WHERE schedule = ? AND open = 1
  AND NOT EXISTS (SELECT 1 FROM executions e WHERE e.id = execution_id AND e.finished_at IS NULL)

-- name: running_fires
-- Live executions that these schedules started, to apply the rule for overlaps.
SELECT f.schedule, f.execution_id FROM json_each(?) x CROSS JOIN schedule_fires f ON f.schedule = x.value AND f.open = 1
CROSS JOIN executions e ON e.id = f.execution_id AND e.finished_at IS NULL ORDER BY f.schedule, f.slot_at

-- name: known_slot
-- Whether a slot of the clock has a row already: then it is not run again.
SELECT 1 FROM schedule_fires WHERE schedule = ? AND slot_at = ? AND manual = 0

-- name: insert_fire
-- Records what became of a slot; with an execution it is open.
INSERT INTO schedule_fires ({Fire}, open) VALUES ({:Fire}, :execution_id IS NOT NULL)

-- name: trim_fires
-- Deletes the oldest slots of a schedule beyond the number that is kept; open ones stay.
DELETE FROM schedule_fires WHERE schedule = :name AND open = 0
  AND slot_at <= (SELECT slot_at FROM schedule_fires WHERE schedule = :name ORDER BY slot_at DESC LIMIT 1 OFFSET :kept)

-- name: fires
-- Last slots of one schedule, newest first, to show what became of them.
SELECT {Fire} FROM schedule_fires
WHERE schedule = ? ORDER BY slot_at DESC, rowid DESC LIMIT ?
