-- Who had a hand in the data of a family of executions (a root and everything below it). Rows are
-- only ever added, so that transactions do not wait for each other; `at` is when data of this
-- person first came in.
CREATE TABLE execution_contributors (
  root_id text COLLATE "C" NOT NULL, person text COLLATE "C" NOT NULL, at bigint NOT NULL,
  PRIMARY KEY (root_id, person)
);

-- JSON: the roles of those who asked for it, a list for each; NULL: a caller with access to the
-- database.
ALTER TABLE executions ADD COLUMN authority text;
-- JSON: the contributors and the authority of the data of an event or a schedule; NULL: nobody's.
ALTER TABLE events ADD COLUMN provenance text;
ALTER TABLE schedules ADD COLUMN provenance text;

-- A vote counts in the stage in which it was given; the stage is how often the approval had been
-- escalated. Votes that counted before still count.
ALTER TABLE approval_decisions ADD COLUMN stage integer NOT NULL DEFAULT -1;
UPDATE approval_decisions d SET stage = a.escalated FROM approvals a WHERE a.id = d.approval_id AND a.role = d.role;
DROP INDEX decisions_once;
CREATE UNIQUE INDEX decisions_once ON approval_decisions (approval_id, actor, role, stage, coalesce(token, '')) WHERE decision <> 'escalate';

-- What was looked up in the audit and in attributes until now is stored once here.
UPDATE schedules s SET provenance = json_build_array(x.people, json_build_array())::text
FROM (SELECT object, json_agg(DISTINCT actor) AS people FROM audit WHERE action IN ('schedule.create', 'schedule.change') GROUP BY object) x
WHERE x.object = s.name;
UPDATE schedules SET provenance = json_build_array(json_build_array(created_by), json_build_array())::text
WHERE provenance IS NULL AND created_by <> '';
UPDATE events e SET provenance = json_build_array(json_build_array(a.actor), json_build_array())::text
FROM audit a WHERE a.object = e.id AND a.action = 'event.publish';

WITH RECURSIVE
  line(root_id, id) AS (
    SELECT id, id FROM executions WHERE parent_id IS NULL
    UNION SELECT line.root_id, e.retry_of FROM line JOIN executions e ON e.id = line.id WHERE e.retry_of IS NOT NULL),
  given(root_id, person) AS (
    SELECT id, started_by FROM executions
    WHERE parent_id IS NULL AND started_by IS NOT NULL AND started_by NOT LIKE 'schedule:%' AND started_by NOT LIKE 'execution:%'
    UNION SELECT e.root_id, q.triggered_by_id FROM execution_resume_requests q JOIN executions e ON e.id = q.execution_id
    WHERE q.triggered_by = 'manual' AND q.trigger_data <> 'null' AND q.triggered_by_id <> ''
    UNION SELECT e.root_id, a.actor FROM audit a JOIN executions e ON e.id = a.object WHERE a.action = 'execution.signal'
    UNION SELECT e.root_id, a.actor FROM event_waits w JOIN executions e ON e.id = w.execution_id
      JOIN audit a ON a.object = w.event_id WHERE a.action = 'event.publish'
    UNION SELECT e.id, a.actor FROM executions e JOIN audit a ON a.object = substr(e.started_by, 10)
    WHERE e.started_by LIKE 'schedule:%' AND a.action IN ('schedule.create', 'schedule.change'))
INSERT INTO execution_contributors (root_id, person, at)
SELECT DISTINCT line.root_id, given.person, now_us() FROM line JOIN given ON given.root_id = line.id;
