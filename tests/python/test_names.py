"""Two workflows of one name: refused, unless it is the same function once more."""

from __future__ import annotations

from pathlib import Path

import pytest

import rhythm
from rhythm.authoring.workflow import PythonWorkflows, Workflow
from tests.python.modules import functions_of

MODULE = """
import rhythm


@rhythm.workflow(name="same_name")
async def workflow():
    return 1
"""


def workflow(folder: Path, module: str = "module") -> Workflow[..., object]:
    folder.mkdir(exist_ok=True)
    made: Workflow[..., object] = functions_of(MODULE, folder)["workflow"]
    made.function.__module__ = module
    return made


def test_function_of_another_module_with_the_same_name_is_refused(tmp_path: Path) -> None:
    known = PythonWorkflows()
    known.add(workflow(tmp_path / "a", "a"))
    with pytest.raises(rhythm.DuplicateWorkflow, match="name=…") as error:
        known.add(workflow(tmp_path / "b", "b"))
    assert str(tmp_path / "a") in str(error.value)
    assert str(tmp_path / "b") in str(error.value)


def test_same_file_under_another_module_name_is_no_other_workflow(tmp_path: Path) -> None:
    known = PythonWorkflows()
    known.add(workflow(tmp_path / "a", "a"))
    again = workflow(tmp_path / "a", "__main__")
    known.add(again)
    assert known["same_name"] is again


def test_cell_that_runs_again_replaces_its_workflow(tmp_path: Path) -> None:
    known = PythonWorkflows()
    known.add(workflow(tmp_path / "cell_1", "__main__"))
    again = workflow(tmp_path / "cell_2", "__main__")
    known.add(again)
    assert known["same_name"] is again


def test_function_with_the_name_of_a_flow_of_the_application_is_refused(tmp_path: Path) -> None:
    flow = tmp_path / "same.flow"
    flow.write_text("workflow same_name() { return 2 }\n")
    with pytest.raises(rhythm.DuplicateWorkflow, match="workflow_paths"):
        rhythm.Rhythm(
            "sqlite://:memory:", [flow], environment={}, workflows=[workflow(tmp_path / "a")]
        )
