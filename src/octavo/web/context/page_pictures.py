"""Renders page pictures on demand, a few at a time, and stores them with their document."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import TypeAlias
from uuid import UUID
from weakref import WeakValueDictionary

from octavo.core.errors import BadInput, NotFound, PageNotDrawn
from octavo.core.types import new_id
from octavo.database import Database
from octavo.extract.extracted import Box, QuoteOnPage, SourceType
from octavo.extract.pdf.placed_words import PlacedWord
from octavo.extract.pictures.page_images import (
    FigurePlace,
    draw_in_sandbox,
    figure_in_sandbox,
    mark_in_sandbox,
    sizes_in_sandbox,
)
from octavo.extract.pictures.quotes import quote_in_sandbox, words_in_sandbox
from octavo.library.errors import NotReady
from octavo.library.files import (
    FIGURE_WIDTH,
    FigureSource,
    PageSource,
    Picture,
    find_figure,
    find_page,
    keep_picture,
    picture_name,
    store_figure,
)
from octavo.sandbox import Sandbox
from octavo.storage import Bucket, ObjectMissing, ObjectStream, copy_to_file
from octavo.web.http.limits import Clock, ConcurrencyLimit

AT_ONCE = 2
MOST_WAITING = 100
BUSY_SECONDS = 2.0
DEFAULT_WIDTH = 800
# A page that could not be rendered is not tried again for this long, even if lists request it.
FAILED_SECONDS = 600.0
MOST_FAILED = MOST_SIZES = 1000
MOST_QUOTE = 2000  # characters
MOST_MEASURED = 50  # pages, the same limit as for conversions
MEDIA_TYPE = "image/png"
DAY_SECONDS = 24 * 3600
HEADERS = {
    "cache-control": f"private, max-age={DAY_SECONDS}",
    # Cached for the same cookie or key only, so that the next user of the browser does not see it.
    "vary": "cookie, authorization",
    # The policy of pages would block the styles that browsers use for a picture opened in a tab.
    "content-security-policy": "sandbox",
}
PICTURE = {200: {"description": "The picture", "content": {MEDIA_TYPE: {"schema": {"type": "string"}}}}}
UNCHANGED = {304: {"description": "Not modified: the caller already has the current picture."}}


class Width(IntEnum):
    """The available widths of pictures in pixels: for list rows, for cards, for the column next to a text, and for
    reading.

    There are only a few, because every picture is stored.
    """

    SMALL = 120
    CARD = 400
    MEDIUM = 800
    LARGE = FIGURE_WIDTH


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request for the picture of one page of a document. `width` is the width of the picture in pixels."""

    owner: UUID
    document: UUID
    number: int
    width: int


@dataclass(frozen=True, slots=True)
class FilePageRequest:
    """A request for the picture of one page of a stored PDF that does not belong to a document.

    `width` is the width of the picture in pixels.
    """

    key: str
    number: int
    width: int


@dataclass(frozen=True, slots=True)
class FigureRequest:
    """A request for the picture of a figure in a document. `width` is in pixels."""

    owner: UUID
    document: UUID
    number: int
    width: int


