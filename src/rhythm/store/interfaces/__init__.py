"""What the engine asks of a database, in roles: one module and one abstract class for each.

Every method is one transaction: it happened, or it did not. All values are already JSON text or
bytes; a store knows rows, not meanings. Times are microseconds since 1970 on the database's clock;
callers pass durations. The records that a role takes and returns are defined in its module.

The protocol, in short. `ready` holds a row for every workflow that somebody must look at, and for
every task that is queued, delayed or running. A claim draws a `fence` from one sequence; whoever
writes as the owner of a claim names it, and zero rows mean that the claim is lost. Whatever a
workflow may be waiting for counts up `wakes` of its ready row, or makes the row, in the same
transaction; parking is the conditional delete of that row. `finish` is the only way to a terminal
status, and it wakes the parent.
"""
