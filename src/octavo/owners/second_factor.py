"""The second factor: codes of an authenticator app (TOTP, RFC 6238), and recovery codes.

A code is valid for its time step of 30 seconds and the steps before and after it, and works once.
"""

from __future__ import annotations

import hmac
import secrets
from base64 import b32decode, b32encode
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote, urlencode
from uuid import UUID

from octavo.core.ids import hash_token
from octavo.database import Connection, fetch_rows, load_queries
from octavo.owners.audit import record
from octavo.owners.errors import NoSecondFactor, WrongCode

QUERIES = load_queries("access")
STEP_SECONDS = 30
DIGITS = 6
SECRET_BYTES = 20
RECOVERY_CODES = 10
RECOVERY_BYTES = 10
# Decrypts a stored secret; None if it was encrypted with another key.
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
    """Return the time step of a code, or None if the code is not valid now."""
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
    rows = await fetch_rows(connection, QUERIES.second_factor, {"user": user_id})
    return SecondFactor(**rows[0]) if rows else None


async def is_required(connection: Connection, user_id: UUID) -> bool:
    found = await read_second_factor(connection, user_id)
    return found is not None and found.confirmed_at is not None


async def begin(connection: Connection, user_id: UUID, sealed: str) -> None:
    """Start to set up a second factor: store the encrypted secret of the authenticator app.

    Codes from the app are required for signing in only after `confirm`.
    """
    await connection.execute(QUERIES.begin_second_factor, {"user": user_id, "secret": sealed})


async def confirm(connection: Connection, user_id: UUID, owner_id: UUID, code: str, reveal: Reveal) -> list[str]:
    """Require the second factor from now on. Returns the recovery codes, which are not stored."""
    await _use_code(connection, user_id, code, reveal)
    await connection.execute(QUERIES.confirm_second_factor, {"user": user_id})
    await record(connection, owner_id, "account.second_factor", user_id, change="enabled")
    return await renew_recovery_codes(connection, user_id)


async def renew_recovery_codes(connection: Connection, user_id: UUID) -> list[str]:
    codes = new_recovery_codes()
    values = {"user": user_id, "hashes": [hash_token(_plain(code)) for code in codes]}
    await connection.execute(QUERIES.replace_recovery_codes, values)
    return codes


async def disable(connection: Connection, user_id: UUID, owner_id: UUID, code: str, reveal: Reveal) -> None:
    await use_any_code(connection, user_id, code, reveal)
    await connection.execute(QUERIES.delete_second_factor, {"user": user_id})
    await record(connection, owner_id, "account.second_factor", user_id, change="disabled")


async def use_any_code(connection: Connection, user_id: UUID, code: str, reveal: Reveal) -> None:
    """Use a code from the app or a recovery code. Raises `WrongCode`."""
    if len(_plain(code)) == DIGITS:
        return await _use_code(connection, user_id, code, reveal)
    values = {"user": user_id, "code_hash": hash_token(_plain(code))}
    if (await connection.execute(QUERIES.use_recovery_code, values)).rowcount == 0:
        raise WrongCode
    return None


async def _use_code(connection: Connection, user_id: UUID, code: str, reveal: Reveal) -> None:
    found = await read_second_factor(connection, user_id)
    if found is None:
        raise NoSecondFactor
    secret = reveal(found.secret)
    step = find_step(secret, _plain(code), found.now) if secret else None
    if step is None or (await connection.execute(QUERIES.use_step, {"user": user_id, "step": step})).rowcount == 0:
        raise WrongCode


def _plain(code: str) -> str:
    return code.replace(" ", "").replace("-", "").lower()
