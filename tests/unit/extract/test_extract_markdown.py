"""Markdown comes back as it was, with its title, its front matter and its outline read."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octavo.core.errors import Empty
from octavo.extract.decode import clean
from octavo.extract.detect import Hints
from octavo.extract.extracted import BlockKind, Metadata, SourceType
from octavo.extract.formats.text import extract_markdown as extract
from octavo.extract.formats.text import from_markdown as from_text

patient = settings(deadline=None)  # machines that run tests are busy

FRONT = """---
title: "Notes: a beginning"
author: Ann Author # who else
date: 2024-05-01T10:00:00Z
lang: en-GB
tags:
  - one
category: essays
---
"""


@patient
@given(st.text(st.characters(codec="utf-8")).map(clean).filter(str.strip))
def test_the_text_is_untouched(markdown: str) -> None:
    assert from_text(markdown).markdown == markdown


def test_bytes_become_text(tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.write_bytes("\ufeff# Über\r\n\r\nText\r\n".encode())
    assert extract(path, Hints(SourceType.MARKDOWN)).markdown == "# Über\n\nText\n"


def test_a_file_of_linked_timestamps_is_a_transcript(tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.write_text("\n".join(f"[[0:0{at}](https://youtu.be/a?t={at})] Words." for at in (0, 4, 9)))
    extracted = extract(path, Hints(SourceType.MARKDOWN))
    assert (extracted.source_type, extracted.markdown) == (SourceType.MARKDOWN, "Words. Words. Words.")
    assert [moment.seconds for moment in extracted.moments] == [0, 4, 9]


def test_front_matter_is_read_and_stays() -> None:
    markdown = FRONT + "\n# Heading\n"
    extracted = from_text(markdown)
    assert extracted.markdown == markdown
    assert extracted.metadata == Metadata(
        title="Notes: a beginning",
        author="Ann Author",
        date="2024-05-01",
        language="en-GB",
        extra={"category": "essays"},
    )
    front, heading = extracted.blocks
    assert (front.kind, front.start, markdown[front.end - 3 : front.end]) == (BlockKind.FRONT_MATTER, 0, "---")
    assert markdown[heading.start : heading.end] == "# Heading"


@pytest.mark.parametrize(
    "markdown",
    [
        "---\n\nA line across the page.\n\n---\n\nMore.",
        "---\ntitle: never closed\n",
        "---\ntitle: closed too late\n" + "x\n" * 20_000 + "---\n",
        "\n---\ntitle: not at the top\n---\n",
        "----\ntitle: one dash too many\n----\n",
    ],
)
def test_what_only_looks_like_front_matter_is_text(markdown: str) -> None:
    extracted = from_text(markdown)
    assert extracted.metadata.extra == {}
    assert BlockKind.FRONT_MATTER not in {block.kind for block in extracted.blocks}


@pytest.mark.parametrize(
    ("line", "metadata"),
    [
        ("date: 5 May 2024", Metadata(extra={"date": "5 May 2024"})),  # not ours to read
        ("date: 2024", Metadata(date="2024")),
        ("date: 2024-13-01", Metadata(date=None, extra={"date": "2024-13-01"})),
        ("language: the English one", Metadata()),
        ("title: 'It is'", Metadata(title="It is")),
        ("title: >", Metadata(title=">")),
    ],
)
def test_front_matter_is_taken_by_the_line(line: str, metadata: Metadata) -> None:
    assert from_text(f"---\n{line}\n---\nText\n").metadata == metadata


@pytest.mark.parametrize(
    ("markdown", "title"),
    [
        ("## Part\n\n# Book\n\n## Part", "Book"),
        ("## Only a part", "Only a part"),
        ("No heading at all", None),
        ("> # Quoted\n\n- # Listed\n\n```\n# Coded\n```", None),
    ],
)
def test_the_title_is_the_highest_heading(markdown: str, title: str | None) -> None:
    assert from_text(markdown).metadata.title == title


def test_the_outline_knows_where_headings_begin() -> None:
    markdown = "Before.\n\n# One\n\nText.\n\nTwo\n---\n\n#\n"
    assert [(entry.level, entry.title, entry.start) for entry in from_text(markdown).outline] == [
        (1, "One", 9),
        (2, "Two", 23),
    ]


@pytest.mark.parametrize("markdown", ["", "\n \n\t"])
def test_nothing_is_empty(markdown: str) -> None:
    with pytest.raises(Empty):
        from_text(markdown)
