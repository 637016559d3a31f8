"""Invitations: one-time links that make people members of an account."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from octavo.core.errors import AlreadyMember, NotAllowed, NotFound
from octavo.core.ids import hash_token, new_id, new_token
from octavo.database import Connection, fetch_rows, load_queries
from octavo.owners.accounts import first_owner, insert_user
from octavo.owners.audit import record
from octavo.owners.callers import Caller, Role
from octavo.owners.errors import LinkRefused
from octavo.owners.members import refuse_limited_owner, switch_owner
from octavo.owners.sessions import open_session
from octavo.records.account import Invitation

QUERIES = load_queries("access")
MEMBERS = load_queries("members")
DEFAULT_DAYS, MOST_DAYS = 7, 90


@dataclass(frozen=True, slots=True)
class OpenInvitation:
    """An invitation that can be accepted. `known`: whether there is an account with the invited address."""

    id: UUID
    owner_id: UUID
    email: str
    role: Role
    account: str
    known: bool


async def invite(
    connection: Connection, caller: Caller, email: str, role: Role, days: int = DEFAULT_DAYS, *, limited: bool = False
) -> tuple[Invitation, str]:
    """Create an invitation. Returns it with its token, which is not stored."""
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
    """Return the invitation of a link, if it can still be accepted. This does not use up the link."""
    rows = await fetch_rows(connection, QUERIES.find_invitation, {"token_hash": hash_token(token)})
    if not rows:
        raise LinkRefused
    return OpenInvitation(**rows[0])


async def accept(connection: Connection, token: str, user_id: UUID) -> UUID:
    """Make a signed-in person a member. Returns the account that the person joined."""
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
