"""Loading the user's file: what is left behind when it cannot be loaded."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rhythm.cli.app import load_app
from rhythm.cli.command import UsageError


@pytest.mark.parametrize("by_path", [True, False], ids=["file", "module"])
def test_file_that_fails_again_and_again_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_path: bool
) -> None:
    (tmp_path / "halfway.py").write_text(
        "import sys\nbefore = 1\nraise ValueError(f'{len(sys.path)} places')"
    )
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    said = set()
    for _ in range(3):
        with pytest.raises(UsageError, match="places") as refused:
            load_app(str(tmp_path / "halfway.py") if by_path else "halfway")
        said.add(str(refused.value))
        assert "halfway" not in sys.modules
    assert len(said) == 1
