"""What the parts of `Rhythm` have in common that are not rooms yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rhythm.rights import Scope

if TYPE_CHECKING:
    from rhythm.app.context import AppContext
    from rhythm.app.handle import Id
    from rhythm.ir.program import Program
    from rhythm.settings import Settings
    from rhythm.store.base import Execution, Store


class Part:
    store: Store
    settings: Settings
    _context: AppContext

    def _wake(self) -> None:
        self._context.wake()

    def _execution(self, id: Id) -> Execution:
        return self._context.execution(id)

    def _new_id(self) -> str:
        return self._context.new_id()

    def program(self, name: str, version: str | None = None) -> Program | None:
        raise NotImplementedError

    def _names(self, scope: Scope) -> tuple[str, ...] | None:
        return self._context.names_in(scope)
