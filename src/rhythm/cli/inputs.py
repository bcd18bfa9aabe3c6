"""Values on the command line: `-i key=text`, `-i key:=json`, and whole JSON documents."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from rhythm.cli.command import Arguments, UsageError
from rhythm.cli.files import read_source
from rhythm.cli.types import Pair


def read_inputs(args: Arguments) -> Any:
    """The inputs that `-i` or `--inputs` give; an empty object without them."""
    if args.inputs is None:
        return read_pairs(args.input, "-i")
    if args.input:
        raise UsageError("give the inputs with --inputs or with -i, not with both")
    return args.inputs.value


def read_payload(args: Arguments, what: str) -> Any:
    """What is sent, as the argument of this name or -i give it."""
    given = getattr(args, what)
    if given is not None and args.input:
        raise UsageError(f"give the {what} as JSON or with -i, not with both")
    if args.input:
        return read_pairs(args.input, "-i")
    return None if given is None else given.value


def read_document(given: str) -> str:
    """The text of a document that is written out, in a file (`@FILE`) or on standard input."""
    if given == "-":
        return read_source("-")
    return read_source(given[1:]) if given.startswith("@") else given


def read_pair(text: str, option: str) -> Pair:
    """`KEY=TEXT` or `KEY:=JSON`, taken apart; `UsageError` if it is neither."""
    key, equals, value = text.partition("=")
    if not equals or not key.rstrip(":"):
        raise UsageError(f"{option} {text}: write KEY=TEXT, or KEY:=JSON")
    name = key.rstrip(":")
    if not key.endswith(":"):
        return Pair(name, value, text)
    instead = f"for the text write {option} {name}={value}"
    return Pair(name, read_json(value, f"{option} {text}", name, instead), text)


def read_pairs(given: Sequence[Pair], option: str) -> dict[str, Any]:
    """An object of pairs, of a size that can be stored."""
    return _storable({pair.key: pair.value for pair in given}, option)


def hint_for_texts(given: Sequence[Pair]) -> str:
    """A hint for whoever wrote `-i n=3` and meant the number."""
    for _, _, text in given:
        key, _, value = text.partition("=")
        if not key.endswith(":") and (
            value in ("true", "false", "null")
            or value[:1] in "[{"
            or value.lstrip("-")[:1].isdigit()
        ):
            return f"note: -i {text} gives a text; -i {key}:={value} gives the JSON value"
    return ""


def read_json(text: str, option: str, what: str, instead: str = "") -> Any:
    """The JSON value; `option` names where it stands, `instead` says what to write if it was meant
    as text."""
    from rhythm.engine.payload import parse
    from rhythm.errors import InvalidPayload

    try:
        return parse(text, what)
    except InvalidPayload as problem:
        if "is not JSON" not in str(problem):
            raise UsageError(f"{option[:80]}: {problem}") from None
        if "'" in text:
            instead = "JSON has double quotes"
        elif not instead and "\0" not in text and os.path.exists(text):
            instead = f"to read that file write --inputs @{text}"
        raise UsageError(
            f"{option[:80]}: {problem}" + (f"; {instead}" if instead else "")
        ) from None


def _storable(pairs: dict[str, Any], option: str) -> dict[str, Any]:
    from rhythm.engine.payload import dump
    from rhythm.errors import InvalidPayload

    try:
        dump(pairs, "inputs")
    except InvalidPayload as problem:
        raise UsageError(f"{option}: {problem}") from None
    return pairs
