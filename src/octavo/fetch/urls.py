"""Parses URLs, decides which network addresses are public, and defines the errors that fetching raises. Pure functions.

A URL is parsed only once, so that the URL that is fetched is exactly the one that was checked. An address that is not
known to be public counts as private. IPv6 addresses that contain an IPv4 address are always refused.
"""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

import httpx

from octavo.core.errors import BadInput, ErrorClass, NetworkFailed


class BadUrl(BadInput):
    """Invalid URL."""

    code = "BAD_URL"


class AddressRefused(BadInput):
    """Private addresses are blocked. To allow this address, add its host and port to OCTAVO_FETCH_ALLOW."""

    code = "FETCH_REFUSED"
    error_class = ErrorClass.PERMANENT


class TooManyRedirects(BadInput):
    """Too many redirects."""

    code = "TOO_MANY_REDIRECTS"
    error_class = ErrorClass.PERMANENT


class NameUnknown(NetworkFailed):
    """Host not found. Check the spelling of the address."""

    code = "NAME_UNKNOWN"
    error_class = ErrorClass.PERMANENT


class CertificateRefused(NetworkFailed):
    """The site's TLS certificate is invalid, so nothing was fetched."""

    code = "TLS_FAILED"
    error_class = ErrorClass.PERMANENT


class AnswerBroken(NetworkFailed):
    """The site's response cannot be decompressed."""

    code = "ANSWER_BROKEN"
    error_class = ErrorClass.PERMANENT


class AnswerIncomplete(NetworkFailed):
    """The site's response ended before it was complete."""

    code = "ANSWER_INCOMPLETE"


URL_CHARACTERS = 8000
_PORTS = {"http": 80, "https": 443}
_PRIVATE_NAMES = (
    *(".internal", ".local", ".localhost", ".localdomain", ".lan", ".home", ".home.arpa"),
    *(".corp", ".intranet", ".private"),
)
# Normalised names and addresses; no percent signs, no zones.
_HOST = re.compile(r"[a-z0-9_-][a-z0-9._-]*|[0-9a-f:.]*:[0-9a-f:.]*")
Address = IPv4Address | IPv6Address

_NOT_PUBLIC_4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",
            "100.64.0.0/10",  # carrier-grade NAT
            "127.0.0.0/8",
            "168.63.129.16/32",  # internal service of a cloud provider, although in a public range
            "169.254.0.0/16",  # link-local, including cloud metadata
            "172.16.0.0/12",
            "192.0.0.0/24",  # protocol assignments
            "192.0.2.0/24",  # documentation
            "192.31.196.0/24",  # reverse names of private addresses
            "192.52.193.0/24",  # relays of multicast
            "192.88.99.0/24",  # relays of 6to4
            "192.168.0.0/16",
            "192.175.48.0/24",  # reverse names of private addresses
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and the broadcast address
        ),
    )
)

# Contains all public ranges assigned so far. Mapped, compatible and translated IPv4, loopback, link-local, unique
# local, site-local and multicast addresses are outside it.
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NOT_PUBLIC_6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # protocol assignments: Teredo, benchmarks, overlay identifiers
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4, with an IPv4 address inside
            "2620:4f:8000::/48",  # reverse names of private addresses
            "3fff::/20",  # documentation
        ),
    )
)


@dataclass(frozen=True, slots=True)
class Target:
    """A parsed URL. `host` has no brackets, `path` is used in the request line, and `url` has no fragment."""

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
    """Return the target of a redirect. `location` can be relative to `base`."""
    try:
        return _target(_parsed(base.url).join(location))
    except (httpx.InvalidURL, ValueError):
        raise BadUrl("The redirect leads to an invalid URL.") from None


def is_allowed(allow: frozenset[str], host: str, port: int) -> bool:
    """Whether `allow` contains this host and port."""
    return f"{host}:{port}" in allow or f"[{host}]:{port}" in allow


def refuse_private(target: Target, allow: frozenset[str] = frozenset()) -> None:
    """Raise `AddressRefused` if the host is a private name or a private IP address.

    IP addresses are recognised in any notation that resolvers accept. Host names are not looked up.
    """
    if is_allowed(allow, target.host, target.port):
        return
    host = target.host.rstrip(".")
    literal = _literal(host)
    if not is_public(literal) if literal else _is_private_name(host):
        raise AddressRefused


def _is_private_name(host: str) -> bool:
    """Whether this host name can exist only in a local network, such as a name without a dot."""
    return "." not in host or host.endswith(_PRIVATE_NAMES)


def _parsed(url: str) -> httpx.URL:
    if len(url) > URL_CHARACTERS:
        raise BadUrl(f"The URL is longer than {URL_CHARACTERS:,} characters.")
    try:
        return httpx.URL(url.strip())
    except (httpx.InvalidURL, ValueError):
        raise BadUrl from None


def _target(url: httpx.URL) -> Target:
    if url.scheme not in _PORTS:
        raise BadUrl("Only http:// and https:// are supported.")
    if url.userinfo:
        raise BadUrl("Remove the user name and password from the URL.")
    host = url.raw_host.decode("ascii").lower()
    if not _HOST.fullmatch(host):
        raise BadUrl("The host name is invalid.")
    port = url.port if url.port is not None else _PORTS[url.scheme]
    if not 0 < port <= 65535:  # noqa: PLR2004 - the range of ports
        raise BadUrl("The port is invalid.")
    return Target(str(url.copy_with(fragment=None)), url.scheme, host, port, url.raw_path)


def _literal(host: str) -> str | None:
    """Return the IP address that `host` denotes. Returns None if `host` is a name.

    Recognises all notations that resolvers accept, such as `127.1`, `0x7f.1` and `2130706433`.
    """
    try:
        return str(ip_address(host))
    except ValueError:
        pass
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except OSError:
        return None


def is_public(address: str | Address) -> bool:
    """Whether this address is on the public internet. Returns False for invalid addresses."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, IPv4Address):
        return parsed.is_global and not any(parsed in network for network in _NOT_PUBLIC_4)
    if parsed.scope_id is not None or parsed not in _GLOBAL_UNICAST:
        return False
    return parsed.is_global and not any(parsed in network for network in _NOT_PUBLIC_6)
