-- name: next_fence
-- Draws a fence for a promoted task, a rescue or a terminate, or a revision for a schedule.
UPDATE fences SET n = n + 1 RETURNING n

-- name: fences_up
-- Draws the fences of a whole batch of claims at once, and returns the highest of them.
UPDATE fences SET n = n + ? RETURNING n

-- name: register_definitions
-- Stores new versions of workflows, and makes these the current ones of their names.
-- A version that exists is not changed: only its place among the versions of its name changes.
INSERT INTO workflow_definitions ({Definition}, registered_at, registration, source_hash)
SELECT {x.Definition}, now_us(),
  (SELECT coalesce(max(registration), 0) FROM workflow_definitions d WHERE d.name = x.name) + row_number() OVER (PARTITION BY x.name ORDER BY x.ord),
  x.source_hash
FROM (SELECT key AS ord, {$Definition}, json_extract(value, '$.source_hash') AS source_hash FROM json_each(:definitions)) x
WHERE x.version IS NOT (SELECT d.version FROM workflow_definitions d WHERE d.name = x.name ORDER BY registration DESC LIMIT 1)
ON CONFLICT (name, version) DO UPDATE SET registration = excluded.registration, registered_at = excluded.registered_at

-- name: keep_sources
-- Stores the texts of registered versions, each once, under its hash.
-- Only texts that a version refers to are stored: a text whose workflows all existed before is not
-- needed.
INSERT INTO workflow_sources (hash, text)
SELECT x.key, x.value FROM json_each(:sources) x
WHERE EXISTS (SELECT 1 FROM workflow_definitions d WHERE d.source_hash = x.key) ON CONFLICT (hash) DO NOTHING

-- name: definition_current
-- Current version of a workflow, with its text; no row means that it is not registered.
SELECT {d.Definition}, s.text AS source FROM workflow_definitions d JOIN workflow_sources s ON s.hash = d.source_hash
WHERE d.name = ? ORDER BY d.registration DESC LIMIT 1

-- name: definition_version
-- One version of a workflow, with its text; no row means that it is not registered.
SELECT {d.Definition}, s.text AS source FROM workflow_definitions d JOIN workflow_sources s ON s.hash = d.source_hash
WHERE d.name = ? AND d.version = ?

-- name: versions
-- The versions of a workflow, that which became current last first.
SELECT version FROM workflow_definitions WHERE name = ? ORDER BY registration DESC LIMIT ?

-- name: program
-- Program of one version of a workflow, to take turns with; its text is not read.
SELECT program FROM workflow_definitions WHERE name = ? AND version = ?

-- name: current_version
-- Current version of a workflow; no row means that it is not registered.
SELECT version FROM workflow_definitions WHERE name = ? ORDER BY registration DESC LIMIT 1

-- name: current_definitions
-- Current versions of these workflows, without text and program, which may be large.
SELECT {d.Listed} FROM json_each(?) x JOIN workflow_definitions d ON d.name = x.value
WHERE d.registration = (SELECT max(registration) FROM workflow_definitions WHERE name = d.name)

-- name: definitions_after
-- A page of the current versions of workflows by name, for lists.
-- It goes from name to name along the index: a name is one step, however many versions it has.
WITH RECURSIVE names(name) AS (
  SELECT min(name) FROM workflow_definitions WHERE name > :after
  UNION ALL SELECT (SELECT min(d.name) FROM workflow_definitions d WHERE d.name > part.name) FROM names part WHERE part.name IS NOT NULL LIMIT :limit)
SELECT {d.Listed} FROM names part JOIN workflow_definitions d ON d.name = part.name
WHERE d.registration = (SELECT max(registration) FROM workflow_definitions WHERE name = part.name) ORDER BY d.name

-- name: insert_execution
-- Creates the row of a new execution; zero rows: its id, or its name and key, are taken.
INSERT INTO executions ({NewExecution but root_id}, root_id, status, created_at, timeout_us, timeout_at)
VALUES ({:NewExecution but root_id}, :root, 0, :now + :later_us, :timeout_us, CASE WHEN NOT :held THEN :now + :delay_us + :timeout_us END)
ON CONFLICT DO NOTHING

-- name: start_alike
-- Creates the rows of new roots that differ only in their ids, which are new, and their inputs.
INSERT INTO executions (id, inputs, root_id, {NewExecution but id, inputs, root_id}, status, created_at, timeout_us, timeout_at)
SELECT x.key, x.value, x.key, {:NewExecution but id, inputs, root_id}, 0, :now, :timeout_us, :now + :delay_us + :timeout_us
FROM json_each(:inputs_of) x

-- name: start_alike_contexts
-- Creates the contexts of new workflows that differ only in their ids and inputs.
INSERT INTO workflow_execution_context (execution_id, seq, fence, format, statement, snapshot, owned, awaiting, updated_at)
SELECT x.value, 0, 0, 1, 0, NULL, '[]', 'null', :now FROM json_each(:ids) x

-- name: start_alike_ready
-- Puts new roots that differ only in their ids and inputs into their queue, free or delayed.
INSERT INTO ready (id, kind, queue, priority, order_key, state, due_at)
SELECT x.value, :type, :queue, :priority, :now, CASE WHEN :delay_us > 0 THEN 2 ELSE 0 END, CASE WHEN :delay_us > 0 THEN :now + :delay_us END
FROM json_each(:ids) x

-- name: index_attributes
-- Makes the attributes of new roots searchable: the same as the trigger does when they change.
INSERT INTO execution_attributes (name, value, created_at, execution_id)
SELECT x.name, x.value, x.created_at, x.id FROM (
  SELECT e.id, e.created_at, a.key AS name, CASE a.type WHEN 'text' THEN json_quote(a.value)
    WHEN 'integer' THEN CAST(a.value AS TEXT) WHEN 'real' THEN CAST(a.value AS TEXT) ELSE a.type END AS value
  FROM json_each(?) i CROSS JOIN executions e ON e.id = i.value AND e.parent_id IS NULL CROSS JOIN json_each(e.attributes) a
  WHERE a.type NOT IN ('array', 'object')) x
WHERE length(CAST(x.value AS BLOB)) <= 600

-- name: existing_execution
-- The execution that has the id, or the name and key, which `insert_execution` found taken.
SELECT id, name FROM executions WHERE id = :id OR (name = :name AND key = :key) ORDER BY id = :id DESC LIMIT 1

-- name: keyed
-- Execution with the idempotency key of a start that replaces it.
SELECT id FROM executions WHERE name = ? AND key = ?

-- name: let_go_of_key
-- Takes the idempotency key from an execution that is being replaced.
UPDATE executions SET key = NULL WHERE id = ?

-- name: insert_context
-- Creates the context of a new workflow, before its first turn; a task has none.
INSERT INTO workflow_execution_context (execution_id, seq, fence, format, statement, snapshot, owned, awaiting, updated_at)
VALUES (?, 0, 0, 1, 0, ?, '[]', 'null', ?)

-- name: insert_ready
-- Puts an execution that starts or is released into its queue, free or delayed.
INSERT INTO ready (id, kind, queue, priority, order_key, state, due_at, attempt, crashes)
VALUES (:id, :type, :queue, :priority, :now, :state, :due_at, :attempt, :crashes)

-- name: insert_claimed
-- Creates the ready row of a task that its workflow's owner runs already, claimed by that owner.
INSERT INTO ready (id, kind, queue, priority, order_key, state, claimed_by, claim_expires_at, fence, attempt)
VALUES (:id, 1, :queue, :priority, :now, 1, :worker, :expires_at, :fence, :attempt)

