"""Values on the command line: `-i key=text`, `-i key:=json`, and whole JSON documents."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from rhythm.cli.files import read_source
from rhythm.cli.options import Arguments, Option, UsageError

INPUT = Option(
    "--input",
    "an input as text; KEY:=JSON gives any JSON value",
    value="KEY=TEXT",
    short="-i",
    many=True,
)
INPUTS = Option(
    "--inputs",
    "all inputs as one JSON value, from a file, or with - from standard input",
    value="JSON|@FILE|-",
)


def read_inputs(args: Arguments) -> Any:
    """The inputs that `-i` or `--inputs` give; an empty object without them."""
    if args.inputs is None:
        return read_pairs(args.input, "-i")
    if args.input:
        raise UsageError("give the inputs with --inputs or with -i, not with both")
    return read_json(_document(args.inputs), "--inputs", "inputs")


def _document(given: str) -> str:
    if given == "-":
        return read_source("-")
    return read_source(given[1:]) if given.startswith("@") else given


def read_pairs(given: Sequence[str], option: str) -> dict[str, Any]:
    """An object of `KEY=TEXT` and `KEY:=JSON`."""
    pairs: dict[str, Any] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key.rstrip(":"):
            raise UsageError(f"{option} {text}: write KEY=TEXT, or KEY:=JSON")
        name = key.rstrip(":")
        instead = f"for the text write {option} {name}={value}"
        pairs[name] = (
            read_json(value, f"{option} {text}", name, instead) if key.endswith(":") else value
        )
    return _storable(pairs, option)


def hint_for_texts(given: Sequence[str]) -> str:
    """A hint for whoever wrote `-i n=3` and meant the number."""
    for text in given:
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


def read_duration(text: str | None, option: str) -> float | None:
    """A length of time in seconds; a number alone is seconds."""
    from rhythm.durations import duration_s

    if text is None:
        return None
    try:
        return duration_s(float(text) if text.replace(".", "", 1).isdecimal() else text)
    except ValueError as problem:
        raise UsageError(f"{option}: {problem}") from None


def _storable(pairs: dict[str, Any], option: str) -> dict[str, Any]:
    from rhythm.engine.payload import dump
    from rhythm.errors import InvalidPayload

    try:
        dump(pairs, "inputs")
    except InvalidPayload as problem:
        raise UsageError(f"{option}: {problem}") from None
    return pairs
