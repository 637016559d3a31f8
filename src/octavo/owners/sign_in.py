"""One-time sign-in links and the sessions they open. Only hashes are kept, so a leaked dump signs nobody in."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from uuid import UUID

from psycopg.rows import class_row

from octavo.database import Connection, load_queries
from octavo.model.errors import SignInRefused
from octavo.model.ids import new_id

QUERIES = load_queries("owners")
LINK_SECONDS = 15 * 60
SESSION_SECONDS = 30 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Owner:
    id: UUID
    kind: str

    @property
    def is_admin(self) -> bool:
        return self.kind == "local"


async def ensure_local_owner(connection: Connection) -> None:
    """The owner of this installation's own machine, who is its administrator."""
    await connection.execute(QUERIES.ensure_local_owner, {"id": new_id()})


async def make_sign_in_link(connection: Connection) -> str:
    """A token that signs one browser in as the local owner, once and soon."""
    token = secrets.token_urlsafe(32)
    await ensure_local_owner(connection)
    await connection.execute(QUERIES.insert_link, {"token_hash": hash_token(token), "seconds": LINK_SECONDS})
    return token


async def use_sign_in_link(connection: Connection, token: str) -> str:
    """Turn a link into a session and answer the session's secret; a link works once, also under a race."""
    secret = secrets.token_urlsafe(32)
    cursor = await connection.execute(
        QUERIES.use_link,
        {"token_hash": hash_token(token), "session_hash": hash_token(secret), "seconds": SESSION_SECONDS},
    )
    if await cursor.fetchone() is None:
        raise SignInRefused
    return secret


async def read_session(connection: Connection, secret: str) -> Owner | None:
    """The owner that a browser acts for, while its session lasts."""
    async with connection.cursor(row_factory=class_row(Owner)) as cursor:
        await cursor.execute(QUERIES.session_owner, {"session_hash": hash_token(secret)})
        return await cursor.fetchone()


def hash_token(token: str) -> bytes:
    """Tokens are long and random, so a plain hash is as good as a slow one."""
    return hashlib.sha256(token.encode()).digest()
