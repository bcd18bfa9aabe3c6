-- Batches come as arrays, one for each column. What is decided under a lock is read in a later
-- statement than the one that took the lock. A guard is never written like the condition of a
-- partial index (`status < 5`, not `finished_at IS NULL`): the planner would scan that whole index
-- instead of looking up the few keys that it is given. Tables are joined to what is given by
-- `r.id = ANY(ARRAY[x.id])`, not by `r.id = x.id`, and a key that was looked up is not sorted by: a
-- session keeps its plan, and one that was made while a table was empty would go through all of it for
-- each of the few rows. Neither a merge nor an order can be made of this condition. In an EXISTS an
-- OFFSET 0 does the same.

-- name: now
-- Time of the database in microseconds, for the rows that a transaction writes.
SELECT now_us()

-- name: register_definitions
-- Stores new versions of workflows, and makes these the current ones of their names.
-- A version that exists is not changed: only its place among the versions of its name changes.
INSERT INTO workflow_definitions ({Definition}, registered_at, registration, source_hash)
SELECT {x.Definition}, now_us(),
  (SELECT coalesce(max(registration), 0) FROM workflow_definitions d WHERE d.name = x.name) + row_number() OVER (PARTITION BY x.name ORDER BY x.ord),
  x.source_hash
FROM unnest({%Definition}, %(source_hash)s::text[]) WITH ORDINALITY AS x({Definition}, source_hash, ord)
WHERE x.version IS DISTINCT FROM
  (SELECT d.version FROM workflow_definitions d WHERE d.name = x.name ORDER BY registration DESC LIMIT 1)
ON CONFLICT (name, version) DO UPDATE SET registration = excluded.registration, registered_at = excluded.registered_at

-- name: keep_sources
-- Stores the texts of registered versions, each once, under its hash.
-- Only texts that a version refers to are stored: a text whose workflows all existed before is not
-- needed.
INSERT INTO workflow_sources (hash, text)
SELECT x.hash, x.text FROM unnest(%(hash)s::text[], %(text)s::text[]) AS x(hash, text)
WHERE EXISTS (SELECT 1 FROM workflow_definitions d WHERE d.source_hash = x.hash) ON CONFLICT (hash) DO NOTHING

-- name: lock_definitions
-- Locks the definitions for a registration: one runs at a time, readers do not wait.
LOCK TABLE workflow_definitions IN SHARE ROW EXCLUSIVE MODE

-- name: definition_current
-- Current version of a workflow, with its text; no row means that it is not registered.
SELECT {d.Definition}, s.text AS source FROM workflow_definitions d JOIN workflow_sources s ON s.hash = d.source_hash
WHERE d.name = %(name)s ORDER BY d.registration DESC LIMIT 1

-- name: definition_version
-- One version of a workflow, with its text; no row means that it is not registered.
SELECT {d.Definition}, s.text AS source FROM workflow_definitions d JOIN workflow_sources s ON s.hash = d.source_hash
WHERE d.name = %(name)s AND d.version = %(version)s

-- name: versions
-- The versions of a workflow, that which became current last first.
SELECT version FROM workflow_definitions WHERE name = %(name)s ORDER BY registration DESC LIMIT %(limit)s

-- name: program
-- Program of one version of a workflow, to take turns with; its text is not read.
SELECT program FROM workflow_definitions WHERE name = %(name)s AND version = %(version)s

-- name: current_definitions
-- Current versions of these workflows, without text and program, which may be large.
SELECT {d.Listed} FROM unnest(%(names)s::text[]) AS x(name)
CROSS JOIN LATERAL (SELECT * FROM workflow_definitions d WHERE d.name = x.name ORDER BY registration DESC LIMIT 1) d

-- name: definitions_after
-- A page of the current versions of workflows by name, for lists.
-- It goes from name to name along the index: a name is one step, however many versions it has.
WITH RECURSIVE names(name) AS (
  (SELECT name FROM workflow_definitions WHERE name > %(after)s ORDER BY name LIMIT 1)
  UNION ALL SELECT (SELECT d.name FROM workflow_definitions d WHERE d.name > n.name ORDER BY d.name LIMIT 1) FROM names n WHERE n.name IS NOT NULL)
SELECT {d.Listed} FROM (SELECT name FROM names WHERE name IS NOT NULL LIMIT %(limit)s) n
CROSS JOIN LATERAL (SELECT * FROM workflow_definitions d WHERE d.name = n.name ORDER BY registration DESC LIMIT 1) d ORDER BY d.name

-- name: start_executions
-- Starts executions, all their rows at once; one whose id or key exists already is not returned.
-- Workflows get a context. Those that are `ready` are queued, free at once or after a delay; a
-- child that was held back may have been woken before its release, and then has its row. The
-- planner takes `new` for one row, and would scan all of it for each execution: an IN inside a
-- larger expression is looked up by hash instead. With a token, that is returned, locked.
WITH x AS MATERIALIZED (
  SELECT * FROM unnest({%NewExecution}, %(timeout_us)s::bigint[], %(later_us)s::bigint[], %(delay_us)s::bigint[], %(snapshot)s::bytea[],
    %(crashes)s::int[], %(ready)s::bool[]) WITH ORDINALITY AS x({NewExecution}, timeout_us, later_us, delay_us, snapshot, crashes, ready, ord)),
t AS MATERIALIZED (SELECT coalesce(%(now)s::bigint, now_us()) AS now),
new AS (
  INSERT INTO executions ({NewExecution}, status, created_at, timeout_us, timeout_at)
  SELECT {x.NewExecution}, 0, t.now + x.later_us, x.timeout_us, CASE WHEN NOT x.held THEN t.now + x.delay_us + x.timeout_us END
  FROM t, x ORDER BY x.ord
  ON CONFLICT DO NOTHING RETURNING id, created_at),
contexts AS (
  INSERT INTO workflow_execution_context (execution_id, seq, fence, format, statement, snapshot, owned, awaiting, updated_at)
  SELECT x.id, 0, 0, 1, 0, x.snapshot, '[]', 'null', t.now FROM t, x WHERE x.type = 0 AND (x.id IN (SELECT new.id FROM new)) IS TRUE
  ON CONFLICT DO NOTHING),
queued AS (
  INSERT INTO ready (id, kind, queue, priority, order_key, state, due_at, attempt, crashes)
  SELECT x.id, x.type, x.queue, x.priority, t.now, CASE WHEN x.delay_us > 0 THEN 2 ELSE 0 END,
    CASE WHEN x.delay_us > 0 THEN t.now + x.delay_us END, x.attempt, x.crashes
  FROM t, x WHERE x.ready AND (x.id IN (SELECT new.id FROM new)) IS TRUE ORDER BY x.id COLLATE "C"
  ON CONFLICT DO NOTHING)
SELECT new.id, new.created_at,
  CASE WHEN %(token)s::text IS NOT NULL THEN (
    SELECT row_to_json(k)::text FROM (SELECT {StoredToken}, now_us() AS now FROM api_tokens WHERE id = %(token)s::text FOR SHARE) k) END AS token
FROM new

-- name: start_alike
-- Starts roots that differ only in their ids, which are new, and their inputs.
-- What they have in common is sent once, and read once. No row: their version is not the current one, and nothing is started.
WITH x AS MATERIALIZED (SELECT * FROM unnest(%(ids)s::text[], %(inputs_of)s::text[]) AS x(id, inputs)),
t AS MATERIALIZED (
  SELECT now_us() AS now WHERE NOT %(if_current)s::bool
    OR %(version)s::text = (SELECT version FROM workflow_definitions WHERE name = %(name)s::text ORDER BY registration DESC LIMIT 1)),
new AS (
  INSERT INTO executions (id, inputs, root_id, {NewExecution but id, inputs, root_id}, status, created_at, timeout_us, timeout_at)
  SELECT x.id, x.inputs, x.id, {:NewExecution but id, inputs, root_id}, 0, t.now, %(timeout_us)s::bigint,
    t.now + %(delay_us)s::bigint + %(timeout_us)s::bigint
  FROM t, x),
contexts AS (
  INSERT INTO workflow_execution_context (execution_id, seq, fence, format, statement, snapshot, owned, awaiting, updated_at)
  SELECT x.id, 0, 0, 1, 0, NULL, '[]', 'null', t.now FROM t, x WHERE %(type)s::bigint = 0),
queued AS (
  INSERT INTO ready (id, kind, queue, priority, order_key, state, due_at)
  SELECT x.id, %(type)s::bigint, %(queue)s::text, %(priority)s::bigint, t.now, CASE WHEN %(delay_us)s::bigint > 0 THEN 2 ELSE 0 END,
    CASE WHEN %(delay_us)s::bigint > 0 THEN t.now + %(delay_us)s::bigint END
  FROM t, x)
SELECT t.now,
  CASE WHEN %(token)s::text IS NOT NULL THEN (
    SELECT row_to_json(k)::text FROM (SELECT {StoredToken}, now_us() AS now FROM api_tokens WHERE id = %(token)s::text FOR SHARE) k) END AS token
FROM t

-- name: existing_executions
-- Executions that starts found to exist already, by id, or else by name and key.
SELECT DISTINCT ON (x.ord) x.ord - 1, e.id, e.name
FROM unnest(%(id)s::text[], %(name)s::text[], %(key)s::text[]) WITH ORDINALITY AS x(id, name, key, ord)
CROSS JOIN LATERAL (SELECT id, name FROM executions WHERE id = x.id UNION ALL SELECT id, name FROM executions WHERE name = x.name AND key = x.key) e
ORDER BY x.ord, e.id = x.id DESC

-- name: keyed
-- Executions that have these idempotency keys, and are to be replaced by a start.
SELECT e.id FROM unnest(%(name)s::text[], %(key)s::text[]) AS x(name, key) JOIN executions e ON e.name = x.name AND e.key = x.key

-- name: let_go_of_keys
-- Takes the idempotency keys from executions that a start replaces.
UPDATE executions SET key = NULL WHERE id = ANY(%(ids)s::text[])

-- name: insert_ready
-- Queues executions that start or are released, free at once or after a delay.
-- A child that was held back may have been woken before its release, and then has its row.
INSERT INTO ready (id, kind, queue, priority, order_key, state, due_at, attempt, crashes)
SELECT x.id, x.kind, x.queue, x.priority, %(now)s, CASE WHEN x.delay_us > 0 THEN 2 ELSE 0 END,
  CASE WHEN x.delay_us > 0 THEN %(now)s + x.delay_us END, x.attempt, x.crashes
FROM unnest(%(id)s::text[], %(kind)s::smallint[], %(queue)s::text[], %(priority)s::int[], %(attempt)s::int[], %(delay_us)s::bigint[],
  %(crashes)s::int[]) AS x(id, kind, queue, priority, attempt, delay_us, crashes) ORDER BY x.id COLLATE "C"
ON CONFLICT (id) DO NOTHING

-- name: insert_claimed
-- Creates claimed ready rows of tasks that a worker runs already, and returns their fences.
INSERT INTO ready (id, kind, queue, priority, order_key, state, claimed_by, claim_expires_at, fence, attempt)
SELECT x.id, 1, x.queue, x.priority, %(now)s, 1, x.worker, %(now)s + x.ttl_us, nextval('fences'), x.attempt
FROM unnest(%(id)s::text[], %(queue)s::text[], %(priority)s::int[], %(worker)s::text[], %(ttl_us)s::bigint[], %(attempt)s::int[])
  AS x(id, queue, priority, worker, ttl_us, attempt)
RETURNING id, fence

-- name: lock
-- Locks the ready rows of these executions and returns them; a parked one has no row.
-- This is the one pass over all ready rows that a transaction will touch; parents come before their
-- children.
SELECT id, kind, state, fence, wakes, attempt, claimed_by, claim_expires_at, crashes FROM ready WHERE id = ANY(%(ids)s::text[]) ORDER BY id FOR UPDATE

-- name: lock_free
-- Locks ready rows for the rescue; rows that another transaction has locked are left out.
SELECT id, kind, state, fence, wakes, attempt, claimed_by, claim_expires_at, crashes FROM ready
WHERE id = ANY(%(ids)s::text[]) ORDER BY id FOR UPDATE SKIP LOCKED

