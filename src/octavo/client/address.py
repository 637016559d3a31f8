"""Where a server is: its address in one form, and whether it is this machine."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from octavo.model.errors import BadInput


class BadAddress(BadInput):
    """A server's address looks like https://docs.example.org or http://127.0.0.1:8400."""

    code = "BAD_ADDRESS"


def read_address(given: str) -> str:
    """In one form; with a path where Octavo lies below one, and with nothing secret in it."""
    try:
        parts = urlsplit(given.strip())
        reachable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise BadAddress from None
    more_than_a_place = "@" in parts.netloc or parts.query or parts.fragment
    if parts.scheme not in {"http", "https"} or not reachable or more_than_a_place:
        raise BadAddress
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def is_loopback(address: str) -> bool:
    """Whether requests stay on this machine, where no proxy belongs between."""
    host = urlsplit(address).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
