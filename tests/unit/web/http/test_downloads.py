"""What is downloaded is saved and never shown, and a part of it is exactly the part that was asked for."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.storage import ObjectInfo, ObjectStream
from octavo.web.http.downloads import RangeNotSatisfiable, attachment, is_still, read_range

SIZE = 100
WHOLE = (0, SIZE)
GOOD: dict[str, tuple[str | None, tuple[int, int]]] = {
    "nothing asked": (None, WHOLE),
    "an empty wish": ("", WHOLE),
    "from the beginning": ("bytes=0-", WHOLE),
    "all of it": ("bytes=0-99", WHOLE),
    "the first byte": ("bytes=0-0", (0, 1)),
    "the first ten": ("bytes=0-9", (0, 10)),
    "from the middle": ("bytes=50-", (50, 100)),
    "inside": ("bytes=20-29", (20, 30)),
    "the last byte": ("bytes=99-99", (99, 100)),
    "the last ten": ("bytes=-10", (90, 100)),
    "more from the end than there is": ("bytes=-1000", WHOLE),
    "beyond the end": ("bytes=90-1000", (90, 100)),
    "leading zeros": ("bytes=007-009", (7, 10)),
    "spaces around": ("  bytes=0-9\t", (0, 10)),
}
# What cannot be read is no wish: the whole file is always a right answer.
IGNORED = [
    *("bytes=-", "bytes=", "bytes", "bytes=a-b", "bytes=0x0-0x9", "bytes=--9", "bytes=1.0-2.0", "bytes=+1-+2"),
    *("items=0-9", "bytes 0-9", "bytes = 0-9", "bytes=0 - 9", "0-9", "bytes=0-9;", "bytes=\u0660-\u0669"),
    *("bytes=0-9,20-29", "bytes=0-0,-1", "bytes=" + ",".join(["0-"] * 1000), "bytes=0-9,"),
    *("bytes=1" + "0" * 18 + "-", "bytes=0-" + "9" * 5000, "bytes=-" + "9" * 5000),
]
UNSATISFIABLE = ["bytes=100-", "bytes=100-200", "bytes=999999999999999999-", "bytes=-0", "bytes=5-4", "bytes=100-0"]


@pytest.mark.parametrize("case", GOOD)
def test_a_range_has_the_requested_bytes(case: str) -> None:
    header, part = GOOD[case]
    assert read_range(header, SIZE) == part


@pytest.mark.parametrize("header", IGNORED, ids=lambda header: header[:30])
def test_a_wish_that_cannot_be_read_is_answered_with_everything(header: str) -> None:
    assert read_range(header, SIZE) == WHOLE


@pytest.mark.parametrize("header", UNSATISFIABLE)
def test_a_part_that_is_not_there_is_refused(header: str) -> None:
    with pytest.raises(RangeNotSatisfiable) as refused:
        read_range(header, SIZE)
    assert (refused.value.status, refused.value.code) == (416, "RANGE_NOT_SATISFIABLE")
    assert refused.value.headers == {"content-range": "bytes */100"}


@given(st.text() | st.from_regex(r"bytes=\d*-\d*", fullmatch=True), st.integers(1, 1 << 50))
def test_no_wish_leads_out_of_the_file(header: str, size: int) -> None:
    try:
        start, end = read_range(header, size)
    except RangeNotSatisfiable:
        return
    assert 0 <= start < end <= size


ETAG = '"abc"'
MODIFIED = datetime(2026, 1, 1, 12, 0, 0, 500, tzinfo=UTC)
MARKS: dict[str, tuple[str | None, bool]] = {
    "no condition": (None, True),
    "the same mark": ('"abc"', True),
    "another mark": ('"abd"', False),
    "a weak mark": ('W/"abc"', False),
    "several marks": ('"abd", "abc"', False),
    "the same date": ("Thu, 01 Jan 2026 12:00:00 GMT", True),
    "an earlier date": ("Thu, 01 Jan 2026 11:59:59 GMT", False),
    "a later date": ("Thu, 01 Jan 2026 12:00:01 GMT", False),
    "no date": ("yesterday", False),
    "a bare mark": ("abc", False),
}


@pytest.mark.parametrize("case", MARKS)
def test_a_range_is_sent_only_if_the_client_has_the_same_file(case: str) -> None:
    mark, same = MARKS[case]
    assert is_still(mark, ETAG, MODIFIED) is same


# Headers -----------------------------------------------------------------------------------------------------------


def stream(start: int = 0, end: int = SIZE) -> ObjectStream:
    async def chunks() -> AsyncGenerator[bytes]:
        yield b"x" * (end - start)

    return ObjectStream(ObjectInfo("sources/1", SIZE, datetime(2026, 1, 1, tzinfo=UTC)), start, end, chunks())


@pytest.mark.parametrize(
    ("start", "end", "status", "content_range"),
    [(0, 100, 200, None), (0, 10, 206, "bytes 0-9/100"), (90, 100, 206, "bytes 90-99/100")],
)
def test_an_answer_says_which_part_it_is(start: int, end: int, status: int, content_range: str | None) -> None:
    answer = attachment(stream(start, end), "a.txt", "text/plain")
    assert answer.status_code == status
    assert answer.headers.get("content-range") == content_range
    assert answer.headers["content-length"] == str(end - start)
    assert answer.headers["accept-ranges"] == "bytes"


NAMES = st.text(st.characters(codec="utf-8"), max_size=200)
TYPES = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=200)


@given(NAMES, TYPES | st.sampled_from(["text/html", "image/svg+xml", "text/javascript", "application/xhtml+xml"]))
def test_a_file_of_any_claimed_type_is_downloaded_and_never_displayed(filename: str, content_type: str) -> None:
    headers = attachment(stream(), filename, content_type).headers
    assert headers["content-disposition"].startswith('attachment; filename="')
    assert headers["content-security-policy"] == "sandbox"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "private, no-store"
    for value in headers.values():
        assert value.isascii()
        assert value.isprintable()


@pytest.mark.parametrize(
    ("claimed", "sent"),
    [
        ("application/pdf", "application/pdf"),
        ("text/plain; charset=latin-1", "text/plain; charset=latin-1"),
        ("image/svg+xml", "image/svg+xml"),
        ("", "application/octet-stream"),
        ("text", "application/octet-stream"),
        ("text/plain\r\nSet-Cookie: x=1", "application/octet-stream"),
        ("text/plain; a=\r\nSet-Cookie: x=1", "application/octet-stream"),
        ("text/html, text/plain", "application/octet-stream"),
        ("text/€", "application/octet-stream"),
        ("application/pdf; name=отчёт.pdf", "application/octet-stream"),
    ],
)
def test_a_type_that_is_none_is_not_repeated(claimed: str, sent: str) -> None:
    assert attachment(stream(), "a", claimed).headers["content-type"] == sent
