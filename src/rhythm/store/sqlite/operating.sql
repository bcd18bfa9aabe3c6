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

-- name: overview
-- Counts for operators: at most so many rows of each are read, along indexes.
-- The queues with ready work are found one by one, each with one look-up. `at` of a queue is since
-- when the row waits that is claimed next.
WITH RECURSIVE found(queue) AS (
  SELECT * FROM (SELECT queue FROM ready WHERE state = 0 AND queue > '' ORDER BY queue LIMIT 1)
  UNION ALL SELECT (SELECT r.queue FROM ready r WHERE r.state = 0 AND r.queue > found.queue ORDER BY r.queue LIMIT 1)
    FROM found WHERE found.queue IS NOT NULL)
SELECT 'live' AS what, status AS name, count(*) AS n, NULL AS at FROM (
  SELECT CASE WHEN paused_at IS NOT NULL THEN 2 ELSE status END AS status
  FROM executions INDEXED BY executions_live WHERE finished_at IS NULL AND type = 0 AND id > '' LIMIT :most) GROUP BY status
UNION ALL SELECT 'ended', status, count(*), NULL FROM (
  SELECT status FROM executions WHERE parent_id IS NULL AND finished_at IS NOT NULL AND finished_at >= :since LIMIT :most) GROUP BY status
UNION ALL SELECT 'started', '', count(*), NULL FROM (
  SELECT 1 FROM executions INDEXED BY executions_newest WHERE parent_id IS NULL AND created_at >= :since LIMIT :most)
UNION ALL SELECT 'approvals', '', count(*), NULL FROM (
  SELECT 1 FROM approvals INDEXED BY approvals_open WHERE ended_at IS NULL AND created_at > 0 LIMIT :most)
UNION ALL SELECT 'paused queue', name, 0, paused_at FROM queues
UNION ALL SELECT 'queue', line.queue,
  (SELECT count(*) FROM (SELECT 1 FROM ready r WHERE r.queue = line.queue AND r.state = 0 LIMIT :most)),
  (SELECT r.order_key FROM ready r WHERE r.queue = line.queue AND r.state = 0 ORDER BY r.priority DESC, r.order_key LIMIT 1)
FROM (SELECT queue FROM found WHERE queue IS NOT NULL LIMIT :queues) AS line

-- name: newest_failures
-- Roots that failed, among the newest that have ended; of a long error only the beginning.
SELECT id, name, at, error FROM (
  SELECT id, name, finished_at AS at, status, substr(error, 1, :characters) AS error FROM executions
  WHERE parent_id IS NULL AND finished_at IS NOT NULL AND finished_at > 0 ORDER BY finished_at DESC LIMIT :among) AS line
WHERE status = 6 ORDER BY at DESC LIMIT :limit
