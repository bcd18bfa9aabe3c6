"""Everything that is refused or warned about before a workflow is registered.

A workflow that passes can be lowered without further checks. It is one resolver in layers, each in
a module of its own: Scopes, Rewrites, Expressions, Operations, Resolver. It uses `arguments`,
`surroundings` and `annotations` to check what is written as literals.
"""
