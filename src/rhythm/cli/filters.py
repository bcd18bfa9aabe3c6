"""The filter on the command line: an argument of several words, and what a shell offers for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from rhythm.cli.command import argument
from rhythm.cli.types import Known

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

SIGNS = ":=<>"
NAMES = {"workflow": "workflows", "queue": "queues"}  # fields whose values a database knows


class FilterText(click.ParamType[str]):
    """One word of a filter, or several in quotes."""

    name = "filter"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return offered(ctx, ctx.params.get(param.name or "") or (), incomplete)


class KnownOrFilter(Known):
    """The id of an execution, or with --all a word of a filter."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        if not ctx.params.get("all"):
            return super().shell_complete(ctx, param, incomplete)
        return offered(ctx, ctx.params.get(param.name or "") or (), incomplete)


def offered(
    ctx: click.Context, before: str | Sequence[str], incomplete: str
) -> list[CompletionItem]:
    """Returns what a shell offers for the last word of a filter."""
    from click.shell_completion import CompletionItem

    from rhythm.cli.completing import known
    from rhythm.filters.complete import complete

    words = [before] if isinstance(before, str) else list(before)
    begun, rest = _of_bash(words, incomplete)
    texts = complete(begun + rest, lambda field: _values(ctx, field, known))
    return [CompletionItem(text.removeprefix(begun)) for text in texts]


def _values(ctx: click.Context, field: str, known: Any) -> list[str]:
    return known(NAMES[field], ctx, "") if field in NAMES else []


def _of_bash(words: list[str], incomplete: str) -> tuple[str, str]:
    """Returns what bash has taken off the last word, and the rest of it.

    For bash `status:fa` is three words, and it only replaces the last.
    """
    if incomplete in (":", "="):
        words, incomplete = [*words, incomplete], ""
    begun = ""
    if words and words[-1] in (":", "="):
        begun = "".join(words[-2:])
    return begun, incomplete


def is_filter(words: Sequence[str]) -> bool:
    """Tells whether these arguments are a filter, rather than ids."""
    return any(set(word) & set(SIGNS) for word in words)


def filter_of(words: str | Sequence[str] | None) -> str | None:
    """Returns the filter that these arguments are together; None without any."""
    joined = words if isinstance(words, str) or words is None else " ".join(words)
    return joined or None


FILTER = argument(
    "filter",
    type=FilterText(),
    nargs=-1,
    required=False,
    help="which executions, such as 'status:failed attr.customer=acme'; see docs/search.md",
)
EXECUTION_OR_FILTER = argument(
    "id",
    type=KnownOrFilter("executions"),
    required=False,
    help="the id of an execution; with --all: a filter, such as 'status:failed age>2h'",
)
EXECUTIONS_OR_FILTER = argument(
    "ids",
    type=KnownOrFilter("executions"),
    nargs=-1,
    required=False,
    help="the ids of executions; with --all: a filter, such as 'status:failed age>2h'",
)
