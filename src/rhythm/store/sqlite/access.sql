-- name: audit_head
SELECT n, hash FROM audit_head

-- name: insert_audit
-- It moves the head, too: the triggers of the table see to that.
INSERT INTO audit (n, at, actor, token, source, action, object, detail, prev, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: audit
SELECT n, at, actor, token, source, action, object, detail, prev, hash FROM audit

-- name: audit_after
SELECT n, at, actor, token, source, action, object, detail, prev, hash FROM audit WHERE n > ? ORDER BY n LIMIT ?

-- name: insert_token
INSERT INTO api_tokens (id, name, hash, roles, business_roles, taken_roles, created_at, created_by, expires_at, last_used_at, revoked_at, revoked_by)
VALUES (:id, :name, :hash, :roles, :business_roles, '[]', :now, :by, :now + :expires_us, NULL, NULL, NULL) ON CONFLICT DO NOTHING

-- name: token
SELECT id, name, hash, roles, business_roles, taken_roles, created_at, created_by, expires_at, last_used_at, revoked_at, revoked_by
FROM api_tokens WHERE id = ?

-- name: tokens
SELECT id, name, hash, roles, business_roles, taken_roles, created_at, created_by, expires_at, last_used_at, revoked_at, revoked_by
FROM api_tokens ORDER BY created_at DESC, id DESC

-- name: touch_token
UPDATE api_tokens SET last_used_at = ? WHERE id = ?

-- name: revoke_token
UPDATE api_tokens SET revoked_at = ?, revoked_by = ? WHERE id = ?

-- name: change_token
UPDATE api_tokens SET roles = ?, business_roles = ?, taken_roles = ? WHERE id = ?
