"""A link has one form, a name that can be read, and is refused at once where that can be told without the network."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.core.errors import Empty
from octavo.fetch import AddressRefused, BadUrl
from octavo.intake.links import LINK_TYPE, canonical_url, label_of, link_source, paste_source, video_id, video_source

VIDEO = "dQw4w9WgXcQ"
WATCH = f"https://www.youtube.com/watch?v={VIDEO}"
SAME = [
    ("HTTPS://Example.ORG/Path", "https://example.org/Path"),
    ("http://example.org:80/", "http://example.org/"),
    ("https://example.org:443", "https://example.org/"),
    ("https://example.org:80/", "https://example.org:80/"),
    ("http://example.org:8080/a", "http://example.org:8080/a"),
    ("https://example.org/a#part", "https://example.org/a"),
    ("  https://example.org/a \n", "https://example.org/a"),
    ("https://example.org/?utm_source=x", "https://example.org/"),
    ("https://example.org/?b=2&utm_medium=m&a=1&fbclid=f&gclid=g", "https://example.org/?b=2&a=1"),
    ("https://example.org/?UTM_Campaign=c&a", "https://example.org/?a"),
    ("https://example.org/?q=utm_source", "https://example.org/?q=utm_source"),
    ("https://example.org/?utm=1&gclids=2", "https://example.org/?utm=1&gclids=2"),
    ("https://example.org/?b=1&a=2", "https://example.org/?b=1&a=2"),
    ("https://example.org/?a=%2F&&b", "https://example.org/?a=%2F&&b"),
    ("https://b\u00fccher.example/\u00e4", "https://xn--bcher-kva.example/%C3%A4"),
    ("http://[2606:4700::1111]:8080/x", "http://[2606:4700::1111]:8080/x"),
]
VIDEOS = [
    WATCH,
    f"http://youtube.com/watch?v={VIDEO}",
    f"https://www.youtube.com/watch?v={VIDEO}&t=42s",
    f"https://www.youtube.com/watch?app=desktop&v={VIDEO}&list=PL123",
    f"https://m.youtube.com/watch?v={VIDEO}",
    f"https://music.youtube.com/watch?v={VIDEO}&si=x",
    f"https://youtu.be/{VIDEO}",
    f"https://youtu.be/{VIDEO}?t=42&si=x",
    f"https://www.youtube.com/shorts/{VIDEO}",
    f"https://www.youtube.com/embed/{VIDEO}?start=4",
    f"https://www.youtube-nocookie.com/embed/{VIDEO}",
    f"https://www.youtube.com/live/{VIDEO}?feature=share",
    f"https://www.youtube.com/v/{VIDEO}",
    f"HTTPS://WWW.YOUTUBE.COM/watch?v={VIDEO}#t=3",
    f" https://youtu.be/{VIDEO}/ ",
]
NO_VIDEOS = [
    "",
    VIDEO,
    "https://www.youtube.com/",
    "https://www.youtube.com/watch",
    "https://www.youtube.com/watch?v=short",
    f"https://www.youtube.com/watch?v={VIDEO}x",
    "https://www.youtube.com/watch?v=dQw4w9WgXc!",
    "https://www.youtube.com/@someone",
    "https://www.youtube.com/playlist?list=PL123",
    "https://youtu.be/",
    f"https://youtube.com.example.org/watch?v={VIDEO}",
    f"https://example.org/watch?v={VIDEO}",
    f"https://notyoutu.be/{VIDEO}",
    f"ftp://youtu.be/{VIDEO}",
    "https://[youtu.be/x",
]


@pytest.mark.parametrize(("given_url", "expected"), SAME, ids=[repr(one) for one, _ in SAME])
def test_a_link_has_one_form(given_url: str, expected: str) -> None:
    assert canonical_url(given_url) == expected
    assert canonical_url(expected) == expected


@given(st.text(st.characters(codec="ascii", exclude_characters="#"), max_size=40))
def test_the_one_form_is_its_own(rest: str) -> None:
    try:
        once = canonical_url(f"https://example.org/{rest}")
    except BadUrl:
        return
    assert canonical_url(once) == once


@pytest.mark.parametrize(
    ("url", "label"),
    [
        ("https://www.example.org/", "example.org"),
        ("https://example.org/blog/2024/why-we-do_it.html", "example.org - why we do it.html"),
        ("https://example.org/%C3%A4%2Fb/", "example.org - \u00e4 b"),
        ("https://example.org/a/../", "example.org"),
        ("https://example.org/?id=4", "example.org"),
    ],
    ids=str,
)
def test_a_link_is_called_after_its_site_and_page(url: str, label: str) -> None:
    assert label_of(canonical_url(url)) == label


@pytest.mark.parametrize("url", VIDEOS, ids=[f"{number}" for number in range(len(VIDEOS))])
def test_a_video_is_recognised_in_every_form(url: str) -> None:
    assert video_id(url) == VIDEO
    for source in (link_source(url), video_source(url)):
        assert (source.upload.source_type, source.upload.source_url) == ("youtube", WATCH)
    assert link_source(url).body == link_source(WATCH).body


@pytest.mark.parametrize("url", NO_VIDEOS, ids=[f"{number}" for number in range(len(NO_VIDEOS))])
def test_an_address_without_a_video_has_no_video_id(url: str) -> None:
    assert video_id(url) is None
    with pytest.raises(BadUrl, match="YouTube URL looks like"):
        video_source(url)


def test_the_bytes_of_a_link_are_the_link() -> None:
    source = link_source("https://Example.org/a#b", title="A page", duplicates="new")
    assert source.body.split(b"\r\n")[1:] == [b"https://example.org/a", b""]
    upload = source.upload
    assert (upload.content_type, upload.source_type, upload.source_url) == (LINK_TYPE, "web", "https://example.org/a")
    assert (upload.given, upload.duplicates, upload.filename) == ({"title": "A page"}, "new", "example.org - a")


@pytest.mark.parametrize("url", ["http://127.0.0.1/", "http://[::1]/", "http://2130706433/", "http://localhost:1/"])
def test_inner_addresses_are_refused_before_anything_is_kept(url: str) -> None:
    with pytest.raises(AddressRefused):
        link_source(url)


@pytest.mark.parametrize("url", ["example.org", "ftp://example.org", "http://a@b.c/", "https://e.org/" + "a" * 2000])
def test_an_invalid_web_address_is_refused_before_anything_is_stored(url: str) -> None:
    with pytest.raises(BadUrl):
        link_source(url)


def test_a_paste_keeps_where_it_is_from() -> None:
    words = paste_source("  # Some words\n\nMore.", attribution="A talk in Rome")
    assert (words.body, words.upload.filename) == (b"  # Some words\n\nMore.", "Some words")
    assert (words.upload.source_type, words.upload.source_url) == ("paste", None)
    assert words.upload.given == {"source": "A talk in Rome"}
    page = paste_source("Words.", title="T", attribution="HTTPS://Example.org/a#b")
    assert (page.upload.source_url, page.upload.given["source"]) == ("https://example.org/a", "HTTPS://Example.org/a#b")
    assert paste_source("Words.", attribution=f"https://youtu.be/{VIDEO}").upload.source_url == WATCH


def test_a_transcript_that_links_to_its_video_is_from_that_video() -> None:
    lines = [f"[[0:0{second}]({WATCH}&t={second}s)] Words." for second in (0, 4, 9)]
    assert paste_source("\n".join(lines)).upload.source_url == WATCH
    assert paste_source("\n".join(lines), attribution="A talk in Rome").upload.source_url is None
    assert paste_source("\n".join(lines[:1])).upload.source_url is None  # a text that quotes one moment


@pytest.mark.parametrize("text", ["", " \n\t "], ids=["nothing", "spaces"])
def test_a_paste_without_words_is_empty(text: str) -> None:
    with pytest.raises(Empty):
        paste_source(text)


@given(st.text(min_size=1))
def test_any_text_can_be_pasted(text: str) -> None:
    try:
        source = paste_source(text)
    except Empty:
        assert not text.strip()
        return
    assert source.upload.filename
    assert source.body
