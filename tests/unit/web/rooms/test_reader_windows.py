"""Long documents are read in windows that are always the same, begin where a block begins and lose nothing."""

from __future__ import annotations

import re
import time
from itertools import pairwise
from uuid import UUID, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.extract.chunks.chunking import chunk
from octavo.extract.formats.text import from_text
from octavo.extract.markdown import read_blocks
from octavo.web.markdown import windows as plan
from octavo.web.markdown.render import render_plain, render_window
from octavo.web.markdown.windows import Plan, Sheet, make_plan
from octavo.web.rooms.reader.text import ChunkPosition, Leaf, arrange

NAMES = UUID(int=0)


def sheets_of(text: str) -> tuple[str, list[Sheet]]:
    extracted = from_text(text)
    return extracted.markdown, [Sheet(one.number, one.label, one.start, one.end) for one in extracted.pages]


def show(markdown: str, made: Plan, places: list[ChunkPosition] | None = None) -> list[list[Leaf]]:
    """All windows, as the reader would send them one after the other."""
    numbers = {heading.start: heading.number for heading in made.headings}
    shown: list[list[Leaf]] = []
    for window in made.windows:
        start = max(window.start, made.front_end)
        text = markdown[start : window.end]
        blocks = render_plain(text, start) if window.plain else render_window(text, start, made.references)
        inside = [place for place in places or [] if place.start < window.end and place.end > window.start]
        shown.append(arrange(blocks, text, start, breaks=made.breaks_in(window), places=inside, headings=numbers))
    return shown


def words(windows: list[list[Leaf]]) -> list[str]:
    found: list[str] = []
    for leaf in (leaf for leaves in windows for leaf in leaves):
        for piece in (piece for passage in leaf.chunks for piece in passage.blocks):
            found += re.findall(r"\w+", re.sub(r"<[^>]*>", " ", piece.html))
    return found


def pages(number: int) -> str:
    return "\f".join(f"Heading {n}\n=======\n\nText of page {n}. It goes on." for n in range(1, number + 1))


def test_a_window_has_twenty_pages() -> None:
    markdown, sheets = sheets_of(pages(50))
    made = make_plan(markdown, sheets)
    numbers = [[sheet.number for _, sheet in made.breaks_in(window)] for window in made.windows]
    assert [(one[0], one[-1]) for one in numbers] == [(1, 20), (21, 40), (41, 50)]
    assert made.window_of_page(41).number == 3
    assert made.window_of_page(20).number == 1
    assert made.window_of_page(10_000).number == 3
    assert made.window_at(sheets[20].start).number == 2


def test_each_page_begins_with_its_mark() -> None:
    markdown, sheets = sheets_of(pages(45))
    for leaves in show(markdown, make_plan(markdown, sheets)):
        for leaf in leaves:
            assert leaf.sheet
            assert f"Text of page {leaf.sheet.number}." in leaf.chunks[0].blocks[1].html


def test_pages_without_text_are_there() -> None:
    markdown, sheets = sheets_of("One\n\n\f\f\fFour\f")
    (leaves,) = show(markdown, make_plan(markdown, sheets))
    assert [(leaf.sheet.number, len(leaf.chunks)) for leaf in leaves if leaf.sheet] == [
        (1, 1),
        (2, 0),
        (3, 0),
        (4, 1),
        (5, 0),
    ][: len(leaves)]
    assert len(leaves) == len(sheets)


def test_a_page_that_begins_within_a_block_is_marked_before_the_next() -> None:
    markdown = "A paragraph that goes on.\n\nAnother one."
    sheets = [Sheet(1, "i", 0, 12), Sheet(2, "ii", 12, len(markdown))]
    (leaves,) = show(markdown, make_plan(markdown, sheets))
    assert [leaf.sheet.label for leaf in leaves if leaf.sheet] == ["i", "ii"]
    assert "Another" in leaves[1].chunks[0].blocks[0].html


def test_text_without_pages_is_cut_where_a_block_begins() -> None:
    markdown = "\n\n".join(f"```\ncode {n}\n\n# no heading\n{'x' * 900}\n```\n\nParagraph {n}." for n in range(200))
    made = make_plan(markdown)
    starts = {block.start for block in read_blocks(markdown)}
    assert len(made.windows) > 2
    assert {window.start for window in made.windows[1:]} <= starts
    assert all(window.end - window.start <= plan.CHARACTERS for window in made.windows)
    assert not made.headings
    assert words(show(markdown, made)) == words(show_whole(markdown))


def show_whole(markdown: str) -> list[list[Leaf]]:
    made = make_plan(markdown)
    text = markdown[made.front_end :]
    return [arrange(render_window(text, made.front_end, made.references), text, made.front_end)]


@pytest.mark.parametrize("part", ["| a | b |\n", "word ", "x", "- item\n"], ids=["table", "line", "word", "list"])
def test_a_block_too_large_for_a_window_is_shown_as_source(part: str) -> None:
    table = "| a | b |\n|---|---|\n" if part.startswith("|") else ""
    markdown = f"First\n\n{table}{part * (300_000 // len(part))}\n\nLast *one*"
    began = time.process_time()
    made = make_plan(markdown)
    shown = show(markdown, made)
    assert time.process_time() - began < 5
    assert all(window.end - window.start <= plan.LARGE_BLOCK for window in made.windows)
    assert sum(window.plain for window in made.windows) > 3
    assert "".join(words(shown)) == "".join(re.findall(r"\w+", markdown))
    assert "<em>one</em>" in shown[-1][-1].chunks[-1].blocks[-1].html


