"""The text of PDF pages: layout by liteparse, PDFium where liteparse fails, and OCR for pages that are only images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from octavo.core.languages import ANY_LANGUAGE
from octavo.extract.extracted import BlockKind
from octavo.extract.markdown import read_blocks
from octavo.extract.pdf import markup
from octavo.extract.pdf.document import Document, OpenPage, PageError, fitting_scale, open_document, render
from octavo.extract.pdf.layout import Laid, LayoutError, lay_out
from octavo.extract.pdf.letters import (
    clean_letters,
    count_letters,
    has_right_to_left,
    is_meaningless,
    is_right_to_left,
    one_line,
)
from octavo.extract.pdf.page_batches import Batch, PageBlock, PageText
from octavo.extract.plain_text import convert

_MOST_LABEL = 40
_FEW_LETTERS = 80
# A page with fewer letters is looked at again: as much of what PDFium finds must be left, or its text is taken.
_FULL_PAGE = 1500
_LEFT = 0.7
_COPY_BYTES = 64 * 1024 * 1024
DAMAGED = "The page is damaged."


def read_batch(path: Path, first: int, last: int, password: str | None = None, *, layout: bool = True) -> Batch:
    """The pages from `first` to `last`, both of them included. Without `layout`, by PDFium alone."""
    with open_document(path, password) as document:
        last = min(last, document.page_count)
        laid = _lay_out(document, first, last, _pages_per_copy(path, document)) if layout else {}
        return Batch(tuple(_page(document, number, laid.get(number)) for number in range(first, last + 1)))


def _pages_per_copy(path: Path, document: Document) -> int:
    """How many pages are copied at once, so that a book of large pictures does not fill the memory."""
    return max(1, _COPY_BYTES * document.page_count // max(path.stat().st_size, 1))


def _lay_out(document: Document, first: int, last: int, pages_per_copy: int) -> dict[int, Laid]:
    """What liteparse can read. It is given a copy of the pages that PDFium has written, for four reasons.

    It refuses files without the right ending to their name, keeps the whole file in memory, follows bookmarks that
    lead in a circle until it crashes, and cannot open some damaged files that PDFium repairs.
    """
    laid: dict[int, Laid] = {}
    for start in range(first, last + 1, pages_per_copy):
        end = min(start + pages_per_copy - 1, last)
        try:
            pages = lay_out(document.copy(start, end))
            laid |= {page.number + start - 1: page for page in pages}
        except (LayoutError, PageError):
            continue
    return laid


def label_of(document: Document, number: int) -> str:
    return clean_letters(document.label(number)).strip()[:_MOST_LABEL] or str(number)


def _page(document: Document, number: int, laid: Laid | None) -> PageText:
    page = _with_text(document, number, laid)
    text = "".join(block.text for block in page.blocks)
    if is_meaningless(text):
        return replace(page, blocks=(), pictures=True, plain=False)
    return replace(page, pictures=True) if 0 < len(text) < _FEW_LETTERS and _is_scan(document, number) else page


def _is_scan(document: Document, number: int) -> bool:
    """Whether it is one picture. What a scanner or a program stamped on it is not what it says."""
    try:
        with document.page(number) as page:
            return page.shows_one_picture()
    except PageError:
        return False


def _with_text(document: Document, number: int, laid: Laid | None) -> PageText:
    label = label_of(document, number)
    if laid is None or not laid.blocks:
        return _read_plain(document, number, label)
    text = "".join(block.text for block in laid.blocks)
    if len(text) < _FULL_PAGE and _says_more(document, number, text):
        return _read_plain(document, number, label)
    page = PageText(number, label, laid.width, laid.height, laid.blocks, right_to_left=is_right_to_left(text))
    return _turned(document, page) if has_right_to_left(text) else page


def _says_more(document: Document, number: int, text: str) -> bool:
    """Whether much of the page is not in the text: liteparse leaves out what stands on its side."""
    try:
        with document.page(number) as page:
            return _LEFT * count_letters(page.text()) > count_letters(text)
    except PageError:
        return False


def _read_plain(document: Document, number: int, label: str) -> PageText:
    """A page that liteparse finds nothing on, or that it cannot read."""
    try:
        with document.page(number) as page:
            width, height = page.size
            blocks = tuple(block for block in read_plain(page) if block.text)
            pictures = not blocks and page.shows_pictures()
    except PageError:
        return PageText(number, label, None, None, failed=DAMAGED)
    backwards = is_right_to_left("".join(block.text for block in blocks))
    return PageText(number, label, width, height, blocks, pictures, backwards, plain=bool(blocks))


def _turned(document: Document, page: PageText) -> PageText:
    """liteparse puts letters that run from right to left in the wrong order, and PDFium does not."""
    try:
        with document.page(page.number) as opened:
            if opened.is_turned:
                # Boxes are as the page is seen, and PDFium's places as it was before it was turned.
                return page
            return replace(page, blocks=tuple(turn_around(opened, page.blocks)))
    except PageError:
        return page


_TEXTS = frozenset({BlockKind.HEADING, BlockKind.PARAGRAPH})


def read_plain(page: OpenPage) -> Iterator[PageBlock]:
    """The text without places; what is obvious in plain text, such as lists, is recognised."""
    markdown = convert(clean_letters(page.text()).replace("\f", "\n")).markdown
    for block in read_blocks(markdown):
        content = markdown[block.start : block.end]
        match block.kind:
            case BlockKind.HEADING:
                yield PageBlock(BlockKind.HEADING, one_line(content.lstrip("# ")))
            case BlockKind.PARAGRAPH:
                yield PageBlock(BlockKind.PARAGRAPH, "\n".join(map(one_line, content.split("\n"))))
            case BlockKind.RULE:
                pass
            case _:
                yield PageBlock(block.kind, content)


def turn_around(page: OpenPage, blocks: Sequence[PageBlock]) -> Iterator[PageBlock]:
    """Blocks in scripts from right to left get the letters that PDFium finds in their place."""
    backwards = {index: block.box for index, block in enumerate(blocks) if block.box and _is_backwards(block)}
    found = dict(zip(backwards, page.texts_in(list(backwards.values())), strict=True))
    for index, block in enumerate(blocks):
        text = markup.plain(one_line(found.get(index, "")))
        yield replace(block, text=text) if text else block


def _is_backwards(block: PageBlock) -> bool:
    return block.kind in _TEXTS and has_right_to_left(block.text)


# Pixels for each point, which makes 200 for each inch: letters of the usual size gain nothing by more.
SCALE = 200 / 72


def read_drawn(path: Path, number: int, password: str | None = None, language: str = ANY_LANGUAGE) -> PageText:
    """The page of this number, with places in points as it is seen."""
    # Imported late: the engine takes a second to load, and most files do not need it.
    from octavo.extract.ocr.page_recognition import recognise_page

    with open_document(path, password) as document:
        label = label_of(document, number)
        try:
            with document.page(number) as page:
                width, height = page.size
            picture = render(document, number, SCALE)
        except PageError:
            return PageText(number, label, None, None, failed=DAMAGED)
    scale = fitting_scale(width, height, SCALE)
    found = recognise_page(picture, number, label, scale=scale, language=language)
    return replace(found, width=width, height=height)
