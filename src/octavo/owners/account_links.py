"""One-time tokens for links that set a new password, for sign-ins with a second factor, and for invitations.

An invitation is a link that makes a person a member of an account.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from octavo.core.errors import AlreadyMember, NotAllowed, NotFound
from octavo.core.types import hash_token, new_id, new_token
from octavo.database import Connection, fetch_rows, load_queries
from octavo.owners.accounts import Account, find_account, first_owner, insert_user
from octavo.owners.audit import record
from octavo.owners.callers import Caller, LinkRefused, Role
from octavo.owners.members import refuse_limited_owner, switch_owner
from octavo.owners.sessions import open_session
from octavo.records.account import Invitation

QUERIES = load_queries("access")
RESET_SECONDS = 60 * 60
CODE_SECONDS = 5 * 60
Purpose = Literal["password", "code"]


@dataclass(frozen=True, slots=True)
class LinkedPerson:
    user_id: UUID
    email: str


async def make_reset_token(connection: Connection, account: Account, *, clears: bool = False) -> tuple[str, datetime]:
    """Create the token of a link that sets a new password. Returns the token and its expiry time.

    The person's earlier links stop working. If `clears` is true, the link also removes the second factor.
    """
    made = await _insert(connection, "password", account.id, RESET_SECONDS, clears=clears)
    await record(connection, account.owner_id, "account.reset_link", account.id, clears=str(clears).lower())
    return made


async def make_reset_token_for(connection: Connection, email: str, *, clears: bool = False) -> tuple[str, datetime]:
    """Create the token of a password link for the person with this email address. Only for administrators."""
    account = await find_account(connection, email)
    if account is None:
        raise NotFound("There is no account with this address.")
    return await make_reset_token(connection, account, clears=clears)


async def make_code_token(connection: Connection, user_id: UUID) -> str:
    """Create a token for a sign-in that still needs the second factor. Verify the password first."""
    return (await _insert(connection, "code", user_id, CODE_SECONDS))[0]


async def find_person(connection: Connection, purpose: Purpose, token: str) -> LinkedPerson:
    """Return the person to whom a link belongs. This does not use up the link."""
    values = {"token_hash": hash_token(token), "purpose": purpose}
    rows = await fetch_rows(connection, QUERIES.find_account_link, values)
    if not rows:
        raise LinkRefused
    return LinkedPerson(**rows[0])


async def use_code_token(connection: Connection, token: str) -> UUID:
    return (await _use(connection, "code", token))[0]


async def set_password(connection: Connection, token: str, password_hash: str) -> UUID:
    """Set a new password with a link, and end all sessions of the person. Returns the person's id."""
    user_id, clears = await _use(connection, "password", token)
    ((owner_id,),) = await (
        await connection.execute(QUERIES.set_password, {"user": user_id, "password_hash": password_hash})
    ).fetchall()
    await connection.execute(QUERIES.end_sessions_of, {"user": user_id})
    await connection.execute(QUERIES.delete_account_links, {"user": user_id})
    if clears:
        await connection.execute(QUERIES.delete_second_factor, {"user": user_id})
    await record(connection, owner_id, "account.password", user_id, actor=user_id, by="link")
    return user_id


async def _insert(
    connection: Connection, purpose: Purpose, user_id: UUID, seconds: int, *, clears: bool = False
) -> tuple[str, datetime]:
    token = new_token()
    values = {"token_hash": hash_token(token), "purpose": purpose, "user": user_id, "clears": clears}
    (row,) = await fetch_rows(connection, QUERIES.insert_account_link, {**values, "seconds": seconds})
    return token, row["expires_at"]


async def _use(connection: Connection, purpose: Purpose, token: str) -> tuple[UUID, bool]:
    values = {"token_hash": hash_token(token), "purpose": purpose}
    rows = await fetch_rows(connection, QUERIES.use_account_link, values)
    if not rows:
        raise LinkRefused
    return rows[0]["user_id"], rows[0]["clears_second_factor"]


MEMBERS = load_queries("members")
DEFAULT_DAYS, MOST_DAYS = 7, 90


@dataclass(frozen=True, slots=True)
class OpenInvitation:
    """An invitation that can be accepted. `known` is true if there is an account with the invited email address."""

    id: UUID
    owner_id: UUID
    email: str
    role: Role
    account: str
    known: bool


async def invite(
    connection: Connection, caller: Caller, email: str, role: Role, days: int = DEFAULT_DAYS, *, limited: bool = False
) -> tuple[Invitation, str]:
    """Create an invitation. Returns the invitation and its token. Only a hash of the token is stored."""
    _require_manager(caller)
    refuse_limited_owner(role, limited=limited)
    token = new_token()
    values = {"id": new_id(), "owner": caller.owner_id, "email": email, "role": role, "days": days, "limited": limited}
    (row,) = await fetch_rows(connection, QUERIES.insert_invitation, {**values, "token_hash": hash_token(token)})
    made = Invitation(**row)
    await record(connection, caller.owner_id, "invitation.add", made.id, role=role)
    return made, token


async def list_invitations(connection: Connection, caller: Caller) -> list[Invitation]:
    _require_manager(caller)
    rows = await fetch_rows(connection, QUERIES.list_invitations, {"owner": caller.owner_id})
    return [Invitation(**row) for row in rows]


async def withdraw(connection: Connection, caller: Caller, invitation: UUID) -> None:
    _require_manager(caller)
    values = {"owner": caller.owner_id, "invitation": invitation}
    if (await connection.execute(QUERIES.delete_invitation, values)).rowcount == 0:
        raise NotFound
    await record(connection, caller.owner_id, "invitation.withdraw", invitation)


async def find_invitation(connection: Connection, token: str) -> OpenInvitation:
    """Return the invitation that a link belongs to. Raises `LinkRefused` if it can no longer be accepted.

    This does not use up the link.
    """
    rows = await fetch_rows(connection, QUERIES.find_invitation, {"token_hash": hash_token(token)})
    if not rows:
        raise LinkRefused
    return OpenInvitation(**rows[0])


async def accept(connection: Connection, token: str, user_id: UUID) -> UUID:
    """Accept an invitation: make the person a member of the account. Returns the id of the account."""
    rows = await fetch_rows(connection, QUERIES.use_invitation, {"token_hash": hash_token(token)})
    if not rows:
        raise LinkRefused
    owner_id, role = rows[0]["owner_id"], rows[0]["role"]
    values = {"owner": owner_id, "user": user_id, "role": role, "limited": rows[0]["limited"]}
    if (await connection.execute(MEMBERS.add_member, values)).rowcount == 0:
        raise AlreadyMember
    await record(connection, owner_id, "member.add", user_id, actor=user_id, role=role, by="invitation")
    return owner_id


async def accept_as_new_person(
    connection: Connection, token: str, password_hash: str, *, replacing: str | None = None
) -> str:
    """Accept an invitation as a person without an account: create the account, and sign in.

    Returns the secret of the new session, which starts in the account that the person was invited to. If the person
    used Octavo as a visitor before, `replacing` is the secret of the visitor's session. The visitor's documents are
    moved to the person's own account.
    """
    invitation = await find_invitation(connection, token)
    user_id = await insert_user(connection, invitation.email, password_hash)
    owner_id = await accept(connection, token, user_id)
    secret = await open_session(connection, await first_owner(connection, user_id), user_id, replacing=replacing)
    await switch_owner(connection, user_id, secret, owner_id)
    return secret


def _require_manager(caller: Caller) -> None:
    if not caller.may_manage:
        raise NotAllowed
