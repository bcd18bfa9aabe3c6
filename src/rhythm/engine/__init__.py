"""Decides what becomes durable, without I/O: rows to the inputs of a turn, a turn to its commit.

The store carries it out.
"""
