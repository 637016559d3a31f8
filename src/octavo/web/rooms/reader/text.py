"""Loads one window (section) of a document's text and arranges it for the page, and finds words in the whole text."""

from __future__ import annotations

import asyncio
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias
from urllib.parse import parse_qsl, urlencode, urlsplit
from uuid import UUID

from octavo.core.texts import gettext as _
from octavo.database import Connection, fetch_rows, load_queries
from octavo.language.markdown_segments import blank_markup
from octavo.language.text_positions import find_words
from octavo.library.documents import moment_url
from octavo.library.files import ShownFigure, known_figures
from octavo.records.documents import Document, Span, TextMatch, TextMatches
from octavo.storage import ObjectMissing
from octavo.web.context.services import Services
from octavo.web.markdown.render import Block, render_plain, render_window
from octavo.web.markdown.windows import Heading, Plan, Sheet, Window, make_plan

QUERIES = load_queries("reader")
# About a hundred books; longer texts are only available as downloads.
MOST_BYTES = 64 << 20
MOST_HEADINGS = 300
MOST_WORDS, MOST_MATCHES = 200, 10_000
# How many characters of the text before and after found words are shown.
AROUND = 60
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_FIGURE = re.compile(r"\]\(figures/([1-9][0-9]{0,5})\.png\)")
Choose: TypeAlias = Callable[[Plan], Window]
_WORD = re.compile(r"\w")
_HEADING = re.compile(r"<(h[2-6])>")


@dataclass(frozen=True, slots=True)
class OpenText:
    """A document's text, with one window (section) of it loaded.

    `front` is the front matter of the Markdown, if the window contains it.
    """

    revision: int
    plan: Plan
    window: Window
    leaves: list[Leaf]
    front: str | None
    has_figures: bool = False

    @property
    def earlier(self) -> Window | None:
        return self.plan.windows[self.window.number - 2] if self.window.number > 1 else None

    @property
    def later(self) -> Window | None:
        return self.plan.windows[self.window.number] if self.window.number < len(self.plan.windows) else None

    @property
    def outline(self) -> list[Heading]:
        """The headings of the document. If there are too many, the lowest levels are left out."""
        headings = self.plan.outline
        while len(headings) > MOST_HEADINGS and (lower := max(one.level for one in headings)) > 1:
            fewer = [one for one in headings if one.level < lower]
            if not fewer:
                break
            headings = fewer
        return headings[:MOST_HEADINGS]

    @property
    def frame(self) -> tuple[int, int]:
        """The width and height of the frame for page pictures."""
        return most_common_size(self.plan.sheets)

    def marks_of(self, place: ChunkPosition) -> list[Mark]:
        return marks_of(place.boxes, self.plan)

    def pages_of(self, window: Window) -> str | None:
        """Return a label for a window (section) of the text: its first and last page."""
        sheets = [sheet for _, sheet in self.plan.breaks_in(window)]
        if not sheets:
            return None
        first, last = sheets[0].label or sheets[0].number, sheets[-1].label or sheets[-1].number
        return (
            _("Page %(first)s", first=first)
            if first == last
            else _("Pages %(first)s\N{EN DASH}%(last)s", first=first, last=last)
        )


@dataclass(frozen=True, slots=True)
class StoredText:
    revision: int
    key: str
    bytes: int
    sheets: list[Sheet]


async def find_text(connection: Connection, owner: UUID, document: UUID) -> StoredText | None:
    """Return the stored text of a document. Returns None if it has no text yet."""
    values = {"owner": owner, "document": document}
    rows = await fetch_rows(connection, QUERIES.text, values)
    if not rows:
        return None
    sheets = await fetch_rows(connection, QUERIES.sheets, values | {"revision": rows[0]["revision"]})
    return StoredText(**rows[0], sheets=[Sheet(**row) for row in sheets])


async def open_text(services: Services, owner: UUID, document: UUID, stored: StoredText, choose: Choose) -> OpenText:
    """Load the window (section) of the text that `choose` selects."""
    stored, markdown = await _read(services, owner, document, stored)
    plan = await asyncio.to_thread(make_plan, markdown, stored.sheets)
    window = choose(plan)
    values = {"owner": owner, "document": document, "revision": stored.revision}
    async with services.database.connection() as connection:
        rows = await fetch_rows(connection, QUERIES.places, values | {"first": window.start, "last": window.end})
        numbers = figure_numbers(markdown[window.start : window.end])
        figures = await known_figures(connection, owner, document, numbers)
    places = [ChunkPosition(**row) for row in rows]
    leaves = await asyncio.to_thread(lay_out, markdown, plan, window, places, figures)
    front = markdown[: plan.front_end] if window.start < plan.front_end else None
    return OpenText(stored.revision, plan, window, leaves, front, has_figures="](figures/" in markdown)


async def _read(services: Services, owner: UUID, document: UUID, stored: StoredText) -> tuple[StoredText, str]:
    """Read the stored text. If it was just replaced, read the new text."""
    try:
        return stored, (await services.bucket.read(stored.key, limit=MOST_BYTES)).decode()
    except ObjectMissing:
        async with services.database.connection() as connection:
            replaced = await find_text(connection, owner, document)
        if replaced is None or replaced.key == stored.key:
            raise
        return await _read(services, owner, document, replaced)