def test_links_may_be_defined_in_another_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "CHARACTERS", 40)
    markdown = "See [this][a] and [that].\n\n" + "Word. " * 20 + "\n\n[a]: https://x.example\n[that]: https://y.example"
    made = make_plan(markdown)
    assert len(made.windows) > 1
    first = show(markdown, made)[0][0].chunks[0].blocks[0].html
    assert 'href="https://x.example"' in first
    assert 'href="https://y.example"' in first


def test_front_matter_is_not_text() -> None:
    markdown = "---\ntitle: A\n---\n\n# B\n\nc"
    made = make_plan(markdown)
    assert markdown[: made.front_end].endswith("---\n")
    assert words(show(markdown, made)) == ["B", "c"]


def test_headings_are_numbered_and_know_their_page() -> None:
    markdown, sheets = sheets_of(pages(3))
    made = make_plan(markdown, sheets)
    assert [(one.number, one.title, one.page) for one in made.headings] == [
        (1, "Heading 1", 1),
        (2, "Heading 2", 2),
        (3, "Heading 3", 3),
    ]
    (leaves,) = show(markdown, made)
    assert leaves[1].chunks[0].blocks[0].html == '<h2 id="h-2">Heading 2</h2>'


def test_a_document_names_no_anchor() -> None:
    (leaves,) = show("<p id='h-1'>a</p>\n\n# B {#c-1}", make_plan("<p id='h-1'>a</p>\n\n# B {#c-1}"))
    shown = "".join(piece.html for passage in leaves[0].chunks for piece in passage.blocks)
    assert re.findall(r'id="[^"]*"', shown) == ['id="h-1"']
    assert shown.startswith("<p>a</p>")


# Passages ----------------------------------------------------------------------------------------------------------


def places_of(markdown: str, sheets: list[Sheet] | None = None) -> list[ChunkPosition]:
    made = chunk(markdown, list(read_blocks(markdown)), sheets or [])
    return [ChunkPosition(uuid5(NAMES, str(one.index)), one.start, one.end, one.seconds) for one in made]


def test_anchors_stand_where_passages_begin() -> None:
    section = "\n\n".join("Some words that say something. " * 12 for _ in range(6))
    markdown = "\n\n".join(f"## Section {n}\n\n{section}" for n in range(40))
    places = places_of(markdown)
    made = make_plan(markdown)
    found = [passage for leaves in show(markdown, made, places) for leaf in leaves for passage in leaf.chunks]
    begun = [passage for passage in found if passage.begins and passage.place]
    assert [one.place.id for one in begun if one.place] == [place.id for place in places]
    assert all(one.place and one.blocks[0].start == one.place.start for one in begun)


def test_a_passage_that_begins_within_a_block_has_its_anchor_there() -> None:
    markdown = "Short.\n\n" + "One sentence that is quite long. " * 200
    places = places_of(markdown)
    assert len(places) > 2
    (leaves,) = show(markdown, make_plan(markdown), places)
    anchors = [anchor for passage in leaves[0].chunks for piece in passage.blocks for anchor in piece.anchors]
    begun = [passage.place.id for passage in leaves[0].chunks if passage.begins and passage.place]
    assert sorted([*anchors, *begun]) == sorted(place.id for place in places)


def test_a_passage_over_two_pages_has_one_anchor() -> None:
    markdown, sheets = sheets_of("First page, a few words.\fSecond page, a few words.")
    places = places_of(markdown, sheets)
    assert len(places) == 1
    (leaves,) = show(markdown, make_plan(markdown, sheets), places)
    assert [[passage.begins for passage in leaf.chunks] for leaf in leaves] == [[True], [False]]
    assert all(passage.place == places[0] for leaf in leaves for passage in leaf.chunks)


# Whatever is written -----------------------------------------------------------------------------------------------

PARTS = st.sampled_from([
    "# Title", "Word and word.", "- a\n- b\n  - c", "1. one\n\n   two", "> quote\nlazy", "```\nfence\n\n# x\n```",
    "~~~\nopen", "| a | b |\n|---|---|\n| 1 | 2 |", "    indented", "<div>\nraw\n</div>", "Under\n-----", "* * *",
    "![p](q)", "<!-- c -->", "[r]: https://x.example", "[see][r]", "text\n# close", "\\# no", "`code`", "---",
])  # fmt: skip


@given(st.lists(PARTS, max_size=25), st.integers(5, 60))
def test_windows_say_what_the_whole_says(parts: list[str], characters: int) -> None:
    markdown = "\n\n".join(parts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "CHARACTERS", characters)
        made = make_plan(markdown)
        assert [window.start for window in made.windows] == sorted({window.start for window in made.windows})
        assert all(before.end == after.start for before, after in pairwise(made.windows))
        assert (made.windows[0].start, made.windows[-1].end) == (0, len(markdown))
        shown = show(markdown, made, places_of(markdown))
    assert words(shown) == words(show_whole(markdown))


def test_a_thousand_pages_are_no_reason_to_wait() -> None:
    body = "\n\n".join(
        "The upper layer is loose and quick, and the lower one is dense and slow. " * 7 for _ in range(5)
    )
    markdown, sheets = sheets_of("\f".join(f"{body}\n\nEnd of {n}." for n in range(1000)))
    began = time.process_time()
    made = make_plan(markdown, sheets)
    window = made.window_of_page(500)
    text = markdown[window.start : window.end]
    arrange(render_window(text, window.start, made.references), text, window.start, breaks=made.breaks_in(window))
    assert time.process_time() - began < 1
