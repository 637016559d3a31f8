"""Codes of authenticator apps, as RFC 6238 defines them."""

from __future__ import annotations

from base64 import b32encode
from datetime import UTC, datetime

import pytest

from octavo.owners.sessions import app_link, code_at, find_step, new_recovery_codes, new_secret

# The secret and the codes of RFC 6238, appendix B, which has two digits more.
SECRET = b32encode(b"12345678901234567890").decode()
CODES = {
    59: "94287082",
    1111111109: "07081804",
    1111111111: "14050471",
    1234567890: "89005924",
    20000000000: "65353130",
}


@pytest.mark.parametrize(("seconds", "code"), CODES.items(), ids=str)
def test_codes_are_those_of_the_standard(seconds: int, code: str) -> None:
    assert code_at(SECRET, seconds // 30) == code[2:]


def test_a_code_is_valid_in_its_step_and_its_neighbours_only() -> None:
    now = datetime.fromtimestamp(1111111111, UTC)
    step = 1111111111 // 30
    valid = [found for found in range(step - 3, step + 4) if find_step(SECRET, code_at(SECRET, found), now) == found]
    assert valid == [step - 1, step, step + 1]
    for wrong in ("", "05047", "0504711", "\u0660\u0661\u0662\u0663\u0664\u0665", "abcdef"):
        assert find_step(SECRET, wrong, now) is None


def test_secrets_and_recovery_codes_are_long_and_random() -> None:
    assert len({new_secret() for _ in range(20)}) == 20
    codes = new_recovery_codes()
    assert len(set(codes)) == 10
    assert {len(code) for code in codes} == {19}


def test_the_link_for_the_app_names_the_account() -> None:
    link = app_link(SECRET, "ada@example.org")
    assert link.startswith("otpauth://totp/Octavo%3Aada%40example.org?")
    assert f"secret={SECRET}&issuer=Octavo&digits=6&period=30" in link
