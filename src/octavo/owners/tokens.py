"""Secrets that are handed out once and kept only as hashes, so a leaked dump signs nobody in."""

from __future__ import annotations

import hashlib
import secrets

TOKEN_BYTES = 32


def new_token() -> str:
    return secrets.token_urlsafe(TOKEN_BYTES)


def hash_token(token: str) -> bytes:
    """Tokens are long and random, so a plain hash is as good as a slow one."""
    return hashlib.sha256(token.encode()).digest()
