"""Signatures by which a receiver knows that a webhook is ours and new: Standard Webhooks, version 1. Pure."""

from __future__ import annotations

import hmac
import secrets
from base64 import b64decode, b64encode
from hashlib import sha256

PREFIX = "whsec_"
SECRET_BYTES = 32


def new_secret() -> str:
    return PREFIX + b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    key = b64decode(secret.removeprefix(PREFIX))
    signed = hmac.digest(key, f"{message_id}.{timestamp}.".encode() + body, sha256)
    return f"v1,{b64encode(signed).decode()}"


def signed_headers(secret: str, message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """`message_id` is the same for every try, so that a receiver can drop repeats; the time is that of the try."""
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign(secret, message_id, timestamp, body),
    }
