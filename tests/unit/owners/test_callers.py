"""What somebody may do follows from whom they act for, their role, and what their key was made for."""

from __future__ import annotations

from typing import Literal
from uuid import uuid4

import pytest

from octavo.owners import Caller, Role, Scope


def caller(
    kind: str = "user", role: Role = "owner", scope: Scope = "admin", via: Literal["session", "key"] = "session"
) -> Caller:
    return Caller(uuid4(), kind, uuid4(), role, scope, via)


@pytest.mark.parametrize(
    ("role", "scope", "writes", "manages"),
    [
        ("owner", "admin", True, True),
        ("owner", "write", True, False),
        ("owner", "read", False, False),
        ("member", "admin", True, False),
        ("member", "write", True, False),
        ("member", "read", False, False),
        ("reader", "admin", False, False),
        ("reader", "write", False, False),
        ("reader", "read", False, False),
    ],
)
def test_neither_role_nor_scope_gives_more_than_the_other_allows(
    role: Role, scope: Scope, writes: bool, manages: bool
) -> None:
    one = caller(role=role, scope=scope)
    assert (one.may_write, one.may_manage) == (writes, manages)


@pytest.mark.parametrize(
    ("one", "admin"),
    [
        (caller("local"), True),
        (caller("local", via="key"), True),
        (caller("local", scope="write", via="key"), False),
        (caller("local", role="member", scope="write"), False),
        (caller("local", role="reader"), False),
        (caller("user"), False),
        (caller("user", via="key"), False),
        (caller("anonymous", scope="write"), False),
        (caller("anonymous"), False),
    ],
)
def test_only_the_owner_of_the_machine_administers_the_installation(one: Caller, admin: bool) -> None:
    assert one.is_admin is admin


@pytest.mark.parametrize(
    ("one", "grants"),
    [
        (caller(), ["read", "write", "admin"]),
        (caller(role="member", scope="write"), ["read", "write"]),
        (caller(role="reader", scope="read"), ["read"]),
        # A key that leaked must not be able to make another that outlives it.
        (caller(scope="write", via="key"), []),
        (caller(scope="read", via="key"), []),
        (caller(via="key"), ["read", "write", "admin"]),
        (caller(role="member", via="key"), []),
        (caller("anonymous", scope="write"), []),
    ],
)
def test_a_key_can_do_no_more_than_its_maker(one: Caller, grants: list[Scope]) -> None:
    scopes: tuple[Scope, ...] = ("read", "write", "admin")
    assert [scope for scope in scopes if one.may_grant(scope)] == grants


def test_an_anonymous_visitor_writes_and_manages_nothing() -> None:
    visitor = caller("anonymous", scope="write")
    assert visitor.is_anonymous
    assert visitor.may_write
    assert not visitor.may_manage
