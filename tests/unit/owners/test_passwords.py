"""Passwords are hashed slowly, beside the loop, and an unknown account costs as much as a wrong password."""

from __future__ import annotations

import asyncio
import threading
from typing import Literal

import pytest
from argon2 import PasswordHasher

from octavo.core.errors import WeakPassword
from octavo.owners import accounts
from octavo.owners.accounts import MOST_AT_ONCE, NOBODYS_HASH, hash_password, verify_password
from tests.support.passwords import hash_fast
from tests.support.processes import wait_until


def test_the_hash_for_unknown_accounts_is_as_slow_as_all_others() -> None:
    assert not PasswordHasher().check_needs_rehash(NOBODYS_HASH)
    assert NOBODYS_HASH.startswith("$argon2id$")


async def test_the_right_password_and_no_other_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    hash_fast(monkeypatch)
    kept = await hash_password("0123456789")
    assert kept.startswith("$argon2id$")
    assert await verify_password(kept, "0123456789") == kept
    assert await verify_password(kept, "0123456780") is None


@pytest.mark.parametrize("password", ["", "123456789", "ä" * 9])
async def test_a_short_password_is_refused(password: str) -> None:
    with pytest.raises(WeakPassword):
        await hash_password(password)


async def test_an_unknown_account_is_verified_against_a_hash_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    verified: list[str] = []

    def matches(kept: str, password: str) -> bool:
        verified.append(kept)
        return bool(password)

    monkeypatch.setattr(accounts, "_matches", matches)
    assert await verify_password(None, "0123456789") is None
    assert verified == [NOBODYS_HASH]


async def test_a_hash_with_old_parameters_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    hash_fast(monkeypatch)
    kept = await hash_password("0123456789")
    hash_fast(monkeypatch, time_cost=2)
    fresh = await verify_password(kept, "0123456789")
    assert fresh not in {None, kept}
    assert await verify_password(fresh, "0123456789") == fresh
    assert await verify_password(kept, "wrong") is None


async def test_nothing_is_hashed_on_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []

    class Hasher(PasswordHasher):
        def hash(self, password: str | bytes, *, salt: bytes | None = None) -> str:
            threads.append(threading.get_ident())
            return super().hash(password, salt=salt)

        def verify(self, hash: str | bytes, password: str | bytes) -> Literal[True]:  # noqa: A002 - as the library names it
            threads.append(threading.get_ident())
            return super().verify(hash, password)

    monkeypatch.setattr(accounts, "_hasher", Hasher(time_cost=1, memory_cost=8, parallelism=1))
    await verify_password(await hash_password("0123456789"), "0123456789")
    assert len(threads) == 2
    assert threading.get_ident() not in threads


async def test_at_most_two_passwords_are_hashed_in_parallel_and_the_others_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The third begins only after one of the first two has ended."""
    begun: list[int] = []
    go_on = threading.Event()

    class Hasher(PasswordHasher):
        def hash(self, password: str | bytes, *, salt: bytes | None = None) -> str:
            del password, salt
            begun.append(1)
            assert go_on.wait(20)
            return "hashed"

    monkeypatch.setattr(accounts, "_hasher", Hasher())
    hashing = asyncio.gather(*(hash_password("0123456789") for _ in range(6)))
    await asyncio.to_thread(wait_until, lambda: len(begun) == MOST_AT_ONCE, "two are hashed")
    await asyncio.to_thread(bool)  # another thread of the process is free all the while
    assert len(begun) == MOST_AT_ONCE
    go_on.set()
    assert await hashing == ["hashed"] * 6
