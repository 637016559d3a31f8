"""Forms are checked by the API's models, and nobody is sent away to another site."""

from __future__ import annotations

import pytest

from octavo.web.rooms.account.api import NewKeyRequest
from octavo.web.shell.forms import INVALID, local_path, read_form


@pytest.mark.parametrize("address", ["/", "/library?tag=a&q=%20b#c", "/documents/1", "/ü"])
def test_places_of_ours_are_kept(address: str) -> None:
    assert local_path(address, "/other") == address


@pytest.mark.parametrize(
    "address",
    ["", "library", "//evil.example", "/\\evil.example", "https://evil.example", "javascript:alert(1)", "/a\nb", "/a b",
     "\\/evil.example", "/a\\..\\b", "/" + "a" * 3000],
)  # fmt: skip
def test_everything_else_leads_to_where_we_say(address: str) -> None:
    assert local_path(address, "/other") == "/other"


def test_each_wrong_field_has_its_sentence() -> None:
    wanted, wrong = read_form(NewKeyRequest, {"name": "", "scope": "all", "expires_in_days": "7"}, {"name": "Name it."})
    assert wanted is None
    assert wrong == {"name": "Name it.", "scope": INVALID}


def test_what_is_right_is_typed() -> None:
    wanted, wrong = read_form(NewKeyRequest, {"name": "k", "expires_in_days": "7"}, {})
    assert wanted == NewKeyRequest(name="k", expires_in_days=7)
    assert wrong == {}
