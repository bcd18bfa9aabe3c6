"""What may be done, and which roles allow it. Pure: no database, no token, only names.

A route or method asks for one permission; a token has roles; a role is a set of permissions. The
role `operator` has its permissions for everything, `operator:order*` only for workflows and queues
whose name matches the pattern. For an execution, the name of the workflow (or of the task queued on
its own) at its root counts; for an approval, that of its execution; for a schedule, that of the
workflow that it starts. What has no such name (an event, the audit, tokens) needs a role without a
pattern. Business roles ("finance") are the user's own words and allow nothing here: they say which
approvals their holder may decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType

READ = "execution:read"
ROLES: Mapping[str, frozenset[str]] = {
    "viewer": frozenset({READ}),
    "operator": frozenset(
        {
            READ,
            "execution:start",
            "execution:pause",
            "execution:resume",
            "execution:cancel",
            "execution:signal",
        }
        | {"schedule:write", "queue:write"}
    ),
    "approver": frozenset({READ, "approval:decide"}),
    "author": frozenset({READ, "execution:start", "workflow:write", "schedule:write"}),
    "auditor": frozenset({READ, "audit:read"}),
    "admin": frozenset(
        {
            READ,
            "execution:start",
            "execution:pause",
            "execution:resume",
            "execution:cancel",
            "execution:signal",
            "approval:decide",
        }
        | {"workflow:write", "schedule:write", "queue:write", "audit:read", "admin"}
    ),
}
PERMISSIONS: Mapping[str, str] = {
    READ: "look at workflows, executions, approvals, schedules, queues and workers",
    "execution:start": "start a workflow, queue a task, retry",
    "execution:pause": "pause an execution",
    "execution:resume": "resume an execution",
    "execution:cancel": "cancel or terminate an execution",
    "execution:signal": "send a signal, publish an event",
    "approval:decide": "approve, reject and escalate, within one's business roles",
    "workflow:write": "register workflows",
    "schedule:write": "create, change, pause, run and delete schedules",
    "queue:write": "pause and resume queues",
    "audit:read": "read and verify the audit",
    "admin": "make, change and revoke tokens",
}
# Roles that cannot be limited to names: the audit and tokens do not belong to workflows.
WHOLE = ("auditor", "admin")
ANY = "*"

# Patterns of the names that are allowed. None allows everything, () nothing.
Scope = tuple[str, ...] | None


def allows(roles: Iterable[str], permission: str, name: str | None = None) -> bool:
    """Tells whether the roles allow this for the thing with this name; without one, for everything.

    A role that does not exist allows nothing. A permission that does not exist is a bug.
    """
    return within(scope(roles, permission), name)


def allows_some(roles: Iterable[str], permission: str) -> bool:
    """Tells whether the roles allow this for at least some names.

    It does not say which: ask `allows` when the name is known.
    """
    return scope(roles, permission) != ()


def scope(roles: Iterable[str], permission: str) -> Scope:
    """Returns the patterns of the names for which the roles allow this.

    None means everything, `()` nothing.
    """
    assert permission in PERMISSIONS, permission
    patterns = list[str]()
    for text in roles:
        role, colon, pattern = text.partition(":")
        if permission not in ROLES.get(role, ()) or (colon and role in WHOLE):
            continue
        if not colon:
            return None
        patterns.append(pattern)
    return tuple(dict.fromkeys(pattern for pattern in patterns if pattern))


@lru_cache(maxsize=1024)
def scopes(roles: tuple[str, ...]) -> Mapping[str, Scope]:
    """Returns the scope of every permission that the roles give for at least some names."""
    found = {permission: scope(roles, permission) for permission in PERMISSIONS}
    return MappingProxyType({name: names for name, names in found.items() if names != ()})


def within(scope: Scope, name: str | None) -> bool:
    """Tells whether a scope includes this name.

    Without a name, only the scope of everything does.
    """
    return scope is None or (name is not None and any(matches(pattern, name) for pattern in scope))


def limited(roles: Iterable[str]) -> bool:
    """Tells whether any of the roles is limited to names."""
    return any(":" in role for role in roles)


def matches(pattern: str, name: str) -> bool:
    """Tells whether a name matches a pattern: `*` stands for any number of characters, also none.

    Every other character stands for itself. The time does not grow with the number of stars: from
    left to right, each part is placed where it first fits.
    """
    first, *rest = pattern.split(ANY)
    if not rest:
        return name == pattern
    last = rest.pop()
    if not name.startswith(first) or len(name) < len(first) + len(last) or not name.endswith(last):
        return False
    place, end = len(first), len(name) - len(last)
    for part in rest:
        found = name.find(part, place, end)
        if found < 0:
            return False
        place = found + len(part)
    return True


def prefixes(scope: tuple[str, ...]) -> list[str]:
    """Returns prefixes such that every name in the scope begins with at least one of them.

    A prefix that begins with another one of them is left out.
    """
    begins = {pattern.partition(ANY)[0] for pattern in scope}
    return sorted(
        one for one in begins if not any(one != other and one.startswith(other) for other in begins)
    )


def permissions(roles: Iterable[str]) -> tuple[str, ...]:
    """Returns the permissions that these roles give for all names, sorted as in `PERMISSIONS`."""
    held = tuple(roles)
    return tuple(permission for permission in PERMISSIONS if allows(held, permission))


def problem_with_roles(roles: Iterable[str]) -> str:
    """Returns why these cannot be the roles of a token, or an empty text if they can."""
    return next((problem for role in sorted(set(roles)) if (problem := _problem(role))), "")


def _problem(text: str) -> str:
    role, colon, pattern = text.partition(":")
    if role not in ROLES:
        return (
            f"there is no role {role!r}: the roles are {', '.join(ROLES)} (a word of your own "
            f"is a business role)"
        )
    if colon and role in WHOLE:
        return (
            f"the role {role} is for everything: give {role}, or one of "
            f"{', '.join(_limitable())} with a pattern"
        )
    if colon and not pattern.replace(ANY, ""):
        return (
            f"{text!r} is limited to no names: give {role} for everything, or a pattern such "
            f"as {role}:order*"
        )
    return ""


def _limitable() -> list[str]:
    return [role for role in ROLES if role not in WHOLE]
