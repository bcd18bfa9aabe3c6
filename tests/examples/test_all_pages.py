"""Laws of every Markdown file: each block is run by a test, each link leads somewhere, and each
command that is named exists with its options."""

from __future__ import annotations

import fnmatch
import importlib
import re
import shlex
from collections import Counter

import click
import pytest

from rhythm.cli.main import ROOT
from tests.examples.claims import CLAIMS, FOLLOWED, NOT_RUN
from tests.examples.markdown import ROOT as FOLDER
from tests.examples.markdown import anchors, blocks, inline_code, links, pages
from tests.examples.shell import commands_of

PAGES = pages()
# Words that stand for a command or an option in prose: COMMAND, …
PLACEHOLDER = re.compile(r"COMMAND|…|\.\.\.|says more|NAME|ID\b")


def followed(page: str) -> bool:
    return any(fnmatch.fnmatch(page, pattern) for pattern in FOLLOWED)


@pytest.mark.parametrize("page", PAGES)
def test_every_block_is_claimed_by_a_test(page: str) -> None:
    """Claim a new block in tests/examples/claims.py, with the test that runs it."""
    if followed(page):
        return
    found = Counter(block.language for block in blocks(page) if block.language not in NOT_RUN)
    claimed = {
        language: count or found[language] for language, (count, _) in CLAIMS.get(page, {}).items()
    }
    assert dict(found) == claimed, f"the blocks of {page}: {', '.join(map(str, blocks(page)))}"


@pytest.mark.parametrize(
    ("page", "test"),
    sorted({(page, test) for page, kinds in CLAIMS.items() for _, test in kinds.values()}),
)
def test_claims_name_tests_that_read_the_page(page: str, test: str) -> None:
    module, _, name = test.rpartition(".")
    package = "tests.lang" if module.startswith("../lang/") else "tests.examples"
    found = importlib.import_module(f"{package}.{module.rpartition('/')[2]}")
    assert callable(getattr(found, name))
    assert found.__file__ is not None
    with open(found.__file__, encoding="utf-8") as file:
        assert page.rpartition("/")[2] in file.read()


def test_claims_name_pages_that_there_are() -> None:
    assert set(CLAIMS) <= set(PAGES)
    for pattern in FOLLOWED:
        assert fnmatch.filter(PAGES, pattern)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_and_headings(page: str) -> None:
    dead = []
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (FOLDER / page).parent / path if path else FOLDER / page
        if not target.exists():
            dead.append(link)
        elif anchor and target.suffix == ".md":
            name = str(target.resolve().relative_to(FOLDER))
            dead += [link] if anchor not in anchors(name) else []
    assert dead == []


@pytest.mark.parametrize("page", [page for page in PAGES if page != "CHANGELOG.md"])
def test_commands_that_are_named_exist_with_their_options(page: str) -> None:
    """In inline code, and in the blocks for a terminal. (A changelog names what there was.)"""
    named = [code for code in inline_code(page) if code.startswith("rhythm ")]
    for block in blocks(page):
        if block.language in ("console", "sh", ""):
            named += commands_of(block.text)
    wrong = {code: problem for code in named if (problem := problem_with(code))}
    assert wrong == {}


def problem_with(line: str) -> str:
    """What is wrong with a command as it is written, or nothing."""
    try:
        words = shlex.split(re.sub(r" [|&>].*", "", line.replace("\\|", "|")))[1:]
    except ValueError as problem:
        return str(problem)
    command: click.Command = ROOT
    context = click.Context(ROOT)
    while words and isinstance(command, click.Group) and not words[0].startswith("-"):
        name = words.pop(0)
        if PLACEHOLDER.match(name):
            return ""
        group = command
        for choice in name.split("|"):
            found = group.get_command(context, choice)
            if found is None:
                return "" if choice.isupper() else f"there is no command {choice}"
            command = found
    known = {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
    short = {name for name in known if len(name) == 2}
    for word in words:
        name = word.partition("=")[0]
        if not re.match(r"--?[a-z]", name) or name in known or name in ("--help", "-h"):
            continue
        if name[:2] not in short:  # -iKEY=VALUE
            return f"`{line}`: there is no option {name}"
    return ""


def test_a_wrong_command_is_found() -> None:
    assert problem_with("rhythm strat order") == "there is no command strat"
    assert "no option --waiting" in problem_with("rhythm start order --waiting")
    assert problem_with("rhythm queue stop x") == "there is no command stop"
    assert problem_with("rhythm start order --wait -i a=1") == ""


def test_a_dead_link_is_found() -> None:
    assert "settings" not in anchors("docs/concepts.md")
    assert "what-runs" in anchors("docs/concepts.md")
