"""An address is a place and nothing else."""

from __future__ import annotations

import pytest

from octavo.client.transport import BadAddress, BadKey, is_loopback, read_address, read_key


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("http://127.0.0.1:8400", "http://127.0.0.1:8400"),
        (" https://docs.example.org/ ", "https://docs.example.org"),
        ("https://example.org/octavo/", "https://example.org/octavo"),
        ("http://[::1]:8400", "http://[::1]:8400"),
    ],
)
def test_an_address_is_read_in_one_form(given: str, read: str) -> None:
    assert read_address(given) == read


@pytest.mark.parametrize(
    "given",
    [
        "",
        "docs.example.org",
        "ftp://example.org",
        "https://",
        "http://host:port",
        "http://host:99999",
        "http://[::1",
        "https://user:canary@example.org",  # a secret does not belong into an address
        "http://exa mple.org",
        "http://example.org\x00",
        "https://example.org/?a=1",
        "https://example.org/#top",
    ],
)
def test_an_invalid_address_is_refused(given: str) -> None:
    with pytest.raises(BadAddress) as refused:
        read_address(given)
    assert "canary" not in refused.value.line


@pytest.mark.parametrize(
    ("address", "here"),
    [
        ("http://127.0.0.1:8400", True),
        ("http://127.8.8.8", True),
        ("http://[::1]:8400", True),
        ("http://localhost:8400", True),
        ("http://10.0.0.1", False),
        ("https://docs.example.org", False),
        ("https://localhost.example.org", False),
    ],
)
def test_this_machine_is_known(address: str, here: bool) -> None:
    assert is_loopback(address) is here


def test_a_key_is_what_can_be_sent_as_one() -> None:
    assert read_key(" octavo_abc-DEF_123\n") == "octavo_abc-DEF_123"
    for given in ("", " ", "octavo_ü", "two words", "line\nbreak"):
        with pytest.raises(BadKey) as refused:
            read_key(given)
        assert given.strip() == "" or given not in refused.value.line
