"""Roles and permissions: a table, and nothing is allowed that is not in it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as some

from rhythm.permissions import (
    PERMISSIONS,
    ROLES,
    WHOLE,
    allows,
    allows_some,
    matches,
    permissions,
    problem_with_roles,
    scope,
    within,
)

LIMITABLE = [role for role in ROLES if role not in WHOLE]
names = some.text("ab*?[%_\\.", min_size=1, max_size=8)
patterns = some.text("ab*?[%_\\.", min_size=1, max_size=6)
roles = some.lists(
    some.sampled_from(list(ROLES))
    | some.builds("{}:{}".format, some.sampled_from(list(ROLES)), patterns),
    max_size=4,
)
asked = some.sampled_from(list(PERMISSIONS))


def test_roles_consist_of_permissions_that_exist_and_every_one_can_look() -> None:
    assert set().union(*ROLES.values()) == PERMISSIONS.keys()
    assert all("execution:read" in held for held in ROLES.values())


def test_an_administrator_may_do_everything_and_alone_makes_tokens() -> None:
    assert permissions(["admin"]) == tuple(PERMISSIONS)
    assert [role for role, held in ROLES.items() if "admin" in held] == ["admin"]


def test_whoever_decides_or_reads_the_audit_does_not_operate() -> None:
    operating = {
        "execution:start",
        "execution:cancel",
        "execution:pause",
        "execution:resume",
        "queue:write",
        "workflow:write",
    }
    assert not (ROLES["approver"] | ROLES["auditor"]) & operating
    assert not {"approval:decide", "audit:read"} & (
        ROLES["operator"] | ROLES["author"] | ROLES["viewer"]
    )


def test_roles_add_up_and_unknown_ones_allow_nothing() -> None:
    assert permissions(["viewer", "auditor"]) == ("execution:read", "audit:read")
    assert permissions(["finance", "Admin", ""]) == ()
    assert not allows([], "execution:read")
    with pytest.raises(AssertionError):
        allows(["admin"], "execution:fly")


def test_a_role_that_does_not_exist_is_told_with_those_that_do() -> None:
    assert problem_with_roles(ROLES) == ""
    assert "no role 'boss': the roles are viewer, operator" in problem_with_roles(
        ["viewer", "boss"]
    )


# roles for some names


@given(patterns, names)
def test_a_star_stands_for_any_characters_and_every_other_one_for_itself(
    pattern: str, name: str
) -> None:
    assert matches(pattern, name) == bool(
        re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name)
    )


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("order*", "order", True),
        ("order*", "order_large", True),
        ("order*", "orders", True),
        ("order*", "Order", False),  # as workflows are told apart
        ("order*", "preorder", False),
        ("order", "order", True),
        ("order", "orders", False),
        ("*order", "preorder", True),
        ("a*a", "a", False),  # a star does not let two parts share a letter
        ("a*ab*b", "aab", False),
        ("o*e*", "order", True),
        ("o*r", "order", True),
        ("o*r", "orders", False),
        ("order?", "orders", False),
        ("order[s]", "orders", False),
        ("ord_r", "order", False),
        ("ord%", "order", False),
    ],
)
def test_patterns(pattern: str, name: str, expected: bool) -> None:
    assert matches(pattern, name) is expected


def test_a_pattern_of_many_stars_takes_no_time() -> None:
    assert not matches("*a" * 90 + "b", "a" * 200)


@given(roles, asked, names)
def test_what_is_allowed_is_allowed_by_one_of_the_roles_alone(
    held: list[str], permission: str, name: str
) -> None:
    assert allows(held, permission, name) == any(allows([role], permission, name) for role in held)


@given(roles, asked, names)
def test_a_scope_is_what_is_allowed(held: list[str], permission: str, name: str) -> None:
    found = scope(held, permission)
    assert within(found, name) == allows(held, permission, name)
    assert (found is None) == allows(held, permission)
    assert (found == ()) == (not allows_some(held, permission))


@given(roles, asked, names)
def test_whoever_may_do_it_to_everything_may_do_it_to_whatever_there_is(
    held: list[str], permission: str, name: str
) -> None:
    assert not allows(held, permission) or allows(held, permission, name)
    assert not allows(held, permission, name) or allows_some(held, permission)


@given(some.sampled_from(LIMITABLE), patterns, asked, names)
def test_a_role_with_a_pattern_allows_the_same_for_the_names_that_fit(
    role: str, pattern: str, permission: str, name: str
) -> None:
    held = [f"{role}:{pattern}"]
    assert allows(held, permission, name) == (permission in ROLES[role] and matches(pattern, name))
    assert not allows(held, permission), "what has no name takes a role without a pattern"


@given(some.sampled_from(WHOLE), patterns, asked, names)
def test_an_auditor_or_administrator_of_some_names_is_nobody(
    role: str, pattern: str, permission: str, name: str
) -> None:
    assert not allows([f"{role}:{pattern}"], permission, name)
    assert f"the role {role} is for everything" in problem_with_roles([f"{role}:{pattern}"])


@pytest.mark.parametrize("text", ["viewer:", "viewer:*", "viewer:**"])
def test_a_pattern_that_says_nothing_is_refused(text: str) -> None:
    assert "give viewer for everything, or a pattern such as viewer:order*" in problem_with_roles(
        [text]
    )


def test_a_role_without_its_pattern_is_not_that_role_for_everything() -> None:
    assert not allows_some(["viewer:"], "execution:read")
    assert not allows(["viewer:*"], "execution:read"), (
        "stored by somebody else: it is for everything that has a name"
    )


def test_several_patterns_are_several_roles() -> None:
    assert problem_with_roles(["viewer:order*", "viewer:refund", "operator:order_eu*"]) == ""
    assert scope(["viewer:order*", "viewer:refund", "operator:order_eu*"], "execution:read") == (
        "order*",
        "refund",
        "order_eu*",
    )
    assert "no role 'boss'" in problem_with_roles(["viewer:order*", "boss:order*"])
