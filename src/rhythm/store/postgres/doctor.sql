-- The rules of `rhythm doctor`: each statement finds rows that break a rule, as a subject and a
-- message. All of them run in one snapshot. Times are compared with %(now)s, the beginning of that
-- snapshot; %(before)s is earlier by the grace period. In messages, `status 5` is shown by name.

-- name: ended_once
-- Workflows that have a turn after the one that ended them.
-- A workflow has one terminal turn, and none after it.
SELECT h.execution_id AS subject, 'turn ' || max(h.seq) || ' comes after turn ' || min(e.seq) || ', which ended it' AS message
FROM history e JOIN history h ON h.execution_id = e.execution_id AND h.seq > e.seq
WHERE e.to_status >= 5 GROUP BY h.execution_id

-- name: history_whole
-- Workflows whose history does not have exactly the turns that their context counts.
-- The history has every turn that the context counts, from 1 on, without a gap.
SELECT c.execution_id AS subject,
  'its context is at turn ' || c.seq || ', its history has ' || coalesce(h.turns, 0) || ' turns up to ' || coalesce(h.highest, 0) AS message
FROM workflow_execution_context c
LEFT JOIN (SELECT execution_id, count(*) AS turns, min(seq) AS lowest, max(seq) AS highest FROM history GROUP BY execution_id) h
  ON h.execution_id = c.execution_id
WHERE coalesce(h.turns, 0) <> c.seq OR coalesce(h.highest, 0) <> c.seq OR coalesce(h.lowest, 1) <> 1

-- name: history_chained
-- Turns that begin in another status than the turn before ended in.
-- Each turn begins with the status in which the one before it ended.
SELECT b.execution_id AS subject, 'turn ' || b.seq || ' began as status ' || b.from_status || ', and not as status ' || coalesce(a.to_status, 0) AS message
FROM history b JOIN executions e ON e.id = b.execution_id AND e.type = 0
LEFT JOIN history a ON a.execution_id = b.execution_id AND a.seq = b.seq - 1
WHERE (a.seq IS NOT NULL AND b.from_status <> a.to_status) OR (b.seq = 1 AND b.from_status <> 0)

-- name: history_agrees
-- Workflows with another status than their last turn left them in.
-- The last turn left the workflow in the status that it has.
SELECT e.id AS subject, 'it is status ' || e.status || ', its last turn left it as status ' || coalesce(h.to_status, 0) AS message
FROM executions e JOIN workflow_execution_context c ON c.execution_id = e.id
LEFT JOIN history h ON h.execution_id = e.id AND h.seq = c.seq
WHERE e.type = 0 AND ((c.seq = 0 AND e.status <> 0) OR (h.seq IS NOT NULL AND h.to_status <> e.status))

-- name: fences_grow
-- Executions whose fences go back, belong to two workers, or are newer than the context's.
-- A fence never goes back, belongs to one worker, and the context has the newest one.
SELECT b.execution_id AS subject, 'turn ' || b.seq || ' has fence ' || b.fence || ', the one before it ' || a.fence AS message
FROM history a JOIN history b ON b.execution_id = a.execution_id AND b.seq = a.seq + 1 WHERE b.fence < a.fence
UNION ALL
SELECT execution_id, 'fence ' || fence || ' was used by ' || min(worker) || ' and by ' || max(worker)
FROM history GROUP BY execution_id, fence HAVING min(worker) <> max(worker)
UNION ALL
SELECT c.execution_id, 'its context has fence ' || c.fence || ', its history has fence ' || max(h.fence)
FROM workflow_execution_context c JOIN history h ON h.execution_id = c.execution_id AND h.fence > c.fence GROUP BY c.execution_id, c.fence

-- name: fences_drawn
-- Executions with a fence that was never drawn, or that two claims have.
-- Every fence was drawn from the sequence, and no two claims have the same one.
SELECT x.subject, 'fence ' || x.fence || ' of its ' || x.place || ' was never drawn; the last one was ' || d.n AS message
FROM (SELECT id AS subject, fence, 'claim' AS place FROM ready
      UNION ALL SELECT execution_id, fence, 'context' FROM workflow_execution_context
      UNION ALL SELECT id, fence, 'row' FROM executions) x
CROSS JOIN (SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS n FROM fences) d
WHERE x.fence > d.n
UNION ALL
SELECT min(id), 'its claim and that of ' || max(id) || ' have the same fence ' || fence FROM ready WHERE fence IS NOT NULL GROUP BY fence HAVING count(*) > 1

-- name: claim_newest
-- Workflows that are claimed with an older fence than that of their context.
-- The owner of a workflow has a fence that its context accepts. Otherwise it could never commit,
-- nor lose the claim.
SELECT r.id AS subject, r.claimed_by || ' holds it with fence ' || r.fence || ', its context has the newer ' || c.fence AS message
FROM ready r JOIN workflow_execution_context c ON c.execution_id = r.id WHERE r.fence < c.fence

