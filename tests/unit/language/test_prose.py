"""Only language is read, every offset stays, and sentences are found as a reader finds them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from octavo.language.markdown_segments import SegmentKind, blank_markup, split_segments, split_sentences

marks = st.text(alphabet=st.sampled_from("ab .!?\n#*_|-+>`~[]()<>1$&;:/@\\\"'。"), max_size=300)


def parts(markdown: str) -> list[tuple[SegmentKind, str]]:
    text = blank_markup(markdown)
    return [(one.part, " ".join(text[one.start : one.end].split())) for one in split_segments(markdown)]


def test_parts_are_told_apart() -> None:
    markdown = """# A *title*

A paragraph that goes
on. See [this page](https://example.org/a_b "x") or mail me@example.org.

- first
  goes on
- [x] second
> quoted

| a | b |
|---|---|
| 1 | 2 |

```
code.is(left, out)
```
1. third
"""
    assert parts(markdown) == [
        (SegmentKind.HEADING, "A title"),
        (SegmentKind.PARAGRAPH, "A paragraph that goes on. See this page or mail ."),
        (SegmentKind.ITEM, "first goes on"),
        (SegmentKind.ITEM, "second > quoted"),
        (SegmentKind.CELLS, "| a | b |"),
        (SegmentKind.CELLS, "| 1 | 2 |"),
        (SegmentKind.ITEM, "third"),
    ]


@example("# ")
@example("\u2022 ")
@given(marks)
def test_offsets_stay(markdown: str) -> None:
    assert len(blank_markup(markdown)) == len(markdown)
    end = 0
    for part in split_segments(markdown):
        assert end <= part.start < part.end <= len(markdown)
        end = part.end


@given(marks)
def test_sentences_lie_in_order_and_leave_no_word_out(text: str) -> None:
    spans = list(split_sentences(text))
    assert all(start < end for start, end in spans)
    assert all(one[1] <= other[0] for one, other in pairwise(spans))
    assert "".join("".join(text[start:end].split()) for start, end in spans) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Dr. Smith arrived at 5 p.m. yesterday. He left.", ["Dr. Smith arrived at 5 p.m. yesterday.", "He left."]),
        ("It cost 3.14 dollars, e.g. in Rome. Why?", ["It cost 3.14 dollars, e.g. in Rome.", "Why?"]),
        ("吾輩は猫である。名前はまだ無い。", ["吾輩は猫である。", "名前はまだ無い。"]),
        ("one line\n\nanother", ["one line", "another"]),
        ("", []),
    ],
)
def test_sentences(text: str, sentences: list[str]) -> None:
    assert [text[start:end] for start, end in split_sentences(text)] == sentences
