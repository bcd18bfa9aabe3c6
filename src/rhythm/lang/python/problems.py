"""Every code that a diagnostic about a Python workflow can have.

Codes are permanent: a code that is no longer used is not given to something else.
`docs/python-workflows.md` shows an example of each.
"""

from __future__ import annotations

CODES: dict[str, str] = {
    "P001": "a function whose source cannot be read, or that is not `async def`",
    "P002": "a parameter that cannot be an input",
    "P003": "over a limit: size, nesting",
    "P010": "a function or class inside a workflow",
    "P011": "a lambda",
    "P012": "a generator: `yield`, a generator expression",
    "P013": "an import inside a workflow",
    "P014": "`global` or `nonlocal`",
    "P015": "a `with` that is not known",
    "P016": "`async for` over something else than `rhythm.completed`",
    "P017": "a statement that workflows do not have",
    "P020": "a name that nothing has given a value",
    "P021": "a name that may have no value here",
    "P022": "a call of a function that is no task",
    "P023": "a call that blocks or does I/O",
    "P024": "a value of the module that is not JSON",
    "P025": "a change of a value of the module",
    "P030": "a task, workflow or wait that is not awaited",
    "P031": "`await` of something that cannot be awaited",
    "P032": "`await` where the order of evaluation cannot be kept",
    "P033": "arguments that do not fit the task, workflow or function",
    "P034": "an option or argument that cannot work",
    "P040": "a value in two places is changed in place",
    "P041": "a list or dict is changed while a loop walks it",
    "P042": "a change of something that is no variable",
    "P050": "a literal that JSON does not have",
    "P051": "a set",
    "P052": "a tuple that would be seen to be a list",
    "P053": "a key that is not text",
    "P054": "an operator that workflows do not have",
    "P055": "`is` between values",
    "P056": "a slice that cannot be set or deleted",
    "P057": "a view or iterator that is used as a value",
    "P058": "an enumeration, NamedTuple or Decimal that would be seen to be something else",
    "P060": "an attribute of something whose type is not known",
    "P061": "an attribute or method that there is not",
    "P062": "a method that workflows do not have",
    "P063": "a function of Python that workflows do not have",
    "P070": "an exception that cannot be raised or caught here",
    "P071": "cancellation, which cannot be caught",
    "P072": "`raise` outside `except`",
    "P080": "a pattern that `match` does not have here",
    "P090": "a date or time that cannot be kept",
    "P101": "warning: a statement that is never reached",
    "P201": "note: a wait without a timeout",
}

# What is advised where the place itself knows nothing better.
ADVICE: dict[str, str] = {
    "P017": "put this in a task",
    "P020": "define or import it in the module, or pass it as an input",
    "P022": "put this in a task, and await it",
    "P030": "write await before it, or leave it out",
    "P033": "write each argument by its name, as the signature has it",
    "P050": "pass it as text, or make it in a task",
    "P052": "make it a list: list(value)",
    "P053": "use text: str(key)",
    "P061": "keep what you need of it in a variable, or read it in a task",
    "P070": 'write except Exception as e, and raise ValueError("why")',
    "P072": 'write raise ValueError("why")',
    "P090": "keep times as datetime, and durations as timedelta or seconds",
    "P002": "give it a default that is JSON, or none",
}
