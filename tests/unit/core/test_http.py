"""Retry-After as a number or a date, and the address that people are shown."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest

from octavo.core.http import read_http_date, read_retry_after, shown_address
from octavo.core.settings import Settings


@pytest.mark.parametrize(
    ("header", "date", "seconds"),
    [
        (None, None, None),
        ("7", None, 7),
        (" 7 ", None, 7),
        ("Wed, 21 Oct 2026 07:28:30 GMT", "Wed, 21 Oct 2026 07:28:00 GMT", 30),
        ("Wed, 21 Oct 2026 07:27:00 GMT", "Wed, 21 Oct 2026 07:28:00 GMT", 0),
        ("Wed, 21 Oct 2026 07:28:30 GMT", None, None),  # nobody's clock to compare it with
        ("soon", "Wed, 21 Oct 2026 07:28:00 GMT", None),
        ("-1", None, None),
    ],
)
def test_the_header_is_read(header: str | None, date: str | None, seconds: float | None) -> None:
    assert read_retry_after(header, read_http_date(date or "")) == seconds


@pytest.mark.parametrize(
    ("chosen", "shown"),
    [
        ({}, "http://127.0.0.1:8400"),
        ({"host": "192.0.2.7"}, "http://127.0.0.1:8400"),  # the server has named its own address
        ({"host": "0.0.0.0", "hosts": ("nas.example", "docs")}, "http://nas.example:8400"),
        ({"host": "0.0.0.0", "public_url": "https://docs.example.org/"}, "https://docs.example.org"),
        ({"public_url": "https://docs.example.org/"}, "https://docs.example.org"),
    ],
)
def test_people_are_shown_the_address_at_which_they_reach_the_server(chosen: dict[str, Any], shown: str) -> None:
    assert shown_address(Settings(**chosen), "http://127.0.0.1:8400") == shown


def test_a_server_for_all_addresses_shows_the_address_of_this_machine() -> None:
    shown = shown_address(Settings(host="0.0.0.0"), "http://127.0.0.1:8400")
    assert urlsplit(shown).port == 8400
    assert urlsplit(shown).hostname != "0.0.0.0"
