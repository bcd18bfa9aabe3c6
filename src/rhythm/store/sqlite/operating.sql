-- name: live_family
-- An execution and everything below it, but for what has ended; parents come first.
SELECT id, type, status FROM executions WHERE (id = :id OR (id >= :id || '.' AND id < :id || '/')) AND status < 5 ORDER BY id

-- name: skip_turn
UPDATE workflow_execution_context SET seq = seq + 1 WHERE execution_id = ?

-- name: standing
SELECT id, state, queue, order_key, due_at, claimed_by FROM ready WHERE id IN (SELECT value FROM json_each(?))
