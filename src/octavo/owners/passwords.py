"""Passwords: hashed with argon2id in threads, outside the event loop.

At most two passwords are hashed in parallel, because each takes 64 MB and several CPUs. Further passwords wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import VerificationError

from octavo.core.errors import WeakPassword

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
    """Check a password. Returns the hash to store, or None if the password is wrong.

    The returned hash is new if the hashing parameters have changed.
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
