-- name: insert_audit
-- Numbers and hashes are the database's, behind the head, which is the last lock of the transaction: whoever has it waits for nobody.
INSERT INTO audit (at, actor, token, source, action, object, detail)
SELECT coalesce(%(at)s::bigint, now_us()), %(actor)s::text, %(token)s::text, %(source)s::text, x.action, x.object, x.detail
FROM unnest(%(action)s::text[], %(object)s::text[], %(detail)s::text[]) WITH ORDINALITY AS x(action, object, detail, i) ORDER BY x.i

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

-- name: shared_token
-- A column of what another statement returns: the token, which keeps its roles until the end of the transaction.
, (SELECT json_build_array(id, name, hash, roles, business_roles, taken_roles, created_at, created_by, expires_at, last_used_at, revoked_at,
  revoked_by, now_us()) FROM api_tokens WHERE id = %(token)s FOR SHARE)

-- name: lock_token
SELECT id, name, hash, roles, business_roles, taken_roles, created_at, created_by, expires_at, last_used_at, revoked_at, revoked_by, now_us()
FROM api_tokens WHERE id = %(id)s FOR UPDATE

-- name: touch_token
UPDATE api_tokens SET last_used_at = now_us() WHERE id = (SELECT id FROM api_tokens WHERE id = %(id)s FOR NO KEY UPDATE SKIP LOCKED)

-- name: revoke_token
UPDATE api_tokens SET revoked_at = %(now)s, revoked_by = %(by)s WHERE id = %(id)s

-- name: change_token
UPDATE api_tokens SET roles = %(roles)s, business_roles = %(business_roles)s, taken_roles = %(taken_roles)s WHERE id = %(id)s
