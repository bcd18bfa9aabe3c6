"""Tokens to syntax tree, by recursive descent with recovery.

One parser in layers, each in a module of its own: Cursor, Refusals, Expressions, Statements,
Parser.
"""
