"""Prints the workflows of a Python file as .flow text, which does the same.

The file is imported. Without --workflow, all its workflows are printed.

Exit code 0: it was printed; 2: a workflow does not compile, or cannot be written in .flow.

  rhythm convert shop.py > shop.flow
"""

from __future__ import annotations

from rhythm.cli.command import Arguments, UsageError, argument, command, option
from rhythm.cli.files import is_python
from rhythm.cli.output import print_source
from rhythm.cli.types import FileName


@command(__doc__)
@argument("file", type=FileName(), help="a Python file with workflows; it is imported")
@option("--workflow", metavar="NAME", help="only this workflow of the file")
def run(args: Arguments) -> int:
    if not is_python(args.file):
        raise UsageError(f"{args.file} is no Python file: this is for workflows in Python")
    from rhythm.cli.programs import choose, compile_file
    from rhythm.lang.flow.write import Unwritable

    programs = compile_file(args.file, quiet=True)
    if args.workflow:
        names = [choose(programs, args.file, args.workflow).name]
    else:
        # workflows of imported modules are not printed, unless the file has none itself
        names = [p.name for p in programs if p.file == programs[0].file]
    try:
        print_source("\n".join(_text(name) for name in names))
    except Unwritable as problem:
        raise UsageError(str(problem)) from None
    return 0


def _text(name: str) -> str:
    """Returns the .flow text of an imported workflow. Raises `Unwritable` if it has none."""
    from rhythm.authoring.workflow import default_workflows
    from rhythm.lang.flow.check import check_flow
    from rhythm.lang.flow.write import Unwritable, write_workflow

    [(tree, options)] = default_workflows[name].compilation.workflows
    text = write_workflow(tree, options)
    wrong = check_flow(text, f"{name}.flow").errors
    if wrong:
        raise Unwritable(f"the workflow `{name}` cannot be written in .flow: {wrong[0].message}")
    return text
