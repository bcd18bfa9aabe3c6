"""Which expressions have effects: they await, change a value in place, or set a variable."""

from __future__ import annotations

import ast

# Methods that give a value, and change nothing.
METHODS = frozenset(
    "upper lower strip lstrip rstrip split rsplit splitlines join replace startswith endswith "
    "find rfind index rindex count title capitalize swapcase casefold center ljust rjust zfill "
    "isdigit isalpha isalnum isspace isupper islower isnumeric isdecimal isidentifier istitle "
    "isascii removeprefix removesuffix partition rpartition expandtabs copy get keys values items "
    "bit_length bit_count is_integer".split()
)
# Methods that change their object. No type of JSON has one of these names for anything else.
CHANGING = frozenset(
    "append extend insert pop remove clear sort reverse update popitem setdefault".split()
)


class Effects:
    """Answers for each node of one function, and remembers the answer.

    `any` and `all` over a generator expression count, too: they stop at the first that decides, so
    they are written as a loop.
    """

    def __init__(self) -> None:
        self._known: dict[int, bool] = {}
        self._nodes: list[ast.AST] = []  # kept, so that no other node gets their identity

    def has(self, node: ast.AST | None) -> bool:
        """Whether evaluating the expression does anything besides giving a value."""
        if node is None:
            return False
        if id(node) not in self._known:
            self._nodes.append(node)
            below = any(self.has(child) for child in ast.iter_child_nodes(node))
            self._known[id(node)] = below or self._is_effect(node)
        return self._known[id(node)]

    @staticmethod
    def _is_effect(node: ast.AST) -> bool:
        if isinstance(node, ast.Await | ast.NamedExpr):
            return True
        if not isinstance(node, ast.Call):
            return False
        if isinstance(node.func, ast.Name) and node.func.id in ("any", "all"):
            return bool(node.args) and isinstance(node.args[0], ast.GeneratorExp)
        name = getattr(node.func, "attr", None) or getattr(node.func, "id", "")
        if name in ("create_task", "ensure_future"):
            return True
        return is_result(node) or (isinstance(node.func, ast.Attribute) and name in CHANGING)

    @staticmethod
    def changed(node: ast.AST) -> set[str]:
        """Returns the variables that the expression sets or changes in place."""
        found = set()
        for each in ast.walk(node):
            if isinstance(each, ast.NamedExpr):
                found.add(each.target.id)
            method = each.func if isinstance(each, ast.Call) else None
            if isinstance(method, ast.Attribute) and method.attr in CHANGING:
                root: ast.AST = method.value
                while isinstance(root, ast.Attribute | ast.Subscript | ast.Call):
                    root = root.func if isinstance(root, ast.Call) else root.value
                found |= {root.id} if isinstance(root, ast.Name) else set()
        return found


def is_result(node: ast.Call) -> bool:
    """Whether the call is `started.result()`: what a task of a TaskGroup has given."""
    return (
        isinstance(node.func, ast.Attribute)
        and node.func.attr == "result"
        and not node.args
        and not node.keywords
    )
