"""Offsets are exact and nothing means more than it says, whatever stands on the pages."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from octavo.extract.extracted import BlockKind, Box, from_json, to_json
from octavo.extract.markdown import plain_title, read_blocks
from octavo.extract.pdf import markup
from octavo.extract.pdf.letters import clean_letters, one_line
from octavo.extract.pdf.page_batches import (
    Batch,
    Bookmark,
    PageBlock,
    PageText,
    PdfFacts,
    batch_from_json,
    batch_to_json,
)
from tests.support.pdf import assemble

patient = settings(deadline=None, max_examples=60)  # machines that run tests are busy

FRAGMENTS = [
    "word", "# hash", "#", "> quote", "- item", "1. one", "1)", "---", "===", "***", "~~~", "```", "`tick`", "*star*",
    "_under_", "snake_case", "[link](target)", "[ref]: x", "<b>", "<!-- x", "&amp;", "\\", "|", "| a |",
    "|---|", "    x", "日本語", "שלום", "3.1 Title", "end #", "\u00ad", "\x02", "\x00", "\ufb01", "\ufdd1", "a-",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=8), min_size=1, max_size=6).map(" ".join)


def box(top: float, height: float) -> Box:
    return Box(72.0, top, 300.0, top + height)


BOXES = st.builds(box, st.floats(0, 700), st.floats(1, 80))


def as_liteparse_writes(text: str) -> str:
    return re.sub(r"([\\*_])", r"\\\1", one_line(text))


@st.composite
def blocks(draw: st.DrawFn) -> PageBlock:
    kind = draw(
        st.sampled_from([BlockKind.HEADING, BlockKind.PARAGRAPH, BlockKind.LIST, BlockKind.TABLE, BlockKind.CODE])
    )
    texts = draw(st.lists(TEXTS, min_size=1, max_size=4))
    match kind:
        case BlockKind.LIST:
            marks = draw(st.lists(st.sampled_from(["•", "-", "1.", "(2)", "(a)", ""]), min_size=4, max_size=4))
            depths = draw(st.lists(st.integers(0, 4), min_size=4, max_size=4))
            items = [
                markup.Item(mark, as_liteparse_writes(text), depth)
                for mark, text, depth in zip(marks, texts, depths, strict=False)
            ]
            text = markup.item_lines(items[: next(markup.list_ends(items))])
        case BlockKind.TABLE:
            text = markup.table([[one_line(text) for text in texts], ["cell"] * draw(st.integers(1, 5))])
        case BlockKind.CODE:
            text = markup.code([clean_letters(text).replace("\n", " ") for text in texts], "")
        case _:
            text = "\n".join(line for text in texts if (line := markup.inline(as_liteparse_writes(text))))
    size, bold, lines = draw(st.sampled_from([0.0, 11.0, 14.0, 20.0])), draw(st.booleans()), draw(st.integers(1, 3))
    return PageBlock(kind, text, draw(st.none() | BOXES), size, bold, lines)


def without_neighbours(found: list[PageBlock]) -> tuple[PageBlock, ...]:
    """Lists that follow each other are one in Markdown, and are read as one from a page."""
    kept = [block for block in found if block.text]
    lists = [block.kind is BlockKind.LIST for block in kept]
    return tuple(block for block, *both in zip(kept, lists, [False, *lists], strict=False) if not all(both))


PAGES = st.lists(st.lists(blocks(), max_size=5).map(without_neighbours), min_size=1, max_size=6)


@patient
@given(PAGES, st.lists(st.tuples(st.integers(1, 3), TEXTS, st.integers(1, 6)), max_size=3))
def test_offsets_are_exact_and_markdown_has_these_blocks(
    pages: list[tuple[PageBlock, ...]], marked: list[tuple[int, str, int]]
) -> None:
    batch = Batch(tuple(PageText(number, str(number), 612.0, 792.0, found) for number, found in enumerate(pages, 1)))
    bookmarks = tuple(Bookmark(level, one_line(title), page) for level, title, page in marked)
    extracted = assemble(PdfFacts(len(pages), bookmarks), [batch_from_json(batch_to_json(batch))])
    assert from_json(to_json(extracted)) == extracted
    assert [page.number for page in extracted.pages] == list(range(1, len(pages) + 1))
    for page in extracted.pages:
        text = extracted.markdown[page.start : page.end]
        told = [one for one in extracted.blocks if one.page == page.number]
        assert [(one.kind, one.start + page.start, one.end + page.start) for one in read_blocks(text)] == [
            (one.kind, one.start, one.end) for one in told
        ]
        for one in told:
            content = extracted.markdown[one.start : one.end]
            assert one.text == (plain_title(content) if one.kind is BlockKind.HEADING else content)
    assert all(entry.start is None or 0 <= entry.start <= len(extracted.markdown) for entry in extracted.outline)


@patient
@given(TEXTS)
def test_a_line_says_what_it_said(text: str) -> None:
    line = one_line(text)
    assert plain_title("# " + markup.inline(as_liteparse_writes(text))) == plain_title("# " + markup.plain(line))
