"""The arguments of a command: a table of what it takes, reading them, and the help page.

`argparse` would do, but importing and filling it costs as much as everything else that `rhythm
check` does together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace

from rhythm.record import Record
from rhythm.suggest import nearest

Arguments = SimpleNamespace


class UsageError(Exception):
    """What the user asked for cannot be done; the message says what to do instead. `more`: a line
    that follows it."""

    def __init__(self, message: str, more: str = "") -> None:
        super().__init__(message)
        self.more = more


class HelpWanted(Exception):
    """`--help` is among the arguments."""


class Option(Record):
    """`--name VALUE`, or a switch if it has no `value`; `many`: it may be given again. Without
    dashes it is a plain argument.

    A plain argument must be given unless it is `optional`.
    """

    name: str
    help: str
    value: str = ""
    short: str = ""
    choices: tuple[str, ...] = ()
    default: str | None = None
    many: bool = False
    optional: bool = False

    @property
    def key(self) -> str:
        return self.name.lstrip("-").replace("-", "_").lower()

    @property
    def shown(self) -> str:
        names = f"{self.short}, {self.name}" if self.short else self.name
        value = "|".join(self.choices) or self.value
        if self.choices and not self.name.startswith("-"):
            return value
        return (
            f"{names} {value}"
            if value
            else f"{names} …"
            if self.many
            else f"[{names}]"
            if self.optional
            else names
        )

    def refuse(self, value: str) -> str:
        """The value, if it is one of the choices."""
        if self.choices and value not in self.choices:
            raise UsageError(f"{self.name} is {' or '.join(self.choices)}, not {value}")
        return value


def parse(options: Sequence[Option], args: Sequence[str]) -> Arguments:
    """The arguments by the names of the options; `UsageError` if they do not fit."""
    plain = [option for option in options if not option.name.startswith("-")]
    found: dict[str, list[str]] = {option.key: [] for option in options}
    rest: list[str] = []
    words = iter(args)
    for word in words:
        if word == "--":
            rest += words
        elif word.startswith("-") and word != "-":
            option, value = _read(options, word, words)
            found[option.key].append(option.refuse(value))
        else:
            rest.append(word)
    for option in plain:
        taken = len(rest) if option.many else 1
        found[option.key], rest = rest[:taken], rest[taken:]
        if not found[option.key] and not option.optional:
            raise UsageError(f"{option.name} is missing: {option.help}")
        for word in found[option.key]:
            option.refuse(word)
    if rest:
        raise UsageError(f"`{rest[0]}` is one argument too many")
    return Arguments(**{option.key: _value(option, found[option.key]) for option in options})


def _read(options: Sequence[Option], word: str, words: Iterator[str]) -> tuple[Option, str]:
    """The option that a word names, and its value: behind `=`, behind the letter, or in the next
    word."""
    if word in ("-h", "--help"):
        raise HelpWanted
    name, equals, value = (
        word.partition("=") if word.startswith("--") else (word[:2], word[2:], word[2:])
    )
    option = next((option for option in options if name in (option.name, option.short)), None)
    if option is None:
        near = nearest(name, [option.name for option in options if option.name.startswith("-")])
        raise UsageError(f"there is no option {name}" + (f"; did you mean {near}?" if near else ""))
    takes_value = bool(option.value or option.choices)
    if equals and not takes_value:
        raise UsageError(f"{option.name} takes no value")
    if not equals and takes_value:
        value = next(words, None) or ""
        if not value:
            raise UsageError(f"{option.name} needs a value: {option.shown}")
    return option, value


def _value(option: Option, given: list[str]) -> object:
    if option.many:
        return given
    if option.value or option.choices or not option.name.startswith("-"):
        return given[-1] if given else option.default
    return bool(given)


def help_page(usage: str, about: str, options: Sequence[Option]) -> str:
    """What `--help` prints."""
    import textwrap

    plain = " ".join(option.shown for option in options if not option.name.startswith("-"))
    width = max(len(option.shown) for option in options) + 2
    lines = [f"usage: {usage} {plain} [options]".replace("  ", " "), "", about.strip(), ""]
    for option in options:
        more = (
            f" (default: {option.default})"
            if option.default
            else " (may be repeated)"
            if option.many and option.value
            else ""
        )
        text = textwrap.wrap(option.help + more, 100 - width)
        lines += [
            f"  {option.shown:<{width}}{text[0]}",
            *(" " * (width + 2) + line for line in text[1:]),
        ]
    return "\n".join(lines)
