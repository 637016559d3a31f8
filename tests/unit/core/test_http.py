"""Retry-After as a number or a date."""

from __future__ import annotations

import pytest

from octavo.core.http import read_http_date, read_retry_after


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
