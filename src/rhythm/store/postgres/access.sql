-- name: insert_audit
-- Numbers and hashes are the database's, behind the head, which is the last lock of the transaction: whoever has it waits for nobody.
INSERT INTO audit (at, actor, token, source, action, object, detail)
SELECT coalesce(%(at)s::bigint, now_us()), %(actor)s::text, %(token)s::text, %(source)s::text, x.action, x.object, x.detail
FROM unnest(%(action)s::text[], %(object)s::text[], %(detail)s::text[]) WITH ORDINALITY AS x(action, object, detail, i) ORDER BY x.i

-- name: audit
SELECT {AuditRow} FROM audit

-- name: audit_after
SELECT {AuditRow} FROM audit WHERE n > %(n)s ORDER BY n LIMIT %(limit)s

-- name: insert_token
INSERT INTO api_tokens ({Grant}, taken_roles, created_at, created_by, expires_at)
SELECT {:Grant}, '[]', t.now, %(by)s, t.now + %(expires_us)s::bigint FROM (SELECT now_us() AS now) AS t
ON CONFLICT DO NOTHING
RETURNING {StoredToken}, created_at AS now

-- name: token
SELECT {StoredToken}, now_us() AS now FROM api_tokens WHERE id = %(id)s

-- name: tokens
SELECT {StoredToken}, now_us() AS now FROM api_tokens ORDER BY created_at DESC, id DESC

-- name: share_token
-- Until the end of the transaction it keeps its roles.
SELECT {StoredToken}, now_us() AS now FROM api_tokens WHERE id = %(id)s FOR SHARE

-- name: shared_token
-- A column of what another statement returns: the token, which keeps its roles until the end of the transaction.
, (SELECT row_to_json(t) FROM (SELECT {StoredToken}, now_us() AS now FROM api_tokens WHERE id = %(token)s FOR SHARE) t) AS token

-- name: lock_token
SELECT {StoredToken}, now_us() AS now FROM api_tokens WHERE id = %(id)s FOR UPDATE

-- name: touch_token
UPDATE api_tokens SET last_used_at = now_us() WHERE id = (SELECT id FROM api_tokens WHERE id = %(id)s FOR NO KEY UPDATE SKIP LOCKED)

-- name: revoke_token
UPDATE api_tokens SET revoked_at = %(now)s, revoked_by = %(by)s WHERE id = %(id)s

-- name: change_token
UPDATE api_tokens SET roles = %(roles)s, business_roles = %(business_roles)s, taken_roles = %(taken_roles)s WHERE id = %(id)s
