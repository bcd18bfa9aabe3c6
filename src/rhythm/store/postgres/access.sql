-- name: lock_audit_head
-- The last lock of its transaction: whoever has it waits for nobody.
SELECT n, hash FROM audit_head FOR UPDATE

-- name: insert_audit
WITH moved AS (UPDATE audit_head SET n = %(last)s, hash = %(head)s)
INSERT INTO audit (n, at, actor, token, source, action, object, detail, prev, hash)
SELECT * FROM unnest(%(n)s::bigint[], %(at)s::bigint[], %(actor)s::text[], %(token)s::text[], %(source)s::text[], %(action)s::text[],
  %(object)s::text[], %(detail)s::text[], %(prev)s::text[], %(hash)s::text[])

-- name: audit
SELECT n, at, actor, token, source, action, object, detail, prev, hash FROM audit

-- name: audit_after
SELECT n, at, actor, token, source, action, object, detail, prev, hash FROM audit WHERE n > %(n)s ORDER BY n LIMIT %(limit)s

-- name: insert_token
INSERT INTO api_tokens (id, name, hash, roles, business_roles, taken_roles, created_at, created_by, expires_at, last_used_at, revoked_at, revoked_by)
SELECT %(id)s, %(name)s, %(hash)s, %(roles)s, %(business_roles)s, '[]', t.now, %(by)s, t.now + %(expires_us)s::bigint, NULL, NULL, NULL
FROM (SELECT now_us() AS now) AS t
ON CONFLICT DO NOTHING
RETURNING id, name, hash, roles, business_roles, taken_roles, created_at, created_by, expires_at, last_used_at, revoked_at, revoked_by, created_at

-- name: token
SELECT id, name, hash, roles, business_roles, taken_roles, created_at, created_by, expires_at, last_used_at, revoked_at, revoked_by, now_us()
FROM api_tokens WHERE id = %(id)s

-- name: tokens
SELECT id, name, hash, roles, business_roles, taken_roles, created_at, created_by, expires_at, last_used_at, revoked_at, revoked_by, now_us()
FROM api_tokens ORDER BY created_at DESC, id DESC

-- name: share_token
-- Until the end of the transaction it keeps its roles.
SELECT id, name, hash, roles, business_roles, taken_roles, created_at, created_by, expires_at, last_used_at, revoked_at, revoked_by, now_us()
FROM api_tokens WHERE id = %(id)s FOR SHARE

-- name: lock_token
SELECT id, name, hash, roles, business_roles, taken_roles, created_at, created_by, expires_at, last_used_at, revoked_at, revoked_by, now_us()
FROM api_tokens WHERE id = %(id)s FOR UPDATE

-- name: touch_token
UPDATE api_tokens SET last_used_at = now_us() WHERE id = (SELECT id FROM api_tokens WHERE id = %(id)s FOR NO KEY UPDATE SKIP LOCKED)

-- name: revoke_token
UPDATE api_tokens SET revoked_at = %(now)s, revoked_by = %(by)s WHERE id = %(id)s

-- name: change_token
UPDATE api_tokens SET roles = %(roles)s, business_roles = %(business_roles)s, taken_roles = %(taken_roles)s WHERE id = %(id)s