-- name: lock_with_related
-- As `lock`, for a group commit: besides the given rows, those of all that it may wake.
-- These are parents of executions that end, child workflows that are asked to end, and receivers of
-- signals. Here and below, OFFSET 0 makes the planner look up the children of each parent.
-- Otherwise a cached plan from a time with few executions would scan all live executions, and all
-- parents for each of them.
SELECT id, kind, state, fence, wakes, attempt, claimed_by, claim_expires_at, crashes FROM ready
WHERE id = ANY(%(ids)s::text[] || ARRAY(
  SELECT parent_id FROM executions WHERE id = ANY(%(ending)s::text[]) AND parent_id IS NOT NULL
  UNION ALL SELECT c.id FROM unnest(%(id)s::text[], %(first)s::bigint[], %(last)s::bigint[]) AS x(id, first, last)
    CROSS JOIN LATERAL (SELECT id FROM executions WHERE parent_id = x.id AND child_no BETWEEN x.first AND x.last AND finished_at IS NULL
      AND type < 1 OFFSET 0) AS c))
ORDER BY id FOR UPDATE

-- name: lock_contexts
-- Locks the contexts of turns in a group commit; a turn that has lost its claim has no row.
-- The two guards of a turn: the same turn a second time finds another seq, an older owner finds a
-- newer fence.
SELECT c.execution_id FROM unnest(%(id)s::text[], %(seq)s::bigint[], %(fence)s::bigint[]) AS x(id, seq, fence)
JOIN workflow_execution_context c ON c.execution_id = ANY(ARRAY[x.id]) WHERE c.seq = x.seq AND c.fence <= x.fence
ORDER BY x.id COLLATE "C" FOR NO KEY UPDATE OF c

-- name: wake
-- Wakes workflows: makes their ready rows, or counts up `wakes` of rows that are not free.
-- A free row needs no count, since its next owner loads after it claims; but it is locked all the
-- same.
INSERT INTO ready (id, kind, queue, priority, order_key, state)
SELECT DISTINCT x.id COLLATE "C", 0, 'system', 0, %(now)s::bigint, 0 FROM unnest(%(ids)s::text[]) AS x(id) ORDER BY 1
ON CONFLICT (id) DO UPDATE SET wakes = ready.wakes + 1 WHERE ready.state <> 0
RETURNING state

-- name: claim
-- Claims free rows of these parts of queues for a worker, up to the limit, each with a new fence.
-- One statement claims from all queues, in their order. The array is filled lazily, so no more rows
-- are locked than the limit; a join might run the subquery again and claim more. Paused queues are
-- left out first, so that none of their rows is locked. A part is a range of priorities, or the rows
-- of one priority from a position on. The ids of what was claimed are kept for the statements after
-- it, up to the end of the transaction.
WITH parts AS MATERIALIZED (
  SELECT x.* FROM unnest(%(queue)s::text[], %(highest)s::int[], %(lowest)s::int[], %(from_order_key)s::bigint[], %(from_id)s::text[])
    WITH ORDINALITY AS x(queue, highest, lowest, from_order_key, from_id, n)
  WHERE NOT EXISTS (SELECT 1 FROM queues p WHERE p.name = x.queue) ORDER BY x.n),
won AS (
  UPDATE ready SET state = 1, claimed_by = %(worker)s, claim_expires_at = (SELECT now_us()) + %(ttl_us)s, fence = nextval('fences'), attempt = attempt + 1
  WHERE id = ANY(ARRAY(
    SELECT r.id FROM parts AS p CROSS JOIN LATERAL (
      SELECT id FROM (
        SELECT id FROM ready WHERE p.from_id IS NULL AND ready.queue = p.queue AND priority <= p.highest AND priority >= p.lowest AND state = 0
        ORDER BY priority DESC, order_key, id LIMIT %(limit)s FOR UPDATE SKIP LOCKED) AS whole
      UNION ALL SELECT id FROM (
        SELECT id FROM ready WHERE ready.queue = p.queue AND priority = p.highest AND (order_key, id) >= (p.from_order_key, p.from_id) AND state = 0
        ORDER BY order_key, id LIMIT %(limit)s FOR UPDATE SKIP LOCKED) AS behind) AS r
    LIMIT %(limit)s))
  RETURNING {Claim}, priority, order_key),
kept AS (
  SELECT set_config('rhythm.workflows', (array_agg(id) FILTER (WHERE kind <> 1))::text, true),
    set_config('rhythm.tasks', (array_agg(id) FILTER (WHERE kind = 1))::text, true) FROM won)
SELECT {Claim}, priority, order_key FROM won CROSS JOIN kept
ORDER BY array_position(%(queues)s::text[], queue), priority DESC, order_key, id

-- name: extend
-- Extends claims and returns their wakes; a lost claim has no row.
-- Here and below, rows are locked in the one order, in the same statement. That is safe because the
-- conditions are on the locked rows themselves, which are read again with the lock.
WITH locked AS (
  SELECT r.id FROM unnest(%(id)s::text[], %(fence)s::bigint[]) AS x(id, fence) JOIN ready r ON r.id = ANY(ARRAY[x.id]) AND r.fence = x.fence
  ORDER BY x.id COLLATE "C" FOR UPDATE OF r)
UPDATE ready r SET claim_expires_at = now_us() + %(ttl_us)s FROM locked WHERE r.id = ANY(ARRAY[locked.id]) RETURNING r.id, r.wakes

-- name: release
-- Releases claims, free at once or after a delay; a task gets its attempt back.
-- A workflow that has begun goes to the end of the system queue, so that a pause of the queue it
-- began in does not stop it.
WITH locked AS (
  SELECT r.id, EXISTS (SELECT 1 FROM workflow_execution_context c WHERE c.execution_id = r.id AND c.seq > 0) AS begun
  FROM unnest(%(id)s::text[], %(fence)s::bigint[]) AS x(id, fence) JOIN ready r ON r.id = ANY(ARRAY[x.id]) AND r.fence = x.fence
  ORDER BY x.id COLLATE "C" FOR UPDATE OF r)
UPDATE ready r SET state = CASE WHEN %(delay_us)s::bigint > 0 THEN 2 ELSE 0 END,
  due_at = CASE WHEN %(delay_us)s::bigint > 0 THEN now_us() + %(delay_us)s::bigint END,
  claimed_by = NULL, claim_expires_at = NULL, fence = NULL, attempt = attempt - (kind = 1)::int,
  queue = CASE WHEN begun THEN 'system' ELSE queue END, order_key = CASE WHEN begun THEN now_us() ELSE order_key END
FROM locked WHERE r.id = ANY(ARRAY[locked.id])
RETURNING r.queue

-- name: park
-- Parks workflows without a turn, unless they were woken; a lost claim has no row.
WITH locked AS (
  SELECT r.id, r.wakes, x.wakes AS seen FROM unnest(%(id)s::text[], %(fence)s::bigint[], %(wakes)s::bigint[]) AS x(id, fence, wakes)
  JOIN ready r ON r.id = ANY(ARRAY[x.id]) AND r.fence = x.fence ORDER BY x.id COLLATE "C" FOR UPDATE OF r),
parked AS (DELETE FROM ready r USING locked WHERE r.id = ANY(ARRAY[locked.id]) AND locked.wakes = locked.seen)
SELECT id, wakes, wakes = seen FROM locked

-- name: drop
-- Deletes claimed ready rows of workflows that have ended or no longer exist.
WITH locked AS (
  SELECT r.id FROM unnest(%(id)s::text[], %(fence)s::bigint[]) AS x(id, fence) JOIN ready r ON r.id = ANY(ARRAY[x.id]) AND r.fence = x.fence
  ORDER BY x.id COLLATE "C" FOR UPDATE OF r)
DELETE FROM ready r USING locked WHERE r.id = ANY(ARRAY[locked.id])

-- name: claimed_by
-- Claims of one worker as the database has them, to compare with what the worker knows.
SELECT id, fence FROM ready WHERE claimed_by = %(worker)s AND state = 1

-- name: beat
-- Stores the heartbeat of a worker, and returns all claims that it has.
WITH beaten AS (
  INSERT INTO worker_heartbeats (worker_id, {Beat}, started_at, beat_at, dead_after_us)
  VALUES (%(worker)s, {:Beat}, now_us(), now_us(), %(dead_after_us)s)
  ON CONFLICT (worker_id) DO UPDATE SET {Beat = excluded}, beat_at = excluded.beat_at, dead_after_us = excluded.dead_after_us)
SELECT id, fence, wakes FROM ready WHERE claimed_by = %(worker)s AND state = 1

-- name: keep
-- Extends the claims of a worker with its heartbeat; a lost or locked claim has no row.
-- Locked rows are left to the next beat: a process that is frozen in a transaction must not delay
-- the beats of others.
WITH locked AS (
  SELECT r.id FROM unnest(%(id)s::text[], %(fence)s::bigint[]) AS x(id, fence) JOIN ready r ON r.id = ANY(ARRAY[x.id]) AND r.fence = x.fence
  FOR UPDATE OF r SKIP LOCKED)
UPDATE ready r SET claim_expires_at = now_us() + %(ttl_us)s FROM locked WHERE r.id = ANY(ARRAY[locked.id]) RETURNING r.id

-- name: leave
-- Removes workers that have stopped; their claims expire at once.
WITH locked AS (SELECT id FROM ready WHERE claimed_by = ANY(%(workers)s::text[]) AND state = 1 ORDER BY id || '' FOR UPDATE),
expired AS (UPDATE ready r SET claim_expires_at = now_us() - 1 FROM locked WHERE r.id = ANY(ARRAY[locked.id]))
DELETE FROM worker_heartbeats WHERE worker_id = ANY(%(workers)s::text[])

-- name: workers
-- All workers with a heartbeat, dead ones too, and how many claims each has.
SELECT {h.SeenWorker but worker, claims, now, dead_after_s}, h.worker_id AS worker, now_us() AS now, h.dead_after_us / 1e6::float8 AS dead_after_s,
  (SELECT count(*) FROM ready r WHERE r.claimed_by = h.worker_id AND r.state = 1) AS claims
FROM worker_heartbeats h ORDER BY h.worker_id

-- name: maintenance_due
-- Returns whether there is anything for the services to recover, without a lock.
-- One query checks everything that a pass of the rescue service might do, and how long it is until
-- a schedule is due. Without `dead`, no worker counts as dead.
SELECT
  EXISTS (SELECT 1 FROM ready r WHERE r.state = 1 AND (r.claim_expires_at < now_us()
    OR r.claimed_by = ANY(ARRAY(SELECT h.worker_id FROM worker_heartbeats h WHERE %(dead)s::bool AND h.beat_at + h.dead_after_us < now_us())))) AS lost,
  EXISTS (SELECT 1 FROM executions e LEFT JOIN ready r ON r.id = ANY(ARRAY[e.id])
    WHERE e.cancel_requested_at IS NOT NULL AND e.finished_at IS NULL AND e.type = 1 AND (r.id IS NULL OR r.state <> 1)) AS cancelled,
  EXISTS (SELECT 1 FROM worker_heartbeats h WHERE h.beat_at < now_us() - %(forgotten_us)s
    AND NOT EXISTS (SELECT 1 FROM ready r WHERE r.claimed_by = h.worker_id AND r.state = 1 OFFSET 0)) AS forgotten,
  CASE WHEN EXISTS (SELECT 1 FROM schedules s WHERE s.queued_at IS NOT NULL AND s.paused_at IS NULL AND NOT EXISTS (
      SELECT 1 FROM schedule_fires f JOIN executions e ON e.id = f.execution_id WHERE f.schedule = s.name AND f.open AND e.status < 5))
    THEN 0 ELSE (SELECT min(s.next_at) FROM schedules s WHERE s.paused_at IS NULL AND s.next_at IS NOT NULL) - now_us() END AS slot_us,
  EXISTS (SELECT 1 FROM terminations) AS terminated

-- name: forget_workers
-- Deletes the heartbeats of workers that have been silent for a day and have no claims.
DELETE FROM worker_heartbeats WHERE beat_at < now_us() - %(forgotten_us)s AND worker_id = ANY(ARRAY(
  SELECT h.worker_id FROM worker_heartbeats h WHERE h.beat_at < now_us() - %(forgotten_us)s
    AND NOT EXISTS (SELECT 1 FROM ready r WHERE r.claimed_by = h.worker_id AND r.state = 1 OFFSET 0) LIMIT %(limit)s))

