"""Creates, lists, changes and revokes the tokens with which people and programs use the HTTP API.

The secret is printed once, alone, on standard output; the database has only its hash. Roles say
what a token allows: viewer, operator, approver, author, auditor, admin. A role can be limited to
workflows and queues by their names: viewer:order*. Business roles are words of your own: they say
which approvals the token may decide.

  rhythm token create ann --role approver --business-role finance --expires 90d
  rhythm token create bob --role 'viewer:order*' --role 'operator:order_eu'
  rhythm token list
  rhythm token change 4k7m2c9x0pqa --business-role finance --business-role legal
  rhythm token revoke 4k7m2c9x0pqa
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rhythm.cli.actor import actor
from rhythm.cli.command import (
    Arguments,
    Declared,
    UsageError,
    argument,
    command,
    declare,
    group,
    option,
)
from rhythm.cli.connect import application, new_application
from rhythm.cli.options import BY, DATABASE, OUTPUT
from rhythm.cli.output import print
from rhythm.cli.types import Duration, Known, Text
from rhythm.permissions import ROLES

if TYPE_CHECKING:
    from datetime import datetime

    from rhythm.app.tokens import TokenView

ID = argument("id", type=Known("tokens"), help="the id of the token; `rhythm token list` shows it")
IN_PLACE = "; replaces those that it has"


def roles(more: str = "") -> Callable[[Declared], Declared]:
    """Declares --role and --business-role; `more` is added to their help."""
    allows, decides = (
        "what it allows: ROLE or ROLE:PATTERN",
        "a role as which it may decide approvals",
    )
    return declare(
        option("--role", type=Text(*ROLES), metavar="ROLE", multiple=True, help=f"{allows}{more}"),
        option("--business-role", metavar="ROLE", multiple=True, help=f"{decides}{more}"),
    )


@command("Creates a token, and prints its secret, once.", "create a token, and print its secret")
@argument("name", help="the person or program that the token is for")
@roles()
@option(
    "--expires",
    type=Duration(unit=True),
    help="how long it is valid, such as 90d; else until it is revoked",
)
@BY
@OUTPUT
@DATABASE
def create(args: Arguments) -> int:
    with new_application(args) as app:
        made = app.create_token(
            args.name,
            roles=args.role or None,
            business_roles=args.business_role,
            expires=args.expires,
            by=actor(args),
        )
    print(f"made token {_in_words(made.view)}; its secret is shown only now:", file=sys.stderr)
    if args.output == "table":
        print(made.secret)
    else:
        from rhythm.cli.output.documents import print_item

        print_item(args.output, {"secret": made.secret, "token": made.view.as_json()})
    return 0


@command("Lists the tokens: what they allow, and when they were last used.", "list the tokens")
@OUTPUT
@DATABASE
def list_tokens(args: Arguments) -> int:
    with application(args) as app:
        found = app.tokens()
    if args.output == "table":
        _print(found)
    else:
        from rhythm.cli.output.documents import print_items

        print_items(args.output, [token.as_json() for token in found])
    return 0


@command("Gives a token other roles, which replace those that it has.", "give a token other roles")
@ID
@roles(IN_PLACE)
@option("--no-business-roles", is_flag=True, help="take away all its business roles")
@BY
@DATABASE
def change(args: Arguments) -> int:
    if not (args.role or args.business_role or args.no_business_roles):
        raise UsageError("say what it gets: --role, --business-role or --no-business-roles")
    if args.business_role and args.no_business_roles:
        raise UsageError("give --business-role or --no-business-roles, not both")
    business = () if args.no_business_roles else args.business_role or None
    with application(args) as app:
        changed = app.change_token(
            args.id, roles=args.role or None, business_roles=business, by=actor(args)
        )
    print(f"changed token {_in_words(changed)}")
    return 0


@command("Revokes a token: it is no longer valid.", "revoke a token: it is no longer valid")
@ID
@BY
@DATABASE
def revoke(args: Arguments) -> int:
    with application(args) as app:
        revoked = app.revoke_token(args.id, by=actor(args))
    print(
        f"revoked token {args.id}: it is valid no more"
        if revoked
        else f"token {args.id} was revoked before"
    )
    return 0


run = group(__doc__, create, ("list", list_tokens), change, revoke, given=(BY, OUTPUT, DATABASE))


def _in_words(token: TokenView) -> str:
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