def figure_numbers(text: str) -> list[int]:
    """Return the numbers of the figures that a text refers to."""
    return sorted({int(number) for number in _FIGURE.findall(text)})


def lay_out(
    markdown: str,
    plan: Plan,
    window: Window,
    places: list[ChunkPosition],
    figures: Mapping[int, ShownFigure] | None = None,
) -> list[Leaf]:
    start = max(window.start, plan.front_end)
    text = markdown[start : window.end]
    blocks = render_plain(text, start) if window.plain else render_window(text, start, plan.references, figures)
    numbers = {heading.start: heading.number for heading in plan.headings}
    return arrange(blocks, text, start, breaks=plan.breaks_in(window), places=places, headings=numbers)


async def find_place(connection: Connection, owner: UUID, document: UUID, chunk: str) -> ChunkPosition | None:
    """Return the position of a chunk. Returns None if the chunk does not belong to the current text."""
    if not _ID.fullmatch(chunk):
        return None
    values = {"owner": owner, "document": document, "passage": chunk}
    rows = await fetch_rows(connection, QUERIES.place_of, values)
    return ChunkPosition(**rows[0]) if rows else None


# Find in the text --------------------------------------------------------------------------------------------------


async def find_in_text(
    services: Services, owner: UUID, document: UUID, words: str, *, after: int = -1, limit: int
) -> TextMatches:
    """Find words in the whole text of a document. If `after` is given, only matches after this character are listed."""
    async with services.database.connection() as connection:
        stored = await find_text(connection, owner, document)
    if stored is None or stored.bytes > MOST_BYTES:
        return TextMatches([], None, 0)
    stored, markdown = await _read(services, owner, document, stored)
    spans = await asyncio.to_thread(find_words, words, markdown, MOST_MATCHES)
    later = [one for one in spans if one.start > after]
    shown = later[:limit]
    chunks = await _chunks_of(services, owner, document, stored.revision, shown)
    items = [make_match(one, markdown, stored.sheets, chunks) for one in shown]
    return TextMatches(items, str(shown[-1].start) if len(later) > limit else None, len(spans))


async def _chunks_of(
    services: Services, owner: UUID, document: UUID, revision: int, spans: Sequence[Span]
) -> list[ChunkPosition]:
    if not spans:
        return []
    values = {"owner": owner, "document": document, "revision": revision}
    async with services.database.connection() as connection:
        part = {"first": spans[0].start, "last": spans[-1].end}
        return [ChunkPosition(**row) for row in await fetch_rows(connection, QUERIES.chunk_starts, values | part)]


def make_match(span: Span, markdown: str, sheets: Sequence[Sheet], chunks: Sequence[ChunkPosition]) -> TextMatch:
    """Describe a match: its page and chunk, and a line of text around it."""
    chunk = bisect_right(chunks, span.start, key=lambda one: one.start)
    before, found, after = (
        " ".join(blank_markup(part).split())
        for part in (
            _from_word(markdown[max(0, span.start - AROUND) : span.start]),
            markdown[span.start : span.end],
            _to_word(markdown[span.end : span.end + AROUND]),
        )
    )
    before += " " if markdown[span.start - 1 : span.start].isspace() and before else ""
    after = (" " if markdown[span.end : span.end + 1].isspace() else "") + after
    return TextMatch(
        span.start,
        span.end,
        page_at(sheets, span.start),
        chunks[chunk - 1].id if chunk else None,
        before + found + after,
        [(len(before), len(before) + len(found))],
    )


def page_at(sheets: Sequence[Sheet], position: int) -> int | None:
    place = bisect_right(sheets, position, key=lambda one: one.start)
    return sheets[max(place - 1, 0)].number if sheets else None


def _from_word(text: str) -> str:
    """Leave out the first word, which may be incomplete."""
    return text if len(text) < AROUND else text[text.find(" ") + 1 :]


def _to_word(text: str) -> str:
    return text if len(text) < AROUND else text[: text.rfind(" ") + 1] or text


# Recordings --------------------------------------------------------------------------------------------------------


def moment_address(document: Document, seconds: float | None) -> str | None:
    """Return the URL that plays the recording from this second.

    Returns None if the recording is not an online video.
    """
    is_video = document.source_type == "youtube" or moment_url(document.source_url, seconds)
    if seconds is None or not is_video or not document.source_url:
        return None
    place = urlsplit(document.source_url)
    if place.scheme not in {"http", "https"}:
        return None
    query = {name: value for name, value in parse_qsl(place.query) if name not in {"t", "start"}}
    return place._replace(query=urlencode(query | {"t": f"{int(seconds)}s"}), fragment="").geturl()