-- name: claims_taken_back
-- Claims that expired longer ago than the grace period, and still exist.
-- A claim that has expired is taken back within the grace period.
SELECT id AS subject, 'the claim of ' || claimed_by || ' expired ' || ((%(now)s - claim_expires_at) / 1000000) || ' s ago' AS message
FROM ready WHERE state = 1 AND claim_expires_at < %(before)s

-- name: silent_hold_nothing
-- Claims of workers that have been dead for longer than the grace period.
-- A worker that has been silent for longer than the grace period has no claims left. A worker
-- without a beat is judged by its claims alone.
SELECT r.id AS subject, r.claimed_by || ' holds it, and has been silent for ' || ((%(now)s - h.beat_at) / 1000000) || ' s' AS message
FROM ready r JOIN worker_heartbeats h ON h.worker_id = r.claimed_by WHERE r.state = 1 AND h.beat_at + h.dead_after_us < %(before)s

-- name: ended_clean
-- Ended executions held back or without one outcome, and live ones that have an outcome.
-- An ended execution has one outcome and is not held back; a live one has no outcome.
SELECT id AS subject, CASE WHEN held AND status >= 5 THEN 'it has ended, and is held back' ELSE 'it is status ' || status
  || CASE WHEN result IS NULL THEN ' without a result' ELSE ' with a result' END
  || CASE WHEN error IS NULL THEN ' and without an error' ELSE ' and with an error' END END AS message
FROM executions
WHERE CASE WHEN status >= 5 THEN held OR (status = 5) <> (result IS NOT NULL) OR (status = 5) <> (error IS NULL)
  ELSE result IS NOT NULL OR error IS NOT NULL END

-- name: ended_timers
-- Open timers of executions that have ended.
-- An ended workflow has no open timers.
SELECT t.execution_id AS subject, 'it has ended, and its timer ' || t.n || ' is still there' AS message
FROM timer_tasks t JOIN executions e ON e.id = t.execution_id
WHERE e.finished_at IS NOT NULL AND t.fired_at IS NULL AND t.cancelled_at IS NULL

-- name: ended_ready
-- Ended tasks that still have a ready row; ended workflows, too, after the grace period.
-- A task leaves the queue when it ends. A workflow may be woken once more; within the grace period
-- a worker sees that it has ended.
SELECT r.id AS subject, 'it has ended, and is still in queue ' || r.queue AS message
FROM ready r JOIN executions e ON e.id = r.id
WHERE e.finished_at IS NOT NULL AND (e.type = 1 OR (e.finished_at < %(before)s AND r.order_key < %(before)s))

-- name: children_asked_to_end
-- Live children of failed or cancelled parents, not asked to end, or held back by ended parents.
-- When a workflow fails or is cancelled, its children are asked to end; when it ends at all, none
-- is held back.
SELECT c.id AS subject, 'its parent is status ' || p.status || CASE WHEN c.held THEN ', and nobody will let it begin' ELSE ', and it was not asked to end' END AS message
FROM executions c JOIN executions p ON p.id = c.parent_id
WHERE c.finished_at IS NULL AND c.cancel_requested_at IS NULL AND (p.status IN (6, 7) OR (p.finished_at IS NOT NULL AND c.held))

-- name: cancelled_tasks_end
-- Cancelled tasks that nobody runs, and that have not ended within the grace period.
-- A cancelled task that nobody runs ends within the grace period.
SELECT e.id AS subject, 'it was cancelled ' || ((%(now)s - e.cancel_requested_at) / 1000000) || ' s ago, nobody runs it, and it has not ended' AS message
FROM executions e LEFT JOIN ready r ON r.id = e.id
WHERE e.cancel_requested_at < %(before)s AND e.finished_at IS NULL AND e.type = 1 AND (r.id IS NULL OR r.state <> 1)

-- name: pending_queued
-- Executions that have not begun, and are neither queued nor held back nor paused.
-- An execution that has not begun is queued or held back; a workflow may also be paused.
SELECT e.id AS subject, 'it has not begun, and it is not queued' AS message
FROM executions e LEFT JOIN ready r ON r.id = e.id
WHERE e.finished_at IS NULL AND r.id IS NULL AND e.status = 0 AND NOT e.held
  AND (e.type = 1 OR e.paused_at IS NULL OR e.cancel_requested_at IS NOT NULL) AND NOT EXISTS (SELECT 1 FROM terminations t WHERE starts_with(e.id, t.id || '.'))

-- name: terminated_end
-- Terminated workflows that have live executions below them after the grace period.
-- Everything below a terminated execution ends within the grace period.
SELECT t.id AS subject, 'it was terminated ' || ((%(now)s - t.requested_at) / 1000000) || ' s ago, and something below it lives' AS message
FROM terminations t WHERE t.requested_at < %(before)s
  AND EXISTS (SELECT 1 FROM executions e WHERE e.id > t.id || '.' AND e.id < t.id || '/' AND e.finished_at IS NULL)

