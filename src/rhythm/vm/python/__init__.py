"""Python's meaning: the builtins `py.*`, which Python workflows are made of.

The values are JSON, held as plain Python objects, so Python's own operators and methods compute the
results. What is added here is what keeps a worker safe: sizes are checked before anything large is
made, work is counted before it is done, and values that share their parts are never compared or
written by Python itself before they were measured. `raised` turns exceptions into faults.
"""
