"""The caller of a request, and API keys.

A caller acts for one account (owner). An API key is shown once and stored only as a hash. A key has at most the
permissions of the person who created it.

Also defines the errors that sign-in, invitations, links and the second factor can raise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from octavo.core.errors import BadInput, ErrorClass, NotAllowed, NotFound, OctavoError
from octavo.core.types import hash_token, new_id, new_token
from octavo.database import Connection, fetch_rows, load_queries
from octavo.owners.audit import record
from octavo.records.account import KeyScope as Scope
from octavo.records.account import KeyView, NewKey, Role

LEVELS: dict[Scope, int] = {"read": 0, "write": 1, "admin": 2}
MOST_SCOPE: dict[Role, Scope] = {"reader": "read", "member": "write", "owner": "admin"}


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request.

    `scope` is the scope of the session or API key. The caller's permissions are limited by both the scope and the
    person's role. A `limited` member sees only the documents in collections that were granted to them. `language` is
    the language that the person has chosen for pages and emails.
    """

    owner_id: UUID
    kind: str
    user_id: UUID | None
    role: Role
    scope: Scope
    via: Literal["session", "key"]
    limited: bool = False
    language: str | None = None

    @property
    def may_write(self) -> bool:
        """Whether the caller can change everything in the account, such as documents, rules and sources."""
        return self.may_edit and not self.limited

    @property
    def may_edit(self) -> bool:
        """Whether the caller can change documents. A limited member also needs a grant with write access."""
        return self._reaches("write")

    @property
    def may_manage(self) -> bool:
        """Whether the caller can manage the members and all API keys of the account."""
        return self._reaches("admin") and not self.is_anonymous

    @property
    def is_admin(self) -> bool:
        """Whether the caller is an administrator of the installation."""
        return self.kind == "local" and self._reaches("admin")

    @property
    def is_anonymous(self) -> bool:
        return self.kind == "anonymous"

    def may_grant(self, scope: Scope) -> bool:
        """Whether the caller can create an API key with this scope.

        A key cannot have more permissions than its creator. A caller that uses an API key needs the `admin` scope to
        create other keys.
        """
        trusted = self.via == "session" or self._reaches("admin")
        return trusted and not self.is_anonymous and self._reaches(scope)

    def _reaches(self, scope: Scope) -> bool:
        return min(LEVELS[self.scope], LEVELS[MOST_SCOPE[self.role]]) >= LEVELS[scope]


QUERIES = load_queries("keys")
PREFIX = "octavo_"
SHOWN_CHARACTERS = 12


async def make_key(
    connection: Connection, caller: Caller, *, name: str, scope: Scope, days: int | None = None
) -> NewKey:
    if not caller.may_grant(scope):
        raise NotAllowed(
            "Only signed-in users and keys with the admin scope can create keys. "
            "A new key cannot have more permissions than its creator."
        )
    key = PREFIX + new_token()
    values = {"id": new_id(), "owner": caller.owner_id, "user": caller.user_id, "name": name, "scope": scope}
    values |= {"start": key[:SHOWN_CHARACTERS], "key_hash": hash_token(key), "days": days}
    (made,) = await fetch_rows(connection, QUERIES.insert_key, values)
    await record(connection, caller.owner_id, "key.add", made["id"], scope=scope)
    return NewKey(**made, key=key)


async def list_keys(connection: Connection, caller: Caller) -> list[KeyView]:
    """List the caller's API keys or, if the caller may manage the account, the API keys of all members."""
    return [KeyView(**row) for row in await fetch_rows(connection, QUERIES.list_keys, _whose(caller))]


async def revoke_key(connection: Connection, caller: Caller, key_id: UUID) -> None:
    """Revoke a key; it stops working immediately."""
    cursor = await connection.execute(QUERIES.revoke_key, {"key": key_id, **_whose(caller)})
    if cursor.rowcount == 0:
        raise NotFound
    await record(connection, caller.owner_id, "key.revoke", key_id)


async def read_key(connection: Connection, key: str) -> Caller | None:
    """Return the caller to whom an API key belongs.

    Returns None if the key is invalid or its creator is no longer a member.
    """
    rows = await fetch_rows(connection, QUERIES.read_key, {"key_hash": hash_token(key)})
    return Caller(**rows[0]) if rows else None


def _whose(caller: Caller) -> dict[str, Any]:
    """Return query parameters for selecting the API keys that the caller may manage."""
    if not caller.may_grant("read"):
        raise NotAllowed("Only signed-in users and keys with the admin scope can see and change keys.")
    return {"owner": caller.owner_id, "user": caller.user_id, "everybodys": caller.may_manage}


class ProviderRefused(BadInput):
    """Signing in with the provider failed."""

    code = "PROVIDER_REFUSED"
    error_class = ErrorClass.PERMANENT
    status = 403


class ProviderFailed(OctavoError):
    """The sign-in provider could not be reached or sent an invalid response. Try again later."""

    code = "PROVIDER_FAILED"
    error_class = ErrorClass.TRANSIENT
    status = 502


class IdentityTaken(BadInput):
    """This identity is already connected to another account."""

    code = "IDENTITY_TAKEN"
    error_class = ErrorClass.PERMANENT
    status = 409


class LastSignIn(BadInput):
    """This is your only way to sign in. Set a password first."""

    code = "LAST_SIGN_IN"
    error_class = ErrorClass.PERMANENT
    status = 409


class LinkRefused(BadInput):
    """This link is invalid, expired or already used. Ask for a new one."""

    code = "ACCOUNT_LINK_REFUSED"
    error_class = ErrorClass.PERMANENT
    status = 403


class CodeRequired(BadInput):
    """Enter the code from your authenticator app."""

    code = "SECOND_FACTOR_REQUIRED"
    error_class = ErrorClass.PERMANENT
    status = 401


class WrongCode(BadInput):
    """Wrong code. A code works once, for about a minute."""

    code = "WRONG_CODE"
    error_class = ErrorClass.PERMANENT
    status = 401


class NoSecondFactor(BadInput):
    """Set up an authenticator app first."""

    code = "NO_SECOND_FACTOR"
    error_class = ErrorClass.PERMANENT
    status = 409


class OwnerSeesAll(BadInput):
    """Members with the role owner see all collections. Choose another role first."""

    code = "OWNER_SEES_ALL"
    error_class = ErrorClass.PERMANENT
    status = 409


class GroupNameTaken(BadInput):
    """A group with this name already exists."""

    code = "GROUP_NAME_TAKEN"
    error_class = ErrorClass.PERMANENT
    status = 409
