"""Running work: `loop` is one worker, its parts are beside it; `services` is what happens by
itself.

A worker lives among others that it does not know:

- A worker does not trust itself longer than the others trust it. It beats every 5 s on a connection
  and in a thread of its own; silent for 30 s, it is dead to the others, and they take its claims.
  So it counts from before the last beat was sent, stops what it runs a margin earlier, and asks
  right before every handler whether it may begin. Claims expire by themselves, too, after 5
  minutes: recovery never depends on a row about the worker.
- Silence of all is nobody's death. Who has not itself been heard for the whole time (the database
  was away) calls nobody dead.
- A death that can be seen is not waited for. A worker that starts looks whether the processes of
  workers on its machine are still there.
- What kills its workers is found without blaming its neighbours. Attempts count in the claim,
  crashes in the rescue. What was there when a worker died begins only after the turns that came
  with it are committed, and has its last chance beside no other suspect.
- Hints, and a look as the net. NOTIFY goes out beside the commit, coalesced; on SQLite others watch
  the file's version. Whoever misses a hint finds the work within a poll interval. An idle worker
  asks the database less than twice a second.
- Whoever plans a turn knows the tasks of the others: each worker declares what it has (queue,
  retries, timeout).

Whatever must happen by itself is a service on one loop in every process that works: timers,
schedules, rescue, the sweep, pruning and forgetting events. Each does one bounded pass and says
when the next is due; one that fails is tried again, ever less often, and stops no other; when each
last succeeded is kept for health. Timers, schedules and rescue need no leader: a slot of a schedule
is one row, written in the transaction that starts its execution and moves the schedule on; what to
do is worked out before, outside of any transaction, and dropped under the lock of the schedule's
row if its revision is another by then; a claim is taken back when it expires, or when its worker
has been silent for too long. The sweep, pruning and forgetting take turns by a lease, which only
saves work. The sweep asks the interpreter about parked workflows, batch by batch: whoever could go
on has lost a wake, is woken, and is told as a bug. What has ended is kept for ever unless a
retention is set; events are kept for seven days.
"""
