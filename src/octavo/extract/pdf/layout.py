"""Reads the layout of PDF pages with liteparse and converts it to our own blocks.

Only blocks and font sizes are used. liteparse would decide heading levels and running headers for each batch
separately; Octavo decides them later, for the whole document.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from liteparse import _liteparse as liteparse

from octavo.extract.extracted import BlockKind, Box
from octavo.extract.pdf import markup
from octavo.extract.pdf.letters import clean_letters, one_line
from octavo.extract.pdf.lines import BlockStyle, Run, indented, intended_lines, runs_in, style_of
from octavo.extract.pdf.page_batches import PageBlock

_native: Any = liteparse  # has no types
_BOLD_NAMES = ("bold", "black", "heavy", "demi")
_LEAST_SIZE = 4.0
_HEIGHT_OF_LETTERS = 1.2  # as a multiple of their size


@dataclass(frozen=True, slots=True)
class PageLayout:
    """The layout of one page."""

    number: int
    width: float | None = None
    height: float | None = None
    blocks: tuple[PageBlock, ...] = ()


def lay_out(file: bytes) -> Iterator[PageLayout]:
    """Read the layouts of all readable pages, in order. Raises `LayoutError` if the whole file cannot be read."""
    for page in _parse(file).pages:
        yield PageLayout(page.page_num, page.width, page.height, tuple(_blocks(page)))


def _parse(file: bytes) -> Any:  # noqa: ANN401
    # This bypasses the library's own wrapper class, which copies every word into an object and takes as long as
    # reading the page.
    try:
        parser = _native.LiteParse(
            ocr_enabled=False,
            output_format="markdown",
            max_pages=10**9,
            quiet=True,
            num_workers=1,
            extract_links=False,
            keep_headers_footers=True,
            extract_blocks=True,
            continue_on_page_error=True,
        )
        return parser.parse_bytes(file)
    except BaseException as error:
        # A Rust panic is not an `Exception`; other errors that are not one do not come from the library.
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise LayoutError from error
        raise


class LayoutError(Exception):
    """liteparse cannot open the file."""


def _blocks(page: Any) -> Iterator[PageBlock]:  # noqa: ANN401
    runs = [_run(item) for item in page.text_items]
    for is_item, same in groupby(page.blocks, key=lambda block: block.kind == "list_item"):
        if is_item:
            yield from _lists(list(same), runs)
            continue
        for block in same:
            made = _block(block, runs)
            if made and made.text:
                yield made


def _run(item: Any) -> Run:  # noqa: ANN401
    name = (item.font_name or "").lower()
    bold = any(word in name for word in _BOLD_NAMES)
    left, top, height, size = item.x, item.y, item.height, item.font_size or 0.0
    # Some programs write everything in size 1 and scale the page. Getting the true size from the library would take
    # a fifth of the time; the height of the letters is close enough.
    size = round(size, 1) if size >= _LEAST_SIZE else round(height / _HEIGHT_OF_LETTERS * 2) / 2
    return Run(left, top, left + item.width, top + height, size, bold, item.text)


def _block(block: Any, runs: Sequence[Run]) -> PageBlock | None:  # noqa: ANN401
    box = _box(block)
    style = style_of(runs_in(box, runs))
    match block.kind:
        case "heading":
            kind, text = BlockKind.HEADING, markup.inline(one_line(block.text))
        case "paragraph":
            kind, text = BlockKind.PARAGRAPH, _paragraph(block.text, style, runs)
        case "table":
            rows = [*([block.header] if block.header else ()), *block.rows]
            kind, text = BlockKind.TABLE, markup.table([[one_line(cell.text) for cell in row] for row in rows])
        case "code" | "grid_fallback":
            lines = [clean_letters(line).replace("\n", " ").rstrip() for line in block.lines]
            lines = indented(lines, style) if block.kind == "code" else lines
            kind, text = BlockKind.CODE, markup.code(lines, block.lang or "")
        case _:  # rules and images have no text
            return None
    return PageBlock(kind, text, box, style.size, style.bold, max(len(style.lines), 1))


def _paragraph(text: str, style: BlockStyle, runs: Sequence[Run]) -> str:
    text = markup.inline(one_line(text))
    lines = intended_lines(text, style, runs)
    return "\n".join(markup.plain(one_line(line)) for line in lines) if lines else text


def _lists(items: Sequence[Any], runs: Sequence[Run]) -> Iterator[PageBlock]:
    """Join consecutive list items into lists. A new list starts where bullets change to numbers or back."""
    made = [markup.Item(item.marker or "", one_line(item.text or ""), item.level or 0) for item in items]
    start = 0
    for end in markup.list_ends(made):
        box = _around([box for item in items[start:end] if (box := _box(item))])
        style = style_of(runs_in(box, runs))
        text = markup.item_lines(made[start:end])
        yield PageBlock(BlockKind.LIST, text, box, style.size, lines=max(len(style.lines), 1))
        start = end


def _box(block: Any) -> Box | None:  # noqa: ANN401
    place = block.bbox
    if place is None:
        return None
    left, top = place.x, place.y
    return Box(round(left, 1), round(top, 1), round(left + place.width, 1), round(top + place.height, 1))


def _around(boxes: Sequence[Box]) -> Box | None:
    if not boxes:
        return None
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return Box(min(lefts), min(tops), max(rights), max(bottoms))
