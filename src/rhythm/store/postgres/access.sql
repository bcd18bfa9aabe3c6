-- name: lock_audit_head
-- The last lock of its transaction: whoever has it waits for nobody.
SELECT n, hash FROM audit_head FOR UPDATE

-- name: insert_audit
WITH moved AS (UPDATE audit_head SET n = %(last)s, hash = %(head)s)
INSERT INTO audit (n, at, actor, token, source, action, object, detail, prev, hash)
SELECT * FROM unnest(%(n)s::bigint[], %(at)s::bigint[], %(actor)s::text[], %(token)s::text[], %(source)s::text[], %(action)s::text[],
  %(object)s::text[], %(detail)s::text[], %(prev)s::text[], %(hash)s::text[])

-- name: audit_after
SELECT n, at, actor, token, source, action, object, detail, prev, hash FROM audit WHERE n > %(n)s ORDER BY n LIMIT %(limit)s

-- name: share_token
-- Until the end of the transaction it keeps its roles.
SELECT id, name, hash, roles, business_roles, taken_roles, created_at, created_by, expires_at, last_used_at, revoked_at, revoked_by, now_us()
FROM api_tokens WHERE id = %(id)s FOR SHARE
