"""What may be done, and which roles allow it. Pure: no database, no token, only names.

A route or method asks for one permission; a token has roles; a role is a set of permissions. Business roles ("finance") are the
user's own words and allow nothing here: they say which approvals one may decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

READ = "execution:read"
ROLES: Mapping[str, frozenset[str]] = {
    "viewer": frozenset({READ}),
    "operator": frozenset(
        {READ, "execution:start", "execution:pause", "execution:resume", "execution:cancel", "execution:signal"}
        | {"schedule:write", "queue:write"}
    ),
    "approver": frozenset({READ, "approval:decide"}),
    "author": frozenset({READ, "execution:start", "workflow:write", "schedule:write"}),
    "auditor": frozenset({READ, "audit:read"}),
    "admin": frozenset(
        {READ, "execution:start", "execution:pause", "execution:resume", "execution:cancel", "execution:signal", "approval:decide"}
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


def allows(roles: Iterable[str], permission: str) -> bool:
    """Whether one of the roles has the permission. A role that does not exist has none; a permission that does not exist is a bug."""
    assert permission in PERMISSIONS, permission
    return any(permission in ROLES.get(role, ()) for role in roles)


def permissions(roles: Iterable[str]) -> tuple[str, ...]:
    """All that the roles allow, in the order of the table."""
    held = tuple(roles)
    return tuple(permission for permission in PERMISSIONS if allows(held, permission))


def problem_with_roles(roles: Iterable[str]) -> str:
    """Why these cannot be the roles of a token; empty if they can."""
    unknown = sorted({role for role in roles if role not in ROLES})
    if not unknown:
        return ""
    return f"there is no role {unknown[0]!r}: the roles are {', '.join(ROLES)} (a word of your own is a business role)"
