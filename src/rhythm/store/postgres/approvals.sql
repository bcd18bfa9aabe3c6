-- name: insert_approvals
-- Stores the approvals that turns ask for; one that is held back has no deadline yet.
INSERT INTO approvals ({NewApproval}, id, execution_id, requested_by, timeout_us, deadline_at, created_at)
SELECT {x.NewApproval}, x.execution_id || '.' || x.n, x.execution_id, r.started_by, x.timeout_us,
  CASE WHEN NOT x.held THEN %(now)s + x.timeout_us END, %(now)s
FROM unnest({%NewApproval}, %(execution_id)s::text[], %(timeout_us)s::bigint[]) AS x({NewApproval}, execution_id, timeout_us)
JOIN executions e ON e.id = ANY(ARRAY[x.execution_id]) LEFT JOIN executions r ON r.id = ANY(ARRAY[e.root_id])

-- name: release_approvals
-- Opens approvals that were held; returns them, as people must be notified.
UPDATE approvals a SET held = false, deadline_at = %(now)s + a.timeout_us
FROM unnest(%(id)s::text[], %(first)s::bigint[], %(last)s::bigint[]) AS x(id, first, last)
WHERE a.execution_id = x.id AND a.n BETWEEN x.first AND x.last AND a.held AND a.status IS NULL RETURNING a.id

-- name: approval
-- Approvals with the names of their workflows; the caller adds conditions, order and lock.
SELECT {a.StoredApproval but workflow}, coalesce((SELECT e.name FROM executions e WHERE e.id = a.execution_id), '') AS workflow
FROM approvals a

-- name: decisions
-- Decisions on these approvals, in the order in which they were made.
SELECT {StoredDecision} FROM approval_decisions
WHERE approval_id = ANY(%(ids)s::text[]) ORDER BY approval_id, n

-- name: insert_decisions
-- Adds decisions of people to approvals, whether they end the approvals or not.
INSERT INTO approval_decisions ({StoredDecision}) SELECT * FROM unnest({%StoredDecision})

-- name: end_approvals
-- Ends open approvals, with the decision that suffices or at their deadline.
-- Also records what lets their executions go on.
WITH ended AS (
  UPDATE approvals a SET status = 5, decision = x.decision, decided_by = x.by, comment = x.comment, ended_at = %(now)s
  FROM unnest(%(id)s::text[], %(decision)s::text[], %(by)s::text[], %(comment)s::text[]) AS x(id, decision, by, comment)
  WHERE a.id = x.id AND a.status IS NULL RETURNING a.id, a.execution_id)
INSERT INTO execution_resume_requests (execution_id, triggered_by, triggered_by_id, trigger_data, reason, requested_at)
SELECT ended.execution_id, 'approval', ended.id, x.data, '', %(now)s
FROM ended JOIN unnest(%(id)s::text[], %(data)s::text[]) AS x(id, data) ON x.id = ended.id

-- name: escalate_approvals
-- Gives open approvals to the role of a later stage, by a decision or at their deadline.
UPDATE approvals a SET role = x.role, timeout_us = x.timeout_us, on_deadline = x.on_deadline, stages = x.stages,
  deadline_at = %(now)s + x.timeout_us, escalated = a.escalated + 1
FROM unnest(%(id)s::text[], %(role)s::text[], %(timeout_us)s::bigint[], %(on_deadline)s::text[], %(stages)s::text[])
  AS x(id, role, timeout_us, on_deadline, stages)
WHERE a.id = x.id AND a.status IS NULL

-- name: due_approvals
-- Approvals whose deadline has passed: they are escalated, or they expire.
SELECT id, execution_id FROM approvals
WHERE ended_at IS NULL AND deadline_at IS NOT NULL AND deadline_at <= %(now)s ORDER BY deadline_at LIMIT %(limit)s

-- name: decision_context
-- What decisions are judged by, read under the locks of their approvals.
-- Returns the time, everyone who took part in what is decided about, the earlier decisions, and
-- which of their tokens were revoked since.
SELECT x.id, now_us(),
  ARRAY(SELECT c.person FROM execution_contributors c
        WHERE c.root_id = (SELECT e.root_id FROM executions e WHERE e.id = x.execution_id)),
  (SELECT coalesce(json_agg(d ORDER BY d.n), '[]') FROM approval_decisions d WHERE d.approval_id = x.id),
  ARRAY(SELECT t.id FROM approval_decisions d JOIN api_tokens t ON t.id = d.token
        WHERE d.approval_id = x.id AND t.revoked_at IS NOT NULL)
FROM unnest(%(id)s::text[], %(execution_id)s::text[]) AS x(id, execution_id)

-- name: asked_for
-- Finds an open approval in or below each execution; then a resume with data is refused.
-- Returns one open approval for each execution that has any.
SELECT x.id, a.id FROM unnest(%(ids)s::text[]) AS x(id), (VALUES ('', ' '), ('.', '/')) AS part(first, last)
CROSS JOIN LATERAL (
  SELECT id FROM approvals
  WHERE execution_id >= x.id || part.first AND execution_id < x.id || part.last AND ended_at IS NULL AND NOT held LIMIT 1) a