-- name: expired
-- Claims for the rescue to take back: expired, or, with `dead`, of silent workers.
-- The order is that of the index of claimed rows: any other would scan the whole table. Without
-- `dead`, no worker counts as dead.
SELECT r.id, r.fence, r.crashes, e.parent_id, coalesce(e.status, 8) >= 5 AS ended, now_us() AS now FROM ready r LEFT JOIN executions e ON e.id = ANY(ARRAY[r.id])
WHERE r.state = 1 AND (r.claim_expires_at < now_us()
  OR r.claimed_by = ANY(ARRAY(SELECT h.worker_id FROM worker_heartbeats h WHERE %(dead)s::bool AND h.beat_at + h.dead_after_us < now_us())))
ORDER BY r.claimed_by LIMIT %(limit)s

-- name: dead_workers
-- Workers that are still silent, so that the rescue may take their claims before they expire.
-- It is read after their claims were locked: a worker that has sent a beat meanwhile keeps its
-- claims.
SELECT worker_id FROM worker_heartbeats WHERE worker_id = ANY(%(ids)s::text[]) AND beat_at + dead_after_us < %(now)s

-- name: paused_queues
-- Names of the paused queues, so that owners of workflows run no tasks of them themselves.
SELECT name FROM queues

-- name: pause_queue
-- Pauses a queue; no row means that it was paused before, and nothing changes.
INSERT INTO queues (name, paused_at, paused_by, paused_reason) VALUES (%(name)s, now_us(), %(by)s, %(reason)s)
ON CONFLICT (name) DO NOTHING RETURNING name

-- name: resume_queue
-- Ends the pause of a queue; no row means that it was not paused.
DELETE FROM queues WHERE name = %(name)s RETURNING name

-- name: declare
-- Stores what the tasks of a worker are (queue, retries, timeout) when it starts.
-- Unchanged rows are not even locked. The rows are sorted by name, so that two workers that start
-- at once do not deadlock.
INSERT INTO task_declarations ({Declaration}, declared_at) SELECT {x.Declaration}, now_us() FROM unnest({%Declaration}) AS x({Declaration})
WHERE NOT EXISTS (
  SELECT 1 FROM task_declarations t WHERE t.name = x.name AND (t.queue, t.retries, t.timeout_s, t.backoff, t.transactional)
    IS NOT DISTINCT FROM (x.queue, x.retries, x.timeout_s, x.backoff, x.transactional))
ORDER BY x.name
ON CONFLICT (name) DO UPDATE SET {Declaration = excluded but name}, declared_at = excluded.declared_at

-- name: declared
-- Declarations of all tasks, by which workers plan turns.
SELECT {Declaration} FROM task_declarations ORDER BY name

-- name: rescue_workflows
-- Frees workflows whose claims are lost, and returns how often the same turn has crashed.
UPDATE ready r SET state = 0, queue = CASE WHEN x.seq > 0 THEN 'system' ELSE r.queue END, claimed_by = NULL, claim_expires_at = NULL, fence = NULL,
  crashes = CASE WHEN crash_seq = x.seq THEN crashes + 1 ELSE 1 END, crash_seq = x.seq
FROM unnest(%(id)s::text[], %(seq)s::bigint[]) AS x(id, seq) WHERE r.id = ANY(ARRAY[x.id]) RETURNING r.id, r.crashes, r.queue

-- name: rescue_tasks
-- Frees tasks whose claims are lost, and counts the crash.
UPDATE ready SET state = 0, claimed_by = NULL, claim_expires_at = NULL, fence = NULL, crashes = crashes + 1 WHERE id = ANY(%(ids)s::text[]) RETURNING queue

-- name: raise_context_fences
-- Draws new fences for workflows in a rescue or terminate: their old owners cannot commit.
UPDATE workflow_execution_context SET fence = nextval('fences') WHERE execution_id = ANY(%(ids)s::text[]) RETURNING execution_id, seq, fence

-- name: skip_turn
-- Counts the turn by which a rescue or a terminate ends workflows, without their owners.
UPDATE workflow_execution_context SET seq = seq + 1 WHERE execution_id = ANY(%(ids)s::text[])

-- name: load
-- Claimed workflows with what their next turns need; one that no longer exists has no row.
-- Without ids, those that this transaction has just claimed; the setting is null or empty if there
-- are none. Blobs are looked up one by one, and only where a snapshot refers to one: a join would be
-- planned over the whole table. OFFSET 0 keeps a look-up of the mailbox from becoming a hash of all.
SELECT {e.Loaded but cancel_requested, paused, timed_out, seq, fence, snapshot, owned, now, has_mail, resumes},
  e.cancel_requested_at IS NOT NULL AS cancel_requested, e.paused_at IS NOT NULL AS paused, e.timed_out_at IS NOT NULL AS timed_out,
  c.seq, c.fence, c.owned, (SELECT now_us()) AS now,
  coalesce(CASE WHEN c.snapshot = '\x40' THEN (SELECT b.data FROM blobs b WHERE b.execution_id = c.execution_id) END, c.snapshot) AS snapshot,
  EXISTS (SELECT 1 FROM workflow_signals s WHERE s.execution_id = e.id AND s.consumed_seq IS NULL OFFSET 0) AS has_mail,
  (SELECT json_agg(json_build_array(q.id, CASE q.triggered_by WHEN 'manual' THEN q.trigger_data ELSE 'null' END) ORDER BY q.id)::text
    FROM execution_resume_requests q WHERE q.execution_id = e.id AND q.executed_at IS NULL) AS resumes
FROM executions e JOIN workflow_execution_context c ON c.execution_id = ANY(ARRAY[e.id])
WHERE e.id = ANY(coalesce(%(ids)s::text[], nullif(current_setting('rhythm.workflows', true), '')::text[]))

-- name: load_tasks
-- Tasks that this transaction has just claimed, with what their handlers need; one that no longer
-- exists has no row.
SELECT {e.LoadedTask but age_us, cancel_requested, timed_out, ended}, (SELECT now_us()) - e.created_at AS age_us,
  e.cancel_requested_at IS NOT NULL AS cancel_requested, e.timed_out_at IS NOT NULL AS timed_out, e.finished_at IS NOT NULL AS ended
FROM executions e WHERE e.id = ANY(nullif(current_setting('rhythm.tasks', true), '')::text[])

-- name: cancelled
-- Tasks, of those that a worker runs, that were asked to end.
SELECT id FROM executions WHERE id = ANY(%(ids)s::text[]) AND cancel_requested_at IS NOT NULL

-- name: undecided
-- Groups of children that are not decided yet; each look-up stops at the first child it finds.
SELECT x.id, x.first FROM unnest(%(id)s::text[], %(first)s::bigint[], %(last)s::bigint[], %(fails)s::bool[]) AS x(id, first, last, fails)
WHERE EXISTS (
    SELECT 1 FROM executions c WHERE c.parent_id = x.id AND c.child_no BETWEEN x.first AND x.last AND c.finished_at IS NULL OFFSET 0)
  AND NOT (x.fails AND EXISTS (
    SELECT 1 FROM executions c WHERE c.parent_id = x.id AND c.child_no BETWEEN x.first AND x.last AND c.status IN (6, 7, 8)))

-- name: next_ended
-- Outcomes of the first to end among these children, timers, waits and approvals, by workflow.
SELECT o.* FROM unnest(%(id)s::text[], %(ranges)s::text[], %(limit)s::bigint[]) AS w(id, ranges, most) CROSS JOIN LATERAL (
  WITH asked AS MATERIALIZED (SELECT (x.value ->> 0)::bigint AS first, (x.value ->> 1)::bigint AS last FROM json_array_elements(w.ranges::json) AS x)
  SELECT e.parent_id AS id, e.child_no AS n, e.status, coalesce(e.result, e.error, 'null') AS value, e.finished_at AS ended_at, e.type, e.name
  FROM asked x CROSS JOIN LATERAL generate_series(x.first, x.last) AS n JOIN executions e ON e.id = ANY(ARRAY[w.id || '.' || n]) WHERE e.status >= 5
  UNION ALL SELECT t.execution_id, t.n, CASE WHEN t.fired_at IS NULL THEN 7 ELSE 5 END, 'null', coalesce(t.fired_at, t.cancelled_at), NULL, ''
  FROM asked x JOIN timer_tasks t ON t.execution_id = w.id AND t.n BETWEEN x.first AND x.last
  WHERE t.fired_at IS NOT NULL OR t.cancelled_at IS NOT NULL
  UNION ALL
  SELECT a.execution_id, a.n, a.status,
    CASE WHEN e.id IS NULL THEN 'null' ELSE '{"id":' || to_json(e.id)::text || ',"data":' || e.data || ',"at":' || e.published_at || '}' END,
    a.ended_at, 2, a.type
  FROM asked x JOIN event_waits a ON a.execution_id = w.id AND a.n BETWEEN x.first AND x.last
  LEFT JOIN events e ON e.id = ANY(ARRAY[a.event_id]) WHERE a.ended_at IS NOT NULL
  UNION ALL
  SELECT a.execution_id, a.n, a.status, json_build_object('decision', a.decision, 'by', a.decided_by::json, 'comment', a.comment)::text, a.ended_at,
    3, a.role
  FROM asked x JOIN approvals a ON a.execution_id = w.id AND a.n BETWEEN x.first AND x.last WHERE a.ended_at IS NOT NULL
  ORDER BY ended_at, n LIMIT w.most) AS o

-- name: nth_unfinished
-- The nth of these children that has not ended: up to it, groups with a limit let them begin.
SELECT (SELECT c.child_no FROM executions c WHERE c.parent_id = x.id AND c.child_no BETWEEN x.first AND x.last AND c.finished_at IS NULL
    ORDER BY c.child_no LIMIT 1 OFFSET x.nth - 1) AS n,
  EXISTS (SELECT 1 FROM executions c WHERE c.parent_id = x.id AND c.child_no BETWEEN x.first AND x.last AND c.status IN (6, 7, 8)) AS failed
FROM unnest(%(id)s::text[], %(first)s::bigint[], %(last)s::bigint[], %(nth)s::bigint[]) WITH ORDINALITY AS x(id, first, last, nth, ord)
ORDER BY x.ord

-- name: ended
-- Outcomes of awaited children, timers, events and approvals; what is open has no row.
SELECT parent_id AS id, child_no AS n, status, coalesce(result, error, 'null') AS value, finished_at AS ended_at, type, name
FROM executions WHERE id = ANY(%(ids)s::text[]) AND status >= 5
UNION ALL SELECT t.execution_id, t.n, CASE WHEN t.fired_at IS NULL THEN 7 ELSE 5 END, 'null', coalesce(t.fired_at, t.cancelled_at), NULL, ''
FROM unnest(%(id)s::text[], %(n)s::bigint[]) AS x(id, n) JOIN timer_tasks t ON t.execution_id = ANY(ARRAY[x.id]) AND t.n = x.n
WHERE t.fired_at IS NOT NULL OR t.cancelled_at IS NOT NULL
UNION ALL
SELECT w.execution_id, w.n, w.status,
  CASE WHEN e.id IS NULL THEN 'null' ELSE '{"id":' || to_json(e.id)::text || ',"data":' || e.data || ',"at":' || e.published_at || '}' END,
  w.ended_at, 2, w.type
FROM unnest(%(id)s::text[], %(n)s::bigint[]) AS x(id, n) JOIN event_waits w ON w.execution_id = ANY(ARRAY[x.id]) AND w.n = x.n
LEFT JOIN events e ON e.id = ANY(ARRAY[w.event_id]) WHERE w.ended_at IS NOT NULL
UNION ALL
SELECT a.execution_id, a.n, a.status, json_build_object('decision', a.decision, 'by', a.decided_by::json, 'comment', a.comment)::text, a.ended_at,
  3, a.role
FROM unnest(%(id)s::text[], %(n)s::bigint[]) AS x(id, n) JOIN approvals a ON a.execution_id = ANY(ARRAY[x.id]) AND a.n = x.n WHERE a.ended_at IS NOT NULL

