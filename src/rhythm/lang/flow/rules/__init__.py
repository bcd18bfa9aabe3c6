"""Everything that can be refused or warned about before a workflow is registered; what passes can
be lowered without further questions.

One resolver in layers, each in a module of its own: Scopes, Rewrites, Expressions, Operations,
Resolver. It asks `arguments`, `known` and `annotations` about what is written out.
"""
