-- name: insert_audit
-- Adds the acts of a transaction to the audit, in their order, as its last statement.
-- The database draws numbers and hashes under the lock of the head. It is the last lock of a
-- transaction, so a transaction that holds it waits for no other.
INSERT INTO audit (at, actor, token, source, action, object, detail)
SELECT coalesce(%(at)s::bigint, now_us()), x.actor, x.token, x.source, x.action, x.object, x.detail
FROM unnest(%(actor)s::text[], %(token)s::text[], %(source)s::text[], %(action)s::text[], %(object)s::text[], %(detail)s::text[])
  WITH ORDINALITY AS x(actor, token, source, action, object, detail, i) ORDER BY x.i

-- name: audit
-- Rows of the audit; the caller adds conditions, order and limit.
SELECT {AuditRow} FROM audit

-- name: audit_after
-- Rows of the audit after row n, in the order of the chain, for an export.
SELECT {AuditRow} FROM audit WHERE n > %(n)s ORDER BY n LIMIT %(limit)s

-- name: insert_token
-- Creates a token and returns it; no row means that its id is taken.
INSERT INTO api_tokens ({Grant}, taken_roles, created_at, created_by, expires_at)
SELECT {:Grant}, '[]', t.now, %(by)s, t.now + %(expires_us)s::bigint FROM (SELECT now_us() AS now) AS t
ON CONFLICT DO NOTHING
RETURNING {StoredToken}, created_at AS now

-- name: tokens_of
-- Tokens by their ids, valid or not, to find out who sends requests.
SELECT {StoredToken}, now_us() AS now FROM api_tokens WHERE id = ANY(%(ids)s::text[])

-- name: tokens
-- All tokens, valid or not, newest first.
SELECT {StoredToken}, now_us() AS now FROM api_tokens ORDER BY created_at DESC, id DESC

-- name: share_tokens
-- Tokens of the actors, locked so that nobody can change them while the transaction uses them.
-- They keep their roles until the end of the transaction.
SELECT {StoredToken}, now_us() AS now FROM api_tokens WHERE id = ANY(%(ids)s::text[]) ORDER BY id FOR SHARE

-- name: lock_token
-- Locks a token that is to be revoked or changed; waits for transactions that use it.
SELECT {StoredToken}, now_us() AS now FROM api_tokens WHERE id = %(id)s FOR UPDATE

-- name: touch_tokens
-- Records that tokens were used; those whose rows another transaction has locked are left out.
UPDATE api_tokens SET last_used_at = now_us()
WHERE id = ANY(ARRAY(SELECT id FROM api_tokens WHERE id = ANY(%(ids)s::text[]) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED))

-- name: revoke_token
-- Revokes a token whose row is locked.
UPDATE api_tokens SET revoked_at = %(now)s, revoked_by = %(by)s WHERE id = %(id)s

-- name: change_token
-- Changes the roles of a token; business roles that it loses are kept as taken roles.
UPDATE api_tokens SET roles = %(roles)s, business_roles = %(business_roles)s, taken_roles = %(taken_roles)s WHERE id = %(id)s
