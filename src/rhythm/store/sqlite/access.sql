-- name: audit_head
-- Number and hash of the last row of the audit, which the next row follows.
SELECT n, hash FROM audit_head

-- name: insert_audit
-- Adds a row to the audit chain, in the transaction that it records.
-- The triggers of the table move the head with it.
INSERT INTO audit ({AuditRow}) VALUES ({:AuditRow})

-- name: audit
-- Rows of the audit; the caller adds conditions, order and limit.
SELECT {AuditRow} FROM audit

-- name: audit_after
-- Rows of the audit after row n, in the order of the chain, for an export.
SELECT {AuditRow} FROM audit WHERE n > ? ORDER BY n LIMIT ?

-- name: insert_token
-- Creates a token; zero rows: its id is taken.
INSERT INTO api_tokens ({Grant}, taken_roles, created_at, created_by, expires_at)
VALUES ({:Grant}, '[]', :now, :by, :now + :expires_us) ON CONFLICT DO NOTHING

-- name: token
-- Token of an id, and the time now, by which its expiry is judged; no row: there is none.
SELECT {StoredToken}, :now AS now FROM api_tokens WHERE id = :id

-- name: tokens_of
-- Tokens of these ids, valid or not, and the time now: who sends requests.
SELECT {t.StoredToken}, :now AS now FROM json_each(:ids) AS x CROSS JOIN api_tokens t ON t.id = x.value

-- name: tokens
-- All tokens, valid or not, newest first.
SELECT {StoredToken}, :now AS now FROM api_tokens ORDER BY created_at DESC, id DESC

-- name: touch_token
-- Stores when a token was last used.
UPDATE api_tokens SET last_used_at = ? WHERE id = ?

-- name: revoke_token
-- Revokes a token; the caller has seen in this transaction that it is not revoked yet.
UPDATE api_tokens SET revoked_at = ?, revoked_by = ? WHERE id = ?

-- name: change_token
-- Changes the roles of a token; business roles that it loses are kept as taken roles.
UPDATE api_tokens SET roles = ?, business_roles = ?, taken_roles = ? WHERE id = ?
