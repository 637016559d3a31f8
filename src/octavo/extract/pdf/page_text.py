"""Reads the text of PDF pages with liteparse, with PDFium where liteparse fails, and with OCR for scanned pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from octavo.core.languages import ANY_LANGUAGE
from octavo.extract.extracted import BlockKind
from octavo.extract.markdown import read_blocks
from octavo.extract.pdf import markup
from octavo.extract.pdf.annotations import merge_annotations, read_annotations
from octavo.extract.pdf.document import Document, OpenPage, PageError, fitting_scale, open_document, render
from octavo.extract.pdf.layout import LayoutError, PageLayout, lay_out
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
# A page with fewer letters is checked: if liteparse found less than this share of PDFium's text, PDFium's is used.
_FULL_PAGE = 1500
_LEFT = 0.7
_COPY_BYTES = 64 * 1024 * 1024
DAMAGED = "The page is damaged."


def read_batch(path: Path, first: int, last: int, password: str | None = None, *, layout: bool = True) -> Batch:
    """Read the pages from `first` to `last`, inclusive. If `layout` is false, only PDFium is used."""
    with open_document(path, password) as document:
        last = min(last, document.page_count)
        laid = _lay_out(document, first, last, _pages_per_copy(path, document)) if layout else {}
        pages = (_page(document, number, laid.get(number)) for number in range(first, last + 1))
        return Batch(tuple(_with_annotations(document, page) for page in pages))


def _pages_per_copy(path: Path, document: Document) -> int:
    """How many pages to copy at a time, so that a book of large images does not fill the memory."""
    return max(1, _COPY_BYTES * document.page_count // max(path.stat().st_size, 1))


def _lay_out(document: Document, first: int, last: int, pages_per_copy: int) -> dict[int, PageLayout]:
    """Read the layout of pages with liteparse, from copies of the pages that PDFium makes.

    liteparse cannot read the file directly: it refuses files without the right extension, keeps the whole file in
    memory, crashes on bookmarks that form a cycle, and cannot open some damaged files that PDFium repairs.
    """
    laid: dict[int, PageLayout] = {}
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


def _page(document: Document, number: int, laid: PageLayout | None) -> PageText:
    page = _with_text(document, number, laid)
    text = "".join(block.text for block in page.blocks)
    if is_meaningless(text):
        return replace(page, blocks=(), pictures=True, plain=False)
    return replace(page, pictures=True) if 0 < len(text) < _FEW_LETTERS and _is_scan(document, number) else page


def _with_annotations(document: Document, page: PageText) -> PageText:
    """Add the values of forms, typed text and comments, which are not part of the text of a page."""
    try:
        with document.page(page.number) as opened:
            found = read_annotations(opened.handle, document.form(), opened.placed())
    except PageError:
        return page
    return replace(page, blocks=merge_annotations(page.blocks, found)) if found else page


def _is_scan(document: Document, number: int) -> bool:
    """Whether one image covers most of the page. If such a page has a little text, the scanner added it."""
    try:
        with document.page(number) as page:
            return page.shows_one_picture()
    except PageError:
        return False


def _with_text(document: Document, number: int, laid: PageLayout | None) -> PageText:
    label = label_of(document, number)
    if laid is None or not laid.blocks:
        return _read_plain(document, number, label)
    text = "".join(block.text for block in laid.blocks)
    if len(text) < _FULL_PAGE and _has_more_text(document, number, text):
        return _read_plain(document, number, label)
    page = PageText(number, label, laid.width, laid.height, laid.blocks, right_to_left=is_right_to_left(text))
    return _with_fixed_direction(document, page) if has_right_to_left(text) else page


def _has_more_text(document: Document, number: int, text: str) -> bool:
    """Whether PDFium finds much more text on the page than `text`, because liteparse skips rotated text."""
    try:
        with document.page(number) as page:
            return _LEFT * count_letters(page.text()) > count_letters(text)
    except PageError:
        return False


def _read_plain(document: Document, number: int, label: str) -> PageText:
    """Read a page with PDFium, because liteparse found little or nothing on it or could not read it."""
    try:
        with document.page(number) as page:
            width, height = page.size
            blocks = tuple(block for block in read_plain(page) if block.text)
            pictures = not blocks and page.shows_pictures()
    except PageError:
        return PageText(number, label, None, None, failed=DAMAGED)
    backwards = is_right_to_left("".join(block.text for block in blocks))
    return PageText(number, label, width, height, blocks, pictures, backwards, plain=bool(blocks))


def _with_fixed_direction(document: Document, page: PageText) -> PageText:
    """Replace right-to-left text with the text that PDFium reads, because liteparse reverses the letters."""
    try:
        with document.page(page.number) as opened:
            if opened.is_turned:
                # Boxes are on the rotated page, PDFium's positions on the page before rotation.
                return page
            return replace(page, blocks=tuple(fix_right_to_left(opened, page.blocks)))
    except PageError:
        return page


_TEXTS = frozenset({BlockKind.HEADING, BlockKind.PARAGRAPH})


def read_plain(page: OpenPage) -> Iterator[PageBlock]:
    """Read the text without positions. Structure that is obvious in plain text, such as lists, is detected."""
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


def fix_right_to_left(page: OpenPage, blocks: Sequence[PageBlock]) -> Iterator[PageBlock]:
    """Replace the text of right-to-left blocks with the text that PDFium finds in their boxes."""
    backwards = {index: block.box for index, block in enumerate(blocks) if block.box and _is_right_to_left_block(block)}
    found = dict(zip(backwards, page.texts_in(list(backwards.values())), strict=True))
    for index, block in enumerate(blocks):
        text = markup.plain(one_line(found.get(index, "")))
        yield replace(block, text=text) if text else block


def _is_right_to_left_block(block: PageBlock) -> bool:
    return block.kind in _TEXTS and has_right_to_left(block.text)


# Pixels per point: 200 dpi. More does not improve letters of normal size.
SCALE = 200 / 72


def recognise_pdf_page(path: Path, number: int, password: str | None = None, language: str = ANY_LANGUAGE) -> PageText:
    """Draw a page and recognise its text; positions are in points on the displayed page."""
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