-- name: mail
-- Signals that these workflows have not consumed, in the order of sending, for their turns.
SELECT execution_id, {Mail} FROM workflow_signals
WHERE execution_id = ANY(%(ids)s::text[]) AND consumed_seq IS NULL ORDER BY execution_id, n

-- name: first_mail
-- The first signals of one name, or of all names, that these workflows have not consumed.
SELECT s.* FROM unnest(%(id)s::text[], %(name)s::text[], %(limit)s::bigint[]) AS x(id, name, most) CROSS JOIN LATERAL (
  (SELECT execution_id, {Mail} FROM workflow_signals WHERE x.name IS NULL AND execution_id = x.id AND consumed_seq IS NULL
    ORDER BY n LIMIT x.most)
  UNION ALL (SELECT execution_id, {Mail} FROM workflow_signals WHERE execution_id = x.id AND name = x.name AND consumed_seq IS NULL
    ORDER BY n LIMIT x.most)) AS s

-- name: mailed
-- Signals that one workflow has not consumed, for callers who only read.
-- Their payloads are left out, since they may be large.
SELECT {Mail but payload}, 'null' AS payload FROM workflow_signals WHERE execution_id = %(id)s AND consumed_seq IS NULL ORDER BY n

-- name: light_turns
-- Commits turns after which their owners go on; a turn that has lost its claim has no row.
-- One statement writes the turns and the tasks that their owners have run; turns that have lost
-- their claims are left out. The planner takes `won` for one row, and would scan all of it for each
-- task. An IN inside a larger expression is looked up by hash instead. The root of an execution is
-- the first part of its id.
WITH won AS (
  UPDATE workflow_execution_context c SET seq = c.seq + 1, fence = x.fence, statement = x.statement, owned = x.owned, awaiting = x.awaiting,
    snapshot = coalesce(x.snapshot, c.snapshot), updated_at = (SELECT now_us())
  FROM unnest(%(id)s::text[], %(seq)s::bigint[], %(fence)s::bigint[], %(status)s::smallint[], %(worker)s::text[], %(cause)s::text[],
    %(statement)s::int[], %(snapshot)s::bytea[], %(owned)s::text[], %(awaiting)s::text[], %(waited_us)s::bigint[])
    AS x(id, seq, fence, status, worker, cause, statement, snapshot, owned, awaiting, waited_us) JOIN executions e ON e.id = ANY(ARRAY[x.id])
  WHERE c.execution_id = ANY(ARRAY[x.id]) AND c.seq = x.seq AND c.fence <= x.fence AND e.status < 5
  RETURNING x.id, x.seq, x.fence, x.status, x.worker, x.cause, x.statement, x.snapshot, x.waited_us, e.status AS from_status, e.started_at),
replaced AS (
  DELETE FROM blobs WHERE execution_id = ANY(ARRAY(SELECT won.id FROM won WHERE won.snapshot IS NOT NULL))),
begun AS (
  UPDATE executions e SET status = won.status, started_at = coalesce(e.started_at, greatest(e.created_at, (SELECT now_us()) - won.waited_us)),
    fence = won.fence, worker = won.worker
  FROM won WHERE (won.from_status <> won.status OR won.started_at IS NULL) AND e.id = ANY(ARRAY[won.id]) AND e.status < 5),
done AS (
  INSERT INTO executions ({Done}, id, type, version, priority, parent_id, child_no, root_id, max_attempts, fence, worker, attributes,
                          result, error, created_at, started_at, finished_at)
  SELECT {d.Done}, d.id || '.' || d.n, 1, '', 0, d.id, d.n, split_part(d.id, '.', 1), d.attempt, d.fence, d.worker, '{}',
    CASE WHEN d.status = 5 THEN d.value END, CASE WHEN d.status <> 5 THEN d.value END,
    (SELECT now_us()) - d.took_us, (SELECT now_us()) - d.took_us, (SELECT now_us())
  FROM unnest({%done_Done}, %(done_n)s::bigint[], %(done_value)s::text[], %(done_took_us)s::bigint[], %(done_id)s::text[],
    %(done_fence)s::bigint[], %(done_worker)s::text[]) AS d({Done}, n, value, took_us, id, fence, worker)
  WHERE (d.id IN (SELECT won.id FROM won)) IS TRUE),
told AS (
  INSERT INTO history (execution_id, seq, fence, worker, from_status, to_status, cause, statement, at)
  SELECT won.id, won.seq + 1, won.fence, won.worker, won.from_status, won.status, won.cause, won.statement, (SELECT now_us()) - won.waited_us FROM won)
SELECT won.id, r.wakes FROM won LEFT JOIN ready r ON r.id = ANY(ARRAY[won.id]) AND r.fence = won.fence

-- name: light_finishes
-- Commits the last turns of workflows that have completed and have no parent; what is not as its
-- owner knows it, or leaves a timer, a wait or an approval behind, has no row.
-- Safe in one statement, as `light_ends`: whoever cancels, terminates, resumes or signals a workflow
-- locks its ready row first, and is found in the newest versions of the locked rows.
-- With a first turn that was not committed before it (`first_…`, else null) the context is one turn behind.
WITH won AS (
  SELECT x.*, e.status AS from_status FROM unnest(%(id)s::text[], %(seq)s::bigint[], %(fence)s::bigint[], %(wakes)s::bigint[], %(worker)s::text[],
    %(cause)s::text[], %(statement)s::int[], %(awaiting)s::text[], %(value)s::text[], %(first_status)s::smallint[],
    %(first_cause)s::text[], %(first_statement)s::int[], %(first_waited_us)s::bigint[], %(first_snapshot)s::bytea[], %(first_owned)s::text[])
    AS x(id, seq, fence, wakes, worker, cause, statement, awaiting, value, first_status, first_cause, first_statement, first_waited_us, first_snapshot,
      first_owned)
  JOIN ready r ON r.id = ANY(ARRAY[x.id]) JOIN workflow_execution_context c ON c.execution_id = ANY(ARRAY[x.id]) JOIN executions e ON e.id = ANY(ARRAY[x.id])
  WHERE r.fence = x.fence AND r.wakes = x.wakes AND c.seq = x.seq - (x.first_status IS NOT NULL)::int AND c.fence <= x.fence AND e.status < 5 AND e.cancel_requested_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM timer_tasks t WHERE t.execution_id = x.id OFFSET 0)
    AND NOT EXISTS (SELECT 1 FROM event_waits w WHERE w.execution_id = x.id OFFSET 0)
    AND NOT EXISTS (SELECT 1 FROM approvals a WHERE a.execution_id = x.id AND a.status IS NULL OFFSET 0)
    AND NOT EXISTS (SELECT 1 FROM terminations t WHERE t.id = x.id OFFSET 0)
  ORDER BY x.id COLLATE "C" FOR UPDATE OF r, c, e),
freed AS (DELETE FROM ready r USING won WHERE r.id = ANY(ARRAY[won.id])),
moved AS (
  UPDATE workflow_execution_context c SET seq = won.seq + 1, fence = won.fence, statement = won.statement, awaiting = won.awaiting,
    snapshot = coalesce(won.first_snapshot, c.snapshot), owned = coalesce(won.first_owned, c.owned), updated_at = (SELECT now_us())
  FROM won WHERE c.execution_id = ANY(ARRAY[won.id])),
done AS (
  INSERT INTO executions ({Done}, id, type, version, priority, parent_id, child_no, root_id, max_attempts, fence, worker, attributes,
                          result, error, created_at, started_at, finished_at)
  SELECT {d.Done}, d.id || '.' || d.n, 1, '', 0, d.id, d.n, d.id, d.attempt, d.fence, d.worker, '{}',
    CASE WHEN d.status = 5 THEN d.value END, CASE WHEN d.status <> 5 THEN d.value END,
    (SELECT now_us()) - d.took_us, (SELECT now_us()) - d.took_us, (SELECT now_us())
  FROM unnest({%done_Done}, %(done_n)s::bigint[], %(done_value)s::text[], %(done_took_us)s::bigint[], %(done_id)s::text[],
    %(done_fence)s::bigint[], %(done_worker)s::text[]) AS d({Done}, n, value, took_us, id, fence, worker)
  WHERE (d.id IN (SELECT won.id FROM won)) IS TRUE),
told AS (
  INSERT INTO history (execution_id, seq, fence, worker, from_status, to_status, cause, statement, at)
  SELECT won.id, won.seq + 1, won.fence, won.worker, coalesce(won.first_status, won.from_status), 5, won.cause, won.statement, (SELECT now_us()) FROM won
  UNION ALL SELECT won.id, won.seq, won.fence, won.worker, won.from_status, won.first_status, won.first_cause, won.first_statement,
    (SELECT now_us()) - won.first_waited_us FROM won WHERE won.first_status IS NOT NULL)
UPDATE executions e SET status = 5, result = won.value, error = NULL, finished_at = (SELECT now_us()), fence = won.fence, worker = won.worker,
  started_at = coalesce(e.started_at, greatest(e.created_at, (SELECT now_us()) - coalesce(won.first_waited_us, 0))), held = false
FROM won WHERE e.id = ANY(ARRAY[won.id]) RETURNING e.id

-- name: light_ends
-- Ends tasks that have no parent; one that has lost its claim, or has ended, has no row.
-- Safe in one statement: what decides lies in the rows that are locked and written. Whoever cancels
-- or terminates a task locks its ready row first, so what that has changed is found in the newest
-- version of the execution. A task that was asked to end does so as `cancelled_…` says, unless its
-- end stands all the same.
WITH locked AS (
  SELECT x.*, r.attempt FROM unnest(%(id)s::text[], %(fence)s::bigint[], %(worker)s::text[], %(took_us)s::bigint[], %(status)s::smallint[],
    %(result)s::text[], %(error)s::text[], %(stands)s::bool[], %(cancelled_status)s::smallint[], %(cancelled_result)s::text[],
    %(cancelled_error)s::text[])
    AS x(id, fence, worker, took_us, status, result, error, stands, cancelled_status, cancelled_result, cancelled_error)
  JOIN ready r ON r.id = ANY(ARRAY[x.id]) AND r.fence = x.fence ORDER BY x.id COLLATE "C" FOR UPDATE OF r),
taken AS (DELETE FROM ready r USING locked x WHERE r.id = ANY(ARRAY[x.id]))
UPDATE executions e SET
  status = CASE WHEN x.stands OR e.cancel_requested_at IS NULL THEN x.status ELSE x.cancelled_status END,
  result = CASE WHEN x.stands OR e.cancel_requested_at IS NULL THEN x.result ELSE x.cancelled_result END,
  error = CASE WHEN x.stands OR e.cancel_requested_at IS NULL THEN x.error ELSE x.cancelled_error END,
  finished_at = (SELECT now_us()), fence = x.fence, worker = x.worker, attempt = greatest(e.attempt, x.attempt), held = false,
  started_at = coalesce(e.started_at, greatest(e.created_at, (SELECT now_us()) - x.took_us))
FROM locked x WHERE e.id = ANY(ARRAY[x.id]) AND e.status < 5 RETURNING e.id

-- name: advance_contexts
-- Stores the contexts of turns in a group commit, which are locked.
-- A new snapshot deletes the blob of the one before.
WITH won AS (
  UPDATE workflow_execution_context c SET seq = c.seq + 1, fence = x.fence, statement = x.statement, owned = coalesce(x.owned, c.owned),
    awaiting = x.awaiting, snapshot = coalesce(x.snapshot, c.snapshot), updated_at = %(now)s
  FROM unnest(%(id)s::text[], %(fence)s::bigint[], %(statement)s::int[], %(snapshot)s::bytea[], %(owned)s::text[], %(awaiting)s::text[])
    AS x(id, fence, statement, snapshot, owned, awaiting)
  WHERE c.execution_id = ANY(ARRAY[x.id]) RETURNING x.id, x.snapshot)
DELETE FROM blobs WHERE execution_id = ANY(ARRAY(SELECT won.id FROM won WHERE won.snapshot IS NOT NULL))

-- name: insert_blobs
-- Stores snapshots that are too large for their contexts.
INSERT INTO blobs (execution_id, data) SELECT x.id, x.data FROM unnest(%(id)s::text[], %(data)s::bytea[]) AS x(id, data)