-- name: ready_agrees
-- Ready rows that do not fit their execution or their own state.
-- A ready row fits its execution. Releasing a claim gives the attempt back, also an attempt that
-- the execution's own row has counted already.
SELECT r.id AS subject, 'its queue row is that of another kind of execution' AS message
FROM ready r JOIN executions e ON e.id = r.id WHERE r.kind <> e.type
UNION ALL
SELECT r.id, 'it is held back, and it is in queue ' || r.queue FROM ready r JOIN executions e ON e.id = r.id WHERE e.held
UNION ALL
SELECT r.id, 'its queue row counts ' || r.attempt || ' attempts, its own row ' || e.attempt
FROM ready r JOIN executions e ON e.id = r.id WHERE e.type = 1 AND (r.attempt < e.attempt - 1 OR r.attempt < 0)
UNION ALL
SELECT id, 'its claim never expires' FROM ready WHERE (state = 1) <> (claim_expires_at IS NOT NULL)
UNION ALL
SELECT r.id, 'it crashed in turn ' || r.crash_seq || ', and has only come to turn ' || c.seq
FROM ready r JOIN workflow_execution_context c ON c.execution_id = r.id WHERE r.crash_seq > c.seq

-- name: belongs
-- Rows of contexts, history, timers, signals, contributors and queues without an execution.
-- Every row belongs to an execution. A late wake may create a ready row for an execution that no
-- longer exists; within the grace period it is deleted.
SELECT x.subject, 'its ' || x.place || ' is there, and the execution is not' AS message
FROM (SELECT DISTINCT execution_id AS subject, 'context' AS place FROM workflow_execution_context
      UNION ALL SELECT DISTINCT execution_id, 'history' FROM history
      UNION ALL SELECT DISTINCT execution_id, 'timer' FROM timer_tasks
      UNION ALL SELECT DISTINCT execution_id, 'signal' FROM workflow_signals
      UNION ALL SELECT DISTINCT root_id, 'contributor' FROM execution_contributors
      UNION ALL SELECT id, 'queue row' FROM ready WHERE order_key < %(before)s) x
WHERE NOT EXISTS (SELECT 1 FROM executions e WHERE e.id = x.subject)

-- name: context_kept
-- Workflows without a context, and tasks with one.
-- A workflow has a context, a task has none.
SELECT e.id AS subject, CASE WHEN e.type = 0 THEN 'it is a workflow without a context' ELSE 'it is a task with a context' END AS message
FROM executions e LEFT JOIN workflow_execution_context c ON c.execution_id = e.id WHERE (e.type = 0) <> (c.execution_id IS NOT NULL)

-- name: blobs_kept
-- Snapshots whose blob is missing, and blobs to which no snapshot refers.
-- A snapshot that refers to a blob has one, and every blob is referred to.
SELECT c.execution_id AS subject, 'its snapshot refers to a blob that is not there' AS message FROM workflow_execution_context c
WHERE c.snapshot = '\x40' AND NOT EXISTS (SELECT 1 FROM blobs b WHERE b.execution_id = c.execution_id)
UNION ALL
SELECT b.execution_id, 'there is a blob to which no snapshot refers' FROM blobs b
WHERE NOT EXISTS (SELECT 1 FROM workflow_execution_context c WHERE c.execution_id = b.execution_id AND c.snapshot = '\x40')

-- name: definition_kept
-- Workflows that have not ended, and whose version is not registered.
-- The program of every live workflow is stored.
SELECT e.id AS subject, 'there is no version ' || e.version || ' of workflow ' || e.name AS message
FROM executions e WHERE e.finished_at IS NULL AND e.type = 0
  AND NOT EXISTS (SELECT 1 FROM workflow_definitions d WHERE d.name = e.name AND d.version = e.version)

-- name: sources_kept
-- Versions of workflows without their text, and texts to which no version refers.
-- The text of every version of a workflow is stored, and every text is referred to.
SELECT d.name AS subject, 'the text of its version ' || d.version || ' is not there' AS message FROM workflow_definitions d
WHERE NOT EXISTS (SELECT 1 FROM workflow_sources s WHERE s.hash = d.source_hash)
UNION ALL
SELECT s.hash, 'there is a text to which no workflow refers' FROM workflow_sources s
WHERE NOT EXISTS (SELECT 1 FROM workflow_definitions d WHERE d.source_hash = s.hash)

