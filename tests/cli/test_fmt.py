"""`rhythm fmt`: what it changes, what it only reports, and what it leaves alone."""

from __future__ import annotations

from tests.cli.conftest import Shell

UGLY = "let  x=1 // one\nreturn   x+1\n"
NEAT = "let x = 1  // one\nreturn x + 1\n"


def test_file_is_rewritten_once_and_then_left_alone(shell: Shell) -> None:
    shell.write("a.flow", UGLY)
    ran = shell.rhythm("fmt", "a.flow")
    assert (ran.returncode, ran.stdout, shell.read("a.flow")) == (0, "formatted a.flow\n", NEAT)
    assert shell.rhythm("fmt", "a.flow").stdout == ""


def test_check_changes_nothing_and_exits_1(shell: Shell) -> None:
    shell.write("a.flow", UGLY)
    shell.write("b.flow", NEAT)
    ran = shell.rhythm("fmt", "--check", "a.flow", "b.flow")
    assert (ran.returncode, ran.stdout, shell.read("a.flow")) == (1, "would change a.flow\n", UGLY)
    assert shell.rhythm("fmt", "--check", "b.flow").returncode == 0


def test_diff_shows_what_would_change(shell: Shell) -> None:
    shell.write("a.flow", UGLY)
    ran = shell.rhythm("fmt", "--diff", "a.flow")
    assert ran.returncode == 1
    assert "-let  x=1 // one\n" in ran.stdout
    assert "+let x = 1  // one\n" in ran.stdout
    assert shell.read("a.flow") == UGLY


def test_standard_input_is_printed_formatted(shell: Shell) -> None:
    ran = shell.rhythm("fmt", "-", stdin=UGLY)
    assert (ran.returncode, ran.stdout) == (0, NEAT)


def test_file_that_does_not_parse_is_left_as_it_is_and_the_others_are_done(shell: Shell) -> None:
    shell.write("a.flow", "let = 1\n")
    shell.write("b.flow", UGLY)
    ran = shell.rhythm("fmt", "a.flow", "b.flow")
    assert ran.returncode == 2
    assert "F0" in ran.stderr
    assert (shell.read("a.flow"), shell.read("b.flow")) == ("let = 1\n", NEAT)


def test_printed_workflow_is_utf_8_whatever_the_encoding_of_standard_output(shell: Shell) -> None:
    ran = shell.rhythm("fmt", "-", stdin='return   "é"\n', PYTHONIOENCODING="ascii")
    assert (ran.returncode, ran.stdout) == (0, 'return "é"\n')
