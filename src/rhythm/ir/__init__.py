"""The compiled program: what every front end compiles to and the interpreter runs.

Data only, no behaviour.
"""
