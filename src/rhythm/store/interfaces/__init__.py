"""What the engine asks of a database, in roles: one module and one abstract class for each.

Every method is one transaction: it happened, or it did not. All values are already JSON text or
bytes; a store knows rows, not meanings. Times are microseconds since 1970 on the database's clock;
callers pass durations. The records that a role takes and returns are defined in its module.

The protocol, in short. `ready` holds a row for every workflow that somebody must look at, and for
every task that is queued, delayed or running. A claim draws a `fence` from one sequence. The owner
of a claim writes with a condition on that fence; if no row fits, the claim is lost. Anything that a
workflow may wait for increments `wakes` in its ready row, or creates the row, in the transaction in
which it happens. To park is to delete that row, unless `wakes` has changed. `finish` is the only
way to a terminal status, and it wakes the parent.
"""
