"""What only the file's own table of contents says is kept by page, and what the text says too is not doubled."""

from __future__ import annotations

from octavo.extract.extracted import Block, BlockKind, Extracted, OutlineEntry, Page, SourceType
from octavo.extract.paged_file import bookmarks_by_page

HEADING = Block(BlockKind.HEADING, 0, 8, "1. Rain as income", 1, 1)
TEXT = Block(BlockKind.PARAGRAPH, 10, 20, "Rain falls", None, 2)


def found(*outline: OutlineEntry) -> dict[int, list[tuple[int, str]]]:
    pages = (Page(1, "1", 0, 9), Page(2, "2", 10, 20))
    return bookmarks_by_page(
        Extracted(SourceType.PDF, "x" * 20, 2, pages=pages, blocks=(HEADING, TEXT), outline=outline)
    )


def test_an_entry_with_a_heading_in_the_text_is_left_out() -> None:
    assert found(OutlineEntry(1, "Rain as income", 1, 0)) == {}


def test_an_entry_without_one_is_kept_in_order() -> None:
    assert found(OutlineEntry(1, "Plates", 2, 10), OutlineEntry(2, "A map", 2, 10)) == {
        2: [(1, "Plates"), (2, "A map")]
    }


def test_the_heading_of_another_entry_at_the_top_of_the_page_does_not_stand_for_it() -> None:
    assert found(OutlineEntry(1, "Part One", 1, 0), OutlineEntry(2, "Rain as income", 1, 0)) == {1: [(1, "Part One")]}


def test_an_entry_that_leads_to_no_page_is_left_out() -> None:
    assert found(OutlineEntry(1, "Elsewhere", None, None)) == {}