-- name: wake
-- Wakes a workflow: counts up `wakes` of its ready row, or makes the row in the system queue.
-- A free row needs no count: its next owner loads after it claims.
INSERT INTO ready (id, kind, queue, priority, order_key, state) VALUES (?, 0, 'system', ?, ?, 0)
ON CONFLICT (id) DO UPDATE SET wakes = wakes + 1 WHERE state <> 0

-- name: free_rows
-- Rows that can be claimed from one queue, in their order.
SELECT id FROM ready WHERE queue = ? AND state = 0 ORDER BY priority DESC, order_key, id LIMIT ?

-- name: any_free
-- Whether a queue that is not paused has a free row: only then is a claim worth the write lock.
SELECT 1 FROM json_each(?) q CROSS JOIN ready r ON r.queue = q.value AND r.state = 0
WHERE NOT EXISTS (SELECT 1 FROM queues p WHERE p.name = q.value) LIMIT 1

-- name: open_queues
-- Queues of a worker that are not paused, in the order in which it claims from them.
SELECT q.value FROM json_each(?) q WHERE NOT EXISTS (SELECT 1 FROM queues p WHERE p.name = q.value) ORDER BY q.key

-- name: claim_rows
-- Claims free rows for a worker, with fences in their order, and counts the attempt of each.
-- The limit, which is none, keeps the list of ids the outer loop: SQLite does not look into it.
UPDATE ready AS r SET state = 1, claimed_by = :worker, claim_expires_at = :expires_at, fence = :fence + w.key, attempt = r.attempt + 1
FROM (SELECT key, value FROM json_each(:ids) LIMIT -1) w WHERE r.id = w.value
RETURNING {Claim}

-- name: extend
-- Extends a claim and returns its `wakes`; no row: the claim is lost.
UPDATE ready SET claim_expires_at = ? WHERE id = ? AND fence = ? RETURNING wakes

-- name: release
-- Releases a claim, free at once or after a delay; a task gets its attempt back.
-- A workflow that has begun goes to the end of the system queue, so that a pause of the queue it
-- began in does not stop it.
UPDATE ready SET state = CASE WHEN :delay_us > 0 THEN 2 ELSE 0 END, due_at = CASE WHEN :delay_us > 0 THEN now_us() + :delay_us END,
  claimed_by = NULL, claim_expires_at = NULL, fence = NULL, attempt = attempt - (kind = 1),
  queue = CASE WHEN EXISTS (SELECT 1 FROM workflow_execution_context c WHERE c.execution_id = :id AND c.seq > 0) THEN 'system' ELSE queue END,
  order_key = CASE WHEN EXISTS (SELECT 1 FROM workflow_execution_context c WHERE c.execution_id = :id AND c.seq > 0) THEN now_us() ELSE order_key END
WHERE id = :id AND fence = :fence

-- name: claimed_by
-- Claims of one worker as the database has them, to compare with what the worker knows.
SELECT id, fence FROM ready WHERE claimed_by = ? AND state = 1

-- name: beat
-- Writes the heartbeat of a worker; the first one makes its row.
INSERT INTO worker_heartbeats (worker_id, {Beat}, started_at, beat_at, dead_after_us)
VALUES (:worker, {:Beat}, now_us(), now_us(), :dead_after_us)
ON CONFLICT (worker_id) DO UPDATE SET {Beat = excluded}, beat_at = excluded.beat_at, dead_after_us = excluded.dead_after_us

-- name: claimed_now
-- Claims of a worker with their `wakes`, in answer to its heartbeat.
SELECT id, fence, wakes FROM ready WHERE claimed_by = ? AND state = 1

-- name: leave
-- Deletes the heartbeat of a worker that has stopped, or whose process has died.
DELETE FROM worker_heartbeats WHERE worker_id = ?

-- name: expire_claims
-- Expires the claims of a worker that leaves, so that a rescue takes them back at once.
UPDATE ready SET claim_expires_at = now_us() - 1 WHERE claimed_by = ? AND state = 1

-- name: workers
-- All workers with a heartbeat, dead ones too, and how many claims each has.
SELECT {h.SeenWorker but worker, claims, now, dead_after_s}, h.worker_id AS worker, ? AS now, h.dead_after_us / 1e6 AS dead_after_s,
  (SELECT count(*) FROM ready r WHERE r.claimed_by = h.worker_id AND r.state = 1) AS claims
FROM worker_heartbeats h ORDER BY h.worker_id

-- name: maintenance_due
-- Returns whether there is anything for the services to recover, without a lock.
-- One query checks everything that a pass of the rescue service might do, and how long it is until
-- a schedule is due. Without `dead`, no worker counts as dead.
SELECT
  EXISTS (SELECT 1 FROM ready r WHERE r.state = 1 AND (r.claim_expires_at < now_us()
    OR r.claimed_by IN (SELECT h.worker_id FROM worker_heartbeats h WHERE :dead AND h.beat_at + h.dead_after_us < now_us()))) AS lost,
  EXISTS (SELECT 1 FROM executions e LEFT JOIN ready r ON r.id = e.id
    WHERE e.cancel_requested_at IS NOT NULL AND e.finished_at IS NULL AND e.type = 1 AND (r.id IS NULL OR r.state <> 1)) AS cancelled,
  EXISTS (SELECT 1 FROM worker_heartbeats h WHERE h.beat_at < now_us() - :forgotten_us
    AND NOT EXISTS (SELECT 1 FROM ready r WHERE r.claimed_by = h.worker_id AND r.state = 1)) AS forgotten,
  CASE WHEN EXISTS (SELECT 1 FROM schedules s WHERE s.queued_at IS NOT NULL AND s.paused_at IS NULL AND NOT EXISTS (
      SELECT 1 FROM schedule_fires f JOIN executions e ON e.id = f.execution_id WHERE f.schedule = s.name AND f.open = 1 AND e.finished_at IS NULL))
    THEN 0 ELSE (SELECT min(s.next_at) FROM schedules s WHERE s.paused_at IS NULL AND s.next_at IS NOT NULL) - now_us() END AS slot_us,
  EXISTS (SELECT 1 FROM terminations) AS terminated

-- name: forget_workers
-- Deletes the heartbeats of workers that have been silent for a day and have no claims.
DELETE FROM worker_heartbeats WHERE worker_id IN (
  SELECT h.worker_id FROM worker_heartbeats h WHERE h.beat_at < now_us() - :forgotten_us
    AND NOT EXISTS (SELECT 1 FROM ready r WHERE r.claimed_by = h.worker_id AND r.state = 1) LIMIT :limit)

-- name: expired
-- Claims to take back: expired, or, with `dead`, those of a worker that has been silent too long.
SELECT r.id AS id, r.kind AS kind, r.fence AS fence, r.attempt AS attempt, r.claimed_by AS worker, r.crashes AS crashes, e.status AS status
FROM ready r LEFT JOIN executions e ON e.id = r.id
WHERE r.state = 1 AND (r.claim_expires_at < now_us()
  OR r.claimed_by IN (SELECT h.worker_id FROM worker_heartbeats h WHERE :dead AND h.beat_at + h.dead_after_us < now_us())) LIMIT :limit

-- name: paused_queues
-- Names of the paused queues, so that owners of workflows run no tasks of them themselves.
SELECT name FROM queues

-- name: pause_queue
-- Pauses a queue; zero rows: it was paused before, and nothing changes.
INSERT INTO queues (name, paused_at, paused_by, paused_reason) VALUES (?, now_us(), ?, ?) ON CONFLICT (name) DO NOTHING

