"""Attacks on Rhythm by people who may do something, and want more: each scenario plays them and
counts what got through."""
