"""Rhythm and its peers, the same jobs in one run: `make bench-peers`, or `python -m bench.peers`.

Each engine has a script in `scripts`, which knows nothing of the others; the runner gives it a job
and an empty database, and takes the figures that it prints.
"""
