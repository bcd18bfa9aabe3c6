-- The views that people read with SQL. `views.py` fills in what the two databases write differently,
-- and says how migrations make the views. docs/sql.md has a sentence for each column.
--
-- What a view has is a promise: a name, the type of a column and what it means stay as they are, and
-- a new column comes last. After a change of this file a migration must make the views anew
-- (CONTRIBUTING.md). Names that end in `_us` are columns as they are stored: conditions on them are
-- found along an index.

-- Every execution: roots, and what they have started. A claim alone does not make it `running`, as
-- for people (`execution` in queries.sql).
CREATE VIEW rhythm_executions AS
SELECT x.id, CASE x.type WHEN 0 THEN 'workflow' ELSE 'task' END AS type, x.name, x.shown AS status, x.status AS status_number, x.version, x.queue, x.priority,
  x.parent_id, x.root_id, x.child_no AS n, x.retry_of,
  CASE WHEN x.type = 1 AND x.ready_attempt > x.attempt THEN x.ready_attempt ELSE x.attempt END AS attempt, x.max_attempts,
  x.key AS idempotency_key, x.started_by, {text CASE WHEN x.state = 1 THEN x.claimed_by ELSE x.worker END} AS worker,
  {json x.inputs} AS inputs, {json x.result} AS result, {json x.error} AS error, {code x.error} AS error_code,
  {json x.attributes} AS attributes,
  {at x.created_at} AS created_at, {at coalesce(x.due_at, x.created_at)} AS scheduled_at, {at x.started_at} AS started_at,
  {at x.turned_at} AS turned_at, {at x.finished_at} AS finished_at, {s (x.finished_at - x.started_at)} AS duration_s,
  {s x.timeout_us} AS timeout_s, {at x.timeout_at} AS timeout_at, {at x.cancel_requested_at} AS cancel_requested_at,
  {at CASE WHEN x.shown = 'paused' THEN coalesce(x.paused_at, x.turned_at) END} AS paused_at,
  CASE WHEN x.shown <> 'paused' THEN NULL WHEN x.paused_at IS NOT NULL THEN coalesce(nullif(x.paused_reason, ''), 'manual')
    WHEN x.awaiting LIKE '%"op":"approval"%' THEN 'approval_required' ELSE 'event' END AS paused_reason,
  CASE WHEN x.shown = 'paused' AND x.paused_at IS NOT NULL THEN x.paused_by END AS paused_by,
  {at x.paused_until} AS paused_until,
  CASE WHEN x.shown = 'paused' THEN {json x.paused_metadata} END AS paused_metadata,
  (SELECT {json q.trigger_data} FROM execution_resume_requests q WHERE q.id = (
    SELECT max(d.id) FROM execution_resume_requests d
    WHERE d.execution_id = x.id AND d.triggered_by <> 'event' AND d.trigger_data <> 'null')) AS resume_data,
  (SELECT {at q.requested_at} FROM execution_resume_requests q WHERE q.id = (
    SELECT max(d.id) FROM execution_resume_requests d WHERE d.execution_id = x.id)) AS resume_attempted_at,
  (SELECT q.error_message FROM execution_resume_requests q WHERE q.id = (
    SELECT max(d.id) FROM execution_resume_requests d WHERE d.execution_id = x.id)) AS resume_error_message,
  x.created_at AS created_us, x.started_at AS started_us, x.finished_at AS finished_us
FROM (
  SELECT e.*, r.state, r.due_at, r.claimed_by, r.attempt AS ready_attempt, c.awaiting, c.updated_at AS turned_at,
    CASE WHEN e.status < 5 AND e.paused_at IS NOT NULL THEN 'paused'
      WHEN e.status < 5 AND r.state = 1 AND (e.type = 1 OR e.status = 0 OR c.owned <> '[]' OR c.awaiting = 'null') THEN 'running'
      ELSE {status e.status} END AS shown
  FROM executions e LEFT JOIN ready r ON r.id = e.id LEFT JOIN workflow_execution_context c ON c.execution_id = e.id) x;

-- What executions have started: tasks, child workflows and branches.
CREATE VIEW rhythm_steps AS
SELECT id, parent_id AS execution_id, root_id, n, type, name, status, status_number, queue, attempt, max_attempts, worker,
  inputs, result, error, error_code, created_at, started_at, finished_at,
  {s (coalesce(started_us, finished_us) - created_us)} AS wait_s, duration_s,
  created_us, started_us, finished_us
FROM rhythm_executions WHERE parent_id IS NOT NULL;

-- The history: turns of workflows, and failed attempts of tasks.
CREATE VIEW rhythm_turns AS
SELECT h.execution_id, h.seq, {status h.from_status} AS from_status, {status h.to_status} AS to_status, h.cause,
  h.statement AS statement_index, h.worker, {at h.at} AS at, {json h.error} AS error
FROM history h;