-- name: resume_queue
-- Ends the pause of a queue; zero rows: it was not paused.
DELETE FROM queues WHERE name = ?

-- name: declare
-- Stores what a worker declares about a task; the last declaration of a name counts.
INSERT INTO task_declarations ({Declaration}, declared_at) VALUES ({:Declaration}, now_us())
ON CONFLICT (name) DO UPDATE SET {Declaration = excluded but name}, declared_at = excluded.declared_at

-- name: declared
-- Declarations of all tasks, by which workers plan turns.
SELECT {Declaration} FROM task_declarations ORDER BY name

-- name: rescue_workflow
-- Frees the row of a lost workflow, and returns how often it has crashed in this turn.
UPDATE ready SET state = 0, queue = CASE WHEN :seq > 0 THEN 'system' ELSE queue END, claimed_by = NULL, claim_expires_at = NULL, fence = NULL,
  crashes = CASE WHEN crash_seq = :seq THEN crashes + 1 ELSE 1 END, crash_seq = :seq
WHERE id = :id AND fence = :fence RETURNING crashes

-- name: rescue_task
-- Frees the row of a task whose worker is lost, and counts the crash.
UPDATE ready SET state = 0, claimed_by = NULL, claim_expires_at = NULL, fence = NULL, crashes = crashes + 1 WHERE id = ? AND fence = ?

-- name: raise_context_fence
-- Gives a workflow a newer fence, which refuses its former owner, and returns its seq.
UPDATE workflow_execution_context SET fence = ? WHERE execution_id = ? RETURNING seq

-- name: load
-- Claimed workflows with what their next turns need; one that no longer exists has no row.
SELECT {e.Loaded but cancel_requested, paused, timed_out, seq, fence, snapshot, owned, now, has_mail, resumes},
  e.cancel_requested_at IS NOT NULL AS cancel_requested, e.paused_at IS NOT NULL AS paused, e.timed_out_at IS NOT NULL AS timed_out,
  c.seq AS seq, c.fence AS fence, c.owned AS owned, now_us() AS now,
  coalesce(CASE WHEN c.snapshot = x'40' THEN (SELECT b.data FROM blobs b WHERE b.execution_id = c.execution_id) END, c.snapshot) AS snapshot,
  EXISTS (SELECT 1 FROM workflow_signals s WHERE s.execution_id = e.id AND s.consumed_seq IS NULL) AS has_mail,
  nullif((SELECT json_group_array(json_array(q.id, CASE q.triggered_by WHEN 'manual' THEN q.trigger_data ELSE 'null' END))
    FROM execution_resume_requests q INDEXED BY resumes_pending WHERE q.execution_id = e.id AND q.executed_at IS NULL), '[]') AS resumes
FROM json_each(?) w CROSS JOIN executions e ON e.id = w.value CROSS JOIN workflow_execution_context c ON c.execution_id = e.id

-- name: load_tasks
-- Claimed tasks with what their handlers need; one that no longer exists has no row.
SELECT {e.LoadedTask but age_us, cancel_requested, timed_out, ended}, now_us() - e.created_at AS age_us,
  e.cancel_requested_at IS NOT NULL AS cancel_requested, e.timed_out_at IS NOT NULL AS timed_out, e.finished_at IS NOT NULL AS ended
FROM json_each(?) w CROSS JOIN executions e ON e.id = w.value

-- name: cancelled
-- Tasks, of those that a worker runs, that were asked to end.
SELECT e.id FROM json_each(?) w CROSS JOIN executions e ON e.id = w.value WHERE e.cancel_requested_at IS NOT NULL

-- name: unfinished_child
-- Whether one of these children has not ended: then a workflow that needs all of them waits.
SELECT 1 FROM executions WHERE parent_id = ? AND child_no BETWEEN ? AND ? AND finished_at IS NULL LIMIT 1

-- name: next_ended
-- Outcomes of the first to end among these children, timers, waits and approvals of one workflow.
WITH RECURSIVE asked(first, last) AS (SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(:ranges)),
numbers(n, last) AS (SELECT first, last FROM asked UNION ALL SELECT n + 1, last FROM numbers WHERE n < last)
SELECT * FROM (
  SELECT e.parent_id AS id, e.child_no AS n, e.status AS status, coalesce(e.result, e.error, 'null') AS value, e.finished_at AS ended_at,
    e.type AS type, e.name AS name
  FROM numbers CROSS JOIN executions e ON e.id = :id || '.' || numbers.n WHERE e.finished_at IS NOT NULL
  UNION ALL
  SELECT t.execution_id, t.n, CASE WHEN t.fired_at IS NULL THEN 7 ELSE 5 END, 'null', coalesce(t.fired_at, t.cancelled_at), NULL, ''
  FROM asked CROSS JOIN timer_tasks t ON t.execution_id = :id AND t.n BETWEEN asked.first AND asked.last
  WHERE t.fired_at IS NOT NULL OR t.cancelled_at IS NOT NULL
  UNION ALL
  SELECT w.execution_id, w.n, w.status,
    CASE WHEN e.id IS NULL THEN 'null' ELSE '{"id":' || json_quote(e.id) || ',"data":' || e.data || ',"at":' || e.published_at || '}' END,
    w.ended_at, 2, w.type
  FROM asked CROSS JOIN event_waits w ON w.execution_id = :id AND w.n BETWEEN asked.first AND asked.last
  LEFT JOIN events e ON e.id = w.event_id WHERE w.ended_at IS NOT NULL
  UNION ALL
  SELECT a.execution_id, a.n, a.status, json_object('decision', a.decision, 'by', json(a.decided_by), 'comment', a.comment), a.ended_at, 3, a.role
  FROM asked CROSS JOIN approvals a ON a.execution_id = :id AND a.n BETWEEN asked.first AND asked.last WHERE a.ended_at IS NOT NULL
) ORDER BY ended_at, n LIMIT :limit

-- name: nth_unfinished
-- The nth of these children that has not ended: up to it, a group with a limit lets them begin.
SELECT (SELECT child_no FROM executions WHERE parent_id = :id AND child_no BETWEEN :first AND :last AND finished_at IS NULL
    ORDER BY child_no LIMIT 1 OFFSET :nth - 1) AS n,
  EXISTS (SELECT 1 FROM executions WHERE parent_id = :id AND child_no BETWEEN :first AND :last AND status IN (6, 7, 8)) AS failed

-- name: failed_child
-- Whether one of these children failed, was cancelled or blocked: then the others need not end.
SELECT 1 FROM executions WHERE parent_id = ? AND child_no BETWEEN ? AND ? AND status IN (6, 7, 8) LIMIT 1

-- name: ended_children
-- Outcomes of the ended ones of these children; executions only.
SELECT e.parent_id AS id, e.child_no AS n, e.status AS status, coalesce(e.result, e.error, 'null') AS value, e.finished_at AS ended_at,
  e.type AS type, e.name AS name
FROM json_each(?) w CROSS JOIN executions e ON e.id = w.value WHERE e.finished_at IS NOT NULL

-- name: ended_waits
-- Outcomes of the ended ones of these timers, waits for events and approvals.
SELECT t.execution_id AS id, t.n AS n, CASE WHEN t.fired_at IS NULL THEN 7 ELSE 5 END AS status, 'null' AS value,
  coalesce(t.fired_at, t.cancelled_at) AS ended_at, NULL AS type, '' AS name