-- name: child_ids
-- Executions whose id, number, parent and root do not fit together.
-- A child's id is its parent's with its number, and the whole family has one root.
SELECT id AS subject, 'it is child ' || child_no || ' of ' || parent_id AS message
FROM executions WHERE parent_id IS NOT NULL AND id <> parent_id || '.' || child_no
UNION ALL
SELECT c.id, 'its parent ' || c.parent_id || ' is not there'
FROM executions c WHERE c.parent_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM executions p WHERE p.id = c.parent_id)
UNION ALL
SELECT c.id, 'its root is ' || c.root_id || ', that of its parent ' || p.root_id
FROM executions c JOIN executions p ON p.id = c.parent_id WHERE c.root_id <> p.root_id
UNION ALL
SELECT c.id, 'its parent is a task' FROM executions c JOIN executions p ON p.id = c.parent_id WHERE p.type <> 0
UNION ALL
SELECT id, 'it has no parent, but root ' || root_id || ' and number ' || child_no
FROM executions WHERE parent_id IS NULL AND (root_id <> id OR child_no <> 0)

-- name: within_generations
-- Workflows that are more generations below their root than allowed.
-- An id has a dot for every generation.
SELECT id AS subject, 'it is ' || (length(id) - length(replace(id, '.', ''))) || ' generations below its root' AS message
FROM executions WHERE type = 0 AND length(id) - length(replace(id, '.', '')) > 64

-- name: numbers_once
-- Workflows in which a number stands for two children, or for a timer and a child.
-- A number stands for one child or one timer.
SELECT parent_id AS subject, count(*) || ' children have number ' || child_no AS message
FROM executions WHERE parent_id IS NOT NULL GROUP BY parent_id, child_no HAVING count(*) > 1
UNION ALL
SELECT t.execution_id, 'number ' || t.n || ' is a timer and a child' FROM timer_tasks t JOIN executions e ON e.id = t.execution_id || '.' || t.n

-- name: one_per_key
-- Executions that have the same name and idempotency key.
-- There is one execution for a name and an idempotency key.
SELECT min(id) AS subject, count(*) || ' executions of ' || name || ' have the key ' || key AS message
FROM executions WHERE key IS NOT NULL GROUP BY name, key HAVING count(*) > 1

-- name: status_known
-- Executions with a type and status that do not exist together.
-- Types and statuses are known ones; a task is never suspended.
SELECT id AS subject, 'type ' || type || ' with status ' || status || ' means nothing' AS message
FROM executions WHERE NOT ((type = 0 AND status IN (0, 1, 2, 5, 6, 7, 8)) OR (type = 1 AND status IN (0, 5, 6, 7)))

-- name: attempts_counted
-- Tasks whose attempts do not fit their history, or that completed without attempt or claim.
-- A task completes in an attempt of its own, under a claim, and no failed attempt has a higher
-- number than the task has counted. One whose worker died is counted only with the next that ends.
SELECT h.execution_id AS subject, 'attempt ' || h.seq || ' failed, and it is status ' || e.status || ' with ' || e.attempt || ' attempts' AS message
FROM history h JOIN executions e ON e.id = h.execution_id
WHERE e.type = 1 AND (h.seq < 1 OR (h.cause <> 'attempt crashed' AND (h.seq > e.attempt OR (e.status = 5 AND h.seq = e.attempt))))
UNION ALL
SELECT h.execution_id, 'its attempt ' || h.seq || ' is told as a turn to status ' || h.to_status
FROM history h JOIN executions e ON e.id = h.execution_id WHERE e.type = 1 AND (h.from_status <> 0 OR h.to_status <> 0)
UNION ALL
SELECT id, 'it has completed without an attempt or a claim'
FROM executions WHERE type = 1 AND status = 5 AND (attempt < 1 OR fence IS NULL)

-- name: timers_sound
-- Timers that fired too early, while they were held back, or after they were cancelled.
-- A timer fires at its time or later, and not after it was cancelled.
SELECT execution_id AS subject, 'its timer ' || n || CASE WHEN cancelled_at IS NOT NULL THEN ' was cancelled, and fired'
  WHEN fire_at IS NULL THEN ' fired while it was held back' ELSE ' fired ' || (fire_at - fired_at) || ' µs too early' END AS message
FROM timer_tasks WHERE fired_at IS NOT NULL AND (cancelled_at IS NOT NULL OR fire_at IS NULL OR fired_at < fire_at)

-- name: overdue
-- Timers, waits, delays, timeouts, approvals and pauses overdue by more than the grace period.
SELECT execution_id AS subject, 'its timer ' || n || ' is overdue by ' || ((%(now)s - fire_at) / 1000000) || ' s' AS message
FROM timer_tasks WHERE fired_at IS NULL AND cancelled_at IS NULL AND fire_at < %(before)s
UNION ALL
SELECT execution_id, 'its wait ' || n || ' for an event was over ' || ((%(now)s - deadline_at) / 1000000) || ' s ago'
FROM event_waits WHERE ended_at IS NULL AND deadline_at < %(before)s
UNION ALL
SELECT id, 'it should have been queued again ' || ((%(now)s - due_at) / 1000000) || ' s ago' FROM ready WHERE state = 2 AND due_at < %(before)s
UNION ALL
SELECT id, 'it should have been timed out ' || ((%(now)s - timeout_at) / 1000000) || ' s ago'
FROM executions WHERE timeout_at < %(before)s AND timed_out_at IS NULL AND finished_at IS NULL
UNION ALL
SELECT execution_id, 'the time of its approval ' || n || ' was over ' || ((%(now)s - deadline_at) / 1000000) || ' s ago'
FROM approvals WHERE ended_at IS NULL AND deadline_at < %(before)s
UNION ALL
SELECT id, 'its pause should have ended ' || ((%(now)s - paused_until) / 1000000) || ' s ago'
FROM executions WHERE paused_until < %(before)s AND finished_at IS NULL

