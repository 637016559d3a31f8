from __future__ import annotations

from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.storage.s3_client import PATH, Link, attachment_header, sign_link, verify_link
from octavo.storage.writing import LinkRefused

SECRET = bytes(range(32))
LINK = Link("GET", "sources/1/file.pdf", 1_000, "Größe & more.pdf", "application/pdf")


def taken_apart(url: str) -> tuple[str, dict[str, str]]:
    parts = urlsplit(url)
    assert parts.path.startswith(PATH)
    return unquote(parts.path.removeprefix(PATH)), dict(parse_qsl(parts.query, keep_blank_values=True))


def test_a_signed_link_allows_only_the_signed_request() -> None:
    key, query = taken_apart(sign_link(SECRET, LINK))
    assert verify_link(SECRET, "GET", key, query, now=999.9) == LINK


@pytest.mark.parametrize(
    "change",
    [
        {"expires": "9999999999"},
        {"expires": "1_000"},  # int() would read these four as 1000
        {"expires": "+1000"},
        {"expires": "01000 "},
        {"expires": "\N{ARABIC-INDIC DIGIT ONE}000"},
        {"expires": "9" * 5_000},
        {"filename": "other.pdf"},
        {"content_type": "text/html"},
        {"signature": ""},
        {"signature": "ä"},
        {"signature": "A" * 43},
    ],
)
def test_an_altered_query_is_refused(change: dict[str, str]) -> None:
    key, query = taken_apart(sign_link(SECRET, LINK))
    with pytest.raises(LinkRefused):
        verify_link(SECRET, "GET", key, query | change, now=0)


@pytest.mark.parametrize("name", ["expires", "filename", "content_type", "signature"])
def test_a_missing_part_is_refused(name: str) -> None:
    key, query = taken_apart(sign_link(SECRET, LINK))
    del query[name]
    with pytest.raises(LinkRefused):
        verify_link(SECRET, "GET", key, query, now=0)


@pytest.mark.parametrize(
    ("secret", "method", "key", "now"),
    [
        (bytes(32), "GET", LINK.key, 0),
        (SECRET, "PUT", LINK.key, 0),
        (SECRET, "GET", "sources/2/file.pdf", 0),
        (SECRET, "GET", LINK.key, 1_000),  # the second it names is over
    ],
)
def test_another_secret_method_key_or_time_is_refused(secret: bytes, method: str, key: str, now: float) -> None:
    _, query = taken_apart(sign_link(SECRET, LINK))
    with pytest.raises(LinkRefused):
        verify_link(secret, method, key, query, now=now)


def test_fields_cannot_be_moved_into_each_other() -> None:
    one = Link("GET", "a", 1, "b", "cd")
    other = Link("GET", "a", 1, "bc", "d")
    assert taken_apart(sign_link(SECRET, one))[1]["signature"] != taken_apart(sign_link(SECRET, other))[1]["signature"]


@given(filename=st.text(), content_type=st.text())
def test_any_label_survives_the_way_through_a_url(filename: str, content_type: str) -> None:
    link = Link("GET", "a/b", 5, filename, content_type)
    try:
        key, query = taken_apart(sign_link(SECRET, link))
    except UnicodeEncodeError:  # half of a surrogate pair is no text
        return
    assert verify_link(SECRET, "GET", key, query, now=0) == link


@pytest.mark.parametrize(
    ("filename", "header"),
    [
        ("a b.pdf", "attachment; filename=\"a b.pdf\"; filename*=UTF-8''a%20b.pdf"),
        ('a"\r\nX: y', "attachment; filename=\"a___X_ y\"; filename*=UTF-8''a%22%0D%0AX%3A%20y"),
        ("ü/ü", "attachment; filename=\"___\"; filename*=UTF-8''%C3%BC%2F%C3%BC"),
    ],
)
def test_a_name_cannot_leave_its_header(filename: str, header: str) -> None:
    assert attachment_header(filename) == header
