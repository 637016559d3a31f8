"""Tokens that work once: links for setting a new password, and sign-ins that still need the second factor."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from octavo.core.errors import NotFound
from octavo.core.ids import hash_token, new_token
from octavo.database import Connection, fetch_rows, load_queries
from octavo.owners.accounts import Account, find_account
from octavo.owners.audit import record
from octavo.owners.errors import LinkRefused

QUERIES = load_queries("access")
RESET_SECONDS = 60 * 60
CODE_SECONDS = 5 * 60
Purpose = Literal["password", "code"]


@dataclass(frozen=True, slots=True)
class LinkedPerson:
    user_id: UUID
    email: str


async def make_reset_token(connection: Connection, account: Account, *, clears: bool = False) -> tuple[str, datetime]:
    """Create the token of a link that sets a new password. Earlier links of this person stop working.

    `clears`: whether the link also removes the second factor. Returns the token and its expiry time.
    """
    made = await _insert(connection, "password", account.id, RESET_SECONDS, clears=clears)
    await record(connection, account.owner_id, "account.reset_link", account.id, clears=str(clears).lower())
    return made


async def make_reset_token_for(connection: Connection, email: str, *, clears: bool = False) -> tuple[str, datetime]:
    """Create a link for the person with this address. Only for administrators."""
    account = await find_account(connection, email)
    if account is None:
        raise NotFound("There is no account with this address.")
    return await make_reset_token(connection, account, clears=clears)


async def make_code_token(connection: Connection, user_id: UUID) -> str:
    """Create the token with which a person sends the code of the second factor. The password was already correct."""
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
