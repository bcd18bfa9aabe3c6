-- The id of a token is part of what its user sends, but is no secret; of the rest only a hash is
-- stored.
CREATE TABLE api_tokens (
  id text COLLATE "C" PRIMARY KEY, name text NOT NULL, hash text NOT NULL,
  roles text NOT NULL, business_roles text NOT NULL,  -- JSON
  taken_roles text NOT NULL,         -- JSON: business roles that it had before
  created_at bigint NOT NULL, created_by text NOT NULL, expires_at bigint, last_used_at bigint,
  revoked_at bigint, revoked_by text
);

-- Rows are only ever added; each has the hash of the one before.
CREATE TABLE audit (
  n bigint PRIMARY KEY, at bigint NOT NULL, actor text COLLATE "C" NOT NULL, token text COLLATE "C", source text NOT NULL,
  action text COLLATE "C" NOT NULL, object text COLLATE "C" NOT NULL, detail text NOT NULL,  -- JSON
  prev text NOT NULL, hash text NOT NULL
);
CREATE INDEX audit_object ON audit (object, n);
CREATE INDEX audit_actor ON audit (actor, n);
CREATE INDEX audit_action ON audit (action, n);
CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'rows of audit are only ever added' USING ERRCODE = 'insufficient_privilege'; END
$$;
CREATE TRIGGER audit_unchanged BEFORE UPDATE OR DELETE OR TRUNCATE ON audit FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();

-- The end of the chain; it only moves on. A transaction that adds to the chain locks this row, as
-- its last lock.
CREATE TABLE audit_head (one smallint PRIMARY KEY CHECK (one = 1), n bigint NOT NULL, hash text NOT NULL) WITH (fillfactor = 10);
CREATE TRIGGER audit_head_forward BEFORE UPDATE ON audit_head FOR EACH ROW WHEN (new.n <= old.n) EXECUTE FUNCTION refuse_audit_change();
CREATE TRIGGER audit_head_kept BEFORE DELETE OR TRUNCATE ON audit_head FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();
INSERT INTO audit_head VALUES (1, 0, '0000000000000000000000000000000000000000000000000000000000000000');
