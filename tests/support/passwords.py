"""Passwords of people under test."""

from __future__ import annotations

import pytest
from argon2 import PasswordHasher

PASSWORD = "correct horse battery"


def hash_fast(monkeypatch: pytest.MonkeyPatch, time_cost: int = 1) -> None:
    """Real argon2id, made weak so that tests are quick."""
    hasher = PasswordHasher(time_cost=time_cost, memory_cost=8, parallelism=1)
    monkeypatch.setattr("octavo.owners.accounts._hasher", hasher)
