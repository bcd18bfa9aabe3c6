"""The README's first screen: what it is, a short program, and a picture. (What its blocks do is
tested with the other pages that are followed.)"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from rhythm.cli.commands.new import ENDING, TEMPLATE
from tests.examples.markdown import ROOT, blocks, text_of
from tests.support.length import long

PICTURE = ROOT / "docs" / "pictures" / "dev.svg"
SMALL = 30_000  # bytes of a picture


def test_first_program_has_at_most_fifteen_lines() -> None:
    first = blocks("README.md")[0]
    assert (first.language, first.name) == ("python", "app.py")
    assert len([line for line in first.text.splitlines() if line.strip()]) <= 15


def test_first_program_is_the_one_that_rhythm_new_writes() -> None:
    """So the sections below work with the project, line by line."""
    assert blocks("README.md")[0].text == of_template("app.py")


def test_test_that_is_shown_is_one_of_those_that_rhythm_new_writes() -> None:
    (shown,) = [block.text for block in blocks("README.md") if block.name == "test_app.py"]
    assert shown in of_template("test_app.py")


def of_template(name: str) -> str:
    return Path(TEMPLATE, f"{name}{ENDING}").read_text(encoding="utf-8")


def test_picture_comes_before_everything_else() -> None:
    first_screen = text_of("README.md").partition("\n## ")[0]
    assert "docs/pictures/dev.svg" in first_screen
    assert len(first_screen.splitlines()) < 35


def test_picture_is_small_and_shows_the_order_that_goes_on() -> None:
    """`python docs/pictures/dev.py` makes it anew."""
    svg = PICTURE.read_text(encoding="utf-8")
    assert len(svg) < SMALL
    shown = text_in(svg)
    for said in ("kill -9", 'charge(order="A1"', 'ship(order="A1")', "completed"):
        assert said in shown
    assert shown.count("→ charge") == 1
    # nothing of another host is loaded
    assert not re.search(r"url\(.?https?:", svg)


@long
def test_picture_is_what_the_script_beside_it_makes(tmp_path: Path) -> None:
    script, made = PICTURE.with_suffix(".py"), tmp_path / "dev.svg"
    subprocess.run([sys.executable, str(script), str(made)], cwd=ROOT, check=True)
    assert text_in(made.read_text("utf-8")) == text_in(PICTURE.read_text("utf-8"))


def text_in(svg: str) -> str:
    """What a picture shows, without times."""
    text = re.sub(r"\s+", " ", "".join(ElementTree.fromstring(svg).itertext()))
    return re.sub(r"\d\d:\d\d:\d\d|\d+ ms", "TIME", text)
