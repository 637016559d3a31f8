"""What counts as one address."""

from __future__ import annotations

import pytest

from octavo.web.http.limits import group_address


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        # One client through a socket of both kinds.
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        (None, "", True),
        ("testclient", "testclient", True),
    ],
)
def test_what_counts_as_one_address(one: str | None, other: str | None, same: bool) -> None:
    assert (group_address(one) == group_address(other)) is same
