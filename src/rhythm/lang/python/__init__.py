"""Python workflows: a function's source becomes the same syntax tree, and program, as `.flow`.

CPython never runs the body of such a function on the engine. `translate` and its siblings turn
Python's tree into the tree of `.flow`, in which Python's own meaning is spelled out (`py.add(a,
b)`); everything below is shared. What cannot be kept in a snapshot is refused, with the place and
the advice.
"""
