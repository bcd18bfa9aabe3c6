"""How it is proven.

`tests/worker/test_language.py` runs the language suite on both runners (what waits for something,
on both databases; of that on PostgreSQL `make test` takes samples); `tests/worker/test_runner.py`
kills a real process and lets another one go on;
`tests/engine/test_walking_skeleton.py` interrupts one workflow with every kind of await before,
after and without the answer of its store calls (some of them; `make test-long` takes every third, on
PostgreSQL every seventeenth, and with `RHYTHM_TEST_EVERY=1` every single one), `tests/store` holds both databases to one set of rules, and
`make sim` lets three workers loose on generated programs with crashes, frozen workers, lost answers
and cancels. `make chaos` does so with real processes and databases: workers are killed, frozen,
told to stop, and have wrong clocks; the database goes away; connections are cut around the COMMIT;
tasks take their worker with them; HTTP servers are killed while people decide, signal and pause;
every result is held against a second, simpler meaning of the language. `make test` runs a short
form of some, `make test-long` of each. `make mutants` tests these tests: it takes every guard of the protocol away, one at a
time, and the tests named for it must fail. `make model` proves a model of the owner's path with
Spin.

`make chaos` (`tests/chaos`) is the proof on real processes: kills, a database that is stopped,
freezes, commits cut before and after they arrive, wrong clocks, SIGTERMs (supervisors and start-ups
too), poison, SQLite under kill -9 with its syncs, a thousand asleep, a failover to a synchronous
standby, no NOTIFY, and people: workers and HTTP servers killed in a storm of approvals, signals,
events, pauses and schedules, where each act that was acknowledged must be there once, with one row
in the audit. Rows that only inform say so. Short forms of some run with `make test`, of all with `make test-long`.
"""