-- name: wakes_of
-- Wakes of workflows that stay with their owners after a group commit.
SELECT id, fence, wakes FROM ready WHERE id = ANY(%(ids)s::text[])

-- name: delete_parked
-- Parks workflows at the end of their turns, unless they were woken; returns those parked.
DELETE FROM ready r USING unnest(%(id)s::text[], %(fence)s::bigint[], %(wakes)s::bigint[]) AS x(id, fence, wakes)
WHERE r.id = ANY(ARRAY[x.id]) AND r.fence = x.fence AND r.wakes = x.wakes RETURNING r.id

-- name: delete_claimed
-- Deletes the ready rows of tasks and workflows that end in a group commit.
DELETE FROM ready r USING unnest(%(id)s::text[], %(fence)s::bigint[]) AS x(id, fence) WHERE r.id = ANY(ARRAY[x.id]) AND r.fence = x.fence

-- name: delete_ready
-- Deletes ready rows that are locked, whether they are claimed or not.
DELETE FROM ready WHERE id = ANY(%(ids)s::text[])

-- name: delete_unclaimed
-- Takes tasks that are to end out of their queues, unless a worker runs them.
DELETE FROM ready WHERE id = ANY(%(ids)s::text[]) AND state <> 1

-- name: not_ready
-- Executions without a ready row: tasks that nobody runs, and that can end at once.
SELECT x.id FROM unnest(%(ids)s::text[]) AS x(id) WHERE NOT EXISTS (SELECT 1 FROM ready r WHERE r.id = x.id OFFSET 0)

-- name: suspend_executions
-- Stores the status of workflows that do not end with their turn, where it changes.
UPDATE executions e SET status = x.status, started_at = coalesce(e.started_at, %(now)s), fence = x.fence, worker = x.worker
FROM unnest(%(id)s::text[], %(status)s::smallint[], %(fence)s::bigint[], %(worker)s::text[]) AS x(id, status, fence, worker)
WHERE e.id = ANY(ARRAY[x.id]) AND e.status < 5 AND (e.status <> x.status OR e.started_at IS NULL)

-- name: attributes
-- Attributes of these executions, to be merged with those that a turn sets.
SELECT id, attributes FROM executions WHERE id = ANY(%(ids)s::text[])

-- name: set_attributes
-- Stores the attributes of executions, merged with those that a turn sets.
UPDATE executions e SET attributes = x.attributes FROM unnest(%(id)s::text[], %(attributes)s::text[]) AS x(id, attributes) WHERE e.id = ANY(ARRAY[x.id])

-- name: executions_of
-- Type, status and parent of these executions; one that does not exist has no row.
SELECT id, type, status, cancel_requested_at IS NOT NULL AS cancelled, parent_id, root_id, now_us() AS now FROM executions WHERE id = ANY(%(ids)s::text[])

-- name: members_of
-- Executions of a group commit, read after their ready rows were locked.
-- As `executions_of`, with the count of the family, and whether the execution is below a terminated
-- one. Both tables are almost empty.
SELECT e.id, e.type, e.status, e.cancel_requested_at IS NOT NULL AS cancelled, e.parent_id, e.root_id, (SELECT now_us()) AS now, f.started,
  EXISTS (SELECT 1 FROM terminations t WHERE e.id = t.id OR (e.id > t.id AND starts_with(e.id, t.id || '.'))) AS terminated
FROM executions e LEFT JOIN families f ON f.root_id = e.root_id WHERE e.id = ANY(%(ids)s::text[])

-- name: count_families
-- Adds what turns start to the counts of their families, in the order of the roots.
INSERT INTO families (root_id, started) SELECT * FROM unnest(%(root)s::text[], %(started)s::bigint[]) AS x(root, started) ORDER BY root
ON CONFLICT (root_id) DO UPDATE SET started = families.started + excluded.started

-- name: recount_family
-- Counts the live executions of a family over its limit; no row: that was done a moment ago.
-- Their number replaces the count that is over the limit. If it is over the limit, too, they are
-- not counted again at once.
WITH x AS MATERIALIZED (SELECT
    (SELECT count(*) FROM (SELECT 1 FROM executions e
      WHERE e.finished_at IS NULL AND e.type = 0 AND e.id >= %(root)s || '.' AND e.id < %(root)s || '/'
      ORDER BY e.id LIMIT %(limit)s + 1) AS workflows)
    + (SELECT count(*) FROM (SELECT 1 FROM ready r
      WHERE r.kind = 1 AND r.id >= %(root)s || '.' AND r.id < %(root)s || '/' ORDER BY r.id LIMIT %(limit)s + 1) AS tasks) AS alive)
UPDATE families f SET started = x.alive, full_at = CASE WHEN x.alive > %(limit)s THEN %(now)s::bigint END
FROM x WHERE f.root_id = %(root)s AND f.started > %(limit)s AND (f.full_at IS NULL OR f.full_at <= %(now)s::bigint - %(rest_us)s::bigint) RETURNING f.started

-- name: live_children
-- Number of live children of each workflow, counted up to one more than the limit.
SELECT x.id, (SELECT count(*) FROM (SELECT 1 FROM executions e WHERE e.parent_id = x.id AND e.finished_at IS NULL LIMIT %(limit)s + 1) AS c)
FROM unnest(%(ids)s::text[]) AS x(id)

-- name: finish
-- Ends executions, and returns them with their parents; one that has ended has no row.
-- The only statement that sets a terminal status of an execution that had a row before.
UPDATE executions e SET status = x.status, result = CASE WHEN x.status = 5 THEN x.value END, error = CASE WHEN x.status <> 5 THEN x.value END,
  finished_at = %(now)s, fence = coalesce(x.fence, e.fence), worker = coalesce(x.worker, e.worker),
  started_at = coalesce(e.started_at, greatest(e.created_at, %(now)s - x.took_us)), attempt = greatest(e.attempt, x.attempt), held = false
FROM unnest(%(id)s::text[], %(status)s::smallint[], %(value)s::text[], %(fence)s::bigint[], %(worker)s::text[], %(attempt)s::int[],
  %(took_us)s::bigint[]) AS x(id, status, value, fence, worker, attempt, took_us)
WHERE e.id = ANY(ARRAY[x.id]) AND e.status < 5 RETURNING e.id, e.parent_id

-- name: insert_done
-- Stores tasks that the owner of their workflow has run itself, as ended executions.
INSERT INTO executions ({Done}, id, type, version, priority, parent_id, child_no, root_id, max_attempts, fence, worker, attributes,
                        result, error, created_at, started_at, finished_at)
SELECT {x.Done}, x.parent_id || '.' || x.n, 1, '', 0, x.parent_id, x.n, x.root_id, x.attempt, x.fence, x.worker, '{}',
  CASE WHEN x.status = 5 THEN x.value END, CASE WHEN x.status <> 5 THEN x.value END, %(now)s - x.took_us, %(now)s - x.took_us, %(now)s
FROM unnest({%Done}, %(n)s::bigint[], %(value)s::text[], %(took_us)s::bigint[], %(parent_id)s::text[], %(root_id)s::text[],
  %(fence)s::bigint[], %(worker)s::text[]) AS x({Done}, n, value, took_us, parent_id, root_id, fence, worker)

-- name: insert_timers
-- Stores the timers that turns set; one that is held back has no time yet.
INSERT INTO timer_tasks (execution_id, n, delay_us, until_at, fire_at)
SELECT x.id, x.n, x.delay_us, x.until_at, CASE WHEN NOT x.held THEN coalesce(x.until_at, %(now)s + coalesce(x.delay_us, 0)) END
FROM unnest(%(id)s::text[], %(n)s::bigint[], %(delay_us)s::bigint[], %(until_at)s::bigint[], %(held)s::bool[])
  AS x(id, n, delay_us, until_at, held)

-- name: lock_types
-- Locks types of events that are published or awaited, and counts up their numbers.
-- These locks come before all others, in one order.
INSERT INTO event_types (type, n) SELECT x.type, x.count FROM unnest(%(type)s::text[], %(count)s::bigint[]) AS x(type, count) ORDER BY x.type
ON CONFLICT (type) DO UPDATE SET n = event_types.n + excluded.n RETURNING type, n

-- name: held_types
-- Types of the held waits that turns release, to be locked before anything else.
SELECT DISTINCT w.type FROM unnest(%(id)s::text[], %(first)s::bigint[], %(last)s::bigint[]) AS x(id, first, last)
JOIN event_waits w ON w.execution_id = x.id AND w.n BETWEEN x.first AND x.last AND w.held AND w.ended_at IS NULL

-- name: insert_waits
-- Stores waits for events that turns begin; one that is held back has no deadline yet.
INSERT INTO event_waits ({NewWait}, execution_id, key, since, timeout_us, deadline_at)
SELECT {x.NewWait}, x.id, x.key, e.created_at, x.timeout_us, CASE WHEN NOT x.held THEN %(now)s + x.timeout_us END
FROM unnest({%NewWait}, %(id)s::text[], %(key)s::text[], %(timeout_us)s::bigint[]) AS x({NewWait}, id, key, timeout_us)
JOIN executions e ON e.id = ANY(ARRAY[x.id])

-- name: cancel_waits
-- Cancels the open waits for events, and the open approvals, in ranges of numbers.
WITH asked AS (
  UPDATE approvals a SET status = 7, ended_at = %(now)s FROM unnest(%(id)s::text[], %(first)s::bigint[], %(last)s::bigint[]) AS x(id, first, last)
  WHERE a.execution_id = x.id AND a.n BETWEEN x.first AND x.last AND a.status IS NULL)
UPDATE event_waits w SET status = 7, ended_at = %(now)s FROM unnest(%(id)s::text[], %(first)s::bigint[], %(last)s::bigint[]) AS x(id, first, last)
WHERE w.execution_id = x.id AND w.n BETWEEN x.first AND x.last AND w.ended_at IS NULL

-- name: release_waits
-- Opens waits for events that were held; returns them, as their event may exist already.
UPDATE event_waits w SET held = false, deadline_at = %(now)s + w.timeout_us
FROM unnest(%(id)s::text[], %(first)s::bigint[], %(last)s::bigint[]) AS x(id, first, last)
WHERE w.execution_id = x.id AND w.n BETWEEN x.first AND x.last AND w.held AND w.ended_at IS NULL RETURNING w.execution_id, w.n

-- name: insert_events
-- Publishes events, under the lock of their types; one that existed before is not returned.
-- If the clock was set back, they come no earlier than the newest one: those who wait look only
-- after it.
INSERT INTO events ({Event but published_at}, published_at)
SELECT {x.Event but published_at}, CASE WHEN x.published_at < l.published_at - %(disorder)s THEN l.published_at ELSE x.published_at END
FROM unnest({%Event}) AS x({Event})
LEFT JOIN LATERAL (SELECT e.published_at FROM events e WHERE e.type = x.type ORDER BY e.published_at DESC, e.n DESC LIMIT 1) AS l ON true
ON CONFLICT (id) DO NOTHING RETURNING {Event}

-- name: open_waits
-- Open waits of all executions that may take an event with one of these keys.
SELECT {w.Wait} FROM unnest(%(type)s::text[], %(key)s::text[]) AS x(type, key)
JOIN event_waits w ON w.type = x.type AND w.key = x.key WHERE w.ended_at IS NULL AND NOT w.held

-- name: waits_of
-- Waits that a turn has just opened, and for which an event may exist already.
-- With the last event that their executions took for the same wanted values, and when.
SELECT {w.Wait}, l.published_at, l.event_n, l.taken_at FROM unnest(%(id)s::text[], %(n)s::bigint[]) AS x(id, n)
CROSS JOIN LATERAL (SELECT * FROM event_waits WHERE execution_id = x.id AND n = x.n OFFSET 0) AS w
LEFT JOIN LATERAL (
  SELECT e.published_at, e.n AS event_n, t.ended_at AS taken_at FROM event_waits t JOIN events e ON e.id = t.event_id
  WHERE t.execution_id = w.execution_id AND t.type = w.type AND t.key = w.key AND t.wanted = w.wanted AND t.event_id IS NOT NULL
  ORDER BY t.n DESC LIMIT 1) AS l ON true
