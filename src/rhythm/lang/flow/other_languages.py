"""What people from Python or JavaScript write, and what to write here instead.

There is one table for each place where it can stand.
"""

from __future__ import annotations

FOREIGN_OPERATORS = {
    "**": "multiply, or compute it in a task",
    "<<": "there are no bit operations; compute it in a task",
    ">>": "there are no bit operations; compute it in a task",
    "&": "`&&` is and; there are no bit operations",
    "|": "`||` is or; there are no bit operations",
    "^": "there are no bit operations; compute it in a task",
    "~": "there are no bit operations; compute it in a task", "::": "write `.`", "->": "write `.`",
    "**=": "multiply, or compute it in a task", "&&=": "write x = x && …",
    "||=": "write x = x || …", "??=": "write x = x ?? …",
    "<<=": "there are no bit operations", ">>=": "there are no bit operations",
    ":=": "write `=`, as a statement of its own",
    "#": "comments begin with `//`", "++": "write `+= 1`", "--": "write `-= 1`",
}  # fmt: skip

# Operators that the parser can replace by one of ours: which one, how it is written, and the help.
FOREIGN_SPELLINGS = {
    "===": ("==", "==", "`==` compares by content and never converts"),
    "!==": ("!=", "!=", "`!=` compares by content and never converts"),
    "and": ("&&", "&&", "write a && b"),
    "or": ("||", "||", "write a || b"),
    "is": ("==", "==", "write a == b"),
    "is not": ("!=", "!=", "write a != b"),
    "not in": ("in", "!(… in …)", "write !(x in xs)"),
}

# The word that the parser goes on with instead, or None; and the help.
FOREIGN_STATEMENTS = {
    "var": ("let", "write `let`"),
    "switch": (None, "write if (…) { … } else if (…) { … } else { … }"),
    "match": (None, "write if (…) { … } else if (…) { … } else { … }"),
    "do": (None, "write while (true) { … if (!condition) { break } }"),
    "foreach": ("for", "write for (x in xs) { … }"),
    "class": (None, "workflows have values, not classes; put behaviour in a task"),
    "import": (None, "tasks are known by their name: await task(\"name\", { … })"),
    "from": (None, "tasks are known by their name: await task(\"name\", { … })"),
    "export": (None, "every workflow of the file is registered; leave `export` out"),
    "def": (None, ("write workflow name(inputs) { … }; functions live in Python, as tasks: await "
            "task(\"name\", { … })")),
    "elif": (None, "write `else if (…) { … }`"),
    "elseif": (None, "write `else if (…) { … }`"),
    "except": (None, "write `catch (e) { … }`"),
    "raise": ("throw", "write `throw`"),
    "pass": (None, "leave it out: a block may be empty"),
    "assert": (None, "write if (!(condition)) { throw \"message\" }"),
    "with": (None, "write try { … } finally { … }, or open and close it in a task"),
    "global": (None, "leave it out: a block sees the variables around it"),
    "nonlocal": (None, "leave it out: a block sees the variables around it"),
}  # fmt: skip

# Words that other languages write before a value.
FOREIGN_PREFIXES = {
    "new": "values are plain data: write { … } or [ … ]",
    "typeof": (
        'compare the value itself (x == null), ask for a key ("id" in x), or convert it: '
        "str(x), int(x), float(x)"
    ),
    "void": "leave it out",
    "yield": "a workflow has one result: return x; on the way it can publish(type, data)",
    "delete": 'write x = omit(x, ["key"])',
    "del": 'write x = null, or x = omit(x, ["key"])',
}

# By the bracket that closes the comprehension.
FOREIGN_COMPREHENSIONS = {
    ")": ("a comprehension stands in brackets", ("write [… for x in xs]",)),
    "}": (
        "an object has no comprehension",
        ("fill it in a loop:", "let object = {}", "for (x in xs) { object[key] = value }"),
    ),
}

