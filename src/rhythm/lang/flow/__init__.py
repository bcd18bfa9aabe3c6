"""The `.flow` language.

`check.check_flow` reports what is wrong with a file, `compile.compile_flow` makes programs of it.
"""