WHERE w.ended_at IS NULL AND NOT w.held

-- name: waits
-- Events that one execution waits for, for callers who only read.
SELECT {NewWait}, timeout_us / 1e6::float8 AS timeout_s FROM event_waits WHERE execution_id = %(id)s AND ended_at IS NULL ORDER BY n

-- name: taken_events
-- Which of these events these executions have taken before: each takes an event once.
SELECT w.execution_id, w.event_id FROM unnest(%(events)s::text[]) AS x(event_id) CROSS JOIN unnest(%(ids)s::text[]) AS y(id) CROSS JOIN LATERAL (
  SELECT execution_id, event_id FROM event_waits WHERE event_id = x.event_id AND execution_id = y.id OFFSET 0) AS w

-- name: events_after
-- A page of the events of each type after a place, for waits that were just opened.
SELECT {e.Event} FROM unnest(%(type)s::text[], %(at)s::bigint[], %(n)s::bigint[]) AS x(type, at, n)
CROSS JOIN LATERAL (SELECT * FROM events WHERE type = x.type AND (published_at, n) > (x.at, x.n) ORDER BY published_at, n LIMIT %(limit)s) e

-- name: end_waits
-- Ends open waits with an event or at the deadline; one that has ended has no row.
-- Also records what lets their executions go on.
WITH ended AS (
  UPDATE event_waits w SET status = %(status)s, event_id = x.event_id, ended_at = %(now)s
FROM unnest(%(id)s::text[], %(n)s::bigint[], %(event_id)s::text[]) AS x(id, n, event_id)
  WHERE w.execution_id = x.id AND w.n = x.n AND w.ended_at IS NULL RETURNING w.execution_id, w.n, w.type, w.event_id),
told AS (
  INSERT INTO execution_resume_requests (execution_id, triggered_by, triggered_by_id, trigger_data, reason, requested_at)
  SELECT execution_id, 'event', event_id, '{"type": ' || to_json(type)::text || '}', '', %(now)s FROM ended WHERE event_id IS NOT NULL)
SELECT n FROM ended

-- name: due_waits
-- Open waits for events whose deadline has passed, for the timer service.
SELECT execution_id, n FROM event_waits
WHERE ended_at IS NULL AND deadline_at IS NOT NULL AND deadline_at <= %(now)s ORDER BY deadline_at LIMIT %(limit)s

-- name: delete_settled
-- Deletes timers and waits whose outcomes no later turn needs.
-- A wait that took an event is kept, because an execution sees each event only once.
WITH settled AS (SELECT * FROM unnest(%(id)s::text[], %(n)s::bigint[]) AS x(id, n)),
events AS (DELETE FROM event_waits w USING settled x WHERE w.execution_id = ANY(ARRAY[x.id]) AND w.n = x.n AND w.event_id IS NULL),
taken AS (UPDATE event_waits w SET settled = true FROM settled x WHERE w.execution_id = ANY(ARRAY[x.id]) AND w.n = x.n AND w.event_id IS NOT NULL)
DELETE FROM timer_tasks t USING settled x WHERE t.execution_id = ANY(ARRAY[x.id]) AND t.n = x.n

-- name: delete_waits
-- Deletes the waits of workflows that end, and the timers that no retry needs.
-- Approvals are kept, as cancelled ones, because the decisions about them must not be lost.
WITH events AS (DELETE FROM event_waits WHERE execution_id = ANY(%(ids)s::text[])),
asked AS (UPDATE approvals SET status = 7, ended_at = %(now)s WHERE execution_id = ANY(%(ids)s::text[]) AND status IS NULL),
resumed AS (
  UPDATE execution_resume_requests SET error_message = 'the execution ended before it could see this'
  WHERE execution_id = ANY(%(ids)s::text[]) AND executed_at IS NULL)
DELETE FROM timer_tasks WHERE execution_id = ANY(%(orderly)s::text[])

-- name: cancel_timers
-- Cancels the open timers in ranges of numbers.
UPDATE timer_tasks t SET cancelled_at = %(now)s FROM unnest(%(id)s::text[], %(first)s::bigint[], %(last)s::bigint[]) AS x(id, first, last)
WHERE t.execution_id = ANY(ARRAY[x.id]) AND t.n BETWEEN x.first AND x.last AND t.fired_at IS NULL AND t.cancelled_at IS NULL

-- name: release_timers
-- Starts timers that were held; their delays begin now.
UPDATE timer_tasks t SET fire_at = coalesce(t.until_at, %(now)s + coalesce(t.delay_us, 0))
FROM unnest(%(id)s::text[], %(first)s::bigint[], %(last)s::bigint[]) AS x(id, first, last)
WHERE t.execution_id = ANY(ARRAY[x.id]) AND t.n BETWEEN x.first AND x.last AND t.fire_at IS NULL AND t.cancelled_at IS NULL

-- name: flag_children
-- Asks live children in ranges of numbers to end, and returns those not asked before.
-- A workflow that was held back is released, to take the one turn that ends it; a task is ended by
-- the service that ends cancelled tasks.
UPDATE executions e SET cancel_requested_at = %(now)s, held = e.held AND e.type = 1,
  timeout_at = CASE WHEN e.held AND e.type = 0 THEN %(now)s + e.timeout_us ELSE e.timeout_at END
WHERE e.id = ANY(ARRAY(
    SELECT c.id FROM unnest(%(id)s::text[], %(first)s::bigint[], %(last)s::bigint[]) AS x(id, first, last) CROSS JOIN LATERAL (
      SELECT id FROM executions WHERE parent_id = x.id AND child_no BETWEEN x.first AND x.last AND finished_at IS NULL OFFSET 0) AS c))
  AND e.status < 5 AND e.cancel_requested_at IS NULL
RETURNING e.id, e.type

-- name: release_children
-- Lets children begin that were held; returns them, to be put into their queues.
UPDATE executions e SET held = false, timeout_at = %(now)s + e.timeout_us
WHERE e.id = ANY(ARRAY(
    SELECT c.id FROM unnest(%(id)s::text[], %(first)s::bigint[], %(last)s::bigint[]) AS x(id, first, last) CROSS JOIN LATERAL (
      SELECT id FROM executions WHERE parent_id = x.id AND child_no BETWEEN x.first AND x.last AND finished_at IS NULL OFFSET 0) AS c))
  AND e.status < 5 AND e.held
RETURNING e.id, e.type AS kind, e.queue, e.priority, e.attempt

-- name: consume_signals
-- Marks signals as consumed by a turn; fails (division by zero) if one was consumed before.
WITH taken AS (
  UPDATE workflow_signals s SET consumed_seq = x.seq FROM unnest(%(signal)s::text[], %(id)s::text[], %(seq)s::bigint[]) AS x(signal, id, seq)
  WHERE s.id = ANY(ARRAY[x.signal]) AND s.execution_id || '' = x.id AND coalesce(s.consumed_seq, 0) = 0 RETURNING s.id)
SELECT 1 / (count(*) = cardinality(%(signal)s::text[]))::int FROM taken

-- name: insert_history
-- Adds turns of workflows and failed attempts of tasks to the history.
INSERT INTO history (execution_id, seq, fence, worker, from_status, to_status, cause, statement, at, error)
SELECT x.id, x.seq, x.fence, x.worker, x.from_status, x.to_status, x.cause, x.statement, %(now)s, x.error
FROM unnest(%(id)s::text[], %(seq)s::bigint[], %(fence)s::bigint[], %(worker)s::text[], %(from_status)s::smallint[], %(to_status)s::smallint[],
  %(cause)s::text[], %(statement)s::int[], %(error)s::text[])
  AS x(id, seq, fence, worker, from_status, to_status, cause, statement, error)

-- name: delay_tasks
-- Puts tasks back into their queues after an attempt, to be tried again after a delay.
-- The fence is removed with the claim, so a late result of this attempt finds no row.
UPDATE ready r SET state = 2, due_at = %(now)s + x.delay_us, claimed_by = NULL, claim_expires_at = NULL, fence = NULL, attempt = x.attempt
FROM unnest(%(id)s::text[], %(fence)s::bigint[], %(delay_us)s::bigint[], %(attempt)s::int[]) AS x(id, fence, delay_us, attempt)
WHERE r.id = ANY(ARRAY[x.id]) AND r.fence = x.fence

-- name: note_attempts
-- Stores how many attempts were made of tasks that will be tried again.
UPDATE executions e SET attempt = x.attempt, started_at = coalesce(e.started_at, greatest(e.created_at, %(now)s - x.took_us)), worker = x.worker
FROM unnest(%(id)s::text[], %(attempt)s::int[], %(worker)s::text[], %(took_us)s::bigint[]) AS x(id, attempt, worker, took_us)
WHERE e.id = ANY(ARRAY[x.id]) AND e.status < 5

-- name: witness
-- Fence of a committed turn, for an owner that got no answer; no row: not committed.
SELECT fence FROM history WHERE execution_id = %(id)s AND seq = %(seq)s

-- name: mailbox
-- Status of a receiver, whether it has this signal, and how many it has not consumed.
SELECT (SELECT status FROM executions WHERE id = %(id)s), EXISTS (SELECT 1 FROM workflow_signals WHERE id = %(signal)s),
  (SELECT count(*) FROM workflow_signals WHERE execution_id = %(id)s AND consumed_seq IS NULL)

-- name: insert_signals
-- Delivers signals; one that is late, a duplicate or too many for its mailbox has no row.
-- The receivers' ready rows are locked by now, so no other transaction takes the same numbers. A
-- receiver that has ended, or whose mailbox is full, gets nothing.
INSERT INTO workflow_signals (id, execution_id, n, name, payload, received_at)
SELECT x.id, x.execution_id, box.last + x.nth, x.name, x.payload, %(now)s
FROM (
  SELECT g.*, row_number() OVER (PARTITION BY g.execution_id ORDER BY g.ord) AS nth
  FROM unnest(%(id)s::text[], %(execution_id)s::text[], %(name)s::text[], %(payload)s::text[])
    WITH ORDINALITY AS g(id, execution_id, name, payload, ord)
) x
JOIN executions e ON e.id = ANY(ARRAY[x.execution_id]) AND e.status < 5
JOIN (
  SELECT r.id, (SELECT coalesce(max(n), 0) FROM workflow_signals s WHERE s.execution_id = r.id) AS last,
    (SELECT count(*) FROM workflow_signals s WHERE s.execution_id = r.id AND s.consumed_seq IS NULL) AS waiting
  FROM (SELECT DISTINCT unnest(%(execution_id)s::text[]) AS id) r
) box ON box.id = x.execution_id
WHERE box.waiting + x.nth <= %(most)s
ON CONFLICT (id) DO NOTHING RETURNING id

-- name: wake_live
-- Wakes those of these executions that have not ended and are not held back, as `wake` does.
-- Returns them and those that are held back, with the time, and whether a ready row is free now; one
-- that has ended has no row.
WITH live AS (SELECT id, held, now_us() AS now FROM executions WHERE id = ANY(%(ids)s::text[]) AND status < 5),
woken AS (
  INSERT INTO ready (id, kind, queue, priority, order_key, state)
  SELECT id, 0, 'system', 0, now, 0 FROM live WHERE NOT held ORDER BY id
  ON CONFLICT (id) DO UPDATE SET wakes = ready.wakes + 1 WHERE ready.state <> 0
  RETURNING state)
SELECT id, held, now, (SELECT bool_or(state = 0) FROM woken) FROM live

-- name: lock_held
-- Keeps executions held back until the end of the transaction; one released has no row.
-- An execution that is held back has no ready row to lock; its release would change this row.
SELECT id FROM executions WHERE id = ANY(%(ids)s::text[]) AND held ORDER BY id FOR UPDATE

-- name: flag_cancel
-- Asks executions to end; one that has ended is not returned.
UPDATE executions SET cancel_requested_at = coalesce(cancel_requested_at, %(now)s), held = false,
  timeout_at = CASE WHEN held THEN %(now)s + timeout_us ELSE timeout_at END
WHERE id = ANY(%(ids)s::text[]) AND status < 5 RETURNING id

-- name: free_delayed
-- Frees delayed workflows that are asked to end, so that they are claimed at once.
UPDATE ready SET state = 0, due_at = NULL WHERE id = ANY(%(ids)s::text[]) AND state = 2 RETURNING queue

