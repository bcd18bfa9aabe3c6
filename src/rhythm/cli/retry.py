"""Starts a new execution that goes on where this one failed or was cancelled, and prints its id, alone, on standard output.

What had completed is kept, and it goes on in the same version. With --from-start it begins at the beginning, with the same
inputs, in the current version. The old execution stays as it is.

  rhythm retry 06fe1sz2n5qg7v0k4m8c3x9yte
"""

from __future__ import annotations

import sys

from rhythm.cli.connect import application, find
from rhythm.cli.database import DATABASE
from rhythm.cli.options import Arguments, Option
from rhythm.cli.show import ID

OPTIONS = (ID, Option("--from-start", "begin at the beginning, in the current version"), DATABASE)


def run(args: Arguments) -> int:
    with application(args) as app:
        old = find(app, args.id)
        new = app.retry(args.id, from_start=args.from_start)
    where = (
        "begins at the beginning" if args.from_start else f"goes on where it {'was cancelled' if old.status == 'cancelled' else 'failed'}"
    )
    said = f"a new execution of {old.name} {where}" if new.created else f"a retry of this execution of {old.name} is under way already"
    print(f"{said}: {new.id}", file=sys.stderr)
    print(new.id)
    return 0
