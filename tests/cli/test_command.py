"""The reading of arguments: every spelling of an option, what is said when one does not fit, and the
help pages."""

from __future__ import annotations

from typing import Any

import click
import pytest

from rhythm.cli.command import SETTINGS, Arguments, UsageError, argument, command, group, option
from rhythm.cli.main import COMMANDS, ROOT, SECTIONS, main
from rhythm.cli.types import Duration, JsonDocument, JsonValue, KeyValue, OneOf, Whole

READ: list[dict[str, Any]] = []


def keep(args: Arguments) -> int:
    READ.append(vars(args))
    return 7


@command("Does it.\n\n  rhythm one a\n  rhythm one b", "do it")
@argument("file", help="a file")
@option("--format", type=OneOf("text", "json"), default="text", help="how")
@option("-i", "--input", type=KeyValue(), multiple=True, help="a thing")
@option("-f", "--fast-forward", is_flag=True, help="be quick")
@option("--limit", type=Whole(), help="how many")
@option("--timeout", type=Duration(), help="how long")
@option("--inputs", type=JsonDocument(), help="all of it")
@option("--reason", metavar="TEXT", may_be_empty=True, help="why")
@option("--title", metavar="TEXT", help="what")
def one(args: Arguments) -> int:
    return keep(args)


@command("Takes many.", "take many")
@argument("files", nargs=-1, required=True, help="files")
@option("--database", metavar="URL", help="where")
def many(args: Arguments) -> int:
    return keep(args)


@command("Takes a value.", "take a value")
@argument("value", type=JsonValue(), required=False, help="any JSON")
def value(args: Arguments) -> int:
    return keep(args)


GROUP = group(
    "All of them.",
    one,
    ("some", many),
    value,
    given=(option("--database", metavar="URL", help="where"),),
    default="value",
)
NOTHING = {
    "file": "a",
    "format": "text",
    "input": (),
    "fast_forward": False,
    "limit": None,
    "timeout": None,
    "inputs": None,
    "reason": None,
    "title": None,
    "database": None,
}


def read(*args: str) -> dict[str, Any]:
    """What the function of a command is given for these arguments."""
    READ.clear()
    with GROUP.make_context("rhythm", list(args)) as ctx:
        assert GROUP.invoke(ctx) == 7
    return READ[0]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["a"], {}),
        (["--format", "json", "a"], {"format": "json"}),
        (["--format=json", "a"], {"format": "json"}),
        (["a", "-f"], {"fast_forward": True}),
        (["--", "-a"], {"file": "-a"}),
        (["-"], {"file": "-"}),
        (["a", "--limit", "12"], {"limit": 12}),
        (["a", "--timeout", "1h30m"], {"timeout": 5400.0}),
        (["a", "--timeout", "2.5"], {"timeout": 2.5}),
        (["a", "--reason", ""], {"reason": ""}),
        (["a", "--reason", "-f"], {"reason": "-f"}),
    ],
)
def test_arguments_are_read(args: list[str], expected: dict[str, Any]) -> None:
    assert read("one", *args) == NOTHING | expected


def test_pairs_are_texts_or_json() -> None:
    given = read(
        "one", "a", "-i", "x=1", "--input", "y:=2", "-iz=a=b", "--input=w:=null", "-i", "v=-1"
    )
    pairs = [(pair.key, pair.value) for pair in given["input"]]
    assert pairs == [("x", "1"), ("y", 2), ("z", "a=b"), ("w", None), ("v", "-1")]


def test_null_is_not_nothing() -> None:
    assert read("one", "a", "--inputs", "null")["inputs"].value is None
    assert read("value", "null")["value"].value is None
    assert read("value")["value"] is None


def test_duration_is_a_number_that_remembers_how_it_was_written() -> None:
    assert read("one", "a", "--timeout", "90m")["timeout"].text == "90m"


def test_option_of_the_group_may_stand_before_or_behind_the_name() -> None:
    assert read("--database", "x", "some", "a", "b") == {"files": ("a", "b"), "database": "x"}
    assert read("some", "a", "b", "--database", "x") == {"files": ("a", "b"), "database": "x"}
    assert read("--database", "x", "some", "a", "--database", "y")["database"] == "y"
    assert read("--database", "x") == {"value": None, "database": "x"}
    assert read("value", "--database", "x") == {"value": None, "database": "x"}