-- name: free_due
-- Frees executions whose delay is over: delayed starts, and tasks to be tried again.
UPDATE ready SET state = 0, due_at = NULL WHERE id = ANY(%(ids)s::text[]) AND due_at <= %(now)s RETURNING queue

-- name: lock_execution
-- Locks an execution that is to be retried.
-- So the second of two retries of one execution finds the first.
SELECT id FROM executions WHERE id = %(id)s FOR UPDATE

-- name: retries
-- Retries of an execution, oldest first; while one has not ended, no other is made.
SELECT {Retry} FROM executions WHERE retry_of = %(id)s ORDER BY created_at, id

-- name: family_size
-- Size of a family, so that a retry that would read too much is refused before it reads.
-- Returns the number of rows, counted up to one more than allowed, and the size of the snapshots
-- that would be read. The first range contains only the first execution: with an OR, the limit
-- would lead the planner to read a whole table.
SELECT count(*), coalesce(sum(f.size), 0)::bigint
FROM (VALUES (%(id)s::text COLLATE "C", %(id)s::text || chr(1) COLLATE "C"), (%(first)s::text COLLATE "C", %(last)s::text COLLATE "C"))
  AS r(first, last) CROSS JOIN LATERAL (
  (SELECT CASE WHEN e.id = %(id)s OR e.status NOT IN (5, 8) THEN coalesce(octet_length(c.snapshot), 0) + coalesce(octet_length(b.data), 0)
      + coalesce(octet_length(c.owned), 0) ELSE 0 END AS size
    FROM executions e LEFT JOIN workflow_execution_context c ON c.execution_id = e.id LEFT JOIN blobs b ON b.execution_id = e.id
    WHERE e.id >= r.first AND e.id < r.last LIMIT %(most)s)
  UNION ALL (SELECT 0 FROM timer_tasks t WHERE t.execution_id >= r.first AND t.execution_id < r.last LIMIT %(most)s)
  UNION ALL (SELECT 0 FROM workflow_signals s WHERE s.execution_id >= r.first AND s.execution_id < r.last LIMIT %(most)s)) AS f

-- name: family
-- Executions of a family, the given one and all below it, from which a retry is planned.
-- Large columns are left out, except the snapshots of executions that may go on, and the error of
-- the first.
SELECT {e.StoredExecution but error}, e.id AS source, c.seq, c.statement,
  CASE WHEN e.id = %(id)s OR (e.parent_id = %(id)s AND octet_length(e.error) <= %(short)s) THEN e.error END AS error,
  CASE WHEN e.id = %(id)s OR e.status NOT IN (5, 8) THEN
    coalesce(CASE WHEN c.snapshot = '\x40' THEN (SELECT b.data FROM blobs b WHERE b.execution_id = c.execution_id) END, c.snapshot) END AS snapshot,
  CASE WHEN e.id = %(id)s OR e.status NOT IN (5, 8) THEN c.owned END AS owned
FROM executions e LEFT JOIN workflow_execution_context c ON c.execution_id = ANY(ARRAY[e.id])
WHERE e.id = %(id)s OR (e.id >= %(first)s AND e.id < %(last)s) ORDER BY e.id || ''

-- name: family_timers
-- Timers of a family, from which a retry is planned.
SELECT {StoredTimer} FROM timer_tasks
WHERE execution_id = %(id)s OR (execution_id >= %(first)s AND execution_id < %(last)s)

-- name: family_signals
-- Signals of a family, from which a retry is planned, without their payloads.
SELECT {StoredSignal}, id AS source FROM workflow_signals
WHERE execution_id = %(id)s OR (execution_id >= %(first)s AND execution_id < %(last)s) ORDER BY execution_id, n

-- name: insert_stored
-- Stores the executions of a retry; inputs and results are copied from their sources.
INSERT INTO executions ({StoredExecution but error, created_at}, options, attributes, inputs, result, error, created_at, timeout_at)
SELECT {x.StoredExecution but error, created_at}, o.options, o.attributes, o.inputs,
  CASE WHEN x.ends_alike THEN o.result END, CASE WHEN x.ends_alike THEN o.error ELSE x.error END,
  coalesce(x.created_at, %(now)s), CASE WHEN NOT x.held THEN coalesce(x.created_at, %(now)s) + x.timeout_us END
FROM unnest({%StoredExecution}, %(source)s::text[], %(ends_alike)s::bool[]) AS x({StoredExecution}, source, ends_alike)
JOIN executions o ON o.id = ANY(ARRAY[x.source])

-- name: insert_stored_contexts
-- Stores the contexts of the workflows in a retry.
INSERT INTO workflow_execution_context (execution_id, seq, fence, format, statement, snapshot, owned, awaiting, updated_at)
SELECT x.id, (x.status > 0)::int, 0, 1, x.statement, x.snapshot, x.owned, x.awaiting, %(now)s
FROM unnest(%(id)s::text[], %(status)s::smallint[], %(statement)s::int[], %(snapshot)s::bytea[], %(owned)s::text[], %(awaiting)s::text[])
  AS x(id, status, statement, snapshot, owned, awaiting)

-- name: insert_stored_history
-- Stores the first turn of those workflows in a retry that have begun.
INSERT INTO history (execution_id, seq, fence, worker, from_status, to_status, cause, statement, at, error)
SELECT e.id, 1, 0, '', 0, e.status, 'retry', x.statement, %(now)s, e.error
FROM unnest(%(id)s::text[], %(statement)s::int[]) AS x(id, statement) JOIN executions e ON e.id = x.id

-- name: insert_stored_timers
-- Stores the timers of a retry; those that start anew count from now.
INSERT INTO timer_tasks ({StoredTimer but fire_at}, fire_at)
SELECT {x.StoredTimer but fire_at}, CASE WHEN x.anew THEN coalesce(x.until_at, %(now)s + coalesce(x.delay_us, 0)) ELSE x.fire_at END
FROM unnest({%StoredTimer}, %(anew)s::bool[]) AS x({StoredTimer}, anew)

-- name: insert_stored_signals
-- Stores the signals of a retry; their payloads are copied from their sources.
INSERT INTO workflow_signals ({StoredSignal but consumed_seq}, payload)
SELECT {x.StoredSignal but consumed_seq}, o.payload
FROM unnest({%StoredSignal but consumed_seq}, %(source)s::text[]) AS x({StoredSignal but consumed_seq}, source)
JOIN workflow_signals o ON o.id = x.source

-- name: due_timers
-- Open timers whose time has come, for the timer service.
SELECT execution_id, n FROM timer_tasks
WHERE fired_at IS NULL AND cancelled_at IS NULL AND fire_at IS NOT NULL AND fire_at <= %(now)s ORDER BY fire_at LIMIT %(limit)s

-- name: fire_timers
-- Fires timers, and returns when they were due; one that fired or was cancelled has no row.
UPDATE timer_tasks t SET fired_at = %(now)s FROM unnest(%(id)s::text[], %(n)s::bigint[]) AS x(id, n)
WHERE t.execution_id = ANY(ARRAY[x.id]) AND t.n = x.n AND t.fired_at IS NULL AND t.cancelled_at IS NULL RETURNING t.fire_at

-- name: due_ready
-- Delayed ready rows whose time has come, for the timer service.
SELECT id FROM ready WHERE state = 2 AND due_at <= %(now)s ORDER BY due_at LIMIT %(limit)s

-- name: due_timeouts
-- Live executions whose time is over, for the timer service.
SELECT id, type, parent_id FROM executions
WHERE timeout_at IS NOT NULL AND timed_out_at IS NULL AND finished_at IS NULL AND timeout_at <= %(now)s ORDER BY timeout_at LIMIT %(limit)s

-- name: time_out
-- Marks live executions as timed out; their owners end them.
UPDATE executions SET timed_out_at = %(now)s WHERE id = ANY(%(ids)s::text[]) AND status < 5

-- name: next_due
-- Time at which the timer service has something to do next, and the time now.
SELECT min(at), now_us() FROM (
  SELECT min(fire_at) AS at FROM timer_tasks WHERE fired_at IS NULL AND cancelled_at IS NULL AND fire_at IS NOT NULL
  UNION ALL SELECT min(deadline_at) FROM event_waits WHERE ended_at IS NULL AND deadline_at IS NOT NULL
  UNION ALL SELECT min(deadline_at) FROM approvals WHERE ended_at IS NULL AND deadline_at IS NOT NULL
  UNION ALL SELECT min(paused_until) FROM executions WHERE paused_until IS NOT NULL AND finished_at IS NULL
  UNION ALL SELECT min(due_at) FROM ready WHERE state = 2
  UNION ALL SELECT min(timeout_at) FROM executions WHERE timeout_at IS NOT NULL AND timed_out_at IS NULL AND finished_at IS NULL) AS next

-- name: cancelled_tasks
-- Cancelled tasks that nobody runs, for the service that ends them.
SELECT e.id, e.parent_id, now_us() FROM executions e LEFT JOIN ready r ON r.id = ANY(ARRAY[e.id])
WHERE e.cancel_requested_at IS NOT NULL AND e.finished_at IS NULL AND e.type = 1 AND (r.id IS NULL OR r.state <> 1)
ORDER BY e.cancel_requested_at LIMIT %(limit)s

-- name: lease
-- Takes or extends a lease; no row means that another holder has it.
INSERT INTO leases (name, holder, fence, expires_at) VALUES (%(name)s, %(holder)s, 1, now_us() + %(ttl_us)s)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, fence = leases.fence + (leases.holder <> excluded.holder)::int, expires_at = excluded.expires_at
WHERE leases.holder = excluded.holder OR leases.expires_at <= now_us() RETURNING fence

-- name: parked
-- A page of parked workflows, by id, for the service that finds stuck ones.
SELECT e.id FROM executions e LEFT JOIN ready r ON r.id = ANY(ARRAY[e.id]) AND r.state >= 0
WHERE e.finished_at IS NULL AND e.type = 0 AND e.id > %(after)s AND e.paused_at IS NULL AND NOT e.held AND r.id IS NULL
  AND NOT EXISTS (SELECT 1 FROM terminations t WHERE starts_with(e.id, t.id || '.'))
ORDER BY e.id LIMIT %(limit)s

-- name: without_rows
-- Awaited children that have neither an execution nor a timer, so that nothing ends them.
SELECT x.id, x.n FROM unnest(%(id)s::text[], %(n)s::bigint[]) AS x(id, n)
WHERE NOT EXISTS (SELECT 1 FROM timer_tasks t WHERE t.execution_id = x.id AND t.n = x.n OFFSET 0)
  AND NOT EXISTS (SELECT 1 FROM executions e WHERE e.id = x.id || '.' || x.n OFFSET 0)

-- name: wake_parked
-- Wakes stuck workflows that are still parked, and returns them.
INSERT INTO ready (id, kind, queue, priority, order_key, state) SELECT x.id, 0, 'system', 0, now_us(), 0 FROM unnest(%(ids)s::text[]) AS x(id)
JOIN executions e ON e.id = ANY(ARRAY[x.id]) AND e.status < 5 AND e.paused_at IS NULL ORDER BY x.id COLLATE "C"
ON CONFLICT (id) DO NOTHING RETURNING id

-- name: seqs_of
-- Last turns of workflows that were just woken, to leave out those that were not stuck.
SELECT execution_id, seq FROM workflow_execution_context WHERE execution_id = ANY(%(ids)s::text[])

-- name: insert_fired
-- Creates fired timers in place of lost ones, so that stuck workflows go on.
INSERT INTO timer_tasks (execution_id, n, fire_at, fired_at) SELECT x.id, x.n, now_us(), now_us() FROM unnest(%(id)s::text[], %(n)s::bigint[]) AS x(id, n)
ON CONFLICT DO NOTHING

-- name: old_roots
-- Roots that ended long enough ago to be pruned with their families.
-- A root is kept while anything below it goes on, or while a retry of it has not ended.
SELECT e.id FROM executions e WHERE e.parent_id IS NULL AND e.finished_at IS NOT NULL AND e.finished_at < now_us() - %(age_us)s
  AND NOT EXISTS (SELECT 1 FROM executions c WHERE c.id > e.id || '.' AND c.id < e.id || '/' AND c.status < 5)
  AND NOT EXISTS (SELECT 1 FROM executions n WHERE n.retry_of = e.id AND n.status < 5)
