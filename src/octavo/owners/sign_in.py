"""The owner of this installation's own machine, and the one-time links that make a browser theirs."""

from __future__ import annotations

from uuid import UUID

from octavo.core.errors import SignInRefused
from octavo.core.ids import new_id
from octavo.database import Connection, load_queries
from octavo.owners.sessions import open_session
from octavo.owners.tokens import hash_token, new_token

QUERIES = load_queries("owners")
LINK_SECONDS = 15 * 60


async def ensure_local_owner(connection: Connection) -> None:
    """The owner of this installation's own machine, who is its administrator."""
    await connection.execute(QUERIES.ensure_local_owner, {"id": new_id()})


async def local_owner(connection: Connection) -> UUID:
    """Made when it is not there yet."""
    await ensure_local_owner(connection)
    row = await (await connection.execute(QUERIES.local_owner)).fetchone()
    if row is None:
        raise AssertionError("the local owner was just made")
    return row[0]


async def make_sign_in_link(connection: Connection) -> str:
    """A token that signs one browser in as the local owner, once and soon."""
    token = new_token()
    await ensure_local_owner(connection)
    await connection.execute(QUERIES.insert_link, {"token_hash": hash_token(token), "seconds": LINK_SECONDS})
    return token


async def use_sign_in_link(connection: Connection, token: str, *, replacing: str | None = None) -> str:
    """Turn a link into a session and answer the session's secret; a link works once, also under a race."""
    row = await (await connection.execute(QUERIES.use_link, {"token_hash": hash_token(token)})).fetchone()
    if row is None:
        raise SignInRefused
    return await open_session(connection, row[0], None, replacing=replacing)
