"""Parses each URL only once, so that exactly the URL that was checked is fetched. Pure."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from ipaddress import ip_address

import httpx

from octavo.fetch.addresses import is_public
from octavo.fetch.errors import AddressRefused, BadUrl

URL_CHARACTERS = 8000
_PORTS = {"http": 80, "https": 443}
_PRIVATE_NAMES = (
    *(".internal", ".local", ".localhost", ".localdomain", ".lan", ".home", ".home.arpa"),
    *(".corp", ".intranet", ".private"),
)
# Normalised names and addresses; no percent signs, no zones.
_HOST = re.compile(r"[a-z0-9_-][a-z0-9._-]*|[0-9a-f:.]*:[0-9a-f:.]*")


@dataclass(frozen=True, slots=True)
class Target:
    """A parsed URL. `host` has no brackets, `path` is used in the request line, `url` has no fragment."""

    url: str
    scheme: str
    host: str
    port: int
    path: bytes

    @property
    def origin(self) -> tuple[str, str, int]:
        return self.scheme, self.host, self.port


def parse_url(url: str) -> Target:
    """Parse a URL without looking up its host. Raises `BadUrl`."""
    return _target(_parsed(url))


def join_url(base: Target, location: str) -> Target:
    """Resolve the URL of a redirect."""
    try:
        return _target(_parsed(base.url).join(location))
    except (httpx.InvalidURL, ValueError):
        raise BadUrl("It redirects to an invalid URL.") from None


def is_allowed(allow: frozenset[str], host: str, port: int) -> bool:
    """Whether `allow` contains this host and port."""
    return f"{host}:{port}" in allow or f"[{host}]:{port}" in allow


def refuse_private(target: Target, allow: frozenset[str] = frozenset()) -> None:
    """Raise `AddressRefused` if the host is a private name or a private IP address, in any notation resolvers accept.

    Host names are not looked up.
    """
    if is_allowed(allow, target.host, target.port):
        return
    host = target.host.rstrip(".")
    literal = _literal(host)
    if not is_public(literal) if literal else _is_private_name(host):
        raise AddressRefused


def _is_private_name(host: str) -> bool:
    """Whether only a local network resolves this name. A name without a dot is looked up in the local domain."""
    return "." not in host or host.endswith(_PRIVATE_NAMES)


def _parsed(url: str) -> httpx.URL:
    if len(url) > URL_CHARACTERS:
        raise BadUrl(f"It is longer than {URL_CHARACTERS:,} characters.")
    try:
        return httpx.URL(url.strip())
    except (httpx.InvalidURL, ValueError):
        raise BadUrl from None


def _target(url: httpx.URL) -> Target:
    if url.scheme not in _PORTS:
        raise BadUrl("Only http:// and https:// are supported.")
    if url.userinfo:
        raise BadUrl("Remove the user name and password from it.")
    host = url.raw_host.decode("ascii").lower()
    if not _HOST.fullmatch(host):
        raise BadUrl("The host name is invalid.")
    port = url.port if url.port is not None else _PORTS[url.scheme]
    if not 0 < port <= 65535:  # noqa: PLR2004 - the range of ports
        raise BadUrl("The port is invalid.")
    return Target(str(url.copy_with(fragment=None)), url.scheme, host, port, url.raw_path)


def _literal(host: str) -> str | None:
    """The host as an IP address, or None.

    Resolvers also accept notations such as `127.1`, `0x7f.1` and `2130706433`.
    """
    try:
        return str(ip_address(host))
    except ValueError:
        pass
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except OSError:
        return None
