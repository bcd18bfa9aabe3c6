"""How the cost of work grows with what is in the database, and with how many take part:
`make bench-growth`, or `python -m bench.growth`.

Each row does the same jobs a few times and changes one thing; the first time is what the others are
compared with.
"""