-- name: signals_numbered
-- Executions whose signals are not numbered from 1 without a gap.
-- A mailbox counts its signals from 1 without a gap.
SELECT execution_id AS subject, 'it was sent ' || count(*) || ' signals, numbered ' || min(n) || ' to ' || max(n) AS message
FROM workflow_signals GROUP BY execution_id HAVING count(*) <> max(n) OR min(n) <> 1

-- name: signals_in_order
-- Signals that were consumed before an earlier one of the same name.
-- Signals of one name are taken in the order in which they were sent.
SELECT execution_id AS subject, 'signal ' || n || ' (' || name || ') was taken before one that was sent earlier' AS message
FROM (SELECT execution_id, name, n, consumed_seq, lag(n) OVER sent AS earlier, lag(consumed_seq) OVER sent AS earlier_seq
      FROM workflow_signals WINDOW sent AS (PARTITION BY execution_id, name ORDER BY n)) s
WHERE consumed_seq IS NOT NULL AND earlier IS NOT NULL AND (earlier_seq IS NULL OR earlier_seq > consumed_seq)

-- name: signals_taken
-- Signals that were consumed by a turn that is not in the history.
-- A signal is taken by a turn that was committed.
SELECT s.execution_id AS subject, 'signal ' || s.n || ' (' || s.name || ') was taken in turn ' || s.consumed_seq || ', which never was' AS message
FROM workflow_signals s LEFT JOIN history h ON h.execution_id = s.execution_id AND h.seq = s.consumed_seq
WHERE s.consumed_seq IS NOT NULL AND h.seq IS NULL

-- name: events_kept
-- Waits that took an event that no longer exists, or that has another type.
-- An event that an execution has taken exists, and has the type that it waited for.
SELECT w.execution_id AS subject, 'the event ' || w.event_id || ', which it took, ' || CASE WHEN e.id IS NULL THEN 'is gone'
  ELSE 'is of type ' || e.type || ', not ' || w.type END AS message
FROM event_waits w LEFT JOIN events e ON e.id = w.event_id WHERE w.event_id IS NOT NULL AND NOT w.settled AND (e.id IS NULL OR e.type <> w.type)

-- name: triggers_current
-- Event triggers with another version than the one that was registered last.
-- An event starts workflows in the version that was registered last.
SELECT t.workflow AS subject, 'the event ' || t.type || ' starts version ' || t.version || CASE WHEN d.version IS NULL
  THEN ', which is not registered' ELSE ', and ' || d.version || ' was registered last' END AS message
FROM event_triggers t LEFT JOIN workflow_definitions d ON d.name = t.workflow
  AND d.registration = (SELECT max(registration) FROM workflow_definitions WHERE name = t.workflow)
WHERE d.version IS NULL OR d.version <> t.version

-- name: slots_once
-- Slots that have two rows, are still to come, or do not fit their execution or schedule.
-- A slot has one row and one execution, and is earlier than the next slot. (Two rows of one slot:
-- is the unique index there?)
SELECT schedule AS subject, 'execution ' || execution_id || ' is that of ' || count(*) || ' slots' AS message
FROM schedule_fires WHERE execution_id IS NOT NULL GROUP BY schedule, execution_id HAVING count(*) > 1
UNION ALL
SELECT f.schedule, 'a slot has ' || count(*) || ' rows' FROM schedule_fires f WHERE NOT f.manual GROUP BY f.schedule, f.slot_at HAVING count(*) > 1
UNION ALL
SELECT f.schedule, 'a slot that was ' || f.outcome || ' is still to come'
FROM schedule_fires f JOIN schedules s ON s.name = f.schedule WHERE NOT f.manual AND f.slot_at >= s.next_at
UNION ALL
SELECT schedule, 'a slot that was ' || outcome || ' has ' || coalesce('execution ' || execution_id, 'no execution')
FROM schedule_fires WHERE (outcome = 'started') <> (execution_id IS NOT NULL)
UNION ALL
SELECT f.schedule, 'there are slots of it, and no schedule'
FROM schedule_fires f LEFT JOIN schedules s ON s.name = f.schedule WHERE s.name IS NULL GROUP BY f.schedule

