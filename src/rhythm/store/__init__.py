"""Where executions live: the interfaces of a store, the rules that both databases share, and each
database.

A store is put together from roles: `store.claims`, `store.turns`, `store.messages` and so on. Each
is an abstract class in `interfaces`, and a module of the same name in `sqlite` and in `postgres`.
What several roles need inside a transaction is in `rows` (starting, waking, ending), `exchange`
(events and the executions that wait for them), `flush` (the group commit) and `auditing` of each
database.

How a turn becomes durable:

- Everything is level-triggered. A wake carries no information. The owner of a workflow re-reads
  the truth: its flags, its children, its timers, its mailbox.
- `ready` is the only table that is claimed: a row for every workflow that somebody must look at,
  and for every task that is queued, delayed or running. Whatever a workflow may wait for counts up
  `wakes` of its row, or makes the row, in the same transaction. Parking is the conditional delete
  of the row, so no wake is lost between looking and parking.
- Two guards on a turn: `seq` refuses the same turn twice, `fence` refuses an owner that was
  replaced. A claim draws its fence from one sequence. Taking a claim away raises the fence of the
  context.
- The owner runs what it awaits. A worker that owns a workflow runs a lone task, or a small `all`
  of tasks, itself: no queue row, no second claim. The row is written when the task ends, must be
  retried, or lasts longer than a second.
- One gate for every value. What enters the store goes through `engine/payload`: a small plain value
  costs one check; any other is taken apart, and refused with the path to what is wrong. The
  interpreter's own values have been checked by its limits. Both databases hold JSON as text, so
  they cannot disagree about it.
- A snapshot is as large as it must be: plain below 2 KiB, compressed above (the first byte says
  which), and over 256 KiB in table `blobs`, in place of the one before and in the same transaction.
- An event meets a wait under one lock. Publishers, and workflows that begin to wait, lock the row
  of the event's type before anything else, and look in the next statement: the second of two sees
  the first. A wait is one row: an event, its deadline or a cancel ends it, whichever is first. An
  event counts for executions that started before it; each sees it once. The workflows that are
  registered for it (`event_triggers`) start in its transaction, under a key made of its id.
- Terminate needs no turn. It raises the fences of the named executions and takes their next turn
  itself, and leaves a mark (`terminations`): nothing below a mark commits a turn that needs a lock,
  or delivers a result. What is below ends in passes, parents first, each pass its own bounded
  transaction; a pass that finds nothing deletes the mark. A worker that starts a child meanwhile
  has either lost its claim, or a later pass finds the child. If the process of a terminate is
  killed, the services finish it. It is stronger than a cancel, which only asks.
- A family is bounded by its live executions. An id has a dot for every generation, so the
  interpreter knows the depth. Starts are counted per root (`families`). Small turns are counted by
  samples, drawn from the turn's own id and seq, so that the turns of one family do not wait for one
  row. When that count is over the limit, the live executions are counted, and only if they are too
  many is the turn refused: then the execution fails with the limit.
- A hint is only a hint. A process that leaves something to claim sends a hint after its commit,
  from another thread, many in one (`hints`). Nothing depends on it: workers poll for work now and
  then, always when they begin to listen, and after every lost connection.
- No answer is not a failure. A commit whose answer is lost is found by its witness, the history row
  with its fence; what is not there is sent again.

What people do:

- An approval is a row beside the execution that waits for it (`approvals`). A decision, its
  deadline or a cancel ends it, whichever is first, and wakes the execution in the same transaction,
  like anything else it may wait for. On PostgreSQL a decision wakes the execution first: its ready
  row puts decisions that are made at once in an order. A refusal undoes the wake.
- Who may decide is one pure function (`store/approvals.judge`), called under the lock of the row,
  with the roles that the actor holds at that moment and the hash of what was shown.
- A pause is a flag. The owner of the workflow takes no turn while it is set. Results, signals,
  events and decisions still come in, and timers and deadlines go on. A resume clears the flag and
  wakes the workflow.
- Whatever lets a paused execution go on leaves a row (`execution_resume_requests`). The turn that
  saw the row marks it as done, with the error if the execution failed in that turn.
- Deadlines are timers: approvals that expire or escalate and pauses that end are fired by the same
  service, on the database's clock.

Who acts:

Over HTTP a token says who acts and with which `permissions`. Everywhere else the caller,
who has access to the database, says who acts. Either way an `Actor` comes with the call down to the
store, and the last thing that the transaction does is `record` of its auditor. It reads the token
once more, under a lock that a change of the token waits for, and adds its rows to the chain, each
with the hash of the one before. The roles that the token had when it was presented come with the
actor (`token_roles`): nothing is committed with a token after its revocation, or after it has lost
one of them. A trigger moves the head of the chain with every row, and refuses a row that does not
follow it. So an act and its record are one commit. The head is always the last lock, so a
transaction that holds it waits for no other.
"""
