-- A new row of the audit must follow the head, and moves it. So a user who may insert cannot put a
-- row beside the chain, before its first row or after a gap, and cannot prevent others from adding
-- theirs. Rows that were inserted before this migration stay; `rhythm audit verify` names them.
CREATE TRIGGER audit_moves_head AFTER INSERT ON audit BEGIN UPDATE audit_head SET n = new.n, hash = new.hash; END;
CREATE TRIGGER audit_head_follows BEFORE UPDATE ON audit_head
WHEN NOT EXISTS (SELECT 1 FROM audit WHERE n = new.n AND n = old.n + 1 AND prev = old.hash AND hash = new.hash)
BEGIN SELECT RAISE(ABORT, 'rows of audit are only ever added: each follows the last one, has its hash, and moves the head'); END;
