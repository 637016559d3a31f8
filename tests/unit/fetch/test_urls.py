"""A web address is taken apart once; what is no proper one, or leads inside by itself, is refused at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.fetch import AddressRefused, BadUrl, parse_url, refuse_private

INNER = [
    "http://127.0.0.1/",
    "http://127.0.0.1:8400/healthz",
    "http://127.1/",
    "http://127.0.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.1/",
    "http://0x7f.0.0.1/",
    "http://017700000001/",
    "http://0/",
    "http://0.0.0.0/",
    "http://localhost/",
    "http://LOCALHOST/",
    "http://localhost./",
    "http://app.localhost/",
    "http://127.0.0.1./",
    "http://169.254.169.254/latest/meta-data/",
    "http://2852039166/",
    "http://10.1/",
    "http://192.168.1.1/",
    "https://[::1]/",
    "http://[::]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::ffff:8.8.8.8]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[fe80::1]/",
    "http://[fd00:ec2::254]/",
    "http://metadata.google.internal/",
    "http://printer.LOCAL./",
    "http://nas.home.arpa/",
    "http://wiki.corp:8080/",
    "http://wiki/",
    "http://[0:0:0:0:0:0:0:1]:8400/",
    "http://127\u30020\u30020\u30021/",
    "HTTP://127.0.0.1/",
    " http://127.0.0.1/ ",
]
BAD = [
    "",
    "example.org",
    "//example.org/",
    "file:///etc/passwd",
    "ftp://example.org/",
    "gopher://127.0.0.1:70/",
    "data:text/html,x",
    "javascript:alert(1)",
    "http://",
    "http:///path",
    "http://:80/",
    "http://user@example.org/",
    "http://user:secret@example.org/",
    "http://example.org@127.0.0.1/",
    "http://example.org:0/",
    "http://example.org:99999/",
    "http://example.org:-1/",
    "http://exa mple.org/",
    "http://exa\tmple.org/",
    "http://example.org\\@127.0.0.1/",
    "http://%31%32%37.0.0.1/",
    "http://127.0.0.1%00.example.org/",
    "http://[fe80::1%25eth0]/",
    "http://[fe80::1%eth0]/",
    "http://[::1",
    "http://[v1.x]/",
    "http://\uff11\uff12\uff17.0.0.1/",
    "http://\u2460\u2461\u2466.0.0.1/",
    "http://0177.0.0.1/",
    "http://999.0.0.1/",
    "http://example.org/" + "a" * 9000,
]


@pytest.mark.parametrize("url", INNER, ids=[f"{number}:{one!a}" for number, one in enumerate(INNER)])
def test_inner_addresses_are_refused_in_every_form(url: str) -> None:
    with pytest.raises(AddressRefused):
        refuse_private(parse_url(url))


@pytest.mark.parametrize("url", BAD, ids=[f"{number}:{one[:40]!a}" for number, one in enumerate(BAD)])
def test_an_invalid_web_address_is_refused(url: str) -> None:
    with pytest.raises(BadUrl):
        parse_url(url)


def test_a_name_and_a_public_address_pass() -> None:
    for url in ("https://example.org/a?b#c", "http://93.184.216.34:8080/", "https://b\u00fccher.example/"):
        refuse_private(parse_url(url))
    target = parse_url("HTTPS://EXAMPLE.org/a%20b?c=d#e")
    assert (target.scheme, target.host, target.port, target.path) == ("https", "example.org", 443, b"/a%20b?c=d")
    assert target.url == "https://example.org/a%20b?c=d"


def test_what_is_allowed_by_name_and_port_is_only_that() -> None:
    allow = frozenset({"127.0.0.1:8080", "[::1]:80"})
    refuse_private(parse_url("http://127.0.0.1:8080/"), allow)
    refuse_private(parse_url("http://[::1]/"), allow)
    for url in ("http://127.0.0.1/", "http://127.0.0.1:8081/", "http://127.1:8080/", "http://localhost:8080/"):
        with pytest.raises(AddressRefused):
            refuse_private(parse_url(url), allow)


@given(st.text(max_size=60))
def test_whatever_is_given_it_is_taken_apart_or_refused(rest: str) -> None:
    for url in (rest, f"http://{rest}", f"https://example.org{rest}"):
        try:
            target = parse_url(url)
        except BadUrl:
            continue
        assert target.scheme in {"http", "https"}
        assert target.host.isascii()
        assert not set(target.host) & set("@/\\%#? \t\r\n")
