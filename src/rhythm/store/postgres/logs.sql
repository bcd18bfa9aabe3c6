-- name: lock_log_totals
-- Takes the turn of a writer at these roots, and returns how much is kept of each.
INSERT INTO log_totals AS t (root_id, lines, bytes, dropped, position, oldest_at)
SELECT x.id, 0, 0, 0, 0, (SELECT now_us()) FROM unnest(%(ids)s::text[]) AS x(id) ORDER BY x.id COLLATE "C"
ON CONFLICT (root_id) DO UPDATE SET lines = t.lines RETURNING {t.LogTotals}, now_us() AS now

-- name: known_lines
-- Which lines of these executions are there already, where a write may have been committed before.
SELECT l.execution_id, l.turn, l.n FROM log_lines l
WHERE l.root_id = ANY(%(roots)s::text[]) AND l.execution_id = ANY(%(ids)s::text[])

-- name: insert_lines
-- Adds lines behind those that are there.
INSERT INTO log_lines ({LogLine}) SELECT {x.LogLine} FROM unnest({%LogLine}) AS x({LogLine})

-- name: set_log_totals
-- Writes how much is kept of each root now.
UPDATE log_totals t SET lines = x.lines, bytes = x.bytes, dropped = x.dropped, position = x.position
FROM unnest({%LogTotals}) AS x({LogTotals}) WHERE t.root_id = ANY(ARRAY[x.root_id])

-- name: read_lines
-- A page of the lines of an execution and of everything below it, in their order.
SELECT {LogLine} FROM log_lines WHERE root_id = %(root)s AND position > %(after)s AND level >= %(level)s
  AND (execution_id = %(id)s OR (execution_id >= %(first)s AND execution_id < %(last)s))
ORDER BY position LIMIT %(limit)s

-- name: last_progress
-- The last report of progress of an execution or of anything below it.
SELECT {LogLine} FROM log_lines WHERE root_id = %(root)s AND kind > 0
  AND (execution_id = %(id)s OR (execution_id >= %(first)s AND execution_id < %(last)s))
ORDER BY position DESC LIMIT 1

-- name: log_totals
-- How much is kept of a root, and how much was not.
SELECT {LogTotals} FROM log_totals WHERE root_id = %(id)s

-- name: old_logs
-- Roots of which lines are older than the retention, and the position before which they are.
SELECT root_id, lines, (SELECT now_us()) - %(age_us)s AS before FROM log_totals
WHERE oldest_at < (SELECT now_us()) - %(age_us)s ORDER BY oldest_at LIMIT %(limit)s

-- name: hold_log_totals
-- Keeps writers of these roots away while their old lines are deleted.
SELECT root_id FROM log_totals WHERE root_id = ANY(%(ids)s::text[]) ORDER BY root_id COLLATE "C" FOR UPDATE

-- name: delete_old_lines
-- Deletes the old lines of these roots, and returns how many there were of each, and their bytes.
WITH gone AS (
  DELETE FROM log_lines WHERE root_id = ANY(%(ids)s::text[]) AND position < %(before)s
  RETURNING root_id, octet_length(message) + coalesce(octet_length(fields), 0) AS size)
SELECT root_id, count(*), sum(size)::bigint FROM gone GROUP BY root_id

-- name: settle_log_totals
-- Takes deleted lines off the totals of these roots.
UPDATE log_totals t SET lines = t.lines - x.lines, bytes = t.bytes - x.bytes,
  oldest_at = coalesce((SELECT l.position FROM log_lines l WHERE l.root_id = t.root_id ORDER BY l.position LIMIT 1), t.oldest_at)
FROM unnest(%(id)s::text[], %(lines)s::bigint[], %(bytes)s::bigint[]) AS x(id, lines, bytes) WHERE t.root_id = ANY(ARRAY[x.id])

-- name: delete_empty_logs
-- Forgets those of these roots of which no line is left.
DELETE FROM log_totals WHERE root_id = ANY(%(ids)s::text[]) AND lines = 0

-- name: prune_log_lines
-- Deletes the lines of families that are pruned, given by their roots.
DELETE FROM log_lines WHERE root_id = ANY(%(ids)s::text[])

-- name: prune_log_totals
-- Deletes the totals of families that are pruned, given by their roots.
DELETE FROM log_totals WHERE root_id = ANY(%(ids)s::text[])
