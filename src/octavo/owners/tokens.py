"""Secrets that are handed out once and stored only as hashes, so that a leaked dump is useless."""

from __future__ import annotations

import hashlib
import secrets

TOKEN_BYTES = 32


def new_token() -> str:
    return secrets.token_urlsafe(TOKEN_BYTES)


def hash_token(token: str) -> bytes:
    """Tokens are long and random, so a fast hash is safe."""
    return hashlib.sha256(token.encode()).digest()