def format_moment(seconds: float) -> str:
    """Format a time in a recording as 12:34 or 1:02:03, as video players do."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


@dataclass(frozen=True, slots=True)
class ChunkPosition:
    """A stored chunk of the document.

    `seconds` is the time at which the chunk starts in a recording. `boxes` are its positions on pages: page, left, top,
    right and bottom, in points. `described` is true if the chunk has themes, concepts, tone, importance and a summary.
    """

    id: UUID
    start: int
    end: int
    seconds: float | None = None
    boxes: Sequence[Sequence[float]] = ()
    described: bool = False


@dataclass(frozen=True, slots=True)
class ShownBlock:
    """A rendered block. `anchors` are the ids of chunks that start inside it."""

    start: int
    end: int
    html: str
    anchors: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class ChunkBlocks:
    """Neighbouring blocks that belong to one chunk.

    `begins` is true if the chunk starts here, so that these blocks get its anchor.
    """

    place: ChunkPosition | None
    begins: bool
    blocks: list[ShownBlock] = field(default_factory=list[ShownBlock])


@dataclass(frozen=True, slots=True)
class Leaf:
    """The content of one page or, if the text has no pages, of a whole window (section of the text)."""

    sheet: Sheet | None
    start: int
    chunks: list[ChunkBlocks] = field(default_factory=list[ChunkBlocks])


def arrange(
    blocks: Sequence[Block],
    text: str,
    start: int,
    *,
    breaks: Sequence[tuple[int, Sheet]] = (),
    places: Sequence[ChunkPosition] = (),
    headings: Mapping[int, int | None] | None = None,
) -> list[Leaf]:
    """Group the blocks of one window of the text into pages.

    `text` is the Markdown of the window, which begins at `start` in the document. `headings` maps positions to heading
    numbers.
    """
    leaves = [Leaf(None, start)]
    begins = [_lead(place.start - start, text) + start for place in places]
    waiting = list(reversed(breaks))
    anchored = {place.id for place, begin in zip(places, begins, strict=True) if begin < start}
    for block in blocks:
        while waiting and waiting[-1][0] <= block.start:
            at, sheet = waiting.pop()
            leaves.append(Leaf(sheet, at))
        if block.html:
            _add(leaves[-1], _numbered(block, (headings or {}).get(block.start)), places, begins, anchored)
    leaves += [Leaf(sheet, at) for at, sheet in reversed(waiting)]
    return [leaf for leaf in leaves if leaf.sheet or leaf.chunks]


def _lead(position: int, text: str) -> int:
    """Move `position` back to the start of its line if there is only markup before it on the line."""
    line = text.rfind("\n", 0, max(position, 0)) + 1
    return line if position > 0 and not _WORD.search(text, line, position) else position


def _numbered(block: Block, heading: int | None) -> Block:
    if heading is None or block.level is None:
        return block
    return Block(block.start, block.end, _HEADING.sub(rf'<\1 id="h-{heading}">', block.html, count=1), block.level)


def _add(leaf: Leaf, block: Block, places: Sequence[ChunkPosition], begins: Sequence[int], anchored: set[UUID]) -> None:
    """Add a block to the chunk that it belongs to. Each chunk gets one anchor, at its first visible block."""
    now = bisect_right(begins, block.start)
    place = places[now - 1] if now else None
    if not leaf.chunks or leaf.chunks[-1].place != place:
        leaf.chunks.append(ChunkBlocks(place, begins=place is not None and place.id not in anchored))
    inside = tuple(one.id for one in places[now : bisect_left(begins, block.end)])
    leaf.chunks[-1].blocks.append(ShownBlock(block.start, block.end, block.html, inside))
    anchored.update(inside, [place.id] if place else [])


WHOLE = 10_000
FALLBACK_SIZE = (3, 4)
# A taller picture would leave no space for the outline below it.
MOST_HEIGHT = 1.5


class Mark(NamedTuple):
    """A box on a page, in ten-thousandths of the page size."""

    page: int
    left: int
    top: int
    right: int
    bottom: int


def marks_of(boxes: Iterable[Sequence[float]], plan: Plan) -> list[Mark]:
    """Convert the boxes of a chunk from points to fractions of the page size, so that they fit a picture of any size.

    A box consists of page, left, top, right and bottom. Boxes on pages of unknown size are dropped.
    """
    return [mark for box in boxes if (mark := _mark(box, plan.sheet_of(int(box[0]))))]


def _mark(box: Sequence[float], sheet: Sheet | None) -> Mark | None:
    if sheet is None or not sheet.width or not sheet.height:
        return None
    page, left, top, right, bottom = box
    across, down = WHOLE / sheet.width, WHOLE / sheet.height
    return Mark(int(page), round(left * across), round(top * down), round(right * across), round(bottom * down))


def most_common_size(sheets: Iterable[Sheet]) -> tuple[int, int]:
    """Return the most common page size.

    The picture frame has this size, so that the layout does not shift between pages.
    """
    sizes = Counter((round(one.width), round(one.height)) for one in sheets if one.width and one.height)
    width, height = sizes.most_common(1)[0][0] if sizes else FALLBACK_SIZE
    return max(width, 1), max(1, min(height, round(width * MOST_HEIGHT)))
