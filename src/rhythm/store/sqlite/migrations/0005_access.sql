-- The id of a token is part of what its user sends, but is no secret; of the rest only a hash is
-- stored.
CREATE TABLE api_tokens (
  id TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL, hash TEXT NOT NULL,
  roles TEXT NOT NULL, business_roles TEXT NOT NULL,  -- JSON
  taken_roles TEXT NOT NULL,         -- JSON: business roles that it had before
  created_at INTEGER NOT NULL, created_by TEXT NOT NULL, expires_at INTEGER, last_used_at INTEGER,
  revoked_at INTEGER, revoked_by TEXT
);

-- Rows are only ever added; each has the hash of the one before.
CREATE TABLE audit (
  n INTEGER PRIMARY KEY, at INTEGER NOT NULL, actor TEXT NOT NULL, token TEXT, source TEXT NOT NULL, action TEXT NOT NULL,
  object TEXT NOT NULL, detail TEXT NOT NULL,  -- JSON
  prev TEXT NOT NULL, hash TEXT NOT NULL
);
CREATE INDEX audit_object ON audit (object, n);
CREATE INDEX audit_actor ON audit (actor, n);
CREATE INDEX audit_action ON audit (action, n);
CREATE TRIGGER audit_unchanged BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'rows of audit are only ever added'); END;
CREATE TRIGGER audit_once BEFORE INSERT ON audit WHEN EXISTS (SELECT 1 FROM audit WHERE n = new.n)  -- OR REPLACE deletes without a trigger
BEGIN SELECT RAISE(ABORT, 'rows of audit are only ever added'); END;
CREATE TRIGGER audit_kept BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'rows of audit are only ever added'); END;

-- The end of the chain; it only moves on.
CREATE TABLE audit_head (one INTEGER PRIMARY KEY CHECK (one = 1), n INTEGER NOT NULL, hash TEXT NOT NULL);
CREATE TRIGGER audit_head_forward BEFORE UPDATE ON audit_head WHEN new.n <= old.n BEGIN SELECT RAISE(ABORT, 'rows of audit are only ever added'); END;
CREATE TRIGGER audit_head_kept BEFORE DELETE ON audit_head BEGIN SELECT RAISE(ABORT, 'rows of audit are only ever added'); END;
INSERT INTO audit_head VALUES (1, 0, '0000000000000000000000000000000000000000000000000000000000000000');
CREATE TRIGGER audit_head_once BEFORE INSERT ON audit_head BEGIN SELECT RAISE(ABORT, 'rows of audit are only ever added'); END;
