-- name: mark_terminated
-- Marks workflows as terminated, so that everything below them stops and is ended in passes.
INSERT INTO terminations (id, requested_at) SELECT x.id, %(now)s FROM unnest(%(ids)s::text[]) AS x(id) ORDER BY x.id ON CONFLICT (id) DO NOTHING

-- name: terminated_tasks
-- Live tasks of workflows that were terminated themselves, for a pass that ends them.
SELECT e.id, e.parent_id FROM terminations t CROSS JOIN LATERAL (
  SELECT id, parent_id FROM executions WHERE parent_id = t.id AND finished_at IS NULL AND type = 1 LIMIT %(limit)s) AS e
LIMIT %(limit)s

-- name: terminated_workflows
-- Live workflows below one that was terminated, parents first, for a pass that ends them.
SELECT e.id, e.parent_id FROM terminations t CROSS JOIN LATERAL (
  SELECT id, parent_id FROM executions WHERE finished_at IS NULL AND type = 0 AND id > t.id || '.' AND id < t.id || '/'
  ORDER BY id LIMIT %(limit)s) AS e
ORDER BY e.id LIMIT %(limit)s

-- name: tasks_of
-- Live tasks of the workflows that a pass of a terminate ends, to be ended with them.
SELECT e.id, e.parent_id FROM unnest(%(ids)s::text[]) AS x(id) CROSS JOIN LATERAL (
  SELECT id, parent_id FROM executions WHERE parent_id = x.id AND finished_at IS NULL AND type = 1 LIMIT %(limit)s) AS e
LIMIT %(limit)s

-- name: forget_terminations
-- Deletes the marks of terminated workflows below which everything has ended.
DELETE FROM terminations t WHERE NOT EXISTS (
    SELECT 1 FROM executions e WHERE e.finished_at IS NULL AND e.type = 0 AND e.id > t.id || '.' AND e.id < t.id || '/')
  AND NOT EXISTS (SELECT 1 FROM executions e WHERE e.parent_id = t.id AND e.finished_at IS NULL)

-- name: delete_ended_ready
-- Deletes the ready rows of executions that have ended, as the last step of a terminate.
-- A child that ends wakes its parent, but an ended parent must have no ready row.
DELETE FROM ready r USING executions e WHERE r.id = ANY(%(ids)s::text[]) AND e.id = ANY(ARRAY[r.id]) AND e.status >= 5

-- name: standing
-- Ready rows of these executions, to explain what they wait for; a parked one has no row.
SELECT {Standing but since, worker}, order_key AS since, claimed_by AS worker FROM ready WHERE id = ANY(%(ids)s::text[])
