"""Where the token comes from, and that nobody else can read it there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rhythm.remote.address import parse_address
from rhythm.remote.token import PLAIN_HTTP, TOKEN, TOKEN_FILE, find_token, refuse_in_the_clear

SECRET = "rhy_4k7m2c9x0pqa_" + "a" * 52


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "token"
    made.write_text(f"{SECRET}\n")
    made.chmod(0o600)
    return made


def test_file_of_the_option_is_before_that_of_the_variable_and_both_before_the_token_itself(
    file: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.write_text("other")
    other.chmod(0o400)
    both = {TOKEN: "third", TOKEN_FILE: str(other)}
    assert find_token(str(file), both) == SECRET
    assert find_token(None, both) == "other"
    assert find_token(None, {TOKEN: " third\n"}) == "third"
    assert find_token(None, {TOKEN: "", TOKEN_FILE: ""}) is None
    assert find_token(None, {}) is None


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610, 0o777])
def test_file_that_others_can_read_or_change_is_refused(file: Path, mode: int) -> None:
    file.chmod(mode)
    with pytest.raises(ValueError, match=r"others can read or change .*token.*chmod 600"):
        find_token(str(file), {})


@pytest.mark.parametrize(
    "text", ["", "\n", f"{SECRET}\n{SECRET}\n", "a b", "bü", "a\0b", "x" * 5000]
)
def test_what_cannot_be_a_token_is_refused_and_not_shown(file: Path, text: str) -> None:
    file.write_text(text)
    with pytest.raises(ValueError, match="token") as refused:
        find_token(str(file), {})
    assert SECRET not in str(refused.value)
    if text.strip():
        with pytest.raises(ValueError, match=f"the variable {TOKEN} has no token"):
            find_token(None, {TOKEN: text if len(text) < 5000 else "a b"})


def test_what_is_no_file_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"cannot read the token in .*: No such file"):
        find_token(str(tmp_path / "none"), {})
    with pytest.raises(ValueError, match="is no file"):
        find_token(str(tmp_path), {})
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(ValueError, match="is no file"):
        find_token(str(tmp_path / "pipe"), {})


def test_token_leaves_this_machine_only_encrypted_or_where_somebody_says_that_it_may() -> None:
    for url in ("https://a.example", "http://localhost:8000", "http://127.0.0.1", "http://[::1]"):
        refuse_in_the_clear(parse_address(url), {})
    with pytest.raises(ValueError, match="in the clear: use https"):
        refuse_in_the_clear(parse_address("http://a.example"), {PLAIN_HTTP: "0"})
    refuse_in_the_clear(parse_address("http://a.example"), {PLAIN_HTTP: "1"})
