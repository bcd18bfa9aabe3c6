"""Where executions live: what a store does (`interfaces`), the rules above both databases, and each
database.

A store is put together from roles: `store.claims`, `store.turns`, `store.messages` and so on. Each
is an abstract class in `interfaces`, and a module of the same name in `sqlite` and in `postgres`.
What several roles need inside a transaction is in `rows` (starting, waking, ending), `exchange`
(events and those who wait for them), `flush` (the group commit) and `auditing` of each database.

How a turn becomes durable:

- Everything is level-triggered. A wake carries no information. Whoever holds a workflow re-reads
  the truth: its flags, its children, its timers, its mailbox.
- `ready` is the only table that is claimed: a row for every workflow that somebody must look at,
  and for every task that is queued, delayed or running. Whatever a workflow may wait for counts up
  `wakes` of its row, or makes the row, in the same transaction. Parking is the conditional delete
  of the row, so nothing can slip in between.
- Two guards on a turn: `seq` (its own repetition) and `fence` (somebody newer). A claim draws its
  fence from one sequence; who takes a claim away raises the fence of the context.
- The owner runs what it awaits. A worker that holds a workflow runs a lone task, or a small `all`
  of tasks, itself: no queue row, no second claim. The row appears when the task ends, must be
  retried, or lasts longer than a second.
- One gate for every value. What enters the store goes through `engine/payload`: a small plain value
  costs one look, the rest is taken apart, and refused with the path to what is wrong. The
  interpreter's own values have been through its limits. Both databases hold JSON as text, so they
  cannot disagree about it.
- A snapshot is as large as it must be: plain below 2 KiB, compressed above (a first byte tells),
  and over 256 KiB in table `blobs`, in place of the one before and in the same transaction.
- An event meets a wait under one lock. Publishers and those who begin to wait lock the row of the
  event's type before anything else, and look in the next statement: whoever comes second sees the
  first. A wait is one row: an event, its deadline or a cancel ends it, whichever is first. An event
  counts for executions that started before it; each sees it once. The workflows that are registered
  for it (`event_triggers`) start in its transaction, under a key made of its id.
- Terminate needs no turn. It raises the fences of what is named and takes its next turn itself, and
  leaves a mark (`terminations`): nobody below a mark commits a turn that needs a lock, or brings a
  result. What is below ends in passes, parents first, each its own bounded transaction; a pass that
  finds nothing takes the mark away. Whoever makes a child meanwhile has either lost its claim, or
  the child is found by a later pass. A killed terminate is finished by the services. It is the
  other end of a second cancel; a first one only asks.
- A family is bounded by those who live. An id has a dot for every generation, so the interpreter
  knows the depth. Starts are counted per root (`families`), small turns by samples that the turn's
  own id and seq draw, so that the turns of one family do not wait for one row; when that count is
  over the limit, those who live are counted, and only if they are too many is the turn refused:
  then the execution fails with the limit.
- A hint is only a hint. Whoever leaves something to claim tells so after the commit, from another
  thread, many in one (`hints`). Nothing depends on it: workers look for work now and then, always
  when they begin to hear, and after every lost connection.
- No answer is not a failure. A commit whose answer is lost is found by its witness, the history row
  with its fence; what is not there is sent again.

What people do:

- An approval is a row beside the execution that waits for it (`approvals`). A decision, its
  deadline or a cancel ends it, whichever is first, and wakes the execution in the same transaction,
  like anything else it may wait for. On PostgreSQL whoever decides wakes the execution first: its
  ready row orders all who decide at once; a refusal undoes the wake.
- Who may decide is one pure function (`store/approvals.judge`), asked under the lock of the row,
  with the roles that the actor holds at that moment and the hash of what was shown.
- A pause is a flag. Whoever holds the workflow takes no turn while it is set; results, signals,
  events and decisions come in as ever, and timers and deadlines go on. A resume clears the flag and
  wakes.
- Whatever lets a paused execution go on leaves a row (`execution_resume_requests`), and the turn
  that knew of it marks it as done, with its error if it failed with it.
- Deadlines are timers: approvals that expire or escalate and pauses that end are fired by the same
  service, on the database's clock.

Who acts:

Over HTTP a token says who acts and with which rights (`permissions`); everywhere else whoever has
the database says it. Either way an `Actor` comes with the call down to the store, and the last
thing that the transaction does is `record` of its auditor: it looks up the token once more, under a
lock that a change of the token waits for, and adds its rows to the chain, each with the hash of the
one before. The roles that the token had when it was shown come with the actor (`token_roles`):
nothing is committed with a token after its revocation, or after it has lost one of them. A trigger
moves the head of the chain with every row, and refuses one that does not follow it. So an act and
its record are one commit, and since the head is the last lock of all, whoever has it waits for
nobody.
"""