-- name: schedules_fire
-- Schedules whose slot is overdue by more than the grace period.
-- A slot is fired when it is due, within the grace period.
SELECT name AS subject, 'its slot is overdue by ' || ((%(now)s - next_at) / 1000000) || ' s' AS message
FROM schedules WHERE paused_at IS NULL AND next_at < %(before)s

-- name: times_sound
-- Executions and turns with times that are out of order, or in the future.
-- Nothing ends before it began, or happens in the future. A clock that was set back by less than a
-- second is tolerated.
SELECT id AS subject, 'the times of its creation, beginning and end are out of order' AS message
FROM executions WHERE started_at < created_at - 1000000 OR finished_at < started_at - 1000000 OR finished_at < created_at - 1000000
UNION ALL
SELECT id, 'it was created ' || ((created_at - %(now)s) / 1000000) || ' s in the future' FROM executions WHERE created_at > %(now)s + 1000000
UNION ALL
SELECT b.execution_id, 'turn ' || b.seq || ' was committed ' || ((a.at - b.at) / 1000000) || ' s before turn ' || a.seq
FROM history a JOIN history b ON b.execution_id = a.execution_id AND b.seq = a.seq + 1 WHERE b.at < a.at - 1000000

-- name: contexts
-- A page of workflows with what they wait for, for the rules that Python code checks.
-- Ended workflows are returned without a status, not left out: a page is cut by the primary key
-- alone, whatever the planner thinks of the other conditions. The same is done with workflows that
-- are being terminated: nobody wakes them.
SELECT c.execution_id AS id,
  CASE WHEN e.type = 0 AND NOT EXISTS (SELECT 1 FROM terminations t WHERE starts_with(e.id, t.id || '.')) THEN e.status END AS status,
  e.held AS held, e.paused_at IS NOT NULL AS paused, e.cancel_requested_at IS NOT NULL AS cancel_requested, e.timed_out_at IS NOT NULL AS timed_out,
  r.id IS NOT NULL AS ready, c.seq AS seq, c.statement AS statement, c.owned AS owned, c.awaiting AS awaiting, CASE WHEN e.status < 5 THEN
  coalesce(CASE WHEN c.snapshot = '\x40' THEN (SELECT b.data FROM blobs b WHERE b.execution_id = c.execution_id) END, c.snapshot) END AS snapshot
FROM (SELECT * FROM workflow_execution_context WHERE execution_id > %(after)s ORDER BY execution_id LIMIT %(limit)s) c
LEFT JOIN executions e ON e.id = c.execution_id LEFT JOIN ready r ON r.id = c.execution_id ORDER BY c.execution_id

-- name: children_by_id
-- Children that workflows await, and whether they ended, for the rules that Python code checks.
SELECT {Child} FROM executions WHERE id = ANY(%(ids)s::text[])

-- name: timers_by_number
-- Timers, waits for events and approvals that workflows await, for rules checked in Python.
-- Only waits for events have a status: they end in more ways.
SELECT t.execution_id AS execution_id, t.n AS n, t.fired_at AS fired_at, t.cancelled_at AS cancelled_at, NULL AS status
FROM unnest(%(id)s::text[], %(n)s::bigint[]) AS x(id, n) JOIN timer_tasks t ON t.execution_id = x.id AND t.n = x.n
UNION ALL
SELECT w.execution_id, w.n, CASE WHEN w.status <> 7 THEN w.ended_at END, CASE WHEN w.status = 7 THEN w.ended_at END, coalesce(w.status, 0)
FROM unnest(%(id)s::text[], %(n)s::bigint[]) AS x(id, n) JOIN event_waits w ON w.execution_id = x.id AND w.n = x.n
UNION ALL
SELECT a.execution_id, a.n, CASE WHEN a.status <> 7 THEN a.ended_at END, CASE WHEN a.status = 7 THEN a.ended_at END, NULL
FROM unnest(%(id)s::text[], %(n)s::bigint[]) AS x(id, n) JOIN approvals a ON a.execution_id = x.id AND a.n = x.n

-- name: mailboxes
-- Signals that were not consumed, without payloads, for the rules that Python code checks.
SELECT {Mailed} FROM workflow_signals
WHERE execution_id = ANY(%(ids)s::text[]) AND consumed_seq IS NULL ORDER BY execution_id, n

-- name: count_executions
-- Number of all executions, for the report on the health of the database.
SELECT count(*) FROM executions

-- name: queues
-- All queues that have rows, are paused or are served, for lists and for the health report.
-- For each queue: how many rows are ready, since when the oldest waits, how many are claimed, how
-- many of these claims have expired, how many are delayed, whether it is paused, and how many live
-- workers serve it. All of them serve the system queue.
SELECT name, sum(ready)::bigint AS ready, min(oldest_at) AS oldest_at, sum(claimed)::bigint AS claimed, sum(expired)::bigint AS expired, sum(delayed)::bigint AS delayed,
  max(paused_at) AS paused_at, max(paused_by) AS paused_by, max(paused_reason) AS paused_reason, sum(workers)::bigint AS workers, %(now)s::bigint AS now
