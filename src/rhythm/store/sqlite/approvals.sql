-- name: insert_approval
INSERT INTO approvals ({NewApproval}, id, execution_id, requested_by, timeout_us, deadline_at, created_at)
SELECT {:NewApproval}, :id, :execution_id, r.started_by, :timeout_us, CASE WHEN NOT :held THEN :now + :timeout_us END, :now
FROM executions e LEFT JOIN executions r ON r.id = e.root_id WHERE e.id = :execution_id

-- name: cancel_approvals
UPDATE approvals SET status = 7, ended_at = ? WHERE execution_id = ? AND n BETWEEN ? AND ? AND ended_at IS NULL

-- name: release_approvals
UPDATE approvals SET held = 0, deadline_at = :now + timeout_us
WHERE execution_id = :id AND n BETWEEN :first AND :last AND held = 1 AND ended_at IS NULL RETURNING id

-- name: approval
SELECT {a.StoredApproval but workflow}, coalesce(e.name, '') AS workflow
FROM approvals a LEFT JOIN executions e ON e.id = a.execution_id

-- name: decisions
SELECT {StoredDecision} FROM approval_decisions
WHERE approval_id IN (SELECT value FROM json_each(?)) ORDER BY approval_id, n

-- name: insert_decision
INSERT INTO approval_decisions ({StoredDecision}) VALUES ({:StoredDecision})

-- name: end_approval
UPDATE approvals SET status = 5, decision = :decision, decided_by = :by, comment = :comment, ended_at = :now WHERE id = :id AND ended_at IS NULL

-- name: escalate_approval
UPDATE approvals SET role = :role, timeout_us = :timeout_us, on_deadline = :on_deadline, stages = :stages, deadline_at = :now + :timeout_us,
  escalated = escalated + 1
WHERE id = :id AND ended_at IS NULL

-- name: due_approvals
SELECT id FROM approvals WHERE ended_at IS NULL AND deadline_at IS NOT NULL AND deadline_at <= ? ORDER BY deadline_at LIMIT ?

-- name: contributors
-- Everyone who had a hand in what an execution decides about.
SELECT person FROM execution_contributors WHERE root_id = (SELECT root_id FROM executions WHERE id = ?)

-- name: void_tokens
-- Tokens with which something was decided, and which were revoked since.
SELECT t.id FROM approval_decisions d JOIN api_tokens t ON t.id = d.token WHERE d.approval_id = ? AND t.revoked_at IS NOT NULL

-- name: asked_for
-- What people are asked to decide in an execution and below it.
SELECT id FROM approvals
WHERE (execution_id = :id OR (execution_id >= :id || '.' AND execution_id < :id || '/')) AND ended_at IS NULL AND held = 0 ORDER BY id LIMIT 1

-- name: pause
UPDATE executions SET paused_at = coalesce(paused_at, :now), paused_reason = :reason, paused_by = :by, paused_until = :now + :timeout_us,
  paused_then = :then
WHERE id = :id AND status < 5 AND type = 0

-- name: hold
-- What was paused already stays so, for the reason that was given.
UPDATE executions SET paused_at = :now, paused_reason = 'approval_decided', paused_by = :by WHERE id = :id AND status < 5 AND paused_at IS NULL

-- name: unpause
UPDATE executions SET paused_at = NULL, paused_reason = NULL, paused_by = NULL, paused_until = NULL, paused_then = NULL
WHERE id = ? AND status < 5 AND paused_at IS NOT NULL RETURNING id

-- name: queue_again
-- What was paused before it began was not to leave its queue: a pause of that is one of it too.
UPDATE ready SET (queue, priority) = (SELECT e.queue, e.priority FROM executions e WHERE e.id = ready.id)
WHERE id = ? AND state = 0 AND EXISTS (SELECT 1 FROM workflow_execution_context c WHERE c.execution_id = ready.id AND c.seq = 0)

-- name: due_pauses
SELECT id, paused_then FROM executions
WHERE paused_until IS NOT NULL AND finished_at IS NULL AND paused_until <= ? AND paused_at IS NOT NULL ORDER BY paused_until LIMIT ?

-- name: insert_resume
INSERT INTO execution_resume_requests (execution_id, triggered_by, triggered_by_id, trigger_data, reason, requested_at)
VALUES (:id, :by, :by_id, :data, :reason, :now)

-- name: executed_resumes
UPDATE execution_resume_requests SET executed_at = :now, error_message = :error
WHERE execution_id = :id AND id <= :upto AND executed_at IS NULL

-- name: unseen_resumes
UPDATE execution_resume_requests SET error_message = 'the execution ended before it could see this' WHERE execution_id = ? AND executed_at IS NULL

-- name: resumes
SELECT {ResumeRequest} FROM execution_resume_requests INDEXED BY resumes_of WHERE execution_id = ? AND id > ? ORDER BY id LIMIT ?

-- name: last_resumes
-- The last one, and the last that came with data and was no event.
SELECT {ResumeRequest} FROM execution_resume_requests WHERE id IN (
  (SELECT max(id) FROM execution_resume_requests INDEXED BY resumes_of WHERE execution_id = :id),
  (SELECT max(id) FROM execution_resume_requests INDEXED BY resumes_of
    WHERE execution_id = :id AND triggered_by <> 'event' AND trigger_data <> 'null'))
ORDER BY id
