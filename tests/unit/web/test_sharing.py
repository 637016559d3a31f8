"""What other apps share is understood, and the bookmark leads to the page that asks."""

from __future__ import annotations

import pytest

from octavo.web.rooms.library.upload_api import bookmarklet, shared_text


@pytest.mark.parametrize(
    ("url", "text", "shared"),
    [
        (" https://example.org/a ", "ignored", "https://example.org/a"),
        ("", "Look at this: https://example.org/b", "https://example.org/b"),
        ("", "https://example.org/a and https://example.org/b", "https://example.org/a and https://example.org/b"),
        ("", " Only words. ", "Only words."),
        ("", "", ""),
    ],
)
def test_the_link_is_found_in_what_was_shared(url: str, text: str, shared: str) -> None:
    assert shared_text(url, text) == shared


def test_the_bookmark_opens_the_page_that_asks() -> None:
    assert bookmarklet("https://docs.example.org").startswith(
        "javascript:void(window.open('https://docs.example.org/share?url='+encodeURIComponent(location.href)"
    )
