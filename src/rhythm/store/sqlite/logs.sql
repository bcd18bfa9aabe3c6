-- name: log_totals
-- How much is kept of a root, and how much was not.
SELECT {LogTotals} FROM log_totals WHERE root_id = ?

-- name: known_lines
-- Which lines of these executions are there already, where a write may have been committed before.
SELECT l.execution_id, l.turn, l.n FROM log_lines l
WHERE l.root_id = :root AND l.execution_id IN (SELECT value FROM json_each(:ids))

-- name: insert_lines
-- Adds lines behind those that are there.
INSERT INTO log_lines ({LogLine}) VALUES ({:LogLine})

-- name: set_log_totals
-- Writes how much is kept of a root now.
INSERT INTO log_totals ({LogTotals}, oldest_at) VALUES ({:LogTotals}, :now)
ON CONFLICT (root_id) DO UPDATE SET {LogTotals = excluded}

-- name: read_lines
-- A page of the lines of an execution and of everything below it, in their order.
SELECT {LogLine} FROM log_lines WHERE root_id = :root AND position > :after AND level >= :level
  AND (execution_id = :id OR (execution_id >= :first AND execution_id < :last))
ORDER BY position LIMIT :limit

-- name: last_progress
-- The last report of progress of an execution or of anything below it.
SELECT {LogLine} FROM log_lines WHERE root_id = :root AND kind > 0
  AND (execution_id = :id OR (execution_id >= :first AND execution_id < :last))
ORDER BY position DESC LIMIT 1

-- name: old_logs
-- Roots of which lines are older than the retention.
SELECT root_id, lines FROM log_totals WHERE oldest_at < ? ORDER BY oldest_at LIMIT ?

-- name: old_lines
-- How many lines of a root are old, and their bytes.
SELECT count(*), coalesce(sum(length(CAST(message AS BLOB)) + coalesce(length(CAST(fields AS BLOB)), 0)), 0)
FROM log_lines WHERE root_id = ? AND position < ?

-- name: delete_old_lines
-- Deletes the old lines of a root.
DELETE FROM log_lines WHERE root_id = ? AND position < ?

-- name: settle_log_totals
-- Takes deleted lines off the totals of a root.
UPDATE log_totals SET lines = lines - :lines, bytes = bytes - :bytes,
  oldest_at = coalesce((SELECT l.position FROM log_lines l WHERE l.root_id = :id ORDER BY l.position LIMIT 1), oldest_at)
WHERE root_id = :id

-- name: delete_empty_logs
-- Forgets a root of which no line is left.
DELETE FROM log_totals WHERE root_id = ? AND lines = 0
