"""A store whose every call goes through a test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_type_hints

from rhythm.store.interfaces.store import Store

ROLES = frozenset(name for name in get_type_hints(Store) if name not in ("package", "limits"))


class Around:
    """What a test puts in the place of a store, or of one of its roles: `call` gets the name of the
    operation, and what does it."""

    def __init__(
        self, inner: Any, call: Callable[[str, Callable[..., Any]], Callable[..., Any]]
    ) -> None:
        self.inner, self.call = inner, call

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if name in ROLES and isinstance(self.inner, Store):
            return Around(found, self.call)
        return self.call(name, found) if callable(found) else found
