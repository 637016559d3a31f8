"""Assembles pages into one document: removes running headers, makes heading levels consistent and computes offsets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from octavo.core.errors import BadInput
from octavo.core.texts import count_words
from octavo.extract.extracted import (
    Block,
    BlockKind,
    Extracted,
    Figure,
    Metadata,
    OutlineEntry,
    Page,
    Quality,
    Region,
    RegionKind,
    SourceType,
)
from octavo.extract.markdown import outline_of, plain_title
from octavo.extract.markdown.blocks import MOST_BLOCKS
from octavo.extract.markdown.escape import escape_start
from octavo.extract.pdf.headings import body_size, heading_levels, join_headings, match_bookmarks
from octavo.extract.pdf.letters import HYPHEN, Vocabulary
from octavo.extract.pdf.markup import plain
from octavo.extract.pdf.page_batches import Batch, PageBlock, PageText, PdfFacts, write_ranges
from octavo.extract.pdf.running_headers import Place, running_blocks, without_joined_headers

_BETWEEN = "\n\n"
_LINE_END = "\n"
_MANY_MORE = 1.5
_MEANT_LINE_END = "  \n"
_INLINE = frozenset({BlockKind.HEADING, BlockKind.PARAGRAPH})
_EDGES = frozenset({RegionKind.HEADER, RegionKind.FOOTER})
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_CLOSING_MARKS = re.compile(r"(?<![^\s])#+\Z")


def assemble_pages(facts: PdfFacts, pages: Sequence[PageText], source_type: SourceType) -> Extracted:
    """Assemble the pages of a document. Raises `BadInput` if no page could be read."""
    if all(page.failed for page in pages):
        raise BadInput("The file is damaged: none of its pages can be read.")
    pages = _with_whole_words(pages)
    body = body_size(pages)
    pages = join_headings(pages, body)
    skipped = running_blocks(pages, body)
    pages = without_joined_headers(pages, skipped)
    places = {match.bookmark: match.place for match in match_bookmarks(pages, facts.bookmarks, skipped)}
    marked = {place: facts.bookmarks[number].level for number, place in places.items()}
    levels = heading_levels(pages, body, marked, skipped)
    document = _Document(levels)
    for index, page in enumerate(pages):
        document.add(index, page, skipped)
    markdown = "".join(document.parts)
    return Extracted(
        source_type=source_type,
        markdown=markdown,
        word_count=count_words(markdown),
        quality=_quality(pages, document.pages),
        pages=tuple(document.pages),
        blocks=tuple(document.blocks),
        outline=tuple(_outline(facts, places, document)) or outline_of(document.blocks),
        metadata=_metadata(facts, pages, document),
        regions=tuple(document.regions),
        figures=tuple(document.figures),
    )


def _with_whole_words(pages: Sequence[PageText]) -> Sequence[PageText]:
    """Rejoin words that are divided at line ends, so that "exam-" and "ple" become "example".

    Compounds such as "well-known" keep their hyphen. The other words of the document show which words are compounds.
    """
    if not any(HYPHEN in block.text for page in pages for block in page.blocks):
        return pages
    vocabulary = Vocabulary(block.text for page in pages for block in page.blocks)
    return [_with_undivided(page, vocabulary) for page in pages]


def _with_undivided(page: PageText, vocabulary: Vocabulary) -> PageText:
    """Rejoin divided words on a page. Blocks without a divided word are not copied, to save memory."""
    blocks = tuple(
        replace(block, text=vocabulary.undivided(block.text)) if HYPHEN in block.text else block
        for block in page.blocks
    )
    return replace(page, blocks=blocks)


def merge_pages(facts: PdfFacts, batches: Iterable[Batch]) -> list[PageText]:
    """Merge batches into a list of all pages.

    If a page was read both from the file and by OCR, the text from OCR is used only if it is much longer.
    """
    brought: dict[int, PageText] = {}
    for page in (page for batch in batches for page in batch.pages):
        before = brought.get(page.number)
        brought[page.number] = _with_more_text(before, page) if before else page
    return [
        brought.get(number) or PageText(number, str(number), None, None, failed="The page was not read.")
        for number in range(1, facts.page_count + 1)
    ]


def _with_more_text(read: PageText, recognised: PageText) -> PageText:
    """Return the page as read by OCR if its text is much longer than the text in the file.

    Otherwise return the page as read from the file, because that text is exact.
    """
    own, seen = (sum(len(block.text) for block in page.blocks) for page in (read, recognised))
    return recognised if seen > _MANY_MORE * own or not own else replace(read, pictures=False)


class _Document:
    """Builds the document page by page. Pages and blocks are separated by empty lines."""

    def __init__(self, levels: Mapping[Place, int]) -> None:
        self._levels = levels
        self._end = 0
        self.parts: list[str] = []
        self.pages: list[Page] = []
        self.blocks: list[Block] = []
        self.regions: list[Region] = []
        self.figures: list[Figure] = []
        self.starts: dict[Place, int] = {}

    def add(self, index: int, page: PageText, skipped: set[Place]) -> None:
        page_start: int | None = None
        for number, block in enumerate(page.blocks):
            place = Place(index, number)
            level = self._levels.get(place)
            self._add_region(page, number, block, _region_kind(page, block, level, is_skipped=place in skipped))
            if place in skipped:
                continue
            start = self._write(page, block, level)
            self.starts[place] = start
            page_start = start if page_start is None else page_start
        for order, one in enumerate(page.fields, len(page.blocks)):
            self._add_region(page, order, one, RegionKind.FIELD)
        start = self._end if page_start is None else page_start
        self.pages.append(Page(page.number, page.label, start, self._end, page.width, page.height, page.unsure))

    def _add_region(self, page: PageText, order: int, block: PageBlock, kind: RegionKind) -> None:
        if block.box is not None and len(self.regions) < MOST_BLOCKS:
            is_escaped = "\\" in block.text and block.kind in _INLINE
            text = _ESCAPED.sub(r"\1", block.text) if is_escaped else block.text
            self.regions.append(Region(page.number, kind, block.box, order, block.confidence, text))

    def _write(self, page: PageText, block: PageBlock, level: int | None) -> int:
        content = self._figure(page, block) if block.figure else _markdown(block, level)
        if self.parts:
            self.parts.append(_BETWEEN)
            self._end += len(_BETWEEN)
        start = self._end
        self.parts.append(content)
        self._end += len(content)
        if len(self.blocks) < MOST_BLOCKS:
            text = plain_title(content) if level else content
            kind = _kind(block, level)
            self.blocks.append(Block(kind, start, self._end, text, level, page.number, block.box))
        else:
            self.blocks[-1] = replace(self.blocks[-1], end=self._end)
        return start

    def _figure(self, page: PageText, block: PageBlock) -> str:
        number = len(self.figures) + 1
        start = self._end + (len(_BETWEEN) if self.parts else 0)
        caption, alternative = _caption(page, block), block.text
        self.figures.append(Figure(number, block.figure, start, page.number, block.box, None, caption, alternative))
        return f"![{plain(block.text)}](figures/{number}.png)"


def _caption(page: PageText, block: PageBlock) -> str:
    """Return the caption of a figure, which is the block after or before it. Returns "" if there is no caption."""
    at = next(index for index, one in enumerate(page.blocks) if one is block)
    near = (*page.blocks[at + 1 : at + 2], *page.blocks[max(at - 1, 0) : at])
    found = next((one for one in near if one.region is RegionKind.CAPTION), None)
    return _ESCAPED.sub(r"\1", found.text) if found and block.region is RegionKind.FIGURE else ""


def _region_kind(page: PageText, block: PageBlock, level: int | None, *, is_skipped: bool) -> RegionKind:
    if is_skipped and block.region not in _EDGES:
        above = block.box is not None and block.box.bottom < (page.height or 0.0) / 2
        return RegionKind.HEADER if above else RegionKind.FOOTER
    return RegionKind.HEADING if level else block.region


def _kind(block: PageBlock, level: int | None) -> BlockKind:
    if level:
        return BlockKind.HEADING
    return BlockKind.PARAGRAPH if block.kind is BlockKind.HEADING else block.kind


def _markdown(block: PageBlock, level: int | None) -> str:
    if level:
        return f"{'#' * level} {_CLOSING_MARKS.sub(_escape, block.text.replace(_LINE_END, ' '))}"
    if _kind(block, level) is not BlockKind.PARAGRAPH:
        return block.text
    return _MEANT_LINE_END.join(map(escape_start, block.text.split(_LINE_END)))


def _escape(found: re.Match[str]) -> str:
    return f"\\{found.group()}"


def _outline(facts: PdfFacts, places: Mapping[int, Place], document: _Document) -> Iterator[OutlineEntry]:
    """Make the outline from the bookmarks of the file.

    A bookmark without a matching heading points to the start of its page.
    """
    for number, bookmark in enumerate(facts.bookmarks):
        start = document.starts.get(places[number]) if number in places else None
        if start is None and bookmark.page and bookmark.page <= len(document.pages):
            start = document.pages[bookmark.page - 1].start
        yield OutlineEntry(bookmark.level, bookmark.title, bookmark.page, start)


def _quality(pages: Sequence[PageText], written: Sequence[Page]) -> Quality:
    """Return the quality of the text.

    It is partial if any page has unread images, could not be read, or may have wrong text. Blank pages do not matter.
    """
    if not any(page.end > page.start for page in written):
        return Quality.EMPTY
    if any(page.pictures or page.failed or page.unsure for page in pages):
        return Quality.PARTIAL
    return Quality.OCR if all(page.recognised for page in pages if page.blocks) else Quality.FULL


def _metadata(facts: PdfFacts, pages: Sequence[PageText], document: _Document) -> Metadata:
    about = facts.metadata
    counts = {
        "pages": str(len(pages)),
        "pages_with_text": str(sum(page.end > page.start for page in document.pages)),
        "pages_for_ocr": write_ranges(page.number for page in pages if page.is_unread),
        "pages_by_ocr": write_ranges(page.number for page in pages if page.recognised and page.blocks),
        "pages_without_layout": write_ranges(page.number for page in pages if page.plain),
        "pages_failed": write_ranges(page.number for page in pages if page.failed),
    }
    extra = about.extra | {name: value for name, value in counts.items() if value}
    return replace(about, title=about.title or _first_title(document.blocks), extra=extra)


def _first_title(blocks: Sequence[Block]) -> str | None:
    """Return the text of the highest heading on the first page with headings. Returns None if there are no headings."""
    headings = [block for block in blocks if block.kind is BlockKind.HEADING and block.text]
    first = [block for block in headings if block.page == headings[0].page]
    return min(first, key=lambda block: block.level or 1).text if first else None