FROM json_each(:numbers) x CROSS JOIN timer_tasks t ON t.execution_id = json_extract(x.value, '$[0]') AND t.n = json_extract(x.value, '$[1]')
WHERE t.fired_at IS NOT NULL OR t.cancelled_at IS NOT NULL
UNION ALL
SELECT w.execution_id, w.n, w.status,
  CASE WHEN e.id IS NULL THEN 'null' ELSE '{"id":' || json_quote(e.id) || ',"data":' || e.data || ',"at":' || e.published_at || '}' END,
  w.ended_at, 2, w.type
FROM json_each(:numbers) x CROSS JOIN event_waits w ON w.execution_id = json_extract(x.value, '$[0]') AND w.n = json_extract(x.value, '$[1]')
LEFT JOIN events e ON e.id = w.event_id WHERE w.ended_at IS NOT NULL
UNION ALL
SELECT a.execution_id, a.n, a.status, json_object('decision', a.decision, 'by', json(a.decided_by), 'comment', a.comment), a.ended_at, 3, a.role
FROM json_each(:numbers) x CROSS JOIN approvals a ON a.execution_id = json_extract(x.value, '$[0]') AND a.n = json_extract(x.value, '$[1]')
WHERE a.ended_at IS NOT NULL

-- name: mail
-- Signals that these workflows have not consumed, in the order of sending, for their turns.
SELECT s.execution_id AS execution_id, {s.Mail}
FROM json_each(?) w CROSS JOIN workflow_signals s ON s.execution_id = w.value WHERE s.consumed_seq IS NULL ORDER BY s.execution_id, s.n

-- name: first_mail
-- The first signals that these workflows have not consumed, in the order of sending.
SELECT s.execution_id AS execution_id, {s.Mail}
FROM json_each(:ids) w CROSS JOIN workflow_signals s ON s.execution_id = w.value AND s.n <= coalesce(
  (SELECT c.n FROM workflow_signals c WHERE c.execution_id = w.value AND c.consumed_seq IS NULL ORDER BY c.n LIMIT 1 OFFSET :limit - 1), 1 << 62)
WHERE s.consumed_seq IS NULL ORDER BY s.execution_id, s.n

-- name: named_mail
-- The first signals of one name that a workflow has not consumed, in the order of sending.
SELECT execution_id, {Mail} FROM workflow_signals WHERE execution_id = :id AND name = :name AND consumed_seq IS NULL ORDER BY n LIMIT :limit

-- name: mailed
-- Signals that one workflow has not consumed, for callers who only read.
-- Their payloads are left out, since they may be large.
SELECT {Mail but payload}, 'null' AS payload FROM workflow_signals WHERE execution_id = ? AND consumed_seq IS NULL ORDER BY n

-- name: advance_context
-- Stores the state that a turn leaves; zero rows: the turn is refused.
-- The two guards of a turn: the same turn a second time finds another seq, an older owner finds a
-- newer fence.
UPDATE workflow_execution_context AS c SET seq = c.seq + 1, fence = x.fence, statement = x.statement, owned = coalesce(x.owned, c.owned),
  awaiting = x.awaiting, snapshot = coalesce(x.snapshot, c.snapshot), updated_at = x.now
FROM {rows} x WHERE c.execution_id = x.id AND c.seq = x.seq AND c.fence <= x.fence

-- name: delete_blobs
-- Deletes the large snapshots of workflows whose turns bring new snapshots.
DELETE FROM blobs WHERE execution_id IN (SELECT value FROM json_each(?))

-- name: insert_blob
-- Stores a snapshot that is too large for its context, which refers to it by one byte.
INSERT INTO blobs (execution_id, data) VALUES (?, ?)

-- name: ready_of
-- Fence and wakes of a ready row: whether a claim still holds, and whether it was woken.
SELECT fence, wakes FROM ready WHERE id = ?

-- name: wakes_of
-- Wakes of ready rows whose owners go on, after everything else of the commit.
SELECT r.id, r.wakes FROM json_each(?) w CROSS JOIN ready r ON r.id = w.value

-- name: delete_parked
-- Parks a workflow; zero rows: it was woken since its owner loaded it, or the claim is lost.
DELETE FROM ready WHERE id = ? AND fence = ? AND wakes = ?

-- name: delete_claimed
-- Deletes a claimed ready row when its execution has ended or no longer exists.
DELETE FROM ready WHERE id = ? AND fence = ?

-- name: delete_ready
-- Deletes a ready row, whoever has claimed it, of an execution that is ended without its owner.
DELETE FROM ready WHERE id = ?

-- name: suspend_execution
-- Sets the status of a workflow that goes on after a turn; its first turn starts it.
UPDATE executions AS e SET status = x.status, started_at = coalesce(e.started_at, x.now), fence = x.fence, worker = x.worker
FROM {rows} x WHERE e.id = x.id

-- name: attributes
-- Attributes of an execution, before a turn changes some of them.
SELECT attributes FROM executions WHERE id = ?

-- name: set_attributes
-- Stores the attributes of an execution as a turn leaves them.
UPDATE executions SET attributes = ? WHERE id = ?

-- name: status_of
-- What a transaction must know about an execution that it changes; no row: it does not exist.
SELECT type, status, cancel_requested_at IS NOT NULL AS cancelled, held, parent_id FROM executions WHERE id = ?

-- name: members_of
-- Claimed executions that turns change, each with its claim and the state of its family.
-- Returns the count of the family, and whether the execution is, or is below, a terminated one.
SELECT e.id AS id, e.status AS status, e.cancel_requested_at IS NOT NULL AS cancelled, e.root_id AS root_id, e.parent_id AS parent_id,
  e.started_at IS NOT NULL AS started, r.fence AS fence, r.wakes AS wakes,
  (SELECT f.started FROM families f WHERE f.root_id = e.root_id) AS family,
  EXISTS (SELECT 1 FROM terminations t WHERE e.id = t.id OR (e.id > t.id AND substr(e.id, 1, length(t.id) + 1) = t.id || '.')) AS terminated
FROM json_each(?) w CROSS JOIN ready r ON r.id = w.value CROSS JOIN executions e ON e.id = r.id

-- name: count_family
-- Adds the starts of a turn to the count of its family.
INSERT INTO families (root_id, started) VALUES (:root, :started) ON CONFLICT (root_id) DO UPDATE SET started = started + :started

-- name: recount_family
-- Counts the live executions of a family over its limit; no row: that was done a moment ago.
-- Their number replaces the count that is over the limit. If it is over the limit, too, they are
-- not counted again at once.
UPDATE families SET (started, full_at) = (
  SELECT alive, CASE WHEN alive > :limit THEN :now END FROM (SELECT
    (SELECT count(*) FROM (SELECT 1 FROM executions INDEXED BY executions_live
      WHERE finished_at IS NULL AND type = 0 AND id >= :root || '.' AND id < :root || '/' LIMIT :limit + 1))
    + (SELECT count(*) FROM (SELECT 1 FROM ready WHERE kind = 1 AND id >= :root || '.' AND id < :root || '/' LIMIT :limit + 1)) AS alive))
WHERE root_id = :root AND started > :limit AND (full_at IS NULL OR full_at <= :now - :rest_us) RETURNING started

-- name: live_children
-- Number of children of a workflow that have not ended, up to one more than the limit.
SELECT count(*) FROM (SELECT 1 FROM executions WHERE parent_id = :id AND finished_at IS NULL LIMIT :limit + 1)