-- Where workflows are. A small snapshot is stored as its JSON; of a larger one, which is compressed,
-- there is only the size.
CREATE VIEW rhythm_contexts AS
SELECT c.execution_id, {text e.name || '@' || e.version} AS workflow_definition_id, e.name AS workflow, e.version,
  c.seq, c.statement AS statement_index, {json c.awaiting} AS awaiting,
  {text c.execution_id || '.' || {awaited c.awaiting}} AS awaiting_task_id,
  {state c.snapshot} AS state,
  coalesce((SELECT {bytes b.data} FROM blobs b WHERE b.execution_id = c.execution_id), {bytes c.snapshot}) AS state_bytes,
  {at c.updated_at} AS updated_at
FROM workflow_execution_context c JOIN executions e ON e.id = c.execution_id;

-- Questions to people. Those that a group with `concurrency` holds back were not asked yet.
CREATE VIEW rhythm_approvals AS
SELECT a.id, a.execution_id, e.name AS workflow, a.n,
  CASE WHEN a.ended_at IS NULL AND a.held THEN 'held' WHEN a.ended_at IS NULL THEN 'open'
    WHEN a.decision IS NULL THEN 'cancelled' ELSE a.decision END AS status,
  a.role, a.reason, {json a.data} AS data, a.quorum, a.four_eyes, a.requested_by, {json a.decided_by} AS decided_by, a.comment,
  a.escalated, {json a.stages} AS stages, {at a.created_at} AS created_at, {at a.deadline_at} AS deadline_at,
  {at a.ended_at} AS ended_at, {s (a.ended_at - a.created_at)} AS wait_s, a.created_at AS created_us, a.ended_at AS ended_us
FROM approvals a LEFT JOIN executions e ON e.id = a.execution_id;

-- Who decided what about an approval.
CREATE VIEW rhythm_decisions AS
SELECT d.approval_id, d.n, d.actor, d.role, d.decision, d.comment, d.stage, d.shown AS content_hash, {at d.at} AS at
FROM approval_decisions d;

-- Times at which workflows go on.
CREATE VIEW rhythm_timers AS
SELECT {text t.execution_id || '.' || t.n} AS id, t.execution_id, t.execution_id AS workflow_id, t.n,
  CASE WHEN t.fired_at IS NOT NULL THEN 'fired' WHEN t.cancelled_at IS NOT NULL THEN 'cancelled'
    WHEN t.fire_at IS NULL THEN 'held' ELSE 'waiting' END AS status,
  {at t.fire_at} AS fire_at, {at t.fired_at} AS fired_at, {at t.cancelled_at} AS cancelled_at, {s t.delay_us} AS delay_s,
  {at t.until_at} AS until_at, t.fire_at AS fire_us, t.fired_at AS fired_us, t.cancelled_at AS cancelled_us
FROM timer_tasks t;

-- Messages to one execution.
CREATE VIEW rhythm_signals AS
SELECT s.id, s.execution_id, s.n, s.name, {json s.payload} AS payload, {at s.received_at} AS received_at,
  s.consumed_seq IS NOT NULL AS consumed, s.consumed_seq
FROM workflow_signals s;

-- Messages to everybody who waits for their type.
CREATE VIEW rhythm_events AS
SELECT v.id, v.type, {json v.data} AS data, {at v.published_at} AS published_at, v.published_at AS published_us FROM events v;

-- Executions that wait, or have waited, for an event.
CREATE VIEW rhythm_event_waits AS
SELECT {text w.execution_id || '.' || w.n} AS id, w.execution_id, w.n, w.type, {json w.wanted} AS wanted,
  CASE WHEN w.ended_at IS NULL AND w.held THEN 'held' WHEN w.ended_at IS NULL THEN 'waiting' WHEN w.event_id IS NOT NULL THEN 'came'
    WHEN w.status = 7 THEN 'cancelled' ELSE 'missed' END AS status,
  w.event_id, {at w.since} AS since, {at w.deadline_at} AS deadline_at, {at w.ended_at} AS ended_at
FROM event_waits w;

-- What let paused executions go on.
CREATE VIEW rhythm_resume_requests AS
SELECT q.id, q.execution_id, q.triggered_by, q.triggered_by_id, {json q.trigger_data} AS trigger_data, q.reason, {json q.metadata} AS metadata,
  {at q.requested_at} AS requested_at, {at q.executed_at} AS executed_at, q.error_message
FROM execution_resume_requests q;

-- What waits for a worker, or has one.
CREATE VIEW rhythm_ready AS
SELECT r.id, CASE r.kind WHEN 0 THEN 'resume' ELSE 'task' END AS kind, r.queue, r.priority,
  CASE r.state WHEN 0 THEN 'free' WHEN 1 THEN 'claimed' ELSE 'delayed' END AS state,
  {at r.order_key} AS queued_at, {at r.due_at} AS due_at, r.claimed_by AS worker, {at r.claim_expires_at} AS claim_expires_at,
  r.attempt, r.crashes
