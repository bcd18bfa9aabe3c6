"""Checks that a database keeps all of Rhythm's rules, and says what to do where it does not.

It only reads, in one snapshot, and may run beside workers at any time. Then it advises on the
health of the database: queues that nobody serves, expired claims, old transactions. Exit code 0: no
rule is broken; 1: one is; 2: the database cannot be read.

  rhythm doctor --database postgresql://localhost/shop
"""

from __future__ import annotations

import json
import time
from itertools import groupby

from rhythm.app.database import RULES, Finding, Health, open_database
from rhythm.cli.database import DATABASE, VARIABLE, database_url
from rhythm.cli.options import Arguments, Option, UsageError
from rhythm.cli.output import print, print_problem
from rhythm.cli.output.documents import print_json
from rhythm.durations import duration_s
from rhythm.engine.doctor import advice
from rhythm.errors import StoreError
from rhythm.printable import one_line

OPTIONS = (
    DATABASE,
    Option(
        "--output",
        "table for people, json for programs",
        choices=("table", "json"),
        default="table",
    ),
    Option(
        "--grace",
        "how late timers, rescues and the like may be: longer than a claim lasts",
        value="DURATION",
        default="15m",
    ),
)


def run(args: Arguments) -> int:
    grace_s = _grace_s(args.grace)
    try:
        with open_database(database_url(args.database), create=False) as database:
            found, health = database.examine(grace_s)
    except StoreError as problem:
        hint = "" if args.database else f"; --database or {VARIABLE} says which database is meant"
        print_problem(problem, hint)
        return 2
    advised = advice(health, time.time_ns() // 1000)
    _print_json(found, health, advised) if args.output == "json" else _print_table(
        found, health, advised
    )
    return 1 if found else 0


def _grace_s(text: str) -> float:
    try:
        return duration_s(float(text) if text.isdecimal() else text)
    except ValueError as problem:
        raise UsageError(f"--grace: {problem}") from None


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