FROM (
  SELECT queue AS name, count(*) FILTER (WHERE state = 0) AS ready, min(order_key) FILTER (WHERE state = 0) AS oldest_at,
    count(*) FILTER (WHERE state = 1) AS claimed, count(*) FILTER (WHERE state = 1 AND claim_expires_at < %(now)s) AS expired,
    count(*) FILTER (WHERE state = 2) AS delayed, NULL::bigint AS paused_at, '' AS paused_by, '' AS paused_reason, 0 AS workers
  FROM ready GROUP BY queue
  UNION ALL SELECT name, 0, NULL, 0, 0, 0, paused_at, paused_by, paused_reason, 0 FROM queues
  UNION ALL SELECT queue COLLATE "C", 0, NULL, 0, 0, 0, NULL, '', '', count(DISTINCT worker_id) FROM (
    SELECT h.worker_id, s.value AS queue FROM worker_heartbeats h CROSS JOIN LATERAL json_array_elements_text(h.queues::json) AS s(value) WHERE h.beat_at + h.dead_after_us >= %(now)s AND NOT h.draining
    UNION SELECT worker_id, 'system' FROM worker_heartbeats WHERE beat_at + dead_after_us >= %(now)s AND NOT draining) AS served
    GROUP BY queue) AS found
GROUP BY name ORDER BY name

-- name: silent
-- Workers that have claims, and have been silent for too long, or never sent a beat.
SELECT r.claimed_by AS worker, count(*) AS claims, max(h.beat_at) AS beat_at FROM ready r LEFT JOIN worker_heartbeats h ON h.worker_id = r.claimed_by
WHERE r.state = 1 AND (h.worker_id IS NULL OR h.beat_at + h.dead_after_us < %(now)s) GROUP BY r.claimed_by ORDER BY r.claimed_by

-- name: oldest_transaction
-- Age of the oldest transaction in seconds, for the report on the health of the database.
-- A long transaction keeps vacuum from removing dead rows in all tables.
SELECT extract(epoch FROM max(clock_timestamp() - xact_start))::float8 FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'

-- name: dead_rows
-- Live and dead rows of the tables that change most, for the health report.
SELECT relname::text, n_live_tup, n_dead_tup FROM pg_stat_user_tables
WHERE schemaname = current_schema() AND relname IN ('ready', 'executions', 'workflow_execution_context') ORDER BY relname

-- name: notification_queue
-- Used part of the queue of notifications, from 0 to 1, for the health report.
SELECT pg_notification_queue_usage()::float8

-- name: approvals_entitled
-- Approvals that ended without enough decisions or an outcome, or were decided afterwards.
-- An approval is decided by enough people of its last stage, and by nobody after its end. Whether
-- one of them took part in it is checked in Python (`decisions_made`).
SELECT a.id AS subject, 'it takes ' || a.quorum || ' to approve, and fewer have' AS message
FROM approvals a WHERE a.decision = 'approved'
  AND (SELECT count(DISTINCT d.actor) FROM approval_decisions d WHERE d.approval_id = a.id AND d.decision = 'approve' AND d.role = a.role
       AND d.stage = a.escalated) < a.quorum
UNION ALL
SELECT a.id, 'it is rejected, and nobody has rejected it' FROM approvals a WHERE a.decision = 'rejected'
  AND NOT EXISTS (SELECT 1 FROM approval_decisions d WHERE d.approval_id = a.id AND d.decision = 'reject' AND d.role = a.role)
UNION ALL
SELECT a.id, d.actor || ' decided after its end' FROM approvals a JOIN approval_decisions d ON d.approval_id = a.id WHERE d.at > a.ended_at
UNION ALL
SELECT a.id, 'it has ended, and does not say how' FROM approvals a
WHERE (a.ended_at IS NULL) <> (a.status IS NULL) OR (a.status = 5) <> (a.decision IS NOT NULL)

-- name: contributors_kept
-- Executions that lack a contributor, or have another authority than their parent.
-- Everyone who took part in an execution is stored with its family, and with the executions that
-- come from it by an event or a retry. If they are too many, one row (a tab and a star) stands for
-- all.
SELECT e.id AS subject, 'it was started by ' || e.started_by || ', and has no contributor' AS message
FROM executions e WHERE e.parent_id IS NULL AND e.started_by IS NOT NULL AND e.started_by NOT LIKE 'schedule:%%' AND e.started_by NOT LIKE 'execution:%%'
  AND NOT EXISTS (SELECT 1 FROM execution_contributors c WHERE c.root_id = e.id)
