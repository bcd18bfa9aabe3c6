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

-- name: overview
-- Counts for operators: at most so many rows of each are read, along indexes.
-- The queues with ready work are found one by one, each with one look-up. `at` of a queue is since
-- when the row waits that is claimed next.
WITH RECURSIVE found(queue) AS (
  (SELECT queue FROM ready WHERE state = 0 AND queue > '' ORDER BY queue LIMIT 1)
  UNION ALL SELECT (SELECT r.queue FROM ready r WHERE r.state = 0 AND r.queue > found.queue ORDER BY r.queue LIMIT 1)
    FROM found WHERE found.queue IS NOT NULL)
SELECT 'now' AS what, '' AS name, 0::bigint AS n, (SELECT now_us()) AS at
UNION ALL SELECT 'live', x.status::text, count(*), NULL FROM (
  SELECT CASE WHEN paused_at IS NOT NULL THEN 2 ELSE status END AS status
  FROM executions WHERE finished_at IS NULL AND type = 0 AND id > '' ORDER BY id LIMIT %(most)s) AS x GROUP BY x.status
UNION ALL SELECT 'ended', x.status::text, count(*), NULL FROM (
  SELECT status FROM executions WHERE parent_id IS NULL AND finished_at IS NOT NULL AND finished_at >= (SELECT now_us()) - %(window_us)s
  ORDER BY finished_at LIMIT %(most)s) AS x GROUP BY x.status
UNION ALL SELECT 'started', '', count(*), NULL FROM (
  SELECT 1 FROM executions WHERE parent_id IS NULL AND created_at >= (SELECT now_us()) - %(window_us)s ORDER BY created_at, id LIMIT %(most)s) AS x
UNION ALL SELECT 'approvals', '', count(*), NULL FROM (
  SELECT 1 FROM approvals WHERE ended_at IS NULL AND created_at > 0 ORDER BY created_at, id LIMIT %(most)s) AS x
UNION ALL SELECT 'paused queue', name, 0, paused_at FROM queues
UNION ALL SELECT 'queue', q.queue,
  (SELECT count(*) FROM (SELECT 1 FROM ready r WHERE r.queue = q.queue AND r.state = 0 ORDER BY r.priority DESC, r.order_key, r.id LIMIT %(most)s) AS x),
  (SELECT r.order_key FROM ready r WHERE r.queue = q.queue AND r.state = 0 ORDER BY r.priority DESC, r.order_key, r.id LIMIT 1)
FROM (SELECT queue FROM found WHERE queue IS NOT NULL LIMIT %(queues)s) AS q

-- name: newest_failures
-- Roots that failed, among the newest that have ended; of a long error only the beginning.
SELECT id, name, at, error FROM (
  SELECT id, name, finished_at AS at, status, substr(error, 1, %(characters)s::int) AS error FROM executions
  WHERE parent_id IS NULL AND finished_at IS NOT NULL AND finished_at > 0 ORDER BY finished_at DESC LIMIT %(among)s) AS x
WHERE status = 6 ORDER BY at DESC LIMIT %(limit)s
