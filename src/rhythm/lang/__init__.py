"""The front ends: text to Program.

They share `source` (places and diagnostics) and `rhythm.ir`, and do not know the interpreter.
"""
