"""The reading of arguments: every spelling of an option, and what is said when one does not fit."""

from __future__ import annotations

from typing import Any

import pytest

from rhythm.cli.options import HelpWanted, Option, UsageError, help_page, parse

OPTIONS = (
    Option("FILE", "a file"),
    Option("--format", "how", choices=("text", "json"), default="text"),
    Option("--input", "a thing", value="KEY=TEXT", short="-i", many=True),
    Option("--fast-forward", "be quick", short="-f"),
)


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["a"], {}),
        (["--format", "json", "a"], {"format": "json"}),
        (["--format=json", "a"], {"format": "json"}),
        (
            ["a", "-i", "x=1", "--input", "y=2", "-iz=3", "--input=w=4"],
            {"input": ["x=1", "y=2", "z=3", "w=4"]},
        ),
        (["a", "-f"], {"fast_forward": True}),
        (["a", "-i", "-1"], {"input": ["-1"]}),
        (["--", "-a"], {"file": "-a"}),
        (["-"], {"file": "-"}),
    ],
)
def test_arguments_are_read(args: list[str], expected: dict[str, Any]) -> None:
    assert (
        vars(parse(OPTIONS, args))
        == {"file": "a", "format": "text", "input": [], "fast_forward": False} | expected
    )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "FILE is missing: a file"),
        (["a", "b"], "`b` is one argument too many"),
        (["a", "--fromat", "json"], "there is no option --fromat; did you mean --format?"),
        (["a", "--zzz"], "there is no option --zzz"),
        (["a", "--format"], "--format needs a value: --format text|json"),
        (["a", "--format", "xml"], "--format is text or json, not xml"),
        (["a", "--fast-forward=yes"], "--fast-forward takes no value"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(args: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(OPTIONS, args)
    assert str(caught.value) == message


def test_help_can_be_asked_for_anywhere() -> None:
    for args in (["-h"], ["a", "--format", "json", "--help"]):
        with pytest.raises(HelpWanted):
            parse(OPTIONS, args)


def test_several_plain_arguments_are_a_list() -> None:
    assert parse((Option("FILES", "files", many=True),), ["a", "b"]).files == ["a", "b"]


def test_help_page_shows_every_option_with_its_default() -> None:
    assert help_page("rhythm x", "Does it.", OPTIONS).splitlines() == [
        "usage: rhythm x FILE [options]",
        "",
        "Does it.",
        "",
        "  FILE                  a file",
        "  --format text|json    how (default: text)",
        "  -i, --input KEY=TEXT  a thing (may be repeated)",
        "  -f, --fast-forward    be quick",
    ]
