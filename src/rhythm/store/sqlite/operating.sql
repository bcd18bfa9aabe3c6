-- name: mark_terminated
-- Marks a workflow as terminated, until passes have ended everything below it.
INSERT INTO terminations (id, requested_at) VALUES (:id, :now) ON CONFLICT (id) DO NOTHING

-- name: terminated_tasks
-- Live tasks of workflows that were terminated themselves, for a pass that ends them.
SELECT e.id FROM terminations t CROSS JOIN executions e INDEXED BY executions_unfinished ON e.parent_id = t.id
WHERE e.finished_at IS NULL AND e.type = 1 LIMIT ?

-- name: terminated_workflows
-- Live workflows below one that was terminated, parents first, for a pass that ends them.
SELECT e.id, e.status FROM terminations t CROSS JOIN executions e INDEXED BY executions_live ON e.id > t.id || '.' AND e.id < t.id || '/'
WHERE e.finished_at IS NULL AND e.type = 0 ORDER BY e.id LIMIT ?

-- name: tasks_of
-- Live tasks of the workflows that a pass of a terminate ends, to be ended with them.
SELECT e.id FROM json_each(?) x CROSS JOIN executions e INDEXED BY executions_unfinished ON e.parent_id = x.value
WHERE e.finished_at IS NULL AND e.type = 1 LIMIT ?

-- name: forget_terminations
-- Deletes all marks of terminate, when a pass has found nothing left to end.
DELETE FROM terminations WHERE 1

-- name: delete_ended_ready
-- Deletes the ready rows of ended parents, which the end of their children has made.
-- A child that ends wakes its parent, but an ended parent must have no ready row.
DELETE FROM ready WHERE id IN (SELECT e.parent_id FROM json_each(?) x JOIN executions e ON e.id = x.value)
  AND EXISTS (SELECT 1 FROM executions p WHERE p.id = ready.id AND p.finished_at IS NOT NULL)

-- name: skip_turn
-- Counts a turn of a workflow that a terminate or a rescue takes in place of its owner.
UPDATE workflow_execution_context SET seq = seq + 1 WHERE execution_id = ?

-- name: standing
-- Ready rows of these executions, to explain what they wait for; a parked one has no row.
SELECT {Standing but since, worker}, order_key AS since, claimed_by AS worker FROM ready WHERE id IN (SELECT value FROM json_each(?))
