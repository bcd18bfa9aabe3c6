"""Tokens to syntax tree, by recursive descent with error recovery.

It is one parser in layers, each in a module of its own: Cursor, Refusals, Expressions, Statements,
Parser.
"""
