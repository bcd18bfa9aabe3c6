-- name: live_family
-- Executions and everything below them, but for what has ended; parents come first.
SELECT DISTINCT c.id, c.type, c.status FROM unnest(%(ids)s::text[]) AS x(id) CROSS JOIN LATERAL (
  SELECT id, type, status FROM executions WHERE id = x.id AND status < 5
  UNION ALL SELECT id, type, status FROM executions WHERE id >= x.id || '.' AND id < x.id || '/' AND status < 5 OFFSET 0) AS c
ORDER BY c.id

-- name: standing
SELECT id, state, queue, order_key, due_at, claimed_by FROM ready WHERE id = ANY(%(ids)s::text[])