-- name: finish
-- Ends an execution; zero rows: it has ended already. Its parent is woken in the same transaction.
-- The only update to a terminal status. Whether a cancel wins over a result is decided before it.
UPDATE executions AS e SET status = x.status, result = x.result, error = x.error, finished_at = x.now, fence = coalesce(x.fence, e.fence),
  worker = coalesce(x.worker, e.worker), started_at = coalesce(e.started_at, max(e.created_at, x.now - x.took_us)),
  attempt = max(e.attempt, x.attempt), held = 0
FROM {rows} x WHERE e.id = x.id AND e.status < 5

-- name: insert_done
-- Creates the row of a task that its workflow's owner has run: it exists only after its end.
INSERT INTO executions ({Done}, id, type, version, priority, parent_id, child_no, root_id, max_attempts, fence, worker, attributes,
                        result, error, created_at, started_at, finished_at)
VALUES ({:Done}, :id, 1, '', 0, :parent_id, :n, :root_id, :attempt, :fence, :worker, '{}',
        :result, :error, :now - :took_us, :now - :took_us, :now)

-- name: insert_timer
-- Creates a timer for a turn; one that is held has no time at which it fires.
INSERT INTO timer_tasks (execution_id, n, delay_us, until_at, fire_at) VALUES (?, ?, ?, ?, ?)

-- name: insert_wait
-- Creates a wait for an event for a turn; one that is held has no deadline yet.
INSERT INTO event_waits ({NewWait}, execution_id, key, since, timeout_us, deadline_at)
SELECT {:NewWait}, :id, :key, created_at, :timeout_us, CASE WHEN :held THEN NULL ELSE :now + :timeout_us END FROM executions WHERE id = :id

-- name: cancel_waits
-- Cancels the open waits for events of a workflow, in a range of numbers.
UPDATE event_waits SET status = 7, ended_at = ? WHERE execution_id = ? AND n BETWEEN ? AND ? AND ended_at IS NULL

-- name: release_waits
-- Opens waits for events that were held; returns them, as their event may exist already.
UPDATE event_waits SET held = 0, deadline_at = :now + timeout_us
WHERE execution_id = :id AND n BETWEEN :first AND :last AND held = 1 AND ended_at IS NULL RETURNING n

-- name: delete_settled_timer
-- Deletes a timer whose outcome no later turn needs.
DELETE FROM timer_tasks WHERE execution_id = ? AND n = ?

-- name: delete_settled_wait
-- Deletes a wait for an event whose outcome no later turn needs.
-- A wait that took an event is kept, because an execution sees each event only once.
DELETE FROM event_waits WHERE execution_id = ? AND n = ? AND event_id IS NULL

-- name: delete_waits
-- Deletes all waits for events of workflows that end.
DELETE FROM event_waits WHERE execution_id IN (SELECT value FROM json_each(?))

-- name: next_event
-- Draws the number of an event among the events of its type.
INSERT INTO event_types (type, n) VALUES (?, 1) ON CONFLICT (type) DO UPDATE SET n = n + 1 RETURNING n

-- name: last_published
-- Time of the newest event of a type, from which a clock that was set back must not go back far.
SELECT max(published_at) FROM events WHERE type = ?

-- name: insert_event
-- Stores a published event; zero rows: its id was published before.
INSERT INTO events ({Event}) VALUES ({:Event}) ON CONFLICT (id) DO NOTHING

-- name: open_waits
-- Open waits of all executions that may take an event with one of these keys.
SELECT {w.Wait} FROM json_each(:keys) x CROSS JOIN event_waits w
WHERE w.type = :type AND w.key = x.value AND w.ended_at IS NULL AND w.held = 0

-- name: waits_of
-- Waits that a turn has just opened, and for which an event may exist already.
SELECT {Wait} FROM event_waits
WHERE execution_id = ? AND n IN (SELECT value FROM json_each(?)) AND ended_at IS NULL AND held = 0

-- name: waits
-- Events that one execution waits for, for callers who only read.
SELECT {NewWait}, timeout_us / 1e6 AS timeout_s FROM event_waits WHERE execution_id = ? AND ended_at IS NULL ORDER BY n

-- name: taken_events
-- Which of these events an execution has taken: it takes each of them once.
SELECT w.execution_id, w.event_id FROM json_each(:events) x CROSS JOIN event_waits w ON w.event_id = x.value AND w.execution_id = :id

-- name: last_taken
-- Place of the last event that an execution took for the same wanted values, and when it took it.
SELECT e.published_at, e.n, w.ended_at FROM event_waits w INDEXED BY waits_seen JOIN events e ON e.id = w.event_id
WHERE w.execution_id = :id AND w.type = :type AND w.key = :key AND w.wanted = :wanted AND w.event_id IS NOT NULL ORDER BY w.n DESC LIMIT 1

-- name: events_after
-- Page of the events of a type after a place, in which a new wait searches for its event.
SELECT {Event} FROM events WHERE type = ? AND (published_at, n) > (?, ?) ORDER BY published_at, n LIMIT ?

-- name: end_wait
-- Ends a wait by an event or by its deadline; zero rows: it has ended already.
UPDATE event_waits SET status = :status, event_id = :event_id, ended_at = :now WHERE execution_id = :id AND n = :n AND ended_at IS NULL

-- name: due_waits
-- Open waits for events whose deadline has passed, for the timer service.
SELECT execution_id, n FROM event_waits WHERE ended_at IS NULL AND deadline_at IS NOT NULL AND deadline_at <= ? ORDER BY deadline_at LIMIT ?

-- name: delete_timers
-- Deletes all timers of workflows that complete or end blocked.
DELETE FROM timer_tasks WHERE execution_id IN (SELECT value FROM json_each(?))

-- name: cancel_timers
-- Cancels the timers of a workflow, in a range of numbers; a retry may use their rows.
UPDATE timer_tasks SET cancelled_at = ? WHERE execution_id = ? AND n BETWEEN ? AND ? AND fired_at IS NULL AND cancelled_at IS NULL

-- name: release_timers
-- Starts timers that were held; their delays begin now.
UPDATE timer_tasks SET fire_at = coalesce(until_at, :now + coalesce(delay_us, 0))
WHERE execution_id = :id AND n BETWEEN :first AND :last AND fire_at IS NULL AND cancelled_at IS NULL

-- name: flag_children
-- Asks children in a range of numbers to end; returns them, as workflows must be woken.
-- A workflow that was held back is released, to take the one turn that ends it; a task is ended by
-- the service that ends cancelled tasks.
UPDATE executions SET cancel_requested_at = :now, held = CASE type WHEN 0 THEN 0 ELSE held END,
  timeout_at = CASE WHEN held AND type = 0 THEN :now + timeout_us ELSE timeout_at END
WHERE parent_id = :id AND child_no BETWEEN :first AND :last AND finished_at IS NULL AND cancel_requested_at IS NULL RETURNING id, type

-- name: release_children
-- Lets children begin that were held; returns them, to be put into their queues.
UPDATE executions SET held = 0, timeout_at = :now + timeout_us
WHERE parent_id = :id AND child_no BETWEEN :first AND :last AND finished_at IS NULL AND held = 1
RETURNING id, type, queue, priority, attempt

-- name: consume_signal
-- Marks a signal as consumed by a turn; zero rows are a bug: it was consumed before.
UPDATE workflow_signals SET consumed_seq = ? WHERE id = ? AND execution_id = ? AND consumed_seq IS NULL