# Letters before a quote, as in r"…".
TEXT_PREFIXES = {
    "f": "values stand in text with backticks: `… ${x} …`",
    "r": "leave it out, and write each backslash twice",
    "b": "leave it out: text is Unicode",
    "u": "leave it out: text is Unicode",
}

METHODS = {
    "push": "xs += [x]", "append": "xs += [x]", "extend": "xs += ys", "concat": "xs + ys",
    "includes": "x in xs", "has": "key in object",
    "hasOwnProperty": "key in object", "indexOf": "find_index(xs, x)", "index": "find_index(xs, x)",
    "map": "[… for x in xs]",
    "filter": "[x for x in xs if condition]", "forEach": "for (x in xs) { … }",
    "find": "[x for x in xs if condition]",
    "some": "len([x for x in xs if condition]) > 0",
    "every": "len([x for x in xs if !condition]) == 0",
    "reduce": "a `for` loop with a total", "toUpperCase": "upper(text)",
    "toLowerCase": "lower(text)", "upper": "upper(text)",
    "lower": "lower(text)", "trim": "trim(text)", "strip": "trim(text)",
    "split": "split(text, separator)",
    "join": "join(list, separator)", "replace": "replace(text, old, new)",
    "startsWith": "starts_with(text, prefix)",
    "endsWith": "ends_with(text, suffix)", "startswith": "starts_with(text, prefix)",
    "endswith": "ends_with(text, suffix)",
    "slice": "slice(x, start, end)", "substring": "slice(text, start, end)",
    "pop": "xs = slice(xs, 0, -1)", "sort": "sort(list)",
    "reverse": "reverse(list)", "keys": "keys(object)", "values": "values(object)",
    "items": "entries(object)",
    "entries": "entries(object)", "assign": "merge(a, b)", "update": "x = merge(x, y)",
    "get": "get(object, key, default)",
    "toString": "str(x)", "stringify": "json(x)", "parse": "parse_json(text)", "dumps": "json(x)",
    "loads": "parse_json(text)",
    "floor": "floor(x)", "ceil": "ceil(x)", "round": "round(x)", "abs": "abs(x)",
    "max": "max(a, b)", "min": "min(a, b)",
    "log": "log(message)", "now": "now()", "flat": "flatten(xs)", "format": "`template ${x}`",
    "sleep": "await sleep(duration)",
    "then": "let x = await …", "all": "all([…])", "any": "any([…])", "race": "race([…])",
    "gather": "await all([…])",
    "allSettled": "all([…], { settle: true })",
}  # fmt: skip

WORDS_FROM_ELSEWHERE = {
    "undefined": "null", "None": "null", "nil": "null", "True": "true", "False": "false",
    "Inputs": "inputs", "input": "inputs",
    "Context": "ctx", "context": "ctx", "Math": "floor(x), ceil(x), round(x), abs(x)",
    "JSON": "json(x), parse_json(text)",
    "console": "log(message)", "Date": "now()", "Promise": "all([…]), any([…]), race([…])",
    "this": "the variable's name",
}  # fmt: skip

FUNCTIONS_FROM_ELSEWHERE = {
    "print": "log(message)", "length": "len(x)", "String": "str(x)", "Number": "float(x)",
    "Boolean": "bool(x)",
    "parseInt": "int(x)", "parseFloat": "float(x)", "setTimeout": "await sleep(duration)",
    "delay": "await sleep(duration)",
    "fetch": 'await task("fetch", { url })', "list": "a list [ … ]", "dict": "an object { … }",
    "sorted": "sort(list)",
    "reversed": "reverse(list)", "enumerate": "for (i, x in xs) { … }",
    "isinstance": "a comparison", "super": "", "require": "",
    "any_of": "any([…])", "wait": "await sleep(duration)", "emit": "publish(type, data)",
    "substring": "slice(text, start, end)",
    "filter": "[x for x in xs if condition]", "map": "[… for x in xs]", "pow": "a task",
}  # fmt: skip

PARAMETERS = {
    "context": "ctx",
    "input": "inputs",
    "args": "inputs",
    "params": "inputs",
    "payload": "inputs",
}
