"""Checks that a database keeps all of Rhythm's rules, and says what to do if one is broken.

It only reads, in one transaction, and may run at any time, also while workers run. After the rules
it gives advice on the health of the database: queues that no worker serves, expired claims, old
transactions.

Exit code 0: no rule is broken; 1: a rule is broken; 2: the database cannot be read.

  rhythm doctor --database postgresql://localhost/shop
"""

from __future__ import annotations

import json
import time
from itertools import groupby

from rhythm.app.database import RULES, Finding, Health, open_database
from rhythm.cli.command import Arguments, command, option
from rhythm.cli.database import VARIABLE, database_url
from rhythm.cli.options import DATABASE
from rhythm.cli.output import print, print_problem
from rhythm.cli.output.documents import print_json
from rhythm.cli.output.progress import progress
from rhythm.cli.types import Duration, OneOf
from rhythm.engine.doctor import advice
from rhythm.errors import StoreError
from rhythm.printable import one_line


@command(__doc__)
@DATABASE
@option(
    "--output",
    type=OneOf("table", "json"),
    default="table",
    help="table for people, json for programs",
)
@option(
    "--grace",
    type=Duration(),
    default="15m",
    help="how late timers, rescues and the like may be before they count; more than a claim lasts",
)
def run(args: Arguments) -> int:
    try:
        url = database_url(args.database)
        with (
            open_database(url, create=False) as database,
            progress("examining the database") as report,
        ):
            found, health = database.examine(args.grace, report)
    except StoreError as problem:
        hint = "" if args.database else f"; --database or {VARIABLE} says which database is meant"
        print_problem(problem, hint)
        return 2
    advised = advice(health, time.time_ns() // 1000)
    _print_json(found, health, advised) if args.output == "json" else _print_table(
        found, health, advised
    )
    return 1 if found else 0


def _print_json(found: list[Finding], health: Health, advised: list[str]) -> None:
    findings = [
        {
            "rule": f.rule,
            "subject": f.subject,
            "message": f.message,
            "of": f.of,
            "law": RULES[f.rule].law,
            "remedy": RULES[f.rule].remedy,
        }
        for f in found
    ]
    document = {
        "rules": len(RULES),
        "executions": health.executions,
        "findings": findings,
        "advice": advised,
    }
    print_json(json.dumps(document, ensure_ascii=False, indent=2))


def _print_table(found: list[Finding], health: Health, advised: list[str]) -> None:
    for name, group in groupby(found, key=lambda finding: finding.rule):
        _print_rule(name, list(group))
    for line in advised:
        print(f"advice: {one_line(line)}")
    if advised:
        print()
    broken = sum({finding.rule: finding.of for finding in found}.values())
    verdict = (
        f"{broken:,} {'finding' if broken == 1 else 'findings'}"
        if found
        else "no rule is broken"
        if advised
        else "all is well"
    )
    print(
        f"{len(RULES)} rules, {health.executions:,} "
        f"{'execution' if health.executions == 1 else 'executions'}: {verdict}"
    )


def _print_rule(name: str, found: list[Finding]) -> None:
    print(f"{name}: {RULES[name].law}")
    width = max(len(finding.subject) for finding in found)
    for finding in found:
        print(f"  {finding.subject:<{width}}  {one_line(finding.message)}")
    if found[0].of > len(found):
        print(f"  … and {found[0].of - len(found):,} more")
    print(f"  what to do: {RULES[name].remedy}\n")
