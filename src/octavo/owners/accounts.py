"""User accounts with an email address and a password.

Passwords are hashed with argon2id. This is slow, so it happens in threads before a transaction starts, and functions
with a connection take hashes instead of passwords. At most two passwords are hashed in parallel, because each takes 64
MB and several CPUs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import UUID

from argon2 import PasswordHasher
from argon2.exceptions import VerificationError

from octavo.core.errors import EmailTaken, NotFound, WeakPassword, WrongCredentials
from octavo.core.http import Page, make_cursor, read_cursor
from octavo.core.types import new_id
from octavo.database import Connection, fetch_rows, load_queries
from octavo.owners.audit import record
from octavo.owners.callers import Caller
from octavo.owners.sessions import end_other_sessions, end_session, insert_session, open_session
from octavo.records.account import UserAccount

QUERIES = load_queries("accounts")
OWNERS = load_queries("owners")
ACCESS = load_queries("access")


@dataclass(frozen=True, slots=True)
class Account:
    """A person's account. `password_hash` is None if the person signs in only with a provider."""

    id: UUID
    email: str
    password_hash: str | None = field(repr=False)
    owner_id: UUID
    language: str | None = None


async def find_account(connection: Connection, email: str) -> Account | None:
    rows = await fetch_rows(connection, QUERIES.account_by_email, {"email": email})
    return Account(**rows[0]) if rows else None


async def read_account(connection: Connection, user_id: UUID) -> Account | None:
    rows = await fetch_rows(connection, QUERIES.account_by_id, {"user": user_id})
    return Account(**rows[0]) if rows else None


async def set_language(connection: Connection, caller: Caller, language: str | None) -> None:
    """Store the language of a person's pages and emails. None removes it. The language of visitors is not stored."""
    if not caller.is_anonymous:
        values = {"user": caller.user_id, "owner": caller.owner_id, "language": language}
        await connection.execute(QUERIES.set_language, values)


async def set_language_of(connection: Connection, email: str, language: str | None) -> None:
    """Store the language of another person, on behalf of an administrator."""
    if (account := await find_account(connection, email)) is None:
        raise NotFound("There is no account with this address.")
    values = {"user": account.id, "owner": account.owner_id, "language": language}
    await connection.execute(QUERIES.set_language, values)


async def sign_up(connection: Connection, email: str, password_hash: str, *, replacing: str | None) -> str:
    """Create a user account and open its first session. Returns the secret of the session.

    If `replacing` is the secret of an anonymous visitor's session, the visitor's documents become documents of the new
    account.
    """
    visitor = await end_session(connection, replacing)
    adopted = await _adopt(connection, visitor) if visitor else None
    owner_id = adopted or await _new_owner(connection)
    user_id = await insert_user(connection, email, password_hash, owner_id)
    await record(connection, owner_id, "account.sign_up", user_id, actor=user_id)
    return await insert_session(connection, owner_id, user_id)


async def insert_user(
    connection: Connection, email: str, password_hash: str | None, owner_id: UUID | None = None
) -> UUID:
    """Create a person with the role `owner` in a new account, or in the account `owner_id`. Returns the person's id."""
    home = owner_id or await _new_owner(connection)
    values = {"id": new_id(), "email": email, "password_hash": password_hash, "owner": home}
    row = await (await connection.execute(QUERIES.insert_user, values)).fetchone()
    if row is None:
        raise EmailTaken
    return row[0]


async def sign_in(connection: Connection, account: Account, password_hash: str, *, replacing: str | None) -> str:
    """Open a session after the password has been verified.

    Raises `WrongCredentials` if the password was changed in the meantime.
    """
    await _keep_password(connection, account, password_hash)
    return await open_for(connection, account.id, by="password", replacing=replacing)


async def open_for(connection: Connection, user_id: UUID, *, by: str, replacing: str | None) -> str:
    """Open a session for a person whose identity was verified. Returns the secret of the session.

    `by` is the sign-in method that is recorded in the audit log.
    """
    owner_id = await first_owner(connection, user_id)
    await record(connection, owner_id, "account.sign_in", user_id, actor=user_id, by=by)
    return await open_session(connection, owner_id, user_id, replacing=replacing)