-- name: insert_history
-- Adds a turn, the witness of its commit, or the failed attempt of a task to the history.
INSERT INTO history (execution_id, seq, fence, worker, from_status, to_status, cause, statement, error, at)
VALUES (:id, :seq, :fence, :worker, :from_status, :to_status, :cause, :statement, :error, :now)

-- name: delay_task
-- Releases a task, to be tried again later; an attempt that does not count is given back.
UPDATE ready SET state = 2, due_at = :due_at, claimed_by = NULL, claim_expires_at = NULL, fence = NULL, attempt = attempt - :back
WHERE id = :id AND fence = :fence

-- name: note_attempt
-- Stores the attempts of a task that is tried again in its own row.
UPDATE executions SET attempt = :attempt, started_at = coalesce(started_at, max(created_at, :now - :took_us)), worker = :worker WHERE id = :id AND status < 5

-- name: attempts_of
-- Attempts of tasks with these fences, and whether they are cancelled. No row: the end of the task
-- is refused, because its claim is lost, or an execution above it was terminated.
SELECT r.id, r.attempt, e.cancel_requested_at IS NOT NULL, e.parent_id
FROM json_each(?) w CROSS JOIN ready r ON r.id = w.key CROSS JOIN executions e ON e.id = r.id
WHERE r.fence = w.value AND NOT EXISTS (SELECT 1 FROM terminations t WHERE e.id > t.id AND substr(e.id, 1, length(t.id) + 1) = t.id || '.')

-- name: witness
-- Fence of a committed turn, for an owner that got no answer; no row: not committed.
SELECT fence FROM history WHERE execution_id = ? AND seq = ?

-- name: unconsumed
-- Number of signals in a mailbox: one that is full takes no more.
SELECT count(*) FROM workflow_signals WHERE execution_id = ? AND consumed_seq IS NULL

-- name: signal_known
-- Whether a signal with this id exists already: the same signal sent twice is one.
SELECT 1 FROM workflow_signals WHERE id = ?

-- name: insert_signal
-- Puts a signal into a mailbox under the next number; zero rows: its id exists already.
INSERT INTO workflow_signals (id, execution_id, n, name, payload, received_at)
VALUES (:id, :execution_id, (SELECT coalesce(max(n), 0) + 1 FROM workflow_signals WHERE execution_id = :execution_id), :name, :payload, :now)
ON CONFLICT (id) DO NOTHING

-- name: flag_cancel
-- Asks an execution to end; one that is held is released, as it must begin to end.
UPDATE executions SET cancel_requested_at = coalesce(cancel_requested_at, :now), held = 0,
  timeout_at = CASE WHEN held THEN :now + timeout_us ELSE timeout_at END
WHERE id = :id AND status < 5

-- name: free_delayed
-- Frees a delayed row that is due, or whose workflow is asked to end.
UPDATE ready SET state = 0, due_at = NULL WHERE id = ? AND state = 2

-- name: retries
-- Retries of an execution, oldest first; while one has not ended, no other is made.
SELECT {Retry} FROM executions WHERE retry_of = ? ORDER BY created_at, id

-- name: family_size
-- Size of a family, so that a retry that would read too much is refused before it reads.
-- Returns the number of rows, counted up to one more than allowed, and the size of the snapshots
-- that would be read.
SELECT count(*), coalesce(sum(size), 0) FROM (
  SELECT * FROM (
    SELECT CASE WHEN e.id = :id OR e.status NOT IN (5, 8) THEN coalesce(length(c.snapshot), 0) + coalesce(length(b.data), 0)
      + coalesce(length(c.owned), 0) ELSE 0 END AS size
    FROM executions e LEFT JOIN workflow_execution_context c ON c.execution_id = e.id LEFT JOIN blobs b ON b.execution_id = e.id
    WHERE e.id = :id OR (e.id >= :first AND e.id < :last) LIMIT :most)
  UNION ALL SELECT * FROM (
    SELECT 0 FROM timer_tasks WHERE execution_id = :id OR (execution_id >= :first AND execution_id < :last) LIMIT :most)
  UNION ALL SELECT * FROM (
    SELECT 0 FROM workflow_signals WHERE execution_id = :id OR (execution_id >= :first AND execution_id < :last) LIMIT :most)
)

-- name: family
-- Executions of a family, the given one and all below it, from which a retry is planned.
-- Large columns are left out, except the snapshots of executions that may go on, and the error of
-- the first.
SELECT {e.StoredExecution but error}, e.id AS source, c.seq AS seq, c.statement AS statement,
  CASE WHEN e.id = :id OR (e.parent_id = :id AND length(e.error) <= :short) THEN e.error END AS error,
  CASE WHEN e.id = :id OR e.status NOT IN (5, 8) THEN
    coalesce(CASE WHEN c.snapshot = x'40' THEN (SELECT b.data FROM blobs b WHERE b.execution_id = c.execution_id) END, c.snapshot) END AS snapshot,
  CASE WHEN e.id = :id OR e.status NOT IN (5, 8) THEN c.owned END AS owned
FROM executions e LEFT JOIN workflow_execution_context c ON c.execution_id = e.id
WHERE e.id = :id OR (e.id >= :first AND e.id < :last) ORDER BY e.id

-- name: family_timers
-- Timers of a family, from which a retry is planned.
SELECT {StoredTimer} FROM timer_tasks
WHERE execution_id = :id OR (execution_id >= :first AND execution_id < :last)

-- name: family_signals
-- Signals of a family, from which a retry is planned, without their payloads.
SELECT {StoredSignal}, id AS source FROM workflow_signals
WHERE execution_id = :id OR (execution_id >= :first AND execution_id < :last) ORDER BY execution_id, n

-- name: insert_stored
-- Creates an execution of a retry; what may be large is copied from its source.
INSERT INTO executions ({StoredExecution but error, created_at}, options, attributes, inputs, result, error, created_at, timeout_at)
SELECT {:StoredExecution but error, created_at}, o.options, o.attributes, o.inputs,
  CASE WHEN :ends_alike THEN o.result END, CASE WHEN :ends_alike THEN o.error ELSE :error END,
  coalesce(:created_at, :now), CASE WHEN NOT :held THEN coalesce(:created_at, :now) + :timeout_us END
FROM executions o WHERE o.id = :source

-- name: insert_stored_context
-- Creates the context of a workflow of a retry, at the statement where it goes on.
INSERT INTO workflow_execution_context (execution_id, seq, fence, format, statement, snapshot, owned, awaiting, updated_at)
VALUES (:id, :status > 0, 0, 1, :statement, :snapshot, :owned, :awaiting, :now)

-- name: insert_stored_history
-- Adds the first turn of a workflow of a retry that does not begin anew.
INSERT INTO history (execution_id, seq, fence, worker, from_status, to_status, cause, statement, at, error)
SELECT e.id, 1, 0, '', 0, e.status, 'retry', :statement, :now, e.error FROM executions e WHERE e.id = :id

-- name: insert_stored_timer
-- Creates a timer of a retry; with `anew` its delay begins now.
INSERT INTO timer_tasks ({StoredTimer but fire_at}, fire_at)
VALUES ({:StoredTimer but fire_at}, CASE WHEN :anew THEN coalesce(:until_at, :now + coalesce(:delay_us, 0)) ELSE :fire_at END)

-- name: insert_stored_signal
-- Puts a signal into a mailbox of a retry, not consumed, with its source's payload.
INSERT INTO workflow_signals ({StoredSignal but consumed_seq}, payload)
SELECT {:StoredSignal but consumed_seq}, o.payload FROM workflow_signals o WHERE o.id = :source

