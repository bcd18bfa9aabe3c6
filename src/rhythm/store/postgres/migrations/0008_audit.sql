-- A new row of the audit must follow the head, and moves it. So a user who may insert cannot put a
-- row beside the chain, before its first row or after a gap, and cannot prevent others from adding
-- theirs. Rows that were inserted before this migration stay; `rhythm audit verify` names them.
ALTER TABLE audit ADD CONSTRAINT audit_counts_from_one CHECK (n > 0) NOT VALID;

-- Fills in number and hashes where they are not given; given ones must be right. It runs with the
-- rights of its owner, who alone may move the head. It refuses any table but `audit`: with a table
-- of their own, other users could use it to move the head without a row.
CREATE FUNCTION add_to_audit() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  head record;
  given record := new;
BEGIN
  IF tg_relid <> 'audit'::regclass THEN
    RAISE EXCEPTION 'rows of audit are only ever added: % is another table', tg_relid::regclass USING ERRCODE = 'insufficient_privilege';
  END IF;
  SELECT n, hash INTO STRICT head FROM audit_head WHERE one = 1 FOR UPDATE;
  new.n := head.n + 1;
  new.prev := head.hash;
  new.hash := encode(sha256(convert_to(format('[%s,%s,%s,%s,%s,%s,%s,%s,%s]', to_json(new.prev), new.n, new.at, to_json(new.actor),
    coalesce(to_json(new.token)::text, 'null'), to_json(new.source), to_json(new.action), to_json(new.object), to_json(new.detail)), 'UTF8')), 'hex');
  IF given.n <> new.n OR given.prev <> new.prev OR given.hash <> new.hash THEN
    RAISE EXCEPTION 'rows of audit are only ever added: each follows the last one, and has its hash' USING ERRCODE = 'insufficient_privilege';
  END IF;
  IF EXISTS (SELECT 1 FROM audit WHERE n = new.n) THEN
    RAISE EXCEPTION 'there is a row % of audit, though only % were written: `rhythm audit verify` tells more', new.n, head.n;
  END IF;
  UPDATE audit_head SET n = new.n, hash = new.hash WHERE one = 1;
  RETURN new;
END
$$;
-- Temporary tables come last: those of the user who inserts must not be taken for ours.
DO $$ BEGIN EXECUTE format('ALTER FUNCTION add_to_audit() SET search_path = %I, pg_temp', current_schema()); END $$;
CREATE TRIGGER audit_follows BEFORE INSERT ON audit FOR EACH ROW EXECUTE FUNCTION add_to_audit();

-- The head may move only within that function, with the rights of the owner, even if other users
-- have been granted UPDATE.
CREATE FUNCTION guard_audit_head() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF pg_trigger_depth() < 2 OR NOT pg_has_role(current_user, (SELECT relowner FROM pg_class WHERE oid = tg_relid), 'USAGE') THEN
    RAISE EXCEPTION 'rows of audit are only ever added: its head moves with them' USING ERRCODE = 'insufficient_privilege';
  END IF;
  RETURN new;
END
$$;
CREATE TRIGGER audit_head_follows BEFORE UPDATE ON audit_head FOR EACH ROW EXECUTE FUNCTION guard_audit_head();
