-- name: insert_approval
-- Creates an approval for a turn; one that is held has no deadline yet.
INSERT INTO approvals ({NewApproval}, id, execution_id, requested_by, timeout_us, deadline_at, created_at)
SELECT {:NewApproval}, :id, :execution_id, r.started_by, :timeout_us, CASE WHEN NOT :held THEN :now + :timeout_us END, :now
FROM executions e LEFT JOIN executions r ON r.id = e.root_id WHERE e.id = :execution_id

-- name: cancel_approvals
-- Cancels the open approvals of a workflow, in a range of numbers.
UPDATE approvals SET status = 7, ended_at = ? WHERE execution_id = ? AND n BETWEEN ? AND ? AND ended_at IS NULL

-- name: release_approvals
-- Opens approvals that were held; returns them, as people must be notified.
UPDATE approvals SET held = 0, deadline_at = :now + timeout_us
WHERE execution_id = :id AND n BETWEEN :first AND :last AND held = 1 AND ended_at IS NULL RETURNING id

-- name: approval
-- Approvals with the names of their workflows; the reader adds its own conditions and order.
SELECT {a.StoredApproval but workflow}, coalesce(e.name, '') AS workflow
FROM approvals a LEFT JOIN executions e ON e.id = a.execution_id

-- name: decisions
-- Decisions on these approvals, in the order in which they were made.
SELECT {StoredDecision} FROM approval_decisions
WHERE approval_id IN (SELECT value FROM json_each(?)) ORDER BY approval_id, n

-- name: insert_decision
-- Adds a decision of a person to an approval, whether it ends the approval or not.
INSERT INTO approval_decisions ({StoredDecision}) VALUES ({:StoredDecision})

-- name: end_approval
-- Ends an approval by a decision or by its deadline; its execution is woken after it.
UPDATE approvals SET status = 5, decision = :decision, decided_by = :by, comment = :comment, ended_at = :now WHERE id = :id AND ended_at IS NULL

-- name: escalate_approval
-- Gives an approval to the next role that may decide, with a new deadline.
UPDATE approvals SET role = :role, timeout_us = :timeout_us, on_deadline = :on_deadline, stages = :stages, deadline_at = :now + :timeout_us,
  escalated = escalated + 1
WHERE id = :id AND ended_at IS NULL

-- name: due_approvals
-- Approvals whose deadline has passed: they are escalated, or they expire.
SELECT id FROM approvals WHERE ended_at IS NULL AND deadline_at IS NOT NULL AND deadline_at <= ? ORDER BY deadline_at LIMIT ?

-- name: contributors
-- People whose data came into these executions' families: under four eyes they may not decide.
SELECT e.id, c.person FROM json_each(?) AS x CROSS JOIN executions e ON e.id = x.value
CROSS JOIN execution_contributors c ON c.root_id = e.root_id

-- name: void_tokens
-- Tokens of decisions on these approvals that were revoked since: these decisions do not count.
SELECT d.approval_id, t.id FROM json_each(?) AS x CROSS JOIN approval_decisions d ON d.approval_id = x.value
CROSS JOIN api_tokens t ON t.id = d.token WHERE t.revoked_at IS NOT NULL

-- name: asked_for
-- Open approval in an execution or below it, if any: then a resume may not bring data.
SELECT id FROM approvals
WHERE (execution_id = :id OR (execution_id >= :id || '.' AND execution_id < :id || '/')) AND ended_at IS NULL AND held = 0 ORDER BY id LIMIT 1

-- name: pause
-- Pauses a workflow, or changes its pause; zero rows: it has ended, or it is a task.
UPDATE executions SET paused_at = coalesce(paused_at, :now), paused_reason = :reason, paused_by = :by, paused_until = :now + :timeout_us,
  paused_then = :then, paused_metadata = :metadata
WHERE id = :id AND status < 5 AND type = 0

-- name: pause_after_decision
-- Pauses a workflow whose approval was just decided, if the decider asks for it.
-- A workflow that was paused before keeps its reason.
UPDATE executions SET paused_at = :now, paused_reason = 'approval_decided', paused_by = :by WHERE id = :id AND status < 5 AND paused_at IS NULL

-- name: unpause
-- Ends the pause of an execution; no row: it was not paused, or it has ended.
UPDATE executions SET paused_at = NULL, paused_reason = NULL, paused_by = NULL, paused_until = NULL, paused_then = NULL, paused_metadata = NULL
WHERE id = ? AND status < 5 AND paused_at IS NOT NULL RETURNING id

-- name: queue_again
-- Puts a resumed workflow that has not begun back into its own queue.
-- A workflow that was paused before it began must return to its own queue, so that a pause of that
-- queue applies to it, too.
UPDATE ready SET (queue, priority) = (SELECT e.queue, e.priority FROM executions e WHERE e.id = ready.id)
WHERE id = ? AND state = 0 AND EXISTS (SELECT 1 FROM workflow_execution_context c WHERE c.execution_id = ready.id AND c.seq = 0)

-- name: due_pauses
-- Pauses whose time is over, and whether a resume or a cancel follows.
SELECT id, paused_then FROM executions
WHERE paused_until IS NOT NULL AND finished_at IS NULL AND paused_until <= ? AND paused_at IS NOT NULL ORDER BY paused_until LIMIT ?

-- name: insert_resume
-- Records what lets an execution go on: a person, an approval, an event or a timeout.
INSERT INTO execution_resume_requests (execution_id, triggered_by, triggered_by_id, trigger_data, reason, metadata, requested_at)
VALUES (:id, :by, :by_id, :data, :reason, :metadata, :now)

-- name: executed_resumes
-- Marks resume requests that a turn knew of as done, with its error if it failed.
UPDATE execution_resume_requests SET executed_at = :now, error_message = :error
WHERE execution_id = :id AND id <= :upto AND executed_at IS NULL

-- name: unseen_resumes
-- Marks resume requests of executions that end before a turn could see them.
UPDATE execution_resume_requests SET error_message = 'the execution ended before it could see this' WHERE execution_id IN (SELECT value FROM json_each(?)) AND executed_at IS NULL

-- name: resumes
-- A page of the resume requests of one execution, oldest first.
SELECT {ResumeRequest} FROM execution_resume_requests INDEXED BY resumes_of WHERE execution_id = ? AND id > ? ORDER BY id LIMIT ?

-- name: last_resumes
-- Newest resume requests of one execution, to show what let it go on.
-- Returns the last one, and the last one that came with data and was not an event.
SELECT {ResumeRequest} FROM execution_resume_requests WHERE id IN (
  (SELECT max(id) FROM execution_resume_requests INDEXED BY resumes_of WHERE execution_id = :id),
  (SELECT max(id) FROM execution_resume_requests INDEXED BY resumes_of
    WHERE execution_id = :id AND triggered_by <> 'event' AND trigger_data <> 'null'))
ORDER BY id