UNION ALL
SELECT e.id, 'it took event ' || v.id || ', and ' || x.value || ' is no contributor'
FROM event_waits w JOIN events v ON v.id = w.event_id JOIN executions e ON e.id = w.execution_id CROSS JOIN json_array_elements_text(v.provenance::json -> 0) x(value)
WHERE v.provenance IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM execution_contributors c WHERE c.root_id = e.root_id AND c.person IN (x.value, E'\t*'))
UNION ALL
SELECT e.id, 'it is a retry of ' || e.retry_of || ', and ' || o.person || ' is no contributor'
FROM executions e JOIN execution_contributors o ON o.root_id = e.retry_of
WHERE NOT EXISTS (SELECT 1 FROM execution_contributors c WHERE c.root_id = e.id AND c.person IN (o.person, E'\t*'))
UNION ALL
SELECT c.id, 'it has another authority than its parent'
FROM executions c JOIN executions p ON p.id = c.parent_id WHERE c.type = 0 AND c.authority IS DISTINCT FROM p.authority

-- name: approvals_awaited
-- Open approvals of executions that have ended or no longer exist.
-- An execution that has ended asks nobody to decide.
SELECT a.execution_id AS subject, 'it has ended, and approval ' || a.id || ' is still open' AS message
FROM approvals a LEFT JOIN executions e ON e.id = a.execution_id WHERE a.ended_at IS NULL AND coalesce(e.status, 5) >= 5

-- name: decisions_audited
-- Decisions that are not in the audit, and audited decisions that no longer exist.
-- A decision and its audit row are written together; while the approval exists, neither exists
-- without the other.
SELECT d.approval_id AS subject, d.decision || ' of ' || d.actor || ' is not in the audit' AS message
FROM approval_decisions d
WHERE NOT EXISTS (SELECT 1 FROM audit a WHERE a.object = d.approval_id AND a.action = 'approval.' || d.decision AND a.actor = d.actor
  AND a.at = d.at AND a.token IS NOT DISTINCT FROM d.token AND a.n > 0)
UNION ALL
SELECT a.object, a.action || ' of ' || a.actor || ' is in the audit, and the decision is gone'
FROM audit a JOIN approvals p ON p.id = a.object
WHERE a.action IN ('approval.approve', 'approval.reject', 'approval.escalate') AND NOT (a.action = 'approval.escalate' AND a.source = 'service')
  AND NOT EXISTS (SELECT 1 FROM approval_decisions d WHERE d.approval_id = a.object AND 'approval.' || d.decision = a.action AND d.actor = a.actor
    AND d.at = a.at AND d.token IS NOT DISTINCT FROM a.token)

-- name: decisions_made
-- Page of decisions under four eyes, and everyone who took part in what they were about.
SELECT d.approval_id AS approval_id, d.n AS n, d.actor AS actor, d.at AS at, a.decided_by AS decided_by, a.ended_at AS ended_at,
  (SELECT coalesce(json_agg(json_build_array(c.person, c.at)), '[]')::text FROM execution_contributors c WHERE c.root_id = e.root_id) AS contributors
FROM approval_decisions d JOIN approvals a ON a.id = d.approval_id JOIN executions e ON e.id = a.execution_id
WHERE a.four_eyes AND (d.approval_id, d.n) > (%(id)s, %(n)s) ORDER BY d.approval_id, d.n LIMIT %(limit)s

-- name: audited_decisions
-- Decisions with the detail of their audit rows; Python code compares the two.
SELECT {d.AuditedDecision but detail}, a.detail AS detail
FROM approval_decisions d JOIN audit a ON a.object = d.approval_id AND a.action = 'approval.' || d.decision AND a.actor = d.actor
  AND a.at = d.at AND a.token IS NOT DISTINCT FROM d.token AND a.n > 0
WHERE (d.approval_id, d.n) > (%(id)s, %(n)s) ORDER BY d.approval_id, d.n LIMIT %(limit)s

-- name: token_acts
-- Page of what the audit says about tokens, in its order, to be compared with `token_rows`.
SELECT {TokenAct} FROM audit
WHERE action IN ('token.create', 'token.change', 'token.revoke') AND n > %(after)s ORDER BY n LIMIT %(limit)s

-- name: token_rows
-- All tokens as they are, to be compared with what the audit says about them.
SELECT {TokenRow} FROM api_tokens ORDER BY id

-- name: audit_head
-- Number and hash of the last row of the audit, to verify the chain.
SELECT n, hash FROM audit_head

-- name: audit_page
-- A page of the audit beginning at a row, to verify the chain.
-- The rows come in the order of the chain, until the page has enough rows or is large enough. The
-- code that reads them checks whether the chain is unbroken.
SELECT {AuditRow} FROM (SELECT p.*, sum(length(detail)) OVER (ORDER BY n) - length(detail) AS before
  FROM (SELECT * FROM audit WHERE n >= %(first)s ORDER BY n LIMIT %(limit)s) AS p) AS page
WHERE before < %(size)s ORDER BY n
