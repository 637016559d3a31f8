"""Opens the text of a document at one of its windows and lays it out for the page."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import parse_qsl, urlencode, urlsplit
from uuid import UUID

from octavo.database import Connection, fetch_rows, load_queries
from octavo.library.documents import moment_url
from octavo.library.figures import ShownFigure, known_figures
from octavo.records.documents import Document
from octavo.storage import ObjectMissing
from octavo.web.context.services import Services
from octavo.web.markdown.render import render_plain, render_window
from octavo.web.rooms.reader.layout import ChunkPosition, Leaf, Mark, arrange, marks_of, most_common_size
from octavo.web.rooms.reader.windows import Heading, Plan, Sheet, Window, make_plan

QUERIES = load_queries("reader")
# About a hundred books; longer texts are only available as downloads.
MOST_BYTES = 64 << 20
MOST_HEADINGS = 300
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_FIGURE = re.compile(r"\]\(figures/([1-9][0-9]{0,5})\.png\)")
Choose: TypeAlias = Callable[[Plan], Window]


@dataclass(frozen=True, slots=True)
class OpenText:
    """A text that is opened at one window. `front` is the front matter of the Markdown, if the window contains it."""

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
        """The headings, without the lowest levels if there are too many."""
        headings = self.plan.outline
        while len(headings) > MOST_HEADINGS and (lower := max(one.level for one in headings)) > 1:
            fewer = [one for one in headings if one.level < lower]
            if not fewer:
                break
            headings = fewer
        return headings[:MOST_HEADINGS]

    @property
    def frame(self) -> tuple[int, int]:
        """Width and height of the frame for page pictures."""
        return most_common_size(self.plan.sheets)

    def marks_of(self, place: ChunkPosition) -> list[Mark]:
        return marks_of(place.boxes, self.plan)

    def pages_of(self, window: Window) -> str | None:
        """The label of a window: its first and last page."""
        sheets = [sheet for _, sheet in self.plan.breaks_in(window)]
        if not sheets:
            return None
        first, last = sheets[0].label or sheets[0].number, sheets[-1].label or sheets[-1].number
        return f"Page {first}" if first == last else f"Pages {first}–{last}"  # noqa: RUF001 - a span


@dataclass(frozen=True, slots=True)
class StoredText:
    revision: int
    key: str
    bytes: int
    sheets: list[Sheet]


async def find_text(connection: Connection, owner: UUID, document: UUID) -> StoredText | None:
    """The stored text of a document; None if there is none."""
    values = {"owner": owner, "document": document}
    rows = await fetch_rows(connection, QUERIES.text, values)
    if not rows:
        return None
    sheets = await fetch_rows(connection, QUERIES.sheets, values | {"revision": rows[0]["revision"]})
    return StoredText(**rows[0], sheets=[Sheet(**row) for row in sheets])


async def open_text(services: Services, owner: UUID, document: UUID, stored: StoredText, choose: Choose) -> OpenText:
    """Open the window that `choose` selects. If the text has been replaced in the meantime, the new text is opened."""
    try:
        markdown = (await services.bucket.read(stored.key, limit=MOST_BYTES)).decode()
    except ObjectMissing:
        async with services.database.connection() as connection:
            replaced = await find_text(connection, owner, document)
        if replaced is None or replaced.key == stored.key:
            raise
        return await open_text(services, owner, document, replaced, choose)
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


def figure_numbers(text: str) -> list[int]:
    """The numbers of the figures that a text refers to."""
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
    """The position of a chunk, if it belongs to the current text."""
    if not _ID.fullmatch(chunk):
        return None
    values = {"owner": owner, "document": document, "passage": chunk}
    rows = await fetch_rows(connection, QUERIES.place_of, values)
    return ChunkPosition(**rows[0]) if rows else None


# Recordings --------------------------------------------------------------------------------------------------------


def moment_address(document: Document, seconds: float | None) -> str | None:
    """The address of the recording at that second."""
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