async def first_owner(connection: Connection, user_id: UUID) -> UUID:
    """Return the account for which a person acts after signing in. It is created if there is none."""
    row = await (await connection.execute(QUERIES.first_owner, {"user": user_id})).fetchone()
    return row[0] if row else await _give_new_owner(connection, user_id)


async def change_password(connection: Connection, account: Account, password_hash: str, *, keeping: str) -> None:
    """Change the password and end all other sessions of this person."""
    await _keep_password(connection, account, password_hash)
    await end_other_sessions(connection, account.id, keeping)
    await connection.execute(ACCESS.delete_account_links, {"user": account.id})
    await record(connection, account.owner_id, "account.password", account.id, by="person")


async def _keep_password(connection: Connection, account: Account, password_hash: str) -> None:
    """Store a new password hash. Raises `WrongCredentials` if the password was changed since `account` was read."""
    values = {"user": account.id, "seen": account.password_hash, "password_hash": password_hash}
    cursor = await connection.execute(QUERIES.keep_password, values)
    if cursor.rowcount == 0:
        raise WrongCredentials


async def _adopt(connection: Connection, visitor: UUID) -> UUID | None:
    """Convert the account of an anonymous visitor to the account of a registered user.

    Returns None if the visitor no longer exists.
    """
    row = await (await connection.execute(OWNERS.adopt_visitor, {"visitor": visitor})).fetchone()
    return row[0] if row else None


async def _new_owner(connection: Connection) -> UUID:
    owner_id = new_id()
    await connection.execute(OWNERS.insert_owner, {"id": owner_id, "kind": "user"})
    return owner_id


async def _give_new_owner(connection: Connection, user_id: UUID) -> UUID:
    """Create a new account for a person who was removed from all accounts, so that the person can sign in."""
    owner_id = await _new_owner(connection)
    await connection.execute(QUERIES.move_home, {"user": user_id, "owner": owner_id})
    return owner_id


LEAST_CHARACTERS = 10
# Checked if the account does not exist, so that the response takes as long as for a wrong password.
NOBODYS_HASH = "$argon2id$v=19$m=65536,t=3,p=4$4HQmZLABisHpVBBRc3YP7Q$wF/7PUIKxxMxsjnLezb27OsBKGYkd4L6INazqdBCoB0"
MOST_AT_ONCE = 2
_hasher = PasswordHasher()
_threads = ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="passwords")

Answer = TypeVar("Answer")


async def hash_password(password: str) -> str:
    """Hash a new password. Raises `WeakPassword` if it is too short."""
    if len(password) < LEAST_CHARACTERS:
        raise WeakPassword(f"Use at least {LEAST_CHARACTERS} characters.")
    return await _run_in_thread(lambda: _hasher.hash(password))


async def verify_password(kept: str | None, password: str) -> str | None:
    """Check a password against its stored hash. Returns None if the password is wrong.

    Otherwise, returns the hash to store: the same one, or a new one if the hashing parameters have changed.
    """
    right = await _run_in_thread(lambda: _matches(kept or NOBODYS_HASH, password))
    if kept is None or not right:
        return None
    return await _run_in_thread(lambda: _hasher.hash(password)) if _hasher.check_needs_rehash(kept) else kept


async def _run_in_thread(work: Callable[[], Answer]) -> Answer:
    return await asyncio.get_running_loop().run_in_executor(_threads, work)


def _matches(kept: str, password: str) -> bool:
    try:
        return _hasher.verify(kept, password)
    except VerificationError:
        return False


# For administrators -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VisitorUsage:
    """The storage that all visitors without an account use together."""

    owners: int
    bytes: int
    documents: int


async def list_users(connection: Connection, *, cursor: str | None = None, limit: int = 50) -> Page[UserAccount]:
    """List accounts with their storage use, newest first."""
    after_at, after_id = read_cursor(cursor) if cursor else (None, None)
    values = {"after_at": after_at, "after_id": after_id, "most": limit + 1}
    rows = await fetch_rows(connection, QUERIES.users, values)
    found = [UserAccount(**row) for row in rows[:limit]]
    more = make_cursor(found[-1].created_at, found[-1].owner_id) if len(rows) > limit else None
    return Page(found, more)


async def read_visitors(connection: Connection) -> VisitorUsage:
    return VisitorUsage(**(await fetch_rows(connection, QUERIES.visitors, {}))[0])
