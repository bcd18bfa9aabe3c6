"""The interpreter: `advance(program, snapshot, inputs) -> turn`, a pure function.

No clock, no randomness, no I/O, no logging.
"""
