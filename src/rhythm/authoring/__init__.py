"""What people write Python workflows with: `@rhythm.workflow`, and what they call inside.

The body of a workflow is compiled (`lang/python`), and CPython never runs it on the engine. Only
`workflow.local(…)` does, for debugging: then the functions of this package act through asyncio.
"""