@pytest.mark.parametrize("name", ["one", "some", "value"])
def test_value_of_an_option_is_not_the_name_of_a_command(name: str) -> None:
    assert read("--database", name) == {"value": None, "database": name}
    assert read("--database", name, "some", "a") == {"files": ("a",), "database": name}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["one"], "FILE is missing: a file"),
        (["some"], "FILES is missing: files"),
        (["one", "a", "b"], "`b` is one argument too many"),
        (["one", "a", "--fromat", "json"], "there is no option --fromat; did you mean --format?"),
        (["one", "a", "--zzz"], "there is no option --zzz"),
        (["one", "a", "-z"], "there is no option -z"),
        (["some", "a", "--limit", "3"], "--limit is for one"),
        (["some", "a", "-i", "x=3"], "--input is for one"),
        (["one", "a", "--format"], "--format needs a value: --format text|json"),
        (["one", "a", "--limit", ""], "--limit needs a value: --limit N"),
        (["one", "a", "--title", ""], "--title needs a value: --title TEXT"),
        (["one", "a", "-i", ""], "--input needs a value: -i, --input KEY=TEXT"),
        (["one", "a", "--format", "xml"], "--format is text or json, not xml"),
        (["one", "a", "--help=yes"], "--help takes no value"),
        (["one", "a", "--hepl"], "there is no option --hepl; did you mean --help?"),
        (["one", "a", "--fast-forward=yes"], "--fast-forward takes no value"),
        (["one", "a", "--limit", "-3"], "--limit is a whole number, not -3"),
        (["one", "a", "--limit", "٣"], "--limit is a whole number, not ٣"),
        (["one", "a", "--limit", "9" * 5000], "--limit is a whole number, not " + "9" * 5000),
        (["one", "a", "-i", "x"], "-i x: write KEY=TEXT, or KEY:=JSON"),
        (["one", "a", "-i", "x:=y"], "-i x:=y: x is not JSON: "),
        (["one", "a", "--inputs", "{"], "--inputs: inputs is not JSON: "),
        (["one", "a", "--timeout", "soon"], '--timeout: "soon" is not a duration; '),
        (["vlue"], "there is no command `vlue`; did you mean `value`?"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(args: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(*args)
    assert str(caught.value).startswith(message)
    path = f"rhythm {args[0]}"
    assert caught.value.more in (f"{path} --help says more", "")


def test_help_page_shows_every_option_with_its_default() -> None:
    ctx = click.Context(one, info_name="rhythm one", terminal_width=102)
    assert one.get_help(ctx).splitlines() == [
        "usage: rhythm one FILE [options]",
        "",
        "Does it.",
        "",
        "  rhythm one a",
        "  rhythm one b",
        "",
        "  FILE                   a file",
        "  --format text|json     how (default: text)",
        "  -i, --input KEY=TEXT   a thing (may be repeated)",
        "  -f, --fast-forward     be quick",
        "  --limit N              how many",
        "  --timeout DURATION     how long",
        "  --inputs JSON|@FILE|-  all of it",
        "  --reason TEXT          why",
        "  --title TEXT           what",
    ]


def test_help_page_of_a_group_lists_its_commands() -> None:
    shown = GROUP.get_help(click.Context(GROUP, info_name="rhythm", **SETTINGS))
    assert "usage: rhythm [COMMAND] [options]" in shown
    assert "  one    do it\n  some   take many\n  value  take a value\n" in shown


def test_help_page_fits_a_narrow_terminal() -> None:
    for name in COMMANDS:
        found = ROOT.get_command(click.Context(ROOT), name)
        assert found is not None
        shown = found.get_help(click.Context(found, info_name=f"rhythm {name}", terminal_width=52))
        assert max(len(line) for line in shown.splitlines() if "rhythm " not in line) <= 58, name


def test_an_option_that_must_be_given_is_missed_by_name_and_stands_in_the_usage(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["worker"]) == 2
    assert capsys.readouterr().err == (
        "rhythm: --app is missing: a Python file or module with tasks, such as tasks.py; FILE:NAME "
        "for the application NAME in it\nrhythm worker --help says more\n"
    )
    assert main(["worker", "--help"]) == 0
    assert capsys.readouterr().out.startswith("usage: rhythm worker --app FILE [options]\n")


@pytest.mark.parametrize(
    ("words", "usage"),
    [("token create", "token create NAME [options]"), ("start", "start WORKFLOW [options]")],
)
def test_help_can_be_asked_for_in_two_ways(
    words: str, usage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for asked in (["help", *words.split()], [*words.split(), "-h"]):
        assert main(asked) == 0
        assert capsys.readouterr().out.startswith(f"usage: rhythm {usage}\n")


def test_help_can_be_asked_for_anywhere(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["check", "-h"], ["check", "a.flow", "--format", "json", "--help"]):
        assert main(words) == 0
        assert "usage: rhythm check FILES … [options]" in capsys.readouterr().out


def test_overview_has_every_command_under_what_people_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for words, code in (([], 2), (["--help"], 0), (["-h"], 0), (["help"], 0)):
        assert main(words) == code
        shown = capsys.readouterr().out
        assert [*SECTIONS] == [line for line in shown.splitlines() if line in SECTIONS]
        assert all(f"\n  {name} " in shown for name in COMMANDS)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["chek"], "rhythm: there is no command `chek`; did you mean `check`?\n"),
        (["help", "tokn"], "rhythm: there is no command `tokn`; did you mean `token`?\n"),
        (["help", "check", "x"], "rhythm: rhythm check has no commands, and so no `x`\n"),
        (["token", "lst"], "rhythm: there is no command `token lst`; did you mean `token list`?\n"),
        (["--bogus"], "rhythm: there is no option --bogus\nrhythm --help says more\n"),
        (
            ["token"],
            "rhythm: say what to do: create, list, change or revoke\nrhythm token --help says more\n",
        ),
    ],
)
def test_names_that_nobody_has_are_refused(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (main(words), *capsys.readouterr()) == (2, "", said)


def test_every_command_has_its_help_and_every_option_a_word() -> None:
    for name in COMMANDS:
        found = ROOT.get_command(click.Context(ROOT), name)
        assert found is not None
        assert found.help, name
        for each in (found, *(found.commands.values() if isinstance(found, click.Group) else ())):
            assert all(param.help for param in each.params if isinstance(param, click.Option)), name
