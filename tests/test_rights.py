"""Roles and permissions: a table, and nothing is allowed that is not in it."""

from __future__ import annotations

import pytest

from rhythm.rights import PERMISSIONS, ROLES, allows, permissions, problem_with_roles


def test_roles_consist_of_permissions_that_exist_and_every_one_can_look() -> None:
    assert set().union(*ROLES.values()) == PERMISSIONS.keys()
    assert all("execution:read" in held for held in ROLES.values())


def test_an_administrator_may_do_everything_and_alone_makes_tokens() -> None:
    assert permissions(["admin"]) == tuple(PERMISSIONS)
    assert [role for role, held in ROLES.items() if "admin" in held] == ["admin"]


def test_whoever_decides_or_reads_the_audit_does_not_operate() -> None:
    operating = {"execution:start", "execution:cancel", "execution:pause", "execution:resume", "queue:write", "workflow:write"}
    assert not (ROLES["approver"] | ROLES["auditor"]) & operating
    assert not {"approval:decide", "audit:read"} & (ROLES["operator"] | ROLES["author"] | ROLES["viewer"])


def test_roles_add_up_and_unknown_ones_allow_nothing() -> None:
    assert permissions(["viewer", "auditor"]) == ("execution:read", "audit:read")
    assert permissions(["finance", "Admin", ""]) == ()
    assert not allows([], "execution:read")
    with pytest.raises(AssertionError):
        allows(["admin"], "execution:fly")


def test_a_role_that_does_not_exist_is_told_with_those_that_do() -> None:
    assert problem_with_roles(ROLES) == ""
    assert "no role 'boss': the roles are viewer, operator" in problem_with_roles(["viewer", "boss"])