-- name: due_timers
-- Open timers whose time has come, for the timer service.
SELECT execution_id, n, fire_at FROM timer_tasks WHERE fired_at IS NULL AND cancelled_at IS NULL AND fire_at IS NOT NULL AND fire_at <= ? ORDER BY fire_at LIMIT ?

-- name: fire_timer
-- Marks a timer as fired; its workflow is woken in the same transaction.
UPDATE timer_tasks SET fired_at = ? WHERE execution_id = ? AND n = ? AND fired_at IS NULL

-- name: due_ready
-- Delayed ready rows whose time has come, for the timer service.
SELECT id FROM ready WHERE state = 2 AND due_at <= ? LIMIT ?

-- name: due_timeouts
-- Live executions whose time is over, for the timer service.
SELECT id, type FROM executions WHERE timeout_at <= ? AND timeout_at IS NOT NULL AND timed_out_at IS NULL AND finished_at IS NULL LIMIT ?

-- name: time_out
-- Marks an execution as timed out; a workflow sees it in its next turn.
UPDATE executions SET timed_out_at = ? WHERE id = ? AND status < 5

-- name: next_due
-- Time at which the timer service has something to do next, and the time now.
SELECT min(at), now_us() FROM (
  SELECT min(fire_at) AS at FROM timer_tasks WHERE fired_at IS NULL AND cancelled_at IS NULL AND fire_at IS NOT NULL
  UNION ALL SELECT min(deadline_at) FROM event_waits WHERE ended_at IS NULL AND deadline_at IS NOT NULL
  UNION ALL SELECT min(deadline_at) FROM approvals WHERE ended_at IS NULL AND deadline_at IS NOT NULL
  UNION ALL SELECT min(paused_until) FROM executions WHERE paused_until IS NOT NULL AND finished_at IS NULL
  UNION ALL SELECT min(due_at) FROM ready WHERE state = 2
  UNION ALL SELECT min(timeout_at) FROM executions WHERE timeout_at IS NOT NULL AND timed_out_at IS NULL AND finished_at IS NULL)

-- name: cancelled_tasks
-- Cancelled tasks that nobody runs, for the service that ends them.
SELECT e.id FROM executions e LEFT JOIN ready r ON r.id = e.id
WHERE e.cancel_requested_at IS NOT NULL AND e.finished_at IS NULL AND e.type = 1 AND (r.id IS NULL OR r.state <> 1) LIMIT ?

-- name: execution
-- Executions as they are shown; the caller adds conditions, order and limit.
-- A claim alone does not make an execution `running`: a worker may claim a waiting workflow only to
-- look at it. A claimed execution is running if it is a task, or a workflow that has not begun,
-- that waits for nothing, or whose tasks its owner runs.
SELECT {e.Execution but status, attempt, statement, awaiting, turned_at},
  CASE WHEN e.status < 5 AND e.paused_at IS NOT NULL THEN 'paused'
    WHEN e.status < 5 AND r.state = 1 AND (e.type = 1 OR e.status = 0 OR c.owned <> '[]' OR c.awaiting = 'null') THEN 'running' ELSE
    CASE e.status WHEN 0 THEN 'pending' WHEN 1 THEN 'suspended' WHEN 2 THEN 'paused' WHEN 5 THEN 'completed' WHEN 6 THEN 'failed'
      WHEN 7 THEN 'cancelled' ELSE 'blocked' END END AS status,
  max(e.attempt, CASE WHEN e.type = 1 THEN coalesce(r.attempt, 0) ELSE 0 END) AS attempt,
  coalesce(c.statement, 0) AS statement, coalesce(c.awaiting, 'null') AS awaiting, c.updated_at AS turned_at
FROM executions e LEFT JOIN ready r ON r.id = e.id LEFT JOIN workflow_execution_context c ON c.execution_id = e.id

-- name: root_names
-- Names of the roots of these executions: permissions depend on them.
SELECT e.id, r.name FROM json_each(?) w CROSS JOIN executions e ON e.id = w.value CROSS JOIN executions r ON r.id = e.root_id

-- name: names
-- Names of root executions that begin with these prefixes, to apply permissions to lists.
-- Each name is returned once, with one look-up: each look-up finds the next name in order.
WITH RECURSIVE found(prefix, name) AS (
  SELECT p.value, (SELECT min(name) FROM executions WHERE parent_id IS NULL AND name >= p.value) FROM json_each(?) p
  UNION ALL SELECT prefix, (SELECT min(e.name) FROM executions e WHERE e.parent_id IS NULL AND e.name > found.name)
  FROM found WHERE substr(name, 1, length(prefix)) = prefix)
SELECT name FROM found WHERE substr(name, 1, length(prefix)) = prefix

-- name: result
-- Result of an execution, for those who wait for it; no row unless it has completed.
SELECT coalesce(result, 'null') FROM executions WHERE id = ? AND status = 5

-- name: stamps
-- A text for each execution that changes whenever the execution does, to wait for changes.
-- It covers what people see of an execution; nothing large is read.
SELECT e.id, coalesce(c.seq, 0) || '-' || max(e.attempt, CASE WHEN e.type = 1 THEN coalesce(r.attempt, 0) ELSE 0 END) || '-' || e.status || '-' ||
  (CASE WHEN r.state = 1 AND (e.type = 1 OR e.status = 0 OR c.owned <> '[]' OR c.awaiting = 'null') THEN 1 ELSE 0 END) || '-' ||
  coalesce(e.cancel_requested_at, 0) || '-' || coalesce(e.paused_at, 0)
FROM json_each(?) x JOIN executions e ON e.id = x.value LEFT JOIN ready r ON r.id = e.id
LEFT JOIN workflow_execution_context c ON c.execution_id = e.id

-- name: due
-- Times at which the start, the timers and the delayed children of an execution are due.
SELECT 0, due_at FROM ready WHERE id = :id AND state = 2
UNION ALL SELECT n, fire_at FROM timer_tasks WHERE execution_id = :id AND fired_at IS NULL AND cancelled_at IS NULL AND fire_at IS NOT NULL
UNION ALL SELECT e.child_no, r.due_at FROM executions e JOIN ready r ON r.id = e.id
  WHERE e.parent_id = :id AND e.finished_at IS NULL AND r.state = 2

-- name: history
-- Turns of a workflow, or failed attempts of a task, in their order.
SELECT {Transition} FROM history WHERE execution_id = ? ORDER BY seq

-- name: statements
-- Statements at which a workflow has waited, each once, the last one last.
-- The turn that ends it waits nowhere.
SELECT statement FROM history WHERE execution_id = ? AND to_status < 5 GROUP BY statement ORDER BY max(seq)

-- name: trace
-- A page of the places of what happened in a family, in the order of time.
-- Returns the place of everything that happened in an execution and below it, after a given place.
-- Nothing large is read.
-- Executions of one name that are equally deep are left out where there are too many of them.
WITH found AS (
  SELECT id, name, child_no, type, created_at, finished_at, length(id) AS length FROM executions
  WHERE id >= :first AND id < :last ORDER BY id LIMIT :most),
asked AS (SELECT found.*, count(*) OVER (PARTITION BY name, length(replace(id, '.', '..')) - length) AS alike FROM found),
family AS (
  SELECT id, child_no, type, created_at, finished_at, length(id) AS length FROM executions WHERE id = :id
  UNION ALL SELECT id, child_no, type, created_at, finished_at, length FROM asked WHERE alike <= :alike),
