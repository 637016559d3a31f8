"""Only addresses of the open internet are public."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.fetch import is_public

PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "93.184.216.34",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.1",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.254",
    "2606:4700:4700::1111",
    "2a00:1450:4001:80b::200e",
    "2001:4860:4860::8888",
    "2001:200::1",
]
NOT_PUBLIC = [
    # this network and loopback
    "0.0.0.0",
    "0.1.2.3",
    "127.0.0.1",
    "127.1.2.3",
    "127.255.255.255",
    # private
    "10.0.0.1",
    "10.255.255.255",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "192.168.255.255",
    # shared by the customers of a provider
    "100.64.0.1",
    "100.100.100.200",
    "100.127.255.255",
    # link-local and what clouds keep there
    "169.254.0.1",
    "169.254.169.254",
    "169.254.170.2",
    "168.63.129.16",
    # assignments, documentation, benchmarks, relays
    "192.0.0.1",
    "192.0.0.192",
    "192.0.2.1",
    "192.31.196.1",
    "192.52.193.1",
    "192.88.99.1",
    "192.175.48.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    # multicast, reserved, broadcast
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.254",
    "255.255.255.255",
    # IPv6: unspecified, loopback, link-local, site-local, unique local, multicast, discard
    "::",
    "::1",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "fc00::1",
    "fd00::1",
    "fd00:ec2::254",
    "ff02::1",
    "ff0e::1",
    "100::1",
    "5f00::1",
    "4000::1",
    # IPv4 inside, private or not
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::ffff:0:127.0.0.1",
    "::127.0.0.1",
    "::8.8.8.8",
    "64:ff9b::127.0.0.1",
    "64:ff9b::8.8.8.8",
    "64:ff9b:1::1",
    "2002:7f00:1::",
    "2002:808:808::1",
    "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    # assignments, documentation, benchmarks
    "2001:2::1",
    "2001:10::1",
    "2001:20::1",
    "2001:1ff::1",
    "2001:db8::1",
    "2620:4f:8000::1",
    "3fff::1",
    # no addresses
    "",
    "localhost",
    "127.1",
    "0x7f.0.0.1",
    "2130706433",
    "1.1.1.1 ",
]


@pytest.mark.parametrize("address", PUBLIC, ids=str)
def test_what_anybody_can_reach_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("address", NOT_PUBLIC, ids=[f"{number}:{one}" for number, one in enumerate(NOT_PUBLIC)])
def test_everything_else_is_not(address: str) -> None:
    assert not is_public(address)


@given(st.ip_addresses(v=4))
def test_no_ipv4_address_becomes_public_inside_of_ipv6(inner: IPv4Address) -> None:
    for network in ("::", "::ffff:0:0", "::ffff:0:0:0", "64:ff9b::"):
        assert not is_public(IPv6Address(int(IPv6Address(network)) | int(inner)))
    assert not is_public(IPv6Address((0x2002 << 112) | (int(inner) << 80)))


@given(st.ip_addresses())
def test_addresses_that_the_standard_library_calls_private_are_never_public(address: IPv4Address | IPv6Address) -> None:
    if address.is_private or address.is_loopback or address.is_link_local or address.is_multicast:
        assert not is_public(address)
