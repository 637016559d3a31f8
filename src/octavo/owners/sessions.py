"""Browser sessions of anonymous visitors, signed-in people, and the local owner (the administrator on this machine).

The local owner signs in with links that work once.

This module also checks the second factor: codes from an authenticator app (TOTP, RFC 6238) and recovery codes. Each
code works once. A code from the app is valid for its time step of 30 seconds and for the steps before and after it.
"""

from __future__ import annotations

import hmac
import secrets
from base64 import b32decode, b32encode
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode
from uuid import UUID

from psycopg.rows import dict_row

from octavo.choreography import Cause, compare_documents
from octavo.core.errors import NotAllowed, NotFound, SignInRefused
from octavo.core.types import hash_token, new_id, new_token
from octavo.database import Connection, fetch_rows, load_queries
from octavo.owners.audit import record
from octavo.owners.callers import Caller, NoSecondFactor, WrongCode
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


async def open_session(
    connection: Connection,
    owner_id: UUID,
    user_id: UUID | None,
    *,
    replacing: str | None,
    fixed_seconds: float | None = None,
) -> str:
    """Replace the browser's old session with a new one.

    Returns the secret of the new session. If the old session belongs to an anonymous visitor, the visitor's documents
    are moved to the new account. With `fixed_seconds`, the session ends after this time, even if it is in use.
    """
    visitor = await end_session(connection, replacing)
    if visitor:
        values = {"visitor": visitor, "person": owner_id}
        merged = await (await connection.execute(QUERIES.merge_visitor, values)).fetchone()
        if merged:
            await compare_documents(connection, Cause.VISITOR_MERGED, merged[0], f"of:{visitor}")
    return await insert_session(connection, owner_id, user_id, fixed_seconds)


async def insert_session(
    connection: Connection, owner_id: UUID, user_id: UUID | None, fixed_seconds: float | None = None
) -> str:
    secret = new_token()
    values: dict[str, Any] = {"session_hash": hash_token(secret), "owner": owner_id, "user": user_id}
    values |= {"seconds": fixed_seconds or SESSION_SECONDS, "fixed": fixed_seconds is not None}
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
    """List the caller's sessions. The session with this secret comes first."""
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
    """Return the link that the user opens to sign in. `address` is the base URL of the web server."""
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


FACTOR_QUERIES = load_queries("access")
STEP_SECONDS = 30
DIGITS = 6
SECRET_BYTES = 20
RECOVERY_CODES = 10
RECOVERY_BYTES = 10
# Decrypts a stored secret. Returns None if it was encrypted with another key.
Reveal = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class SecondFactor:
    """The second factor of a person. It is required if `confirmed_at` is set."""

    secret: str
    confirmed_at: datetime | None
    last_step: int
    now: datetime
    codes_left: int


# Codes -------------------------------------------------------------------------------------------------------------


def new_secret() -> str:
    return b32encode(secrets.token_bytes(SECRET_BYTES)).decode()


def code_at(secret: str, step: int) -> str:
    """Return the code of a time step, as RFC 4226 and RFC 6238 define it."""
    mark = hmac.digest(b32decode(secret), step.to_bytes(8), "sha1")
    start = mark[-1] & 15
    number = int.from_bytes(mark[start : start + 4]) & 0x7FFFFFFF
    return f"{number % 10**DIGITS:0{DIGITS}}"


def find_step(secret: str, code: str, now: datetime) -> int | None:
    """Return the time step that a code belongs to. Returns None if the code is not valid now."""
    current = int(now.timestamp()) // STEP_SECONDS
    given = code.replace(" ", "").encode()
    steps = (current, current - 1, current + 1)
    return next((step for step in steps if hmac.compare_digest(code_at(secret, step).encode(), given)), None)


def app_link(secret: str, email: str, issuer: str = "Octavo") -> str:
    """Return the link that adds the secret to an authenticator app."""
    query = urlencode({"secret": secret, "issuer": issuer, "digits": DIGITS, "period": STEP_SECONDS}, quote_via=quote)
    return f"otpauth://totp/{quote(f'{issuer}:{email}')}?{query}"


def new_recovery_codes() -> list[str]:
    return [_grouped(b32encode(secrets.token_bytes(RECOVERY_BYTES)).decode().lower()) for _ in range(RECOVERY_CODES)]


def _grouped(code: str) -> str:
    return "-".join(code[at : at + 4] for at in range(0, len(code), 4))


# Stored secrets ----------------------------------------------------------------------------------------------------


async def read_second_factor(connection: Connection, user_id: UUID) -> SecondFactor | None:
    rows = await fetch_rows(connection, FACTOR_QUERIES.second_factor, {"user": user_id})
    return SecondFactor(**rows[0]) if rows else None


async def is_required(connection: Connection, user_id: UUID) -> bool:
    found = await read_second_factor(connection, user_id)
    return found is not None and found.confirmed_at is not None


async def begin(connection: Connection, user_id: UUID, sealed: str) -> None:
    """Start setting up a second factor: store the encrypted secret of the authenticator app.

    Codes from the app are required for signing in only after `confirm`.
    """
    await connection.execute(FACTOR_QUERIES.begin_second_factor, {"user": user_id, "secret": sealed})


async def confirm(connection: Connection, user_id: UUID, owner_id: UUID, code: str, reveal: Reveal) -> list[str]:
    """Require the second factor from now on. Returns the recovery codes. Only their hashes are stored."""
    await _use_code(connection, user_id, code, reveal)
    await connection.execute(FACTOR_QUERIES.confirm_second_factor, {"user": user_id})
    await record(connection, owner_id, "account.second_factor", user_id, change="enabled")
    return await renew_recovery_codes(connection, user_id)


async def renew_recovery_codes(connection: Connection, user_id: UUID) -> list[str]:
    codes = new_recovery_codes()
    values = {"user": user_id, "hashes": [hash_token(_plain(code)) for code in codes]}
    await connection.execute(FACTOR_QUERIES.replace_recovery_codes, values)
    return codes


async def disable(connection: Connection, user_id: UUID, owner_id: UUID, code: str, reveal: Reveal) -> None:
    await use_any_code(connection, user_id, code, reveal)
    await connection.execute(FACTOR_QUERIES.delete_second_factor, {"user": user_id})
    await record(connection, owner_id, "account.second_factor", user_id, change="disabled")


async def use_any_code(connection: Connection, user_id: UUID, code: str, reveal: Reveal) -> None:
    """Use a code from the app, or a recovery code. Raises `WrongCode` if it is not valid."""
    if len(_plain(code)) == DIGITS:
        return await _use_code(connection, user_id, code, reveal)
    values = {"user": user_id, "code_hash": hash_token(_plain(code))}
    if (await connection.execute(FACTOR_QUERIES.use_recovery_code, values)).rowcount == 0:
        raise WrongCode
    return None


async def _use_code(connection: Connection, user_id: UUID, code: str, reveal: Reveal) -> None:
    found = await read_second_factor(connection, user_id)
    if found is None:
        raise NoSecondFactor
    secret = reveal(found.secret)
    step = find_step(secret, _plain(code), found.now) if secret else None
    if (
        step is None
        or (await connection.execute(FACTOR_QUERIES.use_step, {"user": user_id, "step": step})).rowcount == 0
    ):
        raise WrongCode


def _plain(code: str) -> str:
    return code.replace(" ", "").replace("-", "").lower()
