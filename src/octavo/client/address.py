"""Where a server is, and by what one is known there: as somebody typed it, in one form or refused."""

from __future__ import annotations

import re
from ipaddress import ip_address
from urllib.parse import urlsplit

import httpx

from octavo.core.errors import BadInput

_KEY = re.compile(r"[\x21-\x7e]+")


class BadAddress(BadInput):
    """A server's address looks like https://docs.example.org or http://127.0.0.1:8400."""

    code = "BAD_ADDRESS"


class BadKey(BadInput):
    """This is no API key. `octavo keys add` prints one."""

    code = "BAD_KEY"


def read_address(given: str) -> str:
    """With a path where Octavo lies below one, and with nothing secret in it."""
    address = given.strip()
    try:
        parts = urlsplit(address)
        reachable = bool(httpx.URL(address).host) and parts.port != 0
    except (ValueError, httpx.InvalidURL):
        raise BadAddress from None
    more_than_a_place = "@" in parts.netloc or parts.query or parts.fragment or " " in address
    if parts.scheme not in {"http", "https"} or not reachable or more_than_a_place:
        raise BadAddress
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def read_key(given: str) -> str:
    """Whatever was typed is sent as a header, where not every character may stand."""
    key = given.strip()
    if not _KEY.fullmatch(key):
        raise BadKey
    return key


def is_loopback(address: str) -> bool:
    """Whether requests stay on this machine, where no proxy belongs between."""
    host = urlsplit(address).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
