"""Python workflows: a function's source becomes the same syntax tree, and program, as `.flow`.

CPython never runs the body of such a function on the engine. `statements`, `expressions` and the
modules beside them turn Python's tree into the tree of `.flow`. There Python's own meaning is
spelled out (`py.add(a, b)`). From that tree on, both languages share all code (`lang/flow/lower`).
What a snapshot cannot hold is refused, with its place and advice.
"""
