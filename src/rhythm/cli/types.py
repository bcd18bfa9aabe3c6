"""Types of the values on the command line.

Each says how a value is read, what the message is if it is not valid, and what a shell offers for
it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from rhythm.cli.command import UsageError, label, one_of

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

LARGEST_NUMBER = 10**18


class Pair(NamedTuple):
    """A key with its value; `text` is both as they were written."""

    key: str
    value: Any
    text: str


class GivenJson(NamedTuple):
    """A JSON value that was given. It may be null, which is not the same as no value."""

    value: Any


class Seconds(float):
    """A length of time in seconds; `text` is how it was written."""

    text: str

    def __new__(cls, seconds: float, text: str) -> Seconds:
        made = super().__new__(cls, seconds)
        made.text = text
        return made


class OneOf(click.Choice[str]):
    """One of several words."""

    def __init__(self, *words: str) -> None:
        super().__init__(words)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return "|".join(self.choices)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.choices:
            raise UsageError(f"{label(param)} is {one_of(self.choices)}, not {value}")
        return str(value)


class Whole(click.ParamType[int]):
    """A whole number from `least` to `most`; `words` describe that in messages."""

    name = "n"

    def __init__(
        self, words: str = "a whole number", *, least: int = 0, most: int = LARGEST_NUMBER
    ) -> None:
        self.words, self.least, self.most = words, least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value)
        digits = text.removeprefix("-") if self.least < 0 else text
        if digits.isascii() and digits.isdecimal() and len(digits) < len(str(LARGEST_NUMBER)):
            number = int(text)
            if self.least <= number <= self.most:
                return number
        raise UsageError(f"{label(param)} is {self.words}, not {text}")


class Port(Whole):
    """A port of TCP; 0 stands for any that is free."""

    name = "port"

    def __init__(self) -> None:
        super().__init__("a number from 0 to 65535", most=65535)


class Duration(click.ParamType[Seconds]):
    """A length of time: `90s`, `1h30m`.

    A number alone means seconds; it is refused if `unit` is true.
    """

    name = "duration"

    def __init__(self, *, unit: bool = False) -> None:
        self.unit = unit

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Seconds:
        from rhythm.durations import duration_s

        number = not self.unit and value.replace(".", "", 1).isdecimal()
        try:
            return Seconds(duration_s(float(value) if number else value), value)
        except ValueError as problem:
            raise UsageError(f"{label(param)}: {problem}") from None


class KeyValue(click.ParamType[Pair]):
    """`KEY=TEXT`, or `KEY:=JSON` for any JSON value."""

    name = "key=text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Pair:
        from rhythm.cli.inputs import read_pair

        assert param is not None
        return read_pair(value, min(param.opts, key=len))


class SignalValue(click.ParamType[Pair]):
    """`NAME=JSON`; `NAME` alone is a signal without a payload."""

    name = "name=json"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Pair:
        from rhythm.cli.inputs import read_json

        name, equals, payload = value.partition("=")
        if not name:
            raise UsageError(f"{label(param)} {value}: write NAME=JSON")
        instead = f"for the text write {label(param)} '{name}=\"{payload}\"'"
        where = f"{label(param)} {value}"
        return Pair(name, read_json(payload, where, name, instead) if equals else None, value)


class JsonValue(click.ParamType[GivenJson]):
    """A JSON value, written as the argument itself."""

    name = "json"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> GivenJson:
        from rhythm.cli.inputs import read_json

        name = label(param)
        return GivenJson(read_json(value, name, name.lower(), f"for the text write '\"{value}\"'"))


class JsonDocument(click.ParamType[GivenJson | None]):
    """A JSON value: the argument itself, or in a file (`@FILE`), or on standard input (`-`)."""

    name = "json|@file|-"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> GivenJson | None:
        from rhythm.cli.inputs import read_document, read_json

        # a shell asks for completions, and standard input is the shell's own
        if ctx is not None and ctx.resilient_parsing:
            return None
        name = label(param)
        return GivenJson(read_json(read_document(value), name, name.lstrip("-")))


class Text(click.ParamType[str]):
    """Any text; a shell offers the words that it was made with."""

    name = "text"

    def __init__(self, *offered: str) -> None:
        self.offered = offered

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(word) for word in self.offered if word.startswith(incomplete)]


class FileName(click.ParamType[str]):
    """The name of a file; a shell offers the files that exist."""

    name = "file"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]


class Known(click.ParamType[str]):
    """The id or name of something in the database; a shell offers those that exist.

    `files`: it may also be a workflow file, and a shell offers those, too.
    """

    name = "name"

    def __init__(self, kind: str, *, files: bool = False) -> None:
        self.kind, self.files = kind, files

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from glob import escape, glob

        from click.shell_completion import CompletionItem

        from rhythm.cli.completing import known

        names = known(self.kind, ctx, incomplete)
        if not self.files:
            return [CompletionItem(name) for name in names]
        # a shell lists files itself only if we offer nothing else
        items = [CompletionItem(name) for name in (*names, *glob(f"{escape(incomplete)}*.flow"))]
        return items or [CompletionItem(incomplete, type="file")]