class PagePictures:
    """Renders, stores and returns page pictures. Each web process has one instance."""

    def __init__(self, database: Database, bucket: Bucket, sandbox: Sandbox, clock: Clock = time.monotonic) -> None:
        self._database = database
        self._bucket = bucket
        self._sandbox = sandbox
        self._copies = LocalCopies(bucket)
        self._limit = ConcurrencyLimit(AT_ONCE, MOST_WAITING, BUSY_SECONDS)
        self._drawing: WeakValueDictionary[PageRequest | FigureRequest, asyncio.Lock] = WeakValueDictionary()
        self._failures = FailedPages(clock)
        self._sizes: dict[str, list[tuple[float, float]]] = {}

    def close(self) -> None:
        self._copies.close()

    async def find(self, wanted: PageRequest) -> Picture:
        """Return the picture of a page. Renders and stores it first if it does not exist."""
        page = await self._look_up(wanted)
        if page.picture:
            return page.picture
        # Parallel requests for the same picture wait for the first one.
        lock = self._drawing.setdefault(wanted, asyncio.Lock())
        async with lock:
            page = await self._look_up(wanted)
            if not page.picture:
                await self._make(wanted, page)
                page = await self._look_up(wanted)
        if not page.picture:
            raise NotReady
        return page.picture

    async def stream(self, wanted: PageRequest) -> tuple[Picture, ObjectStream]:
        picture = await self.find(wanted)
        try:
            return picture, await self._bucket.stream(picture.key)
        except ObjectMissing:  # it was just removed by retention
            picture = await self.find(wanted)
            return picture, await self._bucket.stream(picture.key)

    async def find_figure(self, wanted: FigureRequest) -> Picture:
        """Return the picture of a figure. Renders and stores it first if it does not exist."""
        figure = await self._look_up_figure(wanted)
        if figure.picture:
            return figure.picture
        lock = self._drawing.setdefault(wanted, asyncio.Lock())
        async with lock:
            figure = await self._look_up_figure(wanted)
            if not figure.picture:
                await self._make_figure(wanted, figure)
                figure = await self._look_up_figure(wanted)
        if not figure.picture:
            raise NotReady
        return figure.picture

    async def stream_figure(self, wanted: FigureRequest) -> tuple[Picture, ObjectStream]:
        picture = await self.find_figure(wanted)
        return picture, await self._bucket.stream(picture.key)

    async def _look_up_figure(self, wanted: FigureRequest) -> FigureSource:
        async with self._database.connection() as connection:
            return await find_figure(connection, wanted.owner, wanted.document, wanted.number, wanted.width)

    async def _make_figure(self, wanted: FigureRequest, figure: FigureSource) -> None:
        self._failures.check(wanted)
        try:
            drawn = await self._draw_figure(figure, wanted.width)
        except (PageNotDrawn, BadInput, NotFound) as error:
            self._failures.note(wanted, error.detail or error.title)
            raise PageNotDrawn(error.detail or error.title) from error
        name = picture_name(wanted.number, wanted.width)
        await store_figure(self._database, self._bucket, wanted.document, figure.revision, name, drawn)

    async def _draw_figure(self, figure: FigureSource, width: int) -> bytes:
        place = FigurePlace(SourceType(figure.source_type), figure.page, tuple(figure.box or ()), figure.member)
        async with self._limit.take(), self._copies.open(figure.key) as path:
            return await figure_in_sandbox(self._sandbox, path, place, width)

    async def mark(self, wanted: PageRequest, boxes: Sequence[Box]) -> bytes:
        """Draw boxes on the picture of a page.

        The result is not stored, because there are too many combinations of boxes.
        """
        _, stream = await self.stream(wanted)
        picture = b"".join([chunk async for chunk in stream])
        page_width = (await self._look_up(wanted)).page_width
        if not page_width:
            raise NotReady
        async with self._limit.take():
            return await mark_in_sandbox(self._sandbox, picture, boxes, page_width)

    async def find_quote(self, owner: UUID, document: UUID, number: int, quote: str) -> QuoteOnPage | None:
        """Find the position of a quote on a page. Returns None if the file is not a PDF."""
        page = await self._look_up(PageRequest(owner, document, number, DEFAULT_WIDTH))
        if page.source_type != SourceType.PDF:
            return None
        async with self._limit.take(), self._copies.open(page.key) as path:
            return await quote_in_sandbox(self._sandbox, path, number, quote)

    async def draw_file(self, wanted: FilePageRequest) -> bytes:
        """Render a page of a file.

        The picture is not stored, because the file expires after a few days and browsers cache the picture.
        """
        self._failures.check(wanted)
        try:
            async with self._limit.take(), self._copies.open(wanted.key) as path:
                return await draw_in_sandbox(self._sandbox, path, SourceType.PDF, wanted.number, wanted.width)
        except PageNotDrawn as error:
            self._failures.note(wanted, error.detail)
            raise

    async def measure_file(self, key: str) -> list[tuple[float, float]]:
        """Return the width and height of each page of a file, in points.

        The sizes are cached, because stored files never change.
        """
        if key not in self._sizes:
            async with self._limit.take(), self._copies.open(key) as path:
                self._sizes[key] = await sizes_in_sandbox(self._sandbox, path, MOST_MEASURED)
            if len(self._sizes) > MOST_SIZES:
                del self._sizes[next(iter(self._sizes))]
        return self._sizes[key]

    async def read_words(self, key: str, number: int) -> list[PlacedWord]:
        """Return the words on a page of a file, each with its bounding box.

        A scan without a text layer has no words.
        """
        async with self._limit.take(), self._copies.open(key) as path:
            return await words_in_sandbox(self._sandbox, path, number)

    async def read_quote(self, key: str, number: int, box: Sequence[float]) -> str:
        """Return the text inside a box on a page of a file. Long texts are cut off.

        The text consists of the words whose centre is in the box, in reading order.
        """
        left, top, right, bottom = box
        words = [
            word
            for word in await self.read_words(key, number)
            if left <= (word.box.left + word.box.right) / 2 <= right
            and top <= (word.box.top + word.box.bottom) / 2 <= bottom
        ]
        return " ".join(word.text for word in words)[:MOST_QUOTE]

    async def _look_up(self, wanted: PageRequest) -> PageSource:
        async with self._database.connection() as connection:
            return await find_page(connection, wanted.owner, wanted.document, wanted.number, wanted.width)

    async def _make(self, wanted: PageRequest, page: PageSource) -> None:
        self._failures.check(wanted)
        try:
            drawn = await self._draw(wanted, page)
        except PageNotDrawn as error:
            self._failures.note(wanted, error.detail)
            raise
        stored = await self._bucket.put(f"pictures/{wanted.document}/{new_id()}.png", drawn)
        async with self._database.transaction() as connection:
            name = picture_name(wanted.number, wanted.width)
            unused = await keep_picture(connection, wanted.document, page.revision, name, stored)
        await self._bucket.delete(unused)

    async def _draw(self, wanted: PageRequest, page: PageSource) -> bytes:
        async with self._limit.take(), self._copies.open(page.key) as path:
            kind = SourceType(page.source_type)
            return await draw_in_sandbox(self._sandbox, path, kind, wanted.number, wanted.width)


