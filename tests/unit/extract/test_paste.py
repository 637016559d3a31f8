"""Pasted text is recognised for what it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.core.errors import Empty
from octavo.extract.extracted import BlockKind
from octavo.extract.formats.text import from_pasted
from octavo.extract.transcript import read_timestamps

TRANSCRIPTS = {
    "on the same line": "0:00 Hello there.\n0:05 This is it.\n1:02:03 The end.",
    "on own lines": "0:00\nHello there.\n0:05\nThis is it.\n1:02:03\nThe end.",
    "in brackets": "[00:00] Hello there.\n[00:05] This is it.\n[1:02:03] The end.",
    "in parentheses": "(0:00) Hello there.\n(0:05) This is it.\n(1:02:03) The end.",
    "with a dash": "0:00 - Hello there.\n0:05 \u2013 This is it.\n1:02:03 \u2014 The end.",
    "linked to the video": (
        "[[0:00](https://www.youtube.com/watch?v=dQw4w9WgXcQ&t=0s)] Hello there.\n"
        "[[0:05](https://www.youtube.com/watch?v=dQw4w9WgXcQ&t=5s)] This is it.\n"
        "[[1:02:03](https://www.youtube.com/watch?v=dQw4w9WgXcQ&t=3723s)] The end."
    ),
    "linked, in running text": (
        "[[00:00](https://youtu.be/dQw4w9WgXcQ?t=0)] Hello there. [[00:05](https://youtu.be/dQw4w9WgXcQ?t=5)] "
        "This is it. [[1:02:03](https://youtu.be/dQw4w9WgXcQ?t=3723)] The end."
    ),
    "linked, in single brackets": (
        "[0:00](https://youtu.be/a) Hello there.\n[0:05](https://youtu.be/a) - This is it.\n"
        "[1:02:03](https://youtu.be/a)\nThe end."
    ),
    "indented, with empty lines": "  0:00\n\nHello there.\n\n  0:05\n\nThis is it.\n\n 1:02:03\n\nThe end.\n",
    "with parts of seconds": "00:00.120 Hello there.\n00:05.480 This is it.\n01:02:03.000 The end.",
}
NO_TRANSCRIPTS = {
    "two times only": "0:00 Hello.\n0:05 There.",
    "going back": "0:10 Hello.\n0:05 There.\n0:20 Again.",
    "the same time": "0:10 Hello.\n0:10 There.\n0:10 Again.",
    "times inside of lines": "At 0:10 he said.\nAt 0:20 she said.\nAt 0:30 all left.",
    "times of day": "9:00 Coffee\n9:30 Talk\n10:15 Lunch\n11:00 End",
    "ratios": "Scores:\n3:2\n1:4\n0:0",
    "sections of a law": "1:1:1:1 a\n2:2:2:2 b\n3:3:3:3 c",
    "clock with wrong seconds": "0:61 a\n0:72 b\n0:99 c",
}


@pytest.mark.parametrize("text", TRANSCRIPTS.values(), ids=TRANSCRIPTS.keys())
def test_times_at_the_beginnings_of_lines_make_a_transcript(text: str) -> None:
    extracted = from_pasted(text)
    assert extracted.markdown.replace("\n\n", " ") == "Hello there. This is it. The end."
    assert [moment.seconds for moment in extracted.moments] == [0, 5, 3723]
    starts = [extracted.markdown[moment.start :].split()[0] for moment in extracted.moments]
    assert starts == ["Hello", "This", "The"]


@pytest.mark.parametrize("text", NO_TRANSCRIPTS.values(), ids=NO_TRANSCRIPTS.keys())
def test_other_numbers_do_not(text: str) -> None:
    assert read_timestamps(text) is None
    assert from_pasted(text).moments == ()


def test_a_transcript_may_begin_late() -> None:
    assert from_pasted("12:34\nSo\n12:41\nthere\n13:02\nwe are").moments[0].seconds == 754


def test_what_stands_before_the_first_time_stays_without_one() -> None:
    extracted = from_pasted("The title of it\n\n0:00 Hello.\n0:03 There.\n0:07 End.")
    assert extracted.markdown.split("\n\n") == ["The title of it", "Hello. There. End."]
    assert extracted.moments[0].start == extracted.markdown.index("Hello")


phrases = st.lists(st.sampled_from(["so", "well", "the", "river", "goes", "on"]), min_size=1, max_size=9).map(" ".join)


@given(st.lists(st.tuples(st.integers(1, 90), phrases), min_size=3, max_size=30))
def test_every_word_behind_a_time_is_kept(steps: list[tuple[int, str]]) -> None:
    second, lines, expected = 1, list[str](), list[str]()
    for gap, words in steps:
        second += gap
        lines.append(f"{second // 60}:{second % 60:02} {words}")
        expected += words.split()
    extracted = from_pasted("\n".join(lines))
    # A text without punctuation gets full stops and capital letters.
    assert [word.rstrip(".").lower() for word in extracted.markdown.split()] == expected
    assert len(extracted.moments) == len(steps)


def test_notes_that_link_to_moments_of_a_video_stay_markdown() -> None:
    links = [f"[[0:0{second}](https://youtu.be/a?t={second})]" for second in (1, 4, 9)]
    notes = "# Notes\n\n" + "\n\n".join(f"One.\n\nTwo.\n\nThree.\n\nFour.\n\nSee {link}." for link in links)
    assert from_pasted(notes).markdown == notes


def test_one_heading_makes_a_paste_markdown() -> None:
    pasted = "# Orchard walls\n\nPears ripen early on a wall that faces south."
    extracted = from_pasted(pasted)
    assert extracted.markdown == pasted
    assert [entry.title for entry in extracted.outline] == ["Orchard walls"]


def test_markdown_stays_markdown_and_text_becomes_it() -> None:
    markdown = "# Title\n\nSome **bold words** and [a link](https://example.org/).\n"
    assert from_pasted(markdown).markdown == markdown
    plain = from_pasted("Some words.\n\n* first\n* second\n")
    assert [block.kind for block in plain.blocks] == [BlockKind.PARAGRAPH, BlockKind.LIST]


def test_the_source_of_a_page_is_read_as_a_page() -> None:
    html = f"<!doctype html><html><body><nav>Menu</nav><article><p>{'Words of the article. ' * 30}</p></article></body>"
    extracted = from_pasted(html)
    assert extracted.markdown.startswith("Words of the article.")
    assert "Menu" not in extracted.markdown


@pytest.mark.parametrize("text", ["", " \n "], ids=["nothing", "spaces"])
def test_a_paste_without_words_is_empty(text: str) -> None:
    with pytest.raises(Empty):
        from_pasted(text)