FROM ready r;

-- Workers, as of their last heartbeat.
CREATE VIEW rhythm_workers AS
SELECT h.worker_id, h.host, h.pid, {json h.queues} AS queues, h.concurrency, h.running,
  (SELECT count(*) FROM ready r WHERE r.claimed_by = h.worker_id AND r.state = 1) AS claims,
  CASE WHEN h.beat_at + h.dead_after_us <= {now} THEN 'dead' WHEN h.draining THEN 'draining' ELSE 'live' END AS state,
  {at h.started_at} AS started_at, {at h.beat_at} AS last_heartbeat,
  CASE WHEN h.beat_at < {now} THEN {s ({now} - h.beat_at)} ELSE 0e0 END AS silent_s, {s h.dead_after_us} AS dead_after_s, h.version
FROM worker_heartbeats h;

-- Queues that have work, are paused, or are served by a worker. Every worker serves `system`.
CREATE VIEW rhythm_queues AS
SELECT q.name, CAST(sum(q.ready) AS bigint) AS ready, {at min(q.oldest_at)} AS oldest_at, CAST(sum(q.waiting) AS bigint) AS delayed,
  CAST(sum(q.claimed) - sum(q.expired) AS bigint) AS running, CAST(sum(q.expired) AS bigint) AS expired,
  CAST(sum(q.workers) AS bigint) AS workers, max(q.paused_at) IS NOT NULL AS paused, {at max(q.paused_at)} AS paused_at,
  max(q.paused_by) AS paused_by, max(q.paused_reason) AS paused_reason
FROM (
  SELECT r.queue AS name, count(*) FILTER (WHERE r.state = 0) AS ready, min(r.order_key) FILTER (WHERE r.state = 0) AS oldest_at,
    count(*) FILTER (WHERE r.state = 2) AS waiting, count(*) FILTER (WHERE r.state = 1) AS claimed,
    count(*) FILTER (WHERE r.state = 1 AND r.claim_expires_at < {now}) AS expired, 0 AS workers,
    CAST(NULL AS bigint) AS paused_at, NULL AS paused_by, NULL AS paused_reason
  FROM ready r GROUP BY r.queue
  UNION ALL SELECT p.name, 0, NULL, 0, 0, 0, 0, p.paused_at, p.paused_by, p.paused_reason FROM queues p
  UNION ALL SELECT {text s.value}, 0, NULL, 0, 0, 0, count(DISTINCT h.worker_id), NULL, NULL, NULL
    FROM worker_heartbeats h CROSS JOIN {list h.queues}
    WHERE h.beat_at + h.dead_after_us > {now} AND NOT h.draining AND s.value <> 'system' GROUP BY s.value
  UNION ALL SELECT {text 'system'}, 0, NULL, 0, 0, 0, 1, NULL, NULL, NULL FROM worker_heartbeats h
    WHERE h.beat_at + h.dead_after_us > {now} AND NOT h.draining) q
GROUP BY q.name;

-- All versions of workflows, with their texts.
CREATE VIEW rhythm_definitions AS
SELECT {text d.name || '@' || d.version} AS id, d.name, d.version,
  d.registration = (SELECT max(l.registration) FROM workflow_definitions l WHERE l.name = d.name) AS is_current,
  d.language, d.file, (SELECT t.text FROM workflow_sources t WHERE t.hash = d.source_hash) AS source,
  {json d.inputs} AS inputs_schema, {json d.program} AS program, {at d.registered_at} AS registered_at
FROM workflow_definitions d;

-- What starts workflows by the clock.
CREATE VIEW rhythm_schedules AS
SELECT s.name, s.workflow, s.cron, s.tz, {s s.every_us} AS every_s, {at s.at} AS at, {json s.inputs} AS inputs, s.overlap, s.catch_up,
  nullif(s.origin, '') AS origin, {at s.next_at} AS next_at, {at s.queued_at} AS queued_at, s.paused_at IS NOT NULL AS paused,
  {at s.paused_at} AS paused_at, nullif(s.paused_by, '') AS paused_by, nullif(s.paused_reason, '') AS paused_reason,
  {at s.created_at} AS created_at, nullif(s.created_by, '') AS created_by, {at s.updated_at} AS updated_at
FROM schedules s;

-- What became of the last slots of schedules.
CREATE VIEW rhythm_schedule_slots AS
SELECT f.schedule, {at f.slot_at} AS slot_at, f.outcome, f.execution_id, f.manual, {at f.until_at} AS until_at, f.detail, {at f.at} AS at
FROM schedule_fires f;

-- Who did what. The proof of its chain is `rhythm audit verify`.
CREATE VIEW rhythm_audit AS
SELECT a.n, {at a.at} AS at, a.actor, a.token, a.source, a.action, a.object, {json a.detail} AS detail FROM audit a;