moments AS (
  SELECT created_at AS at, CASE WHEN child_no > 0 THEN 2 ELSE 1 END AS rank, length, child_no, id, 0 AS kind, 0 AS n FROM family
  UNION ALL SELECT finished_at, CASE WHEN finished_at = created_at THEN 3 ELSE 0 END, -length, child_no, id, 1, 0 FROM family
    WHERE finished_at IS NOT NULL
  UNION ALL SELECT * FROM (
    SELECT h.at, 1, f.length, f.child_no, f.id, 2, h.seq FROM family f CROSS JOIN history h ON h.execution_id = f.id
    WHERE f.finished_at IS NULL OR h.at < f.finished_at LIMIT :turns)
  UNION ALL SELECT * FROM (
    SELECT q.requested_at, 1, f.length, f.child_no, f.id, 3, q.id FROM family f CROSS JOIN execution_resume_requests q INDEXED BY resumes_of
      ON q.execution_id = f.id
    WHERE f.type = 0 LIMIT :turns)
  UNION ALL SELECT * FROM (
    SELECT s.received_at, 1, f.length, f.child_no, f.id, 4, s.n FROM family f CROSS JOIN workflow_signals s ON s.execution_id = f.id
    WHERE f.type = 0 LIMIT :turns)
  UNION ALL SELECT * FROM (
    SELECT v.at, 1, f.length, f.child_no, f.id, 5, a.n * :votes + v.n FROM family f CROSS JOIN approvals a ON a.execution_id = f.id
    CROSS JOIN approval_decisions v ON v.approval_id = a.id
    WHERE f.type = 0 AND (a.ended_at IS NULL OR v.at < a.ended_at) LIMIT :turns))
SELECT {Place} FROM moments WHERE ({Place}) > ({:p_Place}) ORDER BY {Place} LIMIT :limit

-- name: moments
-- What happened at these places [id, kind, n] of a trace, in their order.
SELECT x.key AS place, e.name AS name, e.type AS type, e.version AS version, e.status AS status,
  CASE json_extract(x.value, '$[1]') WHEN 0 THEN e.inputs WHEN 1 THEN coalesce(e.result, e.error) WHEN 2 THEN h.error WHEN 3 THEN q.trigger_data
    ELSE s.payload END AS detail,
  coalesce(h.cause, q.triggered_by, s.name, v.decision, '') AS what,
  coalesce(h.worker, CASE json_extract(x.value, '$[1]') WHEN 1 THEN e.worker END, '') AS worker, coalesce(h.statement, 0) AS statement,
  coalesce(q.triggered_by_id, v.actor, '') AS by_id, coalesce(q.reason, v.comment, '') AS reason,
  CASE WHEN json_extract(x.value, '$[1]') = 1 THEN e.attempt WHEN json_extract(x.value, '$[1]') = 2 AND e.type = 1 THEN h.seq ELSE 0 END AS attempt,
  CASE json_extract(x.value, '$[1]') WHEN 1 THEN e.started_at END AS began_at
FROM json_each(?) x CROSS JOIN executions e ON e.id = json_extract(x.value, '$[0]')
LEFT JOIN history h ON json_extract(x.value, '$[1]') = 2 AND h.execution_id = e.id AND h.seq = json_extract(x.value, '$[2]')
LEFT JOIN execution_resume_requests q ON json_extract(x.value, '$[1]') = 3 AND q.id = json_extract(x.value, '$[2]')
LEFT JOIN workflow_signals s ON json_extract(x.value, '$[1]') = 4 AND s.execution_id = e.id AND s.n = json_extract(x.value, '$[2]')
LEFT JOIN approval_decisions v ON json_extract(x.value, '$[1]') = 5 AND v.approval_id = json_extract(x.value, '$[3]') AND v.n = json_extract(x.value, '$[4]')

-- name: alike
-- What there is many times below an execution: of one name, equally deep; and how it has ended.
WITH found AS (
  SELECT id, name, type, status, created_at, finished_at, finished_at - coalesce(started_at, created_at) AS took_us,
    length(replace(id, '.', '..')) - length(id) - :depth AS depth
  FROM executions WHERE id >= :first AND id < :last ORDER BY id LIMIT :most_executions),
asked AS (SELECT found.*, row_number() OVER (PARTITION BY name, depth ORDER BY took_us DESC, id) AS place FROM found)
SELECT name, type, depth, count(*) AS count, sum(status = 5) AS completed, sum(status = 6) AS failed, count(finished_at) AS ended,
  min(created_at) AS first_at, max(finished_at) AS last_at,
  max(CASE WHEN place = 1 THEN id END) AS slowest_id, max(took_us) AS slowest_us, min(CASE WHEN status = 6 THEN id END) AS first_failed
FROM asked GROUP BY name, depth HAVING count(*) > :most ORDER BY min(created_at), depth, name

-- name: lease
-- Takes or extends a lease; no row means that another holder has it.
INSERT INTO leases (name, holder, fence, expires_at) VALUES (:name, :holder, 1, now_us() + :ttl_us)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, fence = fence + (holder <> excluded.holder), expires_at = excluded.expires_at
WHERE holder = excluded.holder OR expires_at <= now_us() RETURNING fence

-- name: parked
-- A page of parked workflows, by id, for the service that finds stuck ones.
SELECT e.id FROM executions e INDEXED BY executions_live LEFT JOIN ready r ON r.id = e.id
WHERE e.finished_at IS NULL AND e.type = 0 AND e.id > ? AND e.paused_at IS NULL AND e.held = 0 AND r.id IS NULL
  AND NOT EXISTS (SELECT 1 FROM terminations t WHERE substr(e.id, 1, length(t.id) + 1) = t.id || '.') ORDER BY e.id LIMIT ?

-- name: without_rows
-- Awaited children that have neither an execution nor a timer, so that nothing ends them.
SELECT x.id, x.n FROM (SELECT json_extract(value, '$[0]') AS id, json_extract(value, '$[1]') AS n FROM json_each(?)) x
WHERE NOT EXISTS (SELECT 1 FROM timer_tasks t WHERE t.execution_id = x.id AND t.n = x.n)
  AND NOT EXISTS (SELECT 1 FROM executions e WHERE e.id = x.id || '.' || x.n)

-- name: wake_parked
-- Wakes a workflow that missed a wake; no row: it is no longer parked at this seq.
INSERT INTO ready (id, kind, queue, priority, order_key, state)
SELECT e.id, 0, 'system', 0, now_us(), 0 FROM executions e JOIN workflow_execution_context c ON c.execution_id = e.id
WHERE e.id = ? AND e.status < 5 AND e.paused_at IS NULL AND c.seq = ?
ON CONFLICT (id) DO NOTHING RETURNING id

-- name: insert_fired
-- Creates a fired timer in place of one whose row is lost, so that its workflow goes on.
INSERT INTO timer_tasks (execution_id, n, fire_at, fired_at) VALUES (?, ?, now_us(), now_us()) ON CONFLICT DO NOTHING

-- name: old_roots
-- Roots that ended long enough ago to be pruned with their families.
-- A root is kept while anything below it goes on, or while a retry of it has not ended.
SELECT id FROM executions e WHERE parent_id IS NULL AND finished_at IS NOT NULL AND finished_at < now_us() - ?
  AND NOT EXISTS (SELECT 1 FROM executions c WHERE c.id > e.id || '.' AND c.id < e.id || '/' AND c.finished_at IS NULL)
  AND NOT EXISTS (SELECT 1 FROM executions n WHERE n.retry_of = e.id AND n.finished_at IS NULL)
ORDER BY finished_at LIMIT ?
