-- name: audit_head
SELECT n, hash FROM audit_head

-- name: insert_audit
INSERT INTO audit (n, at, actor, token, source, action, object, detail, prev, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: move_audit_head
UPDATE audit_head SET n = ?, hash = ?

-- name: audit_after
SELECT n, at, actor, token, source, action, object, detail, prev, hash FROM audit WHERE n > ? ORDER BY n LIMIT ?

-- name: token
SELECT id, name, hash, roles, business_roles, taken_roles, created_at, created_by, expires_at, last_used_at, revoked_at, revoked_by
FROM api_tokens WHERE id = ?