ORDER BY e.finished_at LIMIT %(limit)s

-- name: prune_terminations
-- Deletes the termination marks of families that are pruned, given by their roots.
DELETE FROM terminations t USING unnest(%(ids)s::text[]) AS x(id) WHERE t.id = x.id OR (t.id >= x.id || '.' AND t.id < x.id || '/')

-- name: prune_families
-- Deletes the counts of families that are pruned, given by their roots.
DELETE FROM families WHERE root_id = ANY(%(ids)s::text[])

-- name: prune_ready
-- Deletes the ready rows of families that are pruned, given by their roots.
DELETE FROM ready t USING unnest(%(ids)s::text[]) AS x(id) WHERE t.id = x.id OR (t.id >= x.id || '.' AND t.id < x.id || '/')

-- name: prune_contexts
-- Deletes the contexts of families that are pruned, given by their roots.
DELETE FROM workflow_execution_context t USING unnest(%(ids)s::text[]) AS x(id)
WHERE t.execution_id = x.id OR (t.execution_id >= x.id || '.' AND t.execution_id < x.id || '/')

-- name: prune_executions
-- Deletes the executions of families that are pruned, given by their roots.
DELETE FROM executions t USING unnest(%(ids)s::text[]) AS x(id) WHERE t.id = x.id OR (t.id >= x.id || '.' AND t.id < x.id || '/')

-- name: prune_history
-- Deletes the history of families that are pruned, given by their roots.
DELETE FROM history t USING unnest(%(ids)s::text[]) AS x(id)
WHERE t.execution_id = x.id OR (t.execution_id >= x.id || '.' AND t.execution_id < x.id || '/')

-- name: prune_timers
-- Deletes the timers of families that are pruned, given by their roots.
DELETE FROM timer_tasks t USING unnest(%(ids)s::text[]) AS x(id)
WHERE t.execution_id = x.id OR (t.execution_id >= x.id || '.' AND t.execution_id < x.id || '/')

-- name: prune_signals
-- Deletes the signals of families that are pruned, given by their roots.
DELETE FROM workflow_signals t USING unnest(%(ids)s::text[]) AS x(id)
WHERE t.execution_id = x.id OR (t.execution_id >= x.id || '.' AND t.execution_id < x.id || '/')

-- name: prune_blobs
-- Deletes the large snapshots of families that are pruned, given by their roots.
DELETE FROM blobs t USING unnest(%(ids)s::text[]) AS x(id)
WHERE t.execution_id = x.id OR (t.execution_id >= x.id || '.' AND t.execution_id < x.id || '/')

-- name: prune_waits
-- Deletes the waits for events of families that are pruned, given by their roots.
DELETE FROM event_waits t USING unnest(%(ids)s::text[]) AS x(id)
WHERE t.execution_id = x.id OR (t.execution_id >= x.id || '.' AND t.execution_id < x.id || '/')

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
  greatest(e.attempt, CASE WHEN e.type = 1 THEN r.attempt END) AS attempt,
  coalesce(c.statement, 0) AS statement, coalesce(c.awaiting, 'null') AS awaiting, c.updated_at AS turned_at
FROM executions e LEFT JOIN ready r ON r.id = ANY(ARRAY[e.id]) LEFT JOIN workflow_execution_context c ON c.execution_id = ANY(ARRAY[e.id])

-- name: root_names
-- Names of the roots of these executions: permissions depend on them.
SELECT e.id, r.name FROM executions e JOIN executions r ON r.id = ANY(ARRAY[e.root_id]) WHERE e.id = ANY(%(ids)s::text[])

-- name: names
-- Names of root executions that begin with these prefixes, to apply permissions to lists.
-- Each name is returned once, with one look-up: each look-up finds the next name in order.
WITH RECURSIVE found(prefix, name) AS (
  SELECT p COLLATE "C", (SELECT min(name) FROM executions WHERE parent_id IS NULL AND name >= p) FROM unnest(%(prefixes)s::text[]) p
  UNION ALL SELECT prefix, (SELECT min(e.name) FROM executions e WHERE e.parent_id IS NULL AND e.name > found.name)
  FROM found WHERE left(name, length(prefix)) = prefix)
SELECT name FROM found WHERE left(name, length(prefix)) = prefix

-- name: result
-- Result of an execution, for those who wait for it; no row unless it has completed.
SELECT coalesce(result, 'null') FROM executions WHERE id = %(id)s AND status = 5

-- name: stamps
-- A text for each execution that changes whenever the execution does, to wait for changes.
-- It covers what people see of an execution; nothing large is read.
SELECT e.id, concat_ws('-', coalesce(c.seq, 0), greatest(e.attempt, CASE WHEN e.type = 1 THEN r.attempt END), e.status,
  CASE WHEN r.state = 1 AND (e.type = 1 OR e.status = 0 OR c.owned <> '[]' OR c.awaiting = 'null') THEN 1 ELSE 0 END,
  coalesce(e.cancel_requested_at, 0), coalesce(e.paused_at, 0))
FROM executions e LEFT JOIN ready r ON r.id = ANY(ARRAY[e.id]) LEFT JOIN workflow_execution_context c ON c.execution_id = ANY(ARRAY[e.id])
WHERE e.id = ANY(%(ids)s::text[])

-- name: due
-- Times at which the start, the timers and the delayed children of an execution are due.
SELECT 0, due_at FROM ready WHERE id = %(id)s AND state = 2
UNION ALL SELECT n, fire_at FROM timer_tasks WHERE execution_id = %(id)s AND fired_at IS NULL AND cancelled_at IS NULL AND fire_at IS NOT NULL
UNION ALL SELECT e.child_no, r.due_at FROM executions e JOIN ready r ON r.id = ANY(ARRAY[e.id])
  WHERE e.parent_id = %(id)s AND e.finished_at IS NULL AND r.state = 2

-- name: history
-- Turns of a workflow, or failed attempts of a task, in their order.
SELECT {Transition} FROM history WHERE execution_id = %(id)s ORDER BY seq

-- name: statements
-- Statements at which a workflow has waited, each once, the last one last.
-- The turn that ends it waits nowhere.
SELECT statement FROM history WHERE execution_id = %(id)s AND to_status < 5 GROUP BY statement ORDER BY max(seq)

-- name: trace
-- A page of the places of what happened in a family, in the order of time.
-- Returns the place of everything that happened in an execution and below it, after a given place.
-- Nothing large is read.
-- Executions of one name that are equally deep are left out where there are too many of them.
WITH below AS MATERIALIZED (
  SELECT id, name, child_no, type, created_at, finished_at, length(id) AS length FROM executions
  WHERE id >= %(first)s AND id < %(last)s ORDER BY id LIMIT %(most)s),
counted AS (
  SELECT b.*, count(*) OVER (PARTITION BY name, length(replace(id, '.', '..')) - length) AS alike FROM below b),
family AS MATERIALIZED (
  SELECT id, child_no, type, created_at, finished_at, length(id) AS length FROM executions WHERE id = %(id)s
  UNION ALL SELECT id, child_no, type, created_at, finished_at, length FROM counted WHERE alike <= %(alike)s),
moments AS (
  SELECT created_at AS at, CASE WHEN child_no > 0 THEN 2 ELSE 1 END AS rank, length, child_no, id, 0 AS kind, 0::bigint AS n FROM family
  UNION ALL SELECT finished_at, CASE WHEN finished_at = created_at THEN 3 ELSE 0 END, -length, child_no, id, 1, 0 FROM family
    WHERE finished_at IS NOT NULL
  UNION ALL (
    SELECT h.at, 1, f.length, f.child_no, f.id, 2, h.seq FROM family f
    CROSS JOIN LATERAL (SELECT t.at, t.seq FROM history t WHERE t.execution_id = f.id ORDER BY t.seq OFFSET 0) h
    WHERE f.finished_at IS NULL OR h.at < f.finished_at LIMIT %(turns)s)
  UNION ALL (
    SELECT q.requested_at, 1, f.length, f.child_no, f.id, 3, q.id FROM family f
    CROSS JOIN LATERAL (SELECT t.requested_at, t.id FROM execution_resume_requests t WHERE t.execution_id = f.id ORDER BY t.id OFFSET 0) q
    WHERE f.type = 0 LIMIT %(turns)s)
  UNION ALL (
    SELECT s.received_at, 1, f.length, f.child_no, f.id, 4, s.n FROM family f
    CROSS JOIN LATERAL (SELECT t.received_at, t.n FROM workflow_signals t WHERE t.execution_id = f.id ORDER BY t.n OFFSET 0) s
    WHERE f.type = 0 LIMIT %(turns)s)
  UNION ALL (
    SELECT v.at, 1, f.length, f.child_no, f.id, 5, a.n * %(votes)s + v.n FROM family f
    CROSS JOIN LATERAL (SELECT t.id, t.n, t.ended_at FROM approvals t WHERE t.execution_id = f.id ORDER BY t.n OFFSET 0) a
    CROSS JOIN LATERAL (SELECT t.at, t.n FROM approval_decisions t WHERE t.approval_id = a.id ORDER BY t.n OFFSET 0) v
    WHERE f.type = 0 AND (a.ended_at IS NULL OR v.at < a.ended_at) LIMIT %(turns)s))
SELECT {Place} FROM moments WHERE ({Place}) > ({:p_Place}) ORDER BY {Place} LIMIT %(limit)s

-- name: moments
-- What happened at these places, in their order.
SELECT x.x AS place, e.name, e.type, e.version, e.status,
  CASE x.kind WHEN 0 THEN e.inputs WHEN 1 THEN coalesce(e.result, e.error) WHEN 2 THEN h.error WHEN 3 THEN q.trigger_data ELSE s.payload END AS detail,
  coalesce(h.cause, q.triggered_by, s.name, v.decision, '') AS what, coalesce(h.worker, CASE x.kind WHEN 1 THEN e.worker END, '') AS worker,
  coalesce(h.statement, 0) AS statement, coalesce(q.triggered_by_id, v.actor, '') AS by_id, coalesce(q.reason, v.comment, '') AS reason,
  CASE WHEN x.kind = 1 THEN e.attempt WHEN x.kind = 2 AND e.type = 1 THEN h.seq ELSE 0 END AS attempt,
  CASE x.kind WHEN 1 THEN e.started_at END AS began_at
FROM unnest(%(id)s::text[], %(kind)s::bigint[], %(n)s::bigint[]) WITH ORDINALITY AS x(id, kind, n, x) JOIN executions e ON e.id = ANY(ARRAY[x.id])
LEFT JOIN history h ON x.kind = 2 AND h.execution_id = x.id AND h.seq = x.n
LEFT JOIN execution_resume_requests q ON x.kind = 3 AND q.id = x.n
LEFT JOIN workflow_signals s ON x.kind = 4 AND s.execution_id = x.id AND s.n = x.n
LEFT JOIN approval_decisions v ON x.kind = 5 AND v.approval_id = x.id || '.' || x.n / %(votes)s AND v.n = x.n %% %(votes)s
ORDER BY x.x

-- name: alike
-- What there is many times below an execution: of one name, equally deep; and how it has ended.
WITH below AS MATERIALIZED (
  SELECT id, name, type, status, created_at, finished_at, finished_at - coalesce(started_at, created_at) AS took_us,
    length(replace(id, '.', '..')) - length(id) - %(depth)s AS depth
  FROM executions WHERE id >= %(first)s AND id < %(last)s ORDER BY id LIMIT %(most_executions)s)
SELECT name, max(type) AS type, depth, count(*) AS count, count(*) FILTER (WHERE status = 5) AS completed,
  count(*) FILTER (WHERE status = 6) AS failed, count(finished_at) AS ended, min(created_at) AS first_at, max(finished_at) AS last_at,
  (array_agg(id ORDER BY took_us DESC NULLS LAST, id))[1] AS slowest_id, max(took_us) AS slowest_us,
  min(id) FILTER (WHERE status = 6) AS first_failed
FROM below GROUP BY name, depth HAVING count(*) > %(most)s ORDER BY min(created_at), depth, name
