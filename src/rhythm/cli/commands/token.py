"""Makes, lists, changes and revokes the tokens with which people and programs use the HTTP API.

The secret is printed once, alone, on standard output; the database has only its hash. Roles say
what a token allows: viewer, operator, approver, author, auditor, admin; viewer:order* is one for
workflows and queues of such names only. Business roles are your own words: whose approvals it may
decide.

  rhythm token create ann --role approver --business-role finance --expires 90d
  rhythm token create bob --role 'viewer:order*' --role 'operator:order_eu'
  rhythm token list
  rhythm token change 4k7m2c9x0pqa --business-role finance --business-role legal
  rhythm token revoke 4k7m2c9x0pqa
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rhythm.cli.actor import BY, actor
from rhythm.cli.connect import OUTPUT, application, new_application
from rhythm.cli.database import DATABASE
from rhythm.cli.options import Arguments, Option, UsageError
from rhythm.cli.output import print

if TYPE_CHECKING:
    from datetime import datetime

    from rhythm.app import Rhythm
    from rhythm.app.tokens import TokenView

OPTIONS = (
    Option(
        "ACTION",
        "what to do: create, list, change or revoke",
        choices=("create", "list", "change", "revoke"),
    ),
    Option("NAME", "whom a new token is for; else the id of a token", optional=True),
    Option(
        "--role",
        "what it allows, as ROLE or ROLE:PATTERN; with change: in place of the roles it has",
        value="ROLE",
        many=True,
    ),
    Option(
        "--business-role",
        "whose approvals it may decide; with change: in place of those it has",
        value="ROLE",
        many=True,
    ),
    Option("--no-business-roles", "change: take away those it has"),
    Option(
        "--expires",
        "create: how long it is valid, such as 90d; else until it is revoked",
        value="DURATION",
    ),
    BY,
    OUTPUT,
    DATABASE,
)
TAKES = {
    "create": {"role", "business_role", "expires"},
    "change": {"role", "business_role", "no_business_roles"},
    "list": set[str](),
    "revoke": set[str](),
}
GIVEN = ("role", "business_role", "no_business_roles", "expires")


def run(args: Arguments) -> int:
    _fit(args)
    with (new_application if args.action == "create" else application)(args) as app:
        return {"create": _create, "list": _list, "change": _change, "revoke": _revoke}[
            args.action
        ](app, args)


def _fit(args: Arguments) -> None:
    """`UsageError` for what this action does not take, or lacks."""
    if (args.name is None) != (args.action == "list"):
        wanted = {"create": "NAME: whom the token is for", "list": "no NAME"}.get(
            args.action, "the ID of a token; `rhythm token list` tells it"
        )
        raise UsageError(f"token {args.action} takes {wanted}")
    for name in GIVEN:
        if getattr(args, name) and name not in TAKES[args.action]:
            raise UsageError(f"--{name.replace('_', '-')} is not for {args.action}")
    if args.action == "change" and not any(getattr(args, name) for name in GIVEN):
        raise UsageError("say what it gets: --role, --business-role or --no-business-roles")
    if args.business_role and args.no_business_roles:
        raise UsageError("give --business-role or --no-business-roles, not both")


def _create(app: Rhythm, args: Arguments) -> int:
    made = app.create_token(
        args.name,
        roles=args.role or None,
        business_roles=args.business_role,
        expires=args.expires,
        by=actor(args),
    )
    print(f"made token {_told(made.view)}; its secret is shown only now:", file=sys.stderr)
    if args.output == "table":
        print(made.secret)
    else:
        from rhythm.cli.output.documents import print_item

        print_item(args.output, {"secret": made.secret, "token": made.view.as_json()})
    return 0


def _list(app: Rhythm, args: Arguments) -> int:
    found = app.tokens()
    if args.output == "table":
        _print(found)
    else:
        from rhythm.cli.output.documents import print_items

        print_items(args.output, [token.as_json() for token in found])
    return 0


def _change(app: Rhythm, args: Arguments) -> int:
    business = () if args.no_business_roles else args.business_role or None
    changed = app.change_token(
        args.name, roles=args.role or None, business_roles=business, by=actor(args)
    )
    print(f"changed token {_told(changed)}")
    return 0


def _revoke(app: Rhythm, args: Arguments) -> int:
    revoked = app.revoke_token(args.name, by=actor(args))
    print(
        f"revoked token {args.name}: it is valid no more"
        if revoked
        else f"token {args.name} was revoked before"
    )
    return 0


def _told(token: TokenView) -> str:
    own = f" for {', '.join(token.business_roles)}" if token.business_roles else ""
    until = f", until {token.expires_at:%Y-%m-%d %H:%M:%S} UTC" if token.expires_at else ""
    return f"{token.id} of {token.name} ({', '.join(token.roles)}{own}){until}"


def _print(found: Sequence[TokenView]) -> None:
    from datetime import UTC, datetime

    from rhythm.cli.output.table import print_table

    if not found:
        print("no tokens: `rhythm token create NAME --role ROLE` makes one")
        return
    rows = [_row(token, datetime.now(UTC)) for token in found]
    print_table(("ID", "NAME", "STATUS", "ROLES", "BUSINESS ROLES", "AGE", "USED", "EXPIRES"), rows)


def _row(token: TokenView, now: datetime) -> tuple[str, ...]:
    from rhythm.cli.output.words import age

    used = f"{age(token.last_used_at, now)} ago" if token.last_used_at else "never"
    expires = f"{token.expires_at:%Y-%m-%d}" if token.expires_at else "never"
    roles = ",".join(token.roles), ",".join(token.business_roles)
    return (
        token.id,
        token.name,
        token.status,
        *roles,
        age(token.created_at, now),
        used.replace("now ago", "now"),
        expires,
    )
