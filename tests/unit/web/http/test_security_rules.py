"""Which names this server goes by, and what is taken to come from another site."""

from __future__ import annotations

from socket import gethostname
from typing import Any

import pytest
from starlette.datastructures import Headers

from octavo.core.settings import Settings
from octavo.web.http.security import answers_to, bearer_key, is_cross_site, is_same_origin

HERE = "127.0.0.1:8400"
OWN = f"http://{HERE}"
EXTENSION = "chrome-extension://abc"
PROXIED = "https://docs.example.org"


@pytest.mark.parametrize(
    ("host", "settings", "answered"),
    [
        # This machine, by every name that it has for itself.
        ("127.0.0.1:8400", {}, True),
        ("127.8.9.10", {}, True),
        ("localhost", {}, True),
        ("LOCALHOST:8400", {}, True),
        ("localhost.:8400", {}, True),
        ("[::1]:8400", {}, True),
        (None, {}, True),
        # A name that somebody else made point here.
        ("evil.example", {}, False),
        ("evil.example:8400", {}, False),
        ("localhost.evil.example", {}, False),
        ("127.0.0.1.evil.example", {}, False),
        ("evil.localhost", {}, False),
        ("192.0.2.7:8400", {}, False),
        # Not a host at all.
        ("", {}, False),
        ("evil@localhost", {}, False),
        ("localhost/evil", {}, False),
        ("localhost:eighty", {}, False),
        ("localhost evil.example", {}, False),
        ("[::1", {}, False),
        # What was configured.
        ("docs.example.org", {"hosts": ("docs.example.org", "other")}, True),
        ("Docs.Example.org:443", {"hosts": ("docs.example.org",)}, True),
        ("sub.docs.example.org", {"hosts": ("docs.example.org",)}, False),
        ("192.0.2.7:8400", {"host": "192.0.2.7"}, True),
        ("192.0.2.8:8400", {"host": "192.0.2.7"}, False),
        ("[2001:db8::7]:8400", {"host": "2001:db8::7"}, True),
        ("nas:8400", {"host": "nas"}, True),
        ("192.0.2.7:8400", {"host": "nas"}, True),
        # Listening everywhere: any address, but only known names.
        ("192.0.2.7:8400", {"host": "0.0.0.0"}, True),
        ("[2001:db8::7]:8400", {"host": "::"}, True),
        ("localhost:8400", {"host": "0.0.0.0"}, True),
        ("evil.example", {"host": "0.0.0.0"}, False),
        ("evil.example", {"host": "::"}, False),
        ("docs.example.org", {"host": "0.0.0.0", "hosts": ("docs.example.org",)}, True),
        (gethostname(), {"host": "0.0.0.0"}, True),
        (f"{gethostname().partition('.')[0]}.local:8400", {"host": "::"}, True),
        (gethostname(), {}, False),
        ("docs.example.org:8400", {"public_url": "https://Docs.example.org/"}, True),
        ("example.org", {"public_url": "https://docs.example.org"}, False),
    ],
)
def test_a_server_answers_to_its_own_names_only(host: str | None, settings: dict[str, Any], answered: bool) -> None:
    assert answers_to(host, Settings(**settings)) is answered


@pytest.mark.parametrize(
    ("origin", "host", "same"),
    [
        (OWN, HERE, True),
        ("http://127.0.0.1:8401", HERE, False),
        ("http://localhost:8400", HERE, False),
        ("https://docs.example.org", "docs.example.org", True),
        ("https://docs.example.org", "docs.example.org:443", True),
        ("https://docs.example.org:443", "docs.example.org", True),
        ("http://docs.example.org", "docs.example.org:443", False),
        ("http://docs.example.org", "DOCS.example.org", True),
        ("http://[::1]:8400", "[::1]:8400", True),
        ("http://evil@127.0.0.1:8400", "evil:8400", False),
        ("null", HERE, False),
        ("", HERE, False),
        ("http://127.0.0.1:port", HERE, False),
        (EXTENSION, "abc", False),
        (OWN, None, False),
    ],
)
def test_an_origin_is_ours_when_host_and_port_are(origin: str, host: str | None, same: bool) -> None:
    assert is_same_origin(origin, host) is same


@pytest.mark.parametrize(
    ("site", "origin", "refused"),
    [
        # Programs send neither; browsers of today both; older ones the origin alone.
        (None, None, False),
        ("same-origin", OWN, False),
        ("same-origin", None, False),
        ("none", None, False),
        (None, OWN, False),
        ("cross-site", "https://evil.example", True),
        ("cross-site", None, True),
        ("cross-site", OWN, True),
        ("same-site", "http://127.0.0.1:9000", True),
        ("nonsense", OWN, True),
        ("", None, True),
        (None, "https://evil.example", True),
        (None, "http://127.0.0.1:9000", True),
        ("same-origin", "https://evil.example", True),
        ("none", "https://evil.example", True),
        # A form on our own pages, which send no referrer, hides its origin; the browser vouches for it.
        ("same-origin", "null", False),
        ("none", "null", True),
        ("cross-site", "null", True),
        (None, "null", True),
        # An extension on the list comes with a key, or not at all.
        (None, EXTENSION, True),
        ("none", EXTENSION, True),
        ("cross-site", EXTENSION, True),
        # A proxy before us that renames the host.
        ("same-origin", PROXIED, False),
        (None, PROXIED, True),
        ("cross-site", PROXIED, True),
    ],
)
def test_what_another_site_made_a_browser_send_is_known(site: str | None, origin: str | None, refused: bool) -> None:
    given = {"host": HERE, "sec-fetch-site": site, "origin": origin}
    headers = Headers({name: value for name, value in given.items() if value is not None})
    assert is_cross_site(headers, {EXTENSION, PROXIED}) is refused


@pytest.mark.parametrize(
    ("header", "key"),
    [
        ("Bearer octavo_x", "octavo_x"),
        ("bearer  octavo_x ", "octavo_x"),
        ("Bearer", ""),
        ("Bearer ", ""),
        # A proxy's own password, which browsers send by themselves, is no key.
        ("Basic dXNlcjpwYXNz", None),
        ("Bearerish x", None),
        ("", None),
        (None, None),
    ],
)
def test_only_a_bearer_key_is_a_key(header: str | None, key: str | None) -> None:
    assert bearer_key(Headers({"authorization": header} if header is not None else {})) == key


def test_a_key_of_octavo_may_be_in_the_header_of_docling_serve() -> None:
    assert bearer_key(Headers({"x-api-key": " octavo_x"})) == "octavo_x"
    assert bearer_key(Headers({"x-api-key": "octavo_x", "authorization": "Basic dXNlcjpwYXNz"})) == "octavo_x"
    assert bearer_key(Headers({"x-api-key": "octavo_x", "authorization": "Bearer octavo_y"})) == "octavo_y"
    assert bearer_key(Headers({"x-api-key": "the key of a proxy"})) is None
