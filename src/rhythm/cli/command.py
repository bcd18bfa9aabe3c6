"""Commands, groups, options and arguments: click's classes, with our words for help and mistakes.

A command is a function that is given its arguments as one namespace and returns the exit code. What
it takes is declared above it with `option` and `argument`; `types` has the types of their values.
"""

from __future__ import annotations

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
HELP_COLUMNS = 100  # columns of a help page
SETTINGS: dict[str, Any] = {
    "help_option_names": ["-h", "--help"],
    "max_content_width": HELP_COLUMNS,
}
NAME_COLUMNS = 32  # columns of an option's names, before its help begins on the next line


class UsageError(Exception):
    """What the user asked for cannot be done; the message says what to do instead. `more`: a line
    that follows it."""

    def __init__(self, message: str, more: str = "") -> None:
        super().__init__(message)
        self.more = more


class Option(click.Option):
    """An option whose value is not empty, unless it is a text for people to read."""

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        empty = "" in value if self.multiple and isinstance(value, Sequence) else value == ""
        if empty and self.metavar != "TEXT":
            raise UsageError(needs_value(self, ctx))
        return super().process_value(ctx, value)


class Argument(click.Argument):
    """A plain argument with a line of help."""

    def __init__(self, *declarations: Any, help: str = "", **more: Any) -> None:
        super().__init__(*declarations, **more)
        self.help = help

    def make_metavar(self, ctx: click.Context) -> str:
        choices = isinstance(self.type, click.Choice)
        name = self.type.get_metavar(self, ctx) if choices else self.human_readable_name
        return f"{name} …" if self.nargs != 1 else f"{name}" if self.required else f"[{name}]"


def option(*declarations: str, help: str, **more: Any) -> Callable[[Declared], Declared]:
    """Declares an option of the function below it."""
    return click.option(*declarations, cls=Option, help=help, **more)


def argument(name: str, *, help: str, **more: Any) -> Callable[[Declared], Declared]:
    """Declares a plain argument of the function below it."""
    return click.argument(name, cls=Argument, help=help, **more)


def command(help: str | None, short: str = "") -> Callable[[Run], CliCommand]:
    """Makes a function a command. `help` is its page, `short` its line in a list of commands."""
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
    """A command that has these commands, by the names of their functions or those beside them.

    `given`: options that can also stand before the name of the command. `default`: the one that is
    run without a name.
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
    """The same option, taken by a command that does nothing with it, and not shown there."""
    option = copy(param)
    assert isinstance(option, click.Option)
    option.hidden = True
    return option


def declare(*declarations: Callable[[Any], Any]) -> Callable[[Declared], Declared]:
    """Several declarations as one, in their order."""

    def declared(run: Declared) -> Declared:
        for one in reversed(declarations):
            run = one(run)
        return run

    return declared


class InOurWords(click.Command):
    """Help and mistakes in the words of Rhythm's command line."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return self.read(ctx, args)
        except (click.UsageError, UsageError) as problem:
            raise UsageError(in_our_words(problem, ctx), says_more(ctx)) from None

    def read(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parses the arguments; those that are left."""
        return super().parse_args(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        pieces = [p.make_metavar(ctx) for p in self.params if isinstance(p, Argument)]
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
        """What ends the line that says how to call it."""
        return ("[options]",)


class CliCommand(InOurWords):
    """A command that is given its arguments as one namespace, and returns its exit code."""

    def read(self, ctx: click.Context, args: list[str]) -> list[str]:
        rest = super().read(ctx, args)
        if rest and not ctx.resilient_parsing:
            raise UsageError(f"`{rest[0]}` is one argument too many")
        return rest

    def invoke(self, ctx: click.Context) -> int:
        assert self.callback is not None
        return int(self.callback(Arguments(**(ctx.params | _given_before(ctx)))))


class Group(InOurWords, click.Group):
    """A command that has commands of its own. `default` is the one that is run without a name."""

    def __init__(self, *args: Any, default: str = "", **more: Any) -> None:
        super().__init__(*args, **more)
        self.default, self.no_args_is_help = default, False

    def read(self, ctx: click.Context, args: list[str]) -> list[str]:
        named = any(word in self.commands for word in args)
        if self.default and not named and not ctx.resilient_parsing:
            args = [*args, self.default]
        return super().read(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if ctx.resilient_parsing or self.get_command(ctx, args[0]) is not None:
            return super().resolve_command(ctx, args)
        names = self.list_commands(ctx)
        path = f"{ctx.info_name} " if ctx.parent else ""
        near = nearest(args[0], names)
        what = f"did you mean `{path}{near}`?" if near else f"see {ctx.command_path} --help"
        raise UsageError(f"there is no command `{path}{args[0]}`; {what}")

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.UsageError:  # what its commands refuse is in our words already
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
    """The context of a command below this one, by the names that lead to it."""
    for name in names:
        group = ctx.command
        found = group.resolve_command(ctx, [name])[1] if isinstance(group, Group) else None
        if found is None:
            raise UsageError(f"{ctx.command_path} has no commands, and so no `{name}`")
        ctx = click.Context(found, parent=ctx, info_name=name, max_content_width=HELP_COLUMNS)
    return ctx


def _given_before(ctx: click.Context) -> dict[str, Any]:
    """The options that were given to the group, before the name of this command, and not again."""
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
    """What is wrong with the arguments, and what to do."""
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
    return f"{label(option)} needs a value: {_names(option, ctx)}"


def says_more(ctx: click.Context) -> str:
    return f"{ctx.command_path} --help says more"


def label(param: click.Parameter | None) -> str:
    """What a parameter is called in messages: `--limit`, `FILE`."""
    if param is None:
        return "the value"
    return max(param.opts, key=len) if isinstance(param, click.Option) else str(param.name).upper()


def one_of(words: Iterable[str]) -> str:
    """`a, b or c`."""
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def _no_such_option(name: str, ctx: click.Context) -> str:
    """What was meant: one that is spelled nearly so, or one of another command of the group."""
    group = ctx.parent.command if ctx.parent else None
    others = group.commands if isinstance(group, click.Group) else {}
    owners = {other: _option(command.params, name) for other, command in others.items()}
    if found := [other for other, param in owners.items() if param]:
        return f"{label(owners[found[0]])} is for {one_of(found)}"
    params = [param for param in ctx.command.get_params(ctx) if isinstance(param, click.Option)]
    near = nearest(name, [each for param in params if not param.hidden for each in param.opts])
    return f"there is no option {name}" + (f"; did you mean {near}?" if near else "")


def _option(params: Sequence[click.Parameter], name: str) -> Any:
    return next((param for param in params if name in param.opts), None)


def _row(param: click.Parameter, ctx: click.Context) -> tuple[str, str]:
    """The line of the help page about a parameter."""
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
    """Wraps a paragraph to the width; examples, which are indented, stay as they are."""
    if text.startswith("  "):
        formatter.write("".join(f"{line}\n" for line in text.split("\n")))
    else:
        formatter.write_text(" ".join(text.split()))
