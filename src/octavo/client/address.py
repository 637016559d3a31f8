"""Validates the server address and API key that a user typed."""

from __future__ import annotations

import re
from ipaddress import ip_address
from urllib.parse import urlsplit

import httpx

from octavo.client.errors import BadAddress, BadKey

_KEY = re.compile(r"[\x21-\x7e]+")


def read_address(text: str) -> str:
    """Validate and normalise a server address. It can have a path, but no credentials, query or fragment."""
    address = text.strip()
    try:
        parts = urlsplit(address)
        reachable = bool(httpx.URL(address).host) and parts.port != 0
    except (ValueError, httpx.InvalidURL):
        raise BadAddress from None
    has_more = "@" in parts.netloc or parts.query or parts.fragment or " " in address
    if parts.scheme not in {"http", "https"} or not reachable or has_more:
        raise BadAddress
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def read_key(text: str) -> str:
    """Validate an API key. The key is sent in a header, and headers do not allow every character."""
    key = text.strip()
    if not _KEY.fullmatch(key):
        raise BadKey
    return key


def is_loopback(address: str) -> bool:
    """Whether requests stay on this machine and must not go through a proxy."""
    host = urlsplit(address).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
