-- name: audit_head
SELECT n, hash FROM audit_head

-- name: insert_audit
-- It moves the head, too: the triggers of the table see to that.
INSERT INTO audit ({AuditRow}) VALUES ({:AuditRow})

-- name: audit
SELECT {AuditRow} FROM audit

-- name: audit_after
SELECT {AuditRow} FROM audit WHERE n > ? ORDER BY n LIMIT ?

-- name: insert_token
INSERT INTO api_tokens ({Grant}, taken_roles, created_at, created_by, expires_at)
VALUES ({:Grant}, '[]', :now, :by, :now + :expires_us) ON CONFLICT DO NOTHING

-- name: token
SELECT {StoredToken}, :now AS now FROM api_tokens WHERE id = :id

-- name: tokens
SELECT {StoredToken}, :now AS now FROM api_tokens ORDER BY created_at DESC, id DESC

-- name: touch_token
UPDATE api_tokens SET last_used_at = ? WHERE id = ?

-- name: revoke_token
UPDATE api_tokens SET revoked_at = ?, revoked_by = ? WHERE id = ?

-- name: change_token
UPDATE api_tokens SET roles = ?, business_roles = ?, taken_roles = ? WHERE id = ?