AnyRequest: TypeAlias = PageRequest | FilePageRequest | FigureRequest


class FailedPages:
    """Remembers pages that could not be rendered, so that they are not tried again for a while."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[AnyRequest, tuple[float, str | None]] = {}

    def check(self, wanted: AnyRequest) -> None:
        at, detail = self._known.get(wanted, (-FAILED_SECONDS, None))
        if self._clock() - at < FAILED_SECONDS:
            raise PageNotDrawn(detail)

    def note(self, wanted: AnyRequest, detail: str | None) -> None:
        self._known.pop(wanted, None)
        self._known[wanted] = (self._clock(), detail)
        if len(self._known) > MOST_FAILED:
            del self._known[next(iter(self._known))]


MOST_FILES = 8
MOST_BYTES = 256 << 20


@dataclass(slots=True)
class Copy:
    path: Path
    bytes: int
    users: int = 0

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


class LocalCopies:
    """A disk cache for stored files. Removes the least recently used files first, but never a file in use."""

    def __init__(self, bucket: Bucket, *, most_files: int = MOST_FILES, most_bytes: int = MOST_BYTES) -> None:
        self._bucket = bucket
        self._most_files = most_files
        self._most_bytes = most_bytes
        self._folder = tempfile.TemporaryDirectory(prefix="octavo-")
        self._kept: dict[str, Copy] = {}
        self._fetching: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._made = 0

    @asynccontextmanager
    async def open(self, key: str) -> AsyncGenerator[Path]:
        lock = self._fetching.setdefault(key, asyncio.Lock())
        async with lock:
            copy = self._kept.pop(key, None)
            if copy is None or not copy.path.exists():
                copy = await self._fetch(key)
            self._kept[key] = copy
            copy.users += 1
        try:
            yield copy.path
        finally:
            copy.users -= 1
            self._drop_oldest()

    async def _fetch(self, key: str) -> Copy:
        self._made += 1
        path = Path(self._folder.name, str(self._made))
        # A cleanup of temporary files may have removed the folder.
        path.parent.mkdir(mode=0o700, exist_ok=True)
        return Copy(path, await copy_to_file(self._bucket, key, path))

    def _drop_oldest(self) -> None:
        for key, copy in list(self._kept.items()):
            fits = sum(one.bytes for one in self._kept.values()) <= self._most_bytes
            if len(self._kept) <= self._most_files and fits:
                return
            if not copy.users:
                del self._kept[key]
                copy.remove()

    def close(self) -> None:
        self._folder.cleanup()
