"""What processors return crosses the border of the sandbox unchanged, or not at all."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octavo.core.errors import Defect
from octavo.extract.extracted import (
    Block,
    BlockKind,
    Box,
    Extracted,
    Figure,
    Metadata,
    OutlineEntry,
    Page,
    Quality,
    Region,
    RegionKind,
    SourceType,
    from_json,
    to_document,
    to_json,
)

patient = settings(deadline=None)  # machines that run tests are busy

EXAMPLE = Extracted(
    source_type=SourceType.PDF,
    markdown="# Über\n\nText",
    word_count=2,
    quality=Quality.PARTIAL,
    pages=(Page(1, "i", 0, 12, 595.0, 842.0), Page(2, "ii", 12, 12)),
    blocks=(Block(BlockKind.HEADING, 0, 6, "Über", 1, 1, Box(10, 20.5, 30, 40)),),
    outline=(OutlineEntry(1, "Über", 1, 0),),
    metadata=Metadata(title="Über", extra={"producer": "by hand"}),
    regions=(Region(1, RegionKind.HEADING, Box(10, 20.5, 30, 40), 0, 0.9, "Über"),),
    figures=(Figure(1, "chart", 8, 1, Box(10, 50, 30, 80), caption="Tides"),),
)

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
metadata = st.builds(
    Metadata,
    title=st.none() | texts,
    author=st.none() | texts,
    date=st.none() | texts,
    language=st.none() | texts,
    extra=st.dictionaries(texts, texts),
)


@patient
@given(texts, metadata, st.sampled_from(SourceType), st.sampled_from(Quality))
def test_it_comes_back_as_it_was(text: str, about: Metadata, source_type: SourceType, quality: Quality) -> None:
    extracted = replace(EXAMPLE, markdown=EXAMPLE.markdown + text, metadata=about)
    extracted = replace(extracted, source_type=source_type, quality=quality)
    assert from_json(to_json(extracted)) == extracted


def test_the_documents_names_are_those_of_the_command_line() -> None:
    document: Any = to_document(EXAMPLE)
    assert document.keys() == {
        "source_type", "markdown", "word_count", "quality", "pages", "blocks", "outline", "metadata", "moments",
        "regions", "figures",
    }  # fmt: skip
    assert {"number", "label", "start", "end"} <= document["pages"][0].keys()
    assert {"kind", "level", "page", "box", "text"} <= document["blocks"][0].keys()
    assert {"level", "title", "page"} <= document["outline"][0].keys()
    assert json.loads(json.dumps(document))["blocks"][0]["box"] == [10, 20.5, 30, 40]


def test_pages_with_text_are_counted() -> None:
    assert EXAMPLE.pages_with_text == 1


@pytest.mark.parametrize(
    ("pages", "blocks"),
    [
        ((Page(1, "1", 0, 13),), ()),
        ((Page(1, "1", 5, 4),), ()),
        ((Page(1, "1", 4, 8), Page(2, "2", 2, 8)), ()),
        ((), (Block(BlockKind.LIST, -1, 4, ""),)),
        ((Page(1, "1", 0, 0, width=float("nan")),), ()),
        ((), (Block(BlockKind.LIST, 0, 4, "", box=Box(0, 0, 0, float("inf"))),)),
    ],
)
def test_a_processor_that_mixes_up_its_offsets_is_told(pages: tuple[Page, ...], blocks: tuple[Block, ...]) -> None:
    with pytest.raises(ValueError, match=r"text|number"):
        replace(EXAMPLE, pages=pages, blocks=blocks)


def test_zeros_do_not_leave_the_sandbox() -> None:
    with pytest.raises(ValueError, match="U\\+0000"):
        to_json(replace(EXAMPLE, metadata=Metadata(title="a\0b")))
    # but whoever writes about them may
    about = replace(EXAMPLE, metadata=Metadata(title="\\u0000 and \\\\u0000"))
    assert from_json(to_json(about)) == about


def changed(**fields: object) -> bytes:
    return json.dumps({**to_document(EXAMPLE), **fields}).encode()


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b"[" * 100_000,
        to_json(EXAMPLE)[:-1],
        changed(word_count="2"),
        changed(source_type="poem"),
        changed(quality=None),
        changed(markdown="zero \0"),
        changed(markdown="half a pair \ud800"),
        changed(pages=[{"number": 1, "label": "1", "start": 0, "end": 99}]),
        changed(blocks=[{"kind": "heading", "start": 0, "end": 2, "text": "", "box": [0, 0, 0, float("nan")]}]),
        changed(outline=[{"level": 1}]),
        changed(metadata={"extra": {"key": 1}}),
    ],
)
def test_what_a_hostile_child_writes_is_refused(document: bytes) -> None:
    with pytest.raises(Defect, match="returned an invalid document") as refused:
        from_json(document)
    assert refused.value.__cause__ is None  # it would carry the text into the log
