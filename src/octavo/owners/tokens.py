"""Secrets that are shown once and stored only as hashes, so that a leaked database dump does not contain them."""

from __future__ import annotations

import hashlib
import secrets

TOKEN_BYTES = 32


def new_token() -> str:
    return secrets.token_urlsafe(TOKEN_BYTES)


def hash_token(token: str) -> bytes:
    """SHA-256 of a token. A fast hash is safe, because tokens are long and random."""
    return hashlib.sha256(token.encode()).digest()