-- name: pause
-- Pauses workflows, or changes their pause; tasks and ended workflows are not returned.
UPDATE executions SET paused_at = coalesce(paused_at, %(now)s), paused_reason = %(reason)s, paused_by = %(by)s,
  paused_until = %(now)s + %(timeout_us)s::bigint, paused_then = %(then)s, paused_metadata = %(metadata)s
WHERE id = ANY(%(ids)s::text[]) AND status < 5 AND type = 0 RETURNING id

-- name: pause_after_decision
-- Pauses a workflow whose approval was just decided, if the decider asks for it.
-- A workflow that was paused before keeps its reason.
UPDATE executions SET paused_at = %(now)s, paused_reason = 'approval_decided', paused_by = %(by)s
WHERE id = %(id)s AND status < 5 AND paused_at IS NULL

-- name: unpause
-- Ends pauses on request; an execution that is not paused is not returned.
UPDATE executions SET paused_at = NULL, paused_reason = NULL, paused_by = NULL, paused_until = NULL, paused_then = NULL, paused_metadata = NULL
WHERE id = ANY(%(ids)s::text[]) AND status < 5 AND paused_at IS NOT NULL RETURNING id

-- name: queue_again
-- Moves workflows that are resumed before their first turn back to their own queues.
-- A workflow that was paused before it began must return to its own queue, so that a pause of that
-- queue applies to it, too. Its ready row is locked.
UPDATE ready r SET queue = e.queue, priority = e.priority FROM executions e JOIN workflow_execution_context c ON c.execution_id = ANY(ARRAY[e.id])
WHERE r.id = ANY(%(ids)s::text[]) AND r.state < 1 AND e.id = ANY(ARRAY[r.id]) AND c.seq = 0 RETURNING r.queue

-- name: end_pauses
-- Ends pauses whose time is over, and returns what follows: a resume or a cancel.
-- It checks again under the locks: since it was found, a pause may have been changed, to last
-- longer or to end in another way.
WITH over AS (
  SELECT id, paused_then FROM executions WHERE id = ANY(%(ids)s::text[]) AND status < 5 AND paused_until <= %(now)s ORDER BY id FOR UPDATE)
UPDATE executions e SET paused_at = NULL, paused_reason = NULL, paused_by = NULL, paused_until = NULL, paused_then = NULL, paused_metadata = NULL
FROM over WHERE e.id = ANY(ARRAY[over.id]) RETURNING e.id, over.paused_then

-- name: due_pauses
-- Executions whose pause should be over, for the timer service, which then locks them.
SELECT id, held FROM executions
WHERE paused_until IS NOT NULL AND finished_at IS NULL AND paused_until <= %(now)s ORDER BY paused_until LIMIT %(limit)s

-- name: insert_resumes
-- Records what ended pauses: a person, or the time that was set.
INSERT INTO execution_resume_requests (execution_id, triggered_by, triggered_by_id, trigger_data, reason, metadata, requested_at)
SELECT x.id, x.by, x.by_id, x.data, x.reason, x.metadata, %(now)s
FROM unnest(%(id)s::text[], %(by)s::text[], %(by_id)s::text[], %(data)s::text[], %(reason)s::text[], %(metadata)s::text[])
  AS x(id, by, by_id, data, reason, metadata)

-- name: executed_resumes
-- Marks resume requests that a turn knew of as done, with its error if it failed.
UPDATE execution_resume_requests q SET executed_at = %(now)s, error_message = x.error
FROM unnest(%(id)s::text[], %(upto)s::bigint[], %(error)s::text[]) AS x(id, upto, error)
WHERE q.execution_id = x.id AND q.id <= x.upto AND q.executed_at IS NULL

-- name: resumes
-- A page of the resume requests of one execution, oldest first.
SELECT {ResumeRequest} FROM execution_resume_requests WHERE execution_id = %(id)s AND id > %(after)s ORDER BY id LIMIT %(limit)s

-- name: last_resumes
-- Newest resume requests of one execution, to show what let it go on.
-- Returns the last one, and the last one that came with data and was not an event.
SELECT {ResumeRequest} FROM execution_resume_requests WHERE id = ANY(ARRAY[
  (SELECT id FROM execution_resume_requests WHERE execution_id = %(id)s ORDER BY id DESC LIMIT 1),
  (SELECT id FROM execution_resume_requests WHERE execution_id = %(id)s AND triggered_by <> 'event' AND trigger_data <> 'null'
    ORDER BY id DESC LIMIT 1)])
ORDER BY id

-- name: prune_approvals
-- Deletes the approvals of families that are pruned, given by their roots.
DELETE FROM approvals t USING unnest(%(ids)s::text[]) AS x(id)
WHERE t.execution_id = x.id OR (t.execution_id >= x.id || '.' AND t.execution_id < x.id || '/')

-- name: prune_decisions
-- Deletes the decisions on approvals of families that are pruned, given by their roots.
DELETE FROM approval_decisions t USING unnest(%(ids)s::text[]) AS x(id) WHERE t.approval_id >= x.id || '.' AND t.approval_id < x.id || '/'

-- name: prune_resumes
-- Deletes the resume requests of families that are pruned, given by their roots.
DELETE FROM execution_resume_requests t USING unnest(%(ids)s::text[]) AS x(id)
WHERE t.execution_id = x.id OR (t.execution_id >= x.id || '.' AND t.execution_id < x.id || '/')
