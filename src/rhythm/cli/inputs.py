"""Values on the command line: `-i key=text`, `-i key:=json`, and whole JSON documents."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from rhythm.cli.command import Arguments, UsageError
from rhythm.cli.files import read_source
from rhythm.cli.types import Pair

EXAMPLES = {
    "a number": "-i {}=5", "true or false": "-i {}=true", "a list": """-i '{}=["a", "b"]'""",
    "an object": """-i '{}={{"key": "value"}}'""", "null": "-i {}=null",
}  # fmt: skip


def read_inputs(
    args: Arguments, workflow: str = "", declared: Mapping[str, Any] | None = None
) -> Any:
    """Returns the inputs that -i or --inputs give; an empty object if neither is given.

    A text is read as JSON if the workflow declares that its input is no text. `UsageError` if both
    are given, or a text cannot be read.
    """
    if args.inputs is None:
        pairs = [_as_declared(pair, workflow, declared or {}) for pair in args.input]
        return read_pairs(pairs, "-i")
    if args.input:
        raise UsageError("give the inputs with --inputs or with -i, not with both")
    return args.inputs.value


def _as_declared(pair: Pair, workflow: str, declared: Mapping[str, Any]) -> Pair:
    """Returns a pair with the value that a workflow which declares its inputs would take."""
    part = declared.get("properties", {}).get(pair.key)
    if part is None or pair.text.startswith(f"{pair.key}:"):
        return pair
    from rhythm.engine.payload import parse
    from rhythm.errors import InvalidPayload
    from rhythm.ir.input_schema import words_taken
    from rhythm.lang.flow.types import type_text

    taken = words_taken(part)
    if not taken or "text" in taken:
        return pair
    try:
        return pair._replace(value=parse(pair.value, pair.key))
    except InvalidPayload:
        example = next(EXAMPLES[word] for word in EXAMPLES if word in taken)
        raise UsageError(
            f"-i {pair.text[:80]}: the input `{pair.key}` of workflow `{workflow}` must "
            f"be {type_text(part)}, not text: write it as JSON, such as {example.format(pair.key)}"
        ) from None


def read_payload(args: Arguments, what: str) -> Any:
    """Returns the JSON value of the argument named `what`, or an object made of -i; else None.

    `UsageError` if both are given.
    """
    given = getattr(args, what)
    if given is not None and args.input:
        raise UsageError(f"give the {what} as JSON or with -i, not with both")
    if args.input:
        return read_pairs(args.input, "-i")
    return None if given is None else given.value


def read_document(given: str) -> str:
    """Returns a document's text: as written, from a file (`@FILE`) or standard input (`-`)."""
    if given == "-":
        return read_source("-")
    return read_source(given[1:]) if given.startswith("@") else given


def read_pair(text: str, option: str) -> Pair:
    """Splits `KEY=TEXT` or `KEY:=JSON` into its parts. `UsageError` if it is neither."""
    key, equals, value = text.partition("=")
    if not equals or not key.rstrip(":"):
        raise UsageError(f"{option} {text}: write KEY=TEXT, or KEY:=JSON")
    name = key.rstrip(":")
    if not key.endswith(":"):
        return Pair(name, value, text)
    instead = f"for the text write {option} {name}={value}"
    return Pair(name, read_json(value, f"{option} {text}", name, instead), text)


def read_pairs(given: Sequence[Pair], option: str) -> dict[str, Any]:
    """Returns the pairs as an object. `UsageError` if it cannot be stored, such as for its size."""
    return _storable({pair.key: pair.value for pair in given}, option)


def hint_for_texts(given: Sequence[Pair]) -> str:
    """Returns a hint if `-i n=3` was written, and the number may be meant; else an empty text."""
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
    """Returns the JSON value of a text. `UsageError` if it is not JSON, or cannot be stored.

    `option` names the place of the text in the message. `instead` tells what to write if the user
    meant plain text.
    """
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
    """Returns the pairs, if they can be stored; else raises `UsageError`."""
    from rhythm.engine.payload import dump
    from rhythm.errors import InvalidPayload

    try:
        dump(pairs, "inputs")
    except InvalidPayload as problem:
        raise UsageError(f"{option}: {problem}") from None
    return pairs
