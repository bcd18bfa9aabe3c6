"""Commands, groups, options and arguments: click's classes, with Rhythm's help and error messages.

A command is a function that gets its arguments as one namespace and returns the exit code. The
options and arguments that it takes are declared above it with `option` and `argument`. The types of
their values are in `types`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from types import SimpleNamespace
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from rhythm.suggest import nearest

Arguments = SimpleNamespace
Run = Callable[[Arguments], int]
Declared = TypeVar("Declared", bound=Callable[..., Any])
HELP_COLUMNS = 100  # the width of a help page
SETTINGS: dict[str, Any] = {
    "help_option_names": ["-h", "--help"],
    "max_content_width": HELP_COLUMNS,
}
# columns for the names of an option; the help of a longer one begins on the next line
NAME_COLUMNS = 32
OF_SERVERS = ("--server", "--token-file")  # a command that does not have them says why
OPTIONS_OF_FILES = {".py": "--app", ".flow": "--workflows"}  # by the ending of a name

# What people write out of habit, for names that are not the most similar ones.
HABITS = {"ls": "list", "stop": "cancel"}


class UsageError(Exception):
    """The command cannot do what the user asked for; the message says what to do instead.

    `more` is a line that is printed after the message.
    """

    def __init__(self, message: str, more: str = "") -> None:
        super().__init__(message)
        self.more = more


class Option(click.Option):
    """An option that refuses an empty value, unless it was declared with `may_be_empty`."""

    def __init__(self, *declarations: Any, may_be_empty: bool = False, **more: Any) -> None:
        super().__init__(*declarations, **more)
        self.may_be_empty = may_be_empty

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        empty = "" in value if self.multiple and isinstance(value, Sequence) else value == ""
        if empty and not self.may_be_empty:
            raise UsageError(needs_value(self, ctx))
        return super().process_value(ctx, value)


class Argument(click.Argument):
    """A positional argument that has a line of help."""

    def __init__(self, *declarations: Any, help: str = "", **more: Any) -> None:
        super().__init__(*declarations, **more)
        self.help = help

    def make_metavar(self, ctx: click.Context) -> str:
        choices = isinstance(self.type, click.Choice)
        name = self.type.get_metavar(self, ctx) if choices else self.human_readable_name
        return f"{name} …" if self.nargs != 1 else f"{name}" if self.required else f"[{name}]"


def option(
    *declarations: str, help: str, may_be_empty: bool = False, **more: Any
) -> Callable[[Declared], Declared]:
    """Declares an option of the command function below it.

    `may_be_empty`: it takes an empty value, too, such as a text for people.
    """
    return click.option(*declarations, cls=Option, help=help, may_be_empty=may_be_empty, **more)


def argument(name: str, *, help: str, **more: Any) -> Callable[[Declared], Declared]:
    """Declares a positional argument of the command function below it."""
    return click.argument(name, cls=Argument, help=help, **more)


def command(help: str | None, short: str = "") -> Callable[[Run], CliCommand]:
    """Makes the function below it a command.

    `help` is its help page, `short` its line in a list of commands.
    """
    return click.command(
        cls=CliCommand,
        help=help,
        short_help=short,
        context_settings={**SETTINGS, "allow_extra_args": True},
    )


def group(
    help: str | None,
    *commands: CliCommand | tuple[str, CliCommand],
    given: Sequence[Callable[[Any], Any]] = (),
    default: str = "",
) -> Group:
    """Returns a command that has these subcommands.

    Each is named by its function, or by the name beside it in a pair. `given`: options that may
    also be written before the name of the subcommand. `default`: the subcommand that runs if none
    is named.
    """
    named = dict(c if isinstance(c, tuple) else (str(c.name), c) for c in commands)
    made: Group = click.group(
        cls=Group, help=help, commands=named, default=default, context_settings=SETTINGS
    )(declare(*given)(lambda **_: None))
    for command in named.values():
        known = {param.name for param in command.params}
        command.params += [_hidden(param) for param in made.params if param.name not in known]
    return made


def _hidden(param: click.Parameter) -> click.Parameter:
    """Returns a copy of the group's option for a subcommand, not shown on its help page.

    The subcommand accepts the option and does nothing with it.
    """
    option = copy(param)
    assert isinstance(option, click.Option)
    option.hidden = True
    return option


def declare(*declarations: Callable[[Any], Any]) -> Callable[[Declared], Declared]:
    """Combines several declarations into one; the help page shows them in this order."""

    def declared(run: Declared) -> Declared:
        for one in reversed(declarations):
            run = one(run)
        return run

    return declared


class InOurWords(click.Command):
    """A click command with Rhythm's own help pages and error messages."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return self.read(ctx, args)
        except (click.UsageError, UsageError) as problem:
            raise UsageError(in_our_words(problem, ctx), says_more(ctx)) from None

    def read(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parses the arguments, and returns those that are left over."""
        return super().parse_args(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        pieces = [p.make_metavar(ctx) for p in self.params if isinstance(p, Argument)]
        pieces += [_names(p, ctx) for p in self.params if isinstance(p, Option) and p.required]
        formatter.write_usage(ctx.command_path, " ".join([*pieces, *self.ending]), "usage: ")
        for paragraph in (self.help or "").strip().split("\n\n"):
            formatter.write_paragraph()
            _write_paragraph(formatter, paragraph)
        rows = [_row(param, ctx) for param in self.params if not getattr(param, "hidden", False)]
        if rows:
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_dl(rows, min(NAME_COLUMNS, formatter.width // 3 + 4))

    @property
    def ending(self) -> Sequence[str]:
        """The words at the end of the usage line."""
        return ("[options]",)


class CliCommand(InOurWords):
    """A command whose function gets the arguments as one namespace and returns the exit code."""

    def read(self, ctx: click.Context, args: list[str]) -> list[str]:
        rest = super().read(ctx, args)
        if rest and not ctx.resilient_parsing:
            raise UsageError(f"`{rest[0]}` is one argument too many{self._meant(rest[0])}")
        return rest

    def _meant(self, word: str) -> str:
        """Returns the advice to name a file by its option, if the command has one for it."""
        import shlex

        found = OPTIONS_OF_FILES.get(os.path.splitext(word)[1])
        known = any(found in param.opts for param in self.params)
        return f"; to use this file, write {found} {shlex.quote(word)}" if known else ""

    def invoke(self, ctx: click.Context) -> int:
        assert self.callback is not None
        return int(self.callback(Arguments(**(ctx.params | _given_before(ctx)))))


class Group(InOurWords, click.Group):
    """A command that has subcommands. `default` is the subcommand that runs if none is named."""

    def __init__(self, *args: Any, default: str = "", **more: Any) -> None:
        super().__init__(*args, **more)
        self.default, self.no_args_is_help = default, False

    def read(self, ctx: click.Context, args: list[str]) -> list[str]:
        if self.default and not ctx.resilient_parsing and not self._names_command(ctx, args):
            args = [*args, self.default]
        return super().read(ctx, args)

    def _names_command(self, ctx: click.Context, args: Sequence[str]) -> bool:
        """Whether a word is left for the name of a subcommand, beside the options and their values.

        The value of an option may well be a word that is also the name of a subcommand.
        """
        _, words, _ = self.make_parser(ctx).parse_args(list(args))
        return bool(words)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if ctx.resilient_parsing or self.get_command(ctx, args[0]) is not None:
            return super().resolve_command(ctx, args)
        names = self.list_commands(ctx)
        path = f"{ctx.info_name} " if ctx.parent else ""
        habit = HABITS.get(args[0])
        near = habit if habit in names else nearest(args[0], names)
        what = f"did you mean `{path}{near}`?" if near else f"see {ctx.command_path} --help"
        raise UsageError(f"there is no command `{path}{args[0]}`; {what}")

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.UsageError:  # no subcommand was named; their own mistakes are our UsageError
            what = one_of(self.list_commands(ctx))
            raise UsageError(f"say what to do: {what}", says_more(ctx)) from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help(ctx, formatter)
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_dl([(name, str(c.short_help)) for name, c in self.commands.items()])
        formatter.write_paragraph()
        formatter.write_text(f"{ctx.command_path} COMMAND --help says more about one of them.")

    @property
    def ending(self) -> Sequence[str]:
        return ("[COMMAND]" if self.default else "COMMAND", "[options]")


def find_command(ctx: click.Context, names: Sequence[str]) -> click.Context:
    """Returns the click context of a subcommand, found by the names that lead to it.

    `UsageError` if there is no such command.
    """
    for name in names:
        group = ctx.command
        found = group.resolve_command(ctx, [name])[1] if isinstance(group, Group) else None
        if found is None:
            raise UsageError(f"{ctx.command_path} has no commands, and so no `{name}`")
        ctx = click.Context(found, parent=ctx, info_name=name, max_content_width=HELP_COLUMNS)
    return ctx


def _given_before(ctx: click.Context) -> dict[str, Any]:
    """Returns the options that were given to the group, before the name of this subcommand.

    An option that was also given to the subcommand is left out: the subcommand's value counts.
    """
    group = ctx.parent
    if group is None:
        return {}
    default = ParameterSource.DEFAULT
    return {
        name: value
        for name, value in group.params.items()
        if name in ctx.params
        and ctx.get_parameter_source(name) == default
        and group.get_parameter_source(name) != default
    }


def in_our_words(problem: Exception, ctx: click.Context) -> str:
    """Returns Rhythm's message for a mistake in the arguments: what is wrong, and what to do."""
    match problem:
        case click.NoSuchOption():
            return _no_such_option(problem.option_name, ctx)
        case click.BadOptionUsage():
            found = _option(ctx.command.get_params(ctx), problem.option_name)
            return f"{label(found)} takes no value" if found.is_flag else needs_value(found, ctx)
        case click.MissingParameter() if isinstance(problem.param, Option | Argument):
            return f"{label(problem.param)} is missing: {problem.param.help}"
        case click.ClickException():
            return problem.format_message()
    return str(problem)


def needs_value(option: click.Option, ctx: click.Context) -> str:
    """Returns the message for an option without a value; it shows how to write the option."""
    return f"{label(option)} needs a value: {_names(option, ctx)}"


def says_more(ctx: click.Context) -> str:
    """Returns the line that names the help page of the command."""
    return f"{ctx.command_path} --help says more"


def label(param: click.Parameter | None) -> str:
    """Returns the name of a parameter as messages write it: `--limit`, `FILE`."""
    if param is None:
        return "the value"
    return max(param.opts, key=len) if isinstance(param, click.Option) else str(param.name).upper()


def one_of(words: Iterable[str]) -> str:
    """Joins the words as in `a, b or c`."""
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def _no_such_option(name: str, ctx: click.Context) -> str:
    """Returns the message for an unknown option.

    It names the subcommands of the same group that have this option, or else an option with a
    similar name.
    """
    group = ctx.parent.command if ctx.parent else None
    others = group.commands if isinstance(group, click.Group) else {}
    owners = {other: _option(command.params, name) for other, command in others.items()}
    if name in OF_SERVERS and (why := _without_server(name, ctx)):
        return why
    if found := [other for other, param in owners.items() if param]:
        return f"{label(owners[found[0]])} is for {one_of(found)}"
    params = [param for param in ctx.command.get_params(ctx) if isinstance(param, click.Option)]
    near = nearest(name, [each for param in params if not param.hidden for each in param.opts])
    return f"there is no option {name}" + (f"; did you mean {near}?" if near else "")


def _without_server(name: str, ctx: click.Context) -> str:
    """Returns why this command has no --server; empty if there is nothing to say about that."""
    from rhythm.cli.remote import without_server

    own = ctx.command.commands if isinstance(ctx.command, click.Group) else {}
    after = [other for other, command in own.items() if _option(command.params, name)]
    if after or ctx.parent is None:
        return f"write {name} after {one_of(after) if after else 'the command'}"
    return without_server(ctx.command_path, name)


def _option(params: Sequence[click.Parameter], name: str) -> Any:
    return next((param for param in params if name in param.opts), None)


def _row(param: click.Parameter, ctx: click.Context) -> tuple[str, str]:
    """Returns the two cells of the help page for a parameter: its names, and its help."""
    if isinstance(param, Argument):
        return param.make_metavar(ctx), str(param.help)
    assert isinstance(param, click.Option)
    default = param.get_default(ctx)
    shown = isinstance(default, str | int) and not isinstance(default, bool)
    more = f" (default: {default})" if shown else " (may be repeated)" if param.multiple else ""
    return _names(param, ctx), f"{param.help}{more}"


def _names(option: click.Option, ctx: click.Context) -> str:
    names = ", ".join(sorted(option.opts, key=len))
    return names if option.is_flag else f"{names} {option.make_metavar(ctx)}"


def _write_paragraph(formatter: click.HelpFormatter, text: str) -> None:
    """Wraps a paragraph to the width of the page; examples, which are indented, are not changed."""
    if text.startswith("  "):
        formatter.write("".join(f"{line}\n" for line in text.split("\n")))
    else:
        formatter.write_text(" ".join(text.split()))
