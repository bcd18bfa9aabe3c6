"""Runs workflows and tasks: `loop` is one worker, `services` the work in the background.

A worker lives among other workers that it does not know. These are its rules:

- A worker does not trust itself longer than the others trust it. It sends a heartbeat every 5 s, on
  a connection and in a thread of its own. After 30 s without one, the others take it for dead, and
  take its claims. So it counts the time from before its last heartbeat was sent, stops what it runs
  a safety margin earlier, and checks right before every handler whether that may still begin.
  Claims also expire by themselves, after 5 minutes: recovery never depends on the row about the
  worker.
- If all are silent, nobody is dead. A worker whose own heartbeats did not get through for the whole
  time (the database was away) takes no other worker for dead.
- A death that can be seen is not waited for. A worker that starts checks whether the processes of
  other workers on its machine still exist.
- A task that kills its workers is found without blaming the tasks beside it. The claim counts
  attempts, the rescue counts crashes. A task whose worker has died begins only after the turns that
  were claimed with it are committed. Its last attempt runs beside no other suspect.
- A first turn may wait for its task. If nothing but the inputs of the workflow can have led to that
  turn, whoever takes it again asks for the very same task, under the same id. If the task is
  expected to end before the next round, it begins at once, and both turns are one commit (`ahead`).
  What a task is given later follows from results: those are committed before it begins. After a
  death before the first commit, the task goes through the queue, and that death counts.
- Hints make it fast, polling makes it safe. NOTIFY is sent beside the commit, many hints in one; on
  SQLite, workers watch the file. A worker that misses a hint finds the work within a
  poll interval. An idle worker asks the database less than twice a second.
- The worker that plans a turn knows the tasks of the other workers: each worker declares the tasks
  that it has (queue, retries, timeout).

- Nobody waits for what executions say. A turn's lines count once its commit is answered, a task's
  lines go straight to a buffer. Another thread writes them in groups, on a connection of its own.
  A line has an identity, so that a group whose answer was lost is sent again without harm. What
  waits is bounded, and counted where it is dropped: work never stops because of lines.

What must happen by itself is done by services, on one loop in every process that works: timers,
schedules, rescue, the sweeper, the pruner and the deletion of old events. Each service does one
bounded pass, and says when the next one is due. A service that fails is tried again, less and less
often, and stops no other. The time of its last success is kept, for the health check.

Timers, schedules and rescue need no leader. A slot of a schedule is one row, written in the
transaction that starts its execution and moves the schedule to its next slot. What to do about a
slot is worked out before that, outside of any transaction; it is dropped, under the lock of the
schedule's row, if the schedule has another revision by then. A claim is taken back when it expires,
or when its worker has been silent for too long.

The sweeper, the pruner and the deletion of old events and lines run in one process at a time, by a
lease, which only saves work. The sweeper asks the interpreter about parked workflows, batch by
batch. A workflow that could go on has lost a wake: it is woken, and reported as a bug. Executions
that have ended are kept for ever unless a retention is set; events are kept for seven days by
default, lines of logs for thirty.
"""
