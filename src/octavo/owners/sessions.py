"""Browser sessions of anonymous visitors, of signed-in people, and of the administrator on this machine (the local
owner). The local owner signs in with links that work once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg.rows import dict_row

from octavo.choreography import Cause, compare_documents
from octavo.core.errors import NotAllowed, NotFound, SignInRefused
from octavo.core.ids import hash_token, new_id, new_token
from octavo.database import Connection, fetch_rows, load_queries
from octavo.owners.audit import record
from octavo.owners.callers import Caller
from octavo.records.account import SessionView

QUERIES = load_queries("owners")
ACCESS = load_queries("access")
SESSION_SECONDS = 30 * 24 * 3600
LINK_SECONDS = 15 * 60
# A session in use is extended, at most once a day.
RENEWED_BELOW_SECONDS = SESSION_SECONDS - 24 * 3600


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A valid session. `renewed` is true if it was extended, so that the browser needs a new cookie."""

    caller: Caller
    renewed: bool


async def open_anonymous_session(connection: Connection) -> tuple[str, Caller]:
    """Create an account for an anonymous visitor, and open a session for it.

    Returns the secret for the browser's cookie, and the caller.
    """
    owner_id = new_id()
    await connection.execute(QUERIES.insert_owner, {"id": owner_id, "kind": "anonymous"})
    secret = await insert_session(connection, owner_id, None)
    return secret, Caller(owner_id, "anonymous", None, "owner", "write", "session")


async def open_session(connection: Connection, owner_id: UUID, user_id: UUID | None, *, replacing: str | None) -> str:
    """Replace the browser's old session with a new one.

    Returns the secret of the new session. If the old session belongs to an anonymous visitor, the visitor's documents
    are moved to the new account.
    """
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
    """Return the session with this secret.

    Returns None if the session is invalid or has expired, or if the person is no longer a member of the account.
    """
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
    """End a session.

    If it belonged to an anonymous visitor, returns the visitor's account id, so that the visitor's documents can be
    moved.
    """
    if not secret:
        return None
    cursor = await connection.execute(QUERIES.end_session, {"session_hash": hash_token(secret)})
    row = await cursor.fetchone()
    return row[0] if row and row[1] == "anonymous" else None


async def end_other_sessions(connection: Connection, user_id: UUID, secret: str) -> None:
    """End all sessions of this person except the one with this secret."""
    await connection.execute(QUERIES.end_other_sessions, {"user": user_id, "session_hash": hash_token(secret)})


async def list_sessions(connection: Connection, caller: Caller, secret: str) -> list[SessionView]:
    """List the sessions of the caller, beginning with the one with this secret."""
    values = {**_whose(caller), "session_hash": hash_token(secret)}
    return [SessionView(**row) for row in await fetch_rows(connection, ACCESS.list_sessions, values)]


async def revoke_session(connection: Connection, caller: Caller, session: UUID) -> None:
    """End one of the caller's sessions."""
    cursor = await connection.execute(ACCESS.revoke_session, {**_whose(caller), "session": session})
    if cursor.rowcount == 0:
        raise NotFound
    await record(connection, caller.owner_id, "session.revoke", session)


def _whose(caller: Caller) -> dict[str, Any]:
    if caller.via != "session" or caller.is_anonymous:
        raise NotAllowed("Sign in with a browser to do this.")
    return {"user": caller.user_id, "owner": caller.owner_id}


async def ensure_local_owner(connection: Connection) -> None:
    """Create the local owner if it does not exist. It is the administrator's account on this machine."""
    await connection.execute(QUERIES.ensure_local_owner, {"id": new_id()})


async def local_owner(connection: Connection) -> UUID:
    """Return the id of the local owner (the administrator's account on this machine). Creates it if necessary."""
    await ensure_local_owner(connection)
    row = await (await connection.execute(QUERIES.local_owner)).fetchone()
    if row is None:
        raise AssertionError("the local owner was just created")
    return row[0]


async def make_sign_in_link(connection: Connection) -> str:
    """Create a token that signs in one browser as the local owner (the administrator's account on this machine).

    It can be used once, within 15 minutes.
    """
    token = new_token()
    await ensure_local_owner(connection)
    await connection.execute(QUERIES.insert_link, {"token_hash": hash_token(token), "seconds": LINK_SECONDS})
    return token


def sign_in_url(address: str, token: str) -> str:
    """Return the link that the user opens to sign in. `address` is the address of the web server."""
    return f"{address}/sign-in?token={token}"


async def is_sign_in_link(connection: Connection, token: str) -> bool:
    """Whether this token can still be used. The check does not use up the token."""
    return bool(await (await connection.execute(QUERIES.is_link, {"token_hash": hash_token(token)})).fetchone())


async def use_sign_in_link(connection: Connection, token: str, *, replacing: str | None = None) -> str:
    """Exchange the token of a sign-in link for a session and return its secret.

    A link works once, even if two requests use it at the same time.
    """
    row = await (await connection.execute(QUERIES.use_link, {"token_hash": hash_token(token)})).fetchone()
    if row is None:
        raise SignInRefused
    await record(connection, row[0], "account.sign_in", row[0], actor=row[0], by="link")
    return await open_session(connection, row[0], None, replacing=replacing)
