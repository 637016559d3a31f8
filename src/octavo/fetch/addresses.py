"""Decides which network addresses are public. Pure. An address that is not known to be public counts as private.

Addresses that embed another address (IPv4 in IPv6, in all forms) are refused without checking the embedded one.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

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


def is_public(address: str | Address) -> bool:
    """Whether this address is on the public internet; False for invalid addresses."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, IPv4Address):
        return parsed.is_global and not any(parsed in network for network in _NOT_PUBLIC_4)
    if parsed.scope_id is not None or parsed not in _GLOBAL_UNICAST:
        return False
    return parsed.is_global and not any(parsed in network for network in _NOT_PUBLIC_6)
