-- name: mark_terminated
INSERT INTO terminations (id, requested_at) VALUES (:id, :now) ON CONFLICT (id) DO NOTHING

-- name: terminated_tasks
-- Tasks of those that were terminated themselves.
SELECT e.id FROM terminations t CROSS JOIN executions e INDEXED BY executions_unfinished ON e.parent_id = t.id
WHERE e.finished_at IS NULL AND e.type = 1 LIMIT ?

-- name: terminated_workflows
-- Workflows below one that was terminated, parents first.
SELECT e.id, e.status FROM terminations t CROSS JOIN executions e INDEXED BY executions_live ON e.id > t.id || '.' AND e.id < t.id || '/'
WHERE e.finished_at IS NULL AND e.type = 0 ORDER BY e.id LIMIT ?

-- name: tasks_of
SELECT e.id FROM json_each(?) x CROSS JOIN executions e INDEXED BY executions_unfinished ON e.parent_id = x.value
WHERE e.finished_at IS NULL AND e.type = 1 LIMIT ?

-- name: forget_terminations
DELETE FROM terminations WHERE 1

-- name: delete_ended_ready
-- A child that ends wakes its parent; one that has ended itself is in no queue.
DELETE FROM ready WHERE id IN (SELECT e.parent_id FROM json_each(?) x JOIN executions e ON e.id = x.value)
  AND EXISTS (SELECT 1 FROM executions p WHERE p.id = ready.id AND p.finished_at IS NOT NULL)

-- name: skip_turn
UPDATE workflow_execution_context SET seq = seq + 1 WHERE execution_id = ?

-- name: standing
SELECT {Standing but since, worker}, order_key AS since, claimed_by AS worker FROM ready WHERE id IN (SELECT value FROM json_each(?))
