"""Workflow files that would cost more than they are worth: what they may hold, and how much of them
a process keeps."""

from __future__ import annotations

import pytest

from rhythm import FlowError, Rhythm
from rhythm.engine.programs import ProgramCache
from rhythm.ir.codec import dump_program, dump_within, load_program
from rhythm.lang.flow.compile import compile_flow
from rhythm.lang.languages import compile_text
from rhythm.limits import DEFAULT_LIMITS
from rhythm.store.interfaces.definitions import Definition
from tests.support.stores import MakeStore, rows


@pytest.fixture
def app(make_store: MakeStore) -> Rhythm:
    return Rhythm(store=make_store(lambda: 1_800_000_000_000_000), environment={})


def many(count: int, around: str = "") -> str:
    return around + "\n".join(f"workflow w{n} {{ return {n} }}" for n in range(count))


def test_a_file_of_many_workflows_stores_little_more_than_its_text(app: Rhythm) -> None:
    """Neither its text nor the places of all its lines are kept with every workflow."""
    text = many(200, "\n" * 200_000)
    app.register(text)
    found = [
        *rows(app.store, "SELECT * FROM workflow_definitions"),
        *rows(app.store, "SELECT * FROM workflow_sources"),
    ]
    assert sum(len(value) for row in found for value in row if isinstance(value, str)) < 2 * len(
        text
    )


def test_a_place_in_a_workflow_is_the_place_in_its_file() -> None:
    text = many(3, "\n\n") + '\nworkflow bad {\n  let x = 1\n  throw { code: "X", message: x }\n}\n'
    programs = compile_flow(text).programs
    for program in (*programs, *(load_program(dump_program(one)) for one in programs)):
        places = {program.position(getattr(instruction, "at", 0)) for instruction in program.code}
        for line, column in places:
            at = program.offset(line, column)
            assert (text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)) == (line, column)
        assert {line for line, _ in places} <= (
            {6, 7, 8, 9} if program.name == "bad" else {3 + int(program.name[1:])}
        )


def test_a_file_holds_so_many_workflows_and_no_more(app: Rhythm) -> None:
    assert len(app.register(many(DEFAULT_LIMITS.workflows))) == DEFAULT_LIMITS.workflows
    with pytest.raises(
        FlowError, match=r"error\[F006\]: the file has 201 workflows; the limit is 200"
    ):
        app.register(many(DEFAULT_LIMITS.workflows + 1))


def test_a_workflow_has_so_many_annotations_and_no_more(app: Rhythm) -> None:
    often = (
        '@schedule("0 0 1 1 *")\n' * (DEFAULT_LIMITS.annotations + 1) + "workflow w { return 1 }"
    )
    with pytest.raises(FlowError, match=r"error\[F006\]: more than 50 annotations"):
        app.register(often)
    steps = (
        '{"workflow_id": "w", "on": [' + ", ".join(f'"e{n}"' for n in range(51)) + '], "steps": []}'
    )
    assert [d.code for d in compile_text(steps, "w.steps.json").errors][:1] == ["S002"]


def test_a_file_has_so_many_schedules_and_no_more(app: Rhythm) -> None:
    """All are made in the transaction that registers the file."""
    often = '@schedule("0 0 1 1 *")\n' * 50
    text = "\n".join(f"{often}workflow w{n} {{ return 1 }}" for n in range(4))
    app.register(text)
    assert len(app.schedules()) == DEFAULT_LIMITS.schedules == 200
    refusal = r"error\[F006\]: the file has 201 schedules; the limit is 200"
    with pytest.raises(FlowError, match=refusal):
        app.register(f'{text}\n@schedule("0 0 1 1 *") workflow more {{ return 1 }}')


@pytest.mark.parametrize("annotation", ["on", "queue", "version"])
def test_what_an_annotation_says_is_no_longer_than_a_name(annotation: str) -> None:
    text = f'@{annotation}("LONG") workflow w {{ return 1 }}'
    assert not compile_flow(text.replace("LONG", "x" * 200)).errors
    assert [d.code for d in compile_flow(text.replace("LONG", "x" * 201)).errors] == ["F032"]


def test_a_program_that_is_far_larger_than_its_text_is_refused_before_it_is_made(
    app: Rhythm,
) -> None:
    """Each await names all variables in scope."""
    names = [f"v{n:03}{'x' * 200}" for n in range(300)]
    text = (
        "\n".join(f"let {name} = 1" for name in names)
        + "\n"
        + "await task('a')\n" * 2000
        + f"return [{', '.join(names)}]"
    )
    with pytest.raises(
        FlowError,
        match=r"text 1.flow: the workflow `text 1` makes its file over a limit: .* 4,194,304 bytes",
    ):
        app.register(text)
    assert app.workflows() == []


def test_the_stored_form_is_the_same_in_parts_and_as_a_whole() -> None:
    program = compile_flow(
        'workflow w { let a = "🎵ä"\n return await task("t", { a: a }) }'
    ).programs[0]
    text = dump_program(program)
    size = len(text.encode())
    assert dump_within(program, size) == text
    assert dump_within(program, size - 1) is None


def test_a_process_keeps_the_programs_that_it_used_last_within_bounds(app: Rhythm) -> None:
    app.register(many(6))
    one = len(app.store.definitions.program("w0", app.workflow("w0").version) or "")
    cache = ProgramCache(
        DEFAULT_LIMITS.replace(cached_programs=4, cached_program_bytes=4 * one - 1)
    )
    first = cache.get(app.store, "w0")
    for name in ("w1", "w0", "w2", "w0", "w3", "w0", "w4"):
        assert getattr(cache.get(app.store, name), "name", None) == name
    assert cache.get(app.store, "w0") is first
    assert cache.size[0] == 3
    assert cache.size[1] < 4 * one
    few = ProgramCache(DEFAULT_LIMITS.replace(cached_programs=2))
    for n in range(6):
        few.get(app.store, f"w{n}")
    assert few.size[0] == 2
    alone = ProgramCache(DEFAULT_LIMITS.replace(cached_program_bytes=1))
    assert alone.get(app.store, "w1") is alone.get(app.store, "w1")
    assert (cache.get(app.store, "nobody"), cache.get(app.store, "w1", "0" * 64)) == (None, None)


def test_workflows_are_listed_all_or_page_by_page(app: Rhythm) -> None:
    app.store.definitions.register(
        [Definition(f"w{n:04}", "1", "flow", "", "{}") for n in range(1500)]
    )
    assert len(app.workflows()) == 1500
    assert [view.name for view in app.workflows(2, "w0007")] == ["w0008", "w0009"]
    assert app.workflow("w0009").version == "1"
    for wrong in (0, True, "1"):
        with pytest.raises(ValueError, match="limit is a whole number from 1 on"):
            app.workflows(wrong)  # type: ignore[arg-type]  # what it is for
