"""Browsers that act for an owner: anonymous visitors, people, and the owner of this machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg.rows import dict_row

from octavo.choreography import Cause, compare_documents
from octavo.core.ids import new_id
from octavo.database import Connection, load_queries
from octavo.owners.callers import Caller
from octavo.owners.tokens import hash_token, new_token

QUERIES = load_queries("owners")
SESSION_SECONDS = 30 * 24 * 3600
# A session that is used goes on; it is written down at most once a day.
RENEWED_BELOW_SECONDS = SESSION_SECONDS - 24 * 3600


@dataclass(frozen=True, slots=True)
class OpenSession:
    """`renewed`: it now lasts longer than the browser's cookie."""

    caller: Caller
    renewed: bool


async def open_anonymous_session(connection: Connection) -> tuple[str, Caller]:
    """A new owner for somebody who just came, and the secret by which the browser is known again."""
    owner_id = new_id()
    await connection.execute(QUERIES.insert_owner, {"id": owner_id, "kind": "anonymous"})
    secret = await insert_session(connection, owner_id, None)
    return secret, Caller(owner_id, "anonymous", None, "owner", "write", "session")


async def open_session(connection: Connection, owner_id: UUID, user_id: UUID | None, *, replacing: str | None) -> str:
    """A new session instead of the browser's old one; what a visitor collected in that one becomes the owner's."""
    visitor = await end_session(connection, replacing)
    if visitor:
        values = {"visitor": visitor, "person": owner_id}
        merged = await (await connection.execute(QUERIES.merge_visitor, values)).fetchone()
        if merged:
            await compare_documents(connection, Cause.VISITOR_MERGED, merged[0], f"of:{visitor}")
    return await insert_session(connection, owner_id, user_id)


async def insert_session(connection: Connection, owner_id: UUID, user_id: UUID | None) -> str:
    secret = new_token()
    values = {"session_hash": hash_token(secret), "owner": owner_id, "user": user_id, "seconds": SESSION_SECONDS}
    await connection.execute(QUERIES.insert_session, values)
    return secret


async def read_session(connection: Connection, secret: str, *, renew: bool = True) -> OpenSession | None:
    """Whom a browser acts for, while its session lasts and the person is a member."""
    below = RENEWED_BELOW_SECONDS if renew else 0
    values = {"session_hash": hash_token(secret), "seconds": SESSION_SECONDS, "below": below}
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(QUERIES.read_session, values)
        row: dict[str, Any] | None = await cursor.fetchone()
    if row is None:
        return None
    renewed = row.pop("renewed")
    return OpenSession(Caller(**row), renewed)


async def end_session(connection: Connection, secret: str | None) -> UUID | None:
    """Answers the owner that it was for when that was an anonymous one, whose only way in it may have been."""
    if not secret:
        return None
    cursor = await connection.execute(QUERIES.end_session, {"session_hash": hash_token(secret)})
    row = await cursor.fetchone()
    return row[0] if row and row[1] == "anonymous" else None


async def end_other_sessions(connection: Connection, user_id: UUID, secret: str) -> None:
    """Everywhere else where this person is signed in."""
    await connection.execute(QUERIES.end_other_sessions, {"user": user_id, "session_hash": hash_token(secret)})
