"""Splits a document into chunks of 200 to 500 words, along its headings, with exact offsets.

Every word of the text is in exactly one chunk. There is only white space between chunks.

The splitting runs in the sandbox, because it takes seconds for a long text. The resulting chunks are validated.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Protocol

from octavo.core.errors import Defect
from octavo.core.texts import count_words
from octavo.extract.chunks.sections import BlockLike, Cutter, Measure, merge_sections, read_sections
from octavo.sandbox import Task, sandboxed

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from octavo.sandbox import Sandbox


_LONGEST_INDENT = 200
_MOST_MORE = 1.3
_MOST_BETWEEN = 18.0  # points: a line of text and the space above it


class BoxedLike(Protocol):
    """Protocol for a block with a position on a page. `octavo.extract.extracted.Block` implements it."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def page(self) -> int | None: ...
    @property
    def box(self) -> tuple[float, float, float, float] | None: ...


class BlockOnPage(BlockLike, BoxedLike, Protocol):
    """A block with its text, its page and its box."""


class PageLike(Protocol):
    """Protocol for a page. `octavo.extract.extracted.Page` implements it."""

    @property
    def number(self) -> int: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


class MomentLike(Protocol):
    """Protocol for a moment, which is a position in the text with its time in a recording.

    `octavo.extract.extracted.Moment` implements it.
    """

    @property
    def start(self) -> int: ...
    @property
    def seconds(self) -> float: ...


class PageBox(NamedTuple):
    """An area of a page, in points from its upper left corner."""

    page: int
    left: float
    top: float
    right: float
    bottom: float

    @property
    def area(self) -> float:
        return (self.right - self.left) * (self.bottom - self.top)

    def around(self, other: PageBox) -> PageBox:
        """Return the smallest box that contains this box and `other`."""
        left, top = min(self.left, other.left), min(self.top, other.top)
        return PageBox(self.page, left, top, max(self.right, other.right), max(self.bottom, other.bottom))


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk. `content` is `markdown[start:end]`. Pages, seconds and boxes are set only if the document has them."""

    index: int
    start: int
    end: int
    content: str
    page_from: int | None
    page_to: int | None
    heading_path: tuple[str, ...]
    word_count: int
    seconds: float | None = None
    boxes: tuple[PageBox, ...] = ()


def chunk(
    markdown: str,
    blocks: Iterable[BlockOnPage] = (),
    pages: Iterable[PageLike] = (),
    moments: Iterable[MomentLike] = (),
) -> list[Chunk]:
    """Split a text into chunks, in reading order.

    `blocks` gives the positions of headings, tables and code. A text without blocks can also be split.
    """
    measure = Measure(markdown)
    in_order = sorted(blocks, key=lambda block: block.start)
    sections = list(read_sections(measure, in_order))
    section_starts = [section.start for section in sections]
    page_finder = _PageFinder(pages)
    moment_finder = _MomentFinder(moments)
    box_finder = BoxFinder(in_order)
    cutter = Cutter(measure, in_order)
    chunks: list[Chunk] = []
    for section in merge_sections(sections):
        for first, last in cutter.cut(section):
            start, end = _range(markdown, measure.start(first), measure.start(last))
            content = markdown[start:end]
            chunks.append(
                Chunk(
                    index=len(chunks),
                    start=start,
                    end=end,
                    content=content,
                    page_from=page_finder.number_at(start),
                    page_to=page_finder.number_at(end - 1),
                    heading_path=sections[bisect_right(section_starts, first) - 1].path,
                    word_count=count_words(content),
                    seconds=moment_finder.seconds_at(start),
                    boxes=box_finder.boxes_in(start, end),
                )
            )
    return chunks


def _range(text: str, start: int, end: int) -> tuple[int, int]:
    """Remove white space at both ends of a range of text, but keep the indentation of the first line, which matters in
    code.
    """
    before = text[max(start - _LONGEST_INDENT, 0) : start]
    indent = before[before.rfind("\n") + 1 :] if "\n" in before or len(before) == start else ""
    return start - len(indent) * indent.isspace(), start + len(text[start:end].rstrip())


class _PageFinder:
    def __init__(self, pages: Iterable[PageLike]) -> None:
        with_text = [page for page in pages if page.end > page.start]
        self._numbers = [page.number for page in with_text]
        self._starts: Sequence[int] = [page.start for page in with_text]

    def number_at(self, position: int) -> int | None:
        """Return the number of the page that contains the character at `position`.

        A character between two pages belongs to the earlier one. Returns None if the document has no pages.
        """
        if not self._numbers:
            return None
        return self._numbers[max(bisect_right(self._starts, position) - 1, 0)]


class _MomentFinder:
    def __init__(self, moments: Iterable[MomentLike]) -> None:
        in_order = sorted(moments, key=lambda moment: moment.start)
        self._starts = [moment.start for moment in in_order]
        self._seconds = [moment.seconds for moment in in_order]

    def seconds_at(self, position: int) -> float | None:
        """Return the recording time of the text at `position`. Returns None before the first known time."""
        place = bisect_right(self._starts, position)
        return self._seconds[place - 1] if place else None


class BoxFinder:
    """Finds the areas of pages (boxes) on which a range of text is printed."""

    def __init__(self, blocks: Iterable[BoxedLike]) -> None:
        self._blocks = sorted(_placed(blocks), key=lambda placed: placed[0])
        self._starts = [start for start, _, _ in self._blocks]

    def boxes_in(self, start: int, end: int) -> tuple[PageBox, ...]:
        """Return the boxes of all blocks that overlap this range of text.

        Neighbouring boxes are joined. If a block is only partly in the range, its whole box is used.
        """
        first, last = max(bisect_right(self._starts, start) - 1, 0), bisect_left(self._starts, end)
        return tuple(_join(box for _, until, box in self._blocks[first:last] if until > start))


def _join(boxes: Iterable[PageBox]) -> list[PageBox]:
    """Join neighbouring boxes, unless the joined box would be much larger than the two boxes together."""
    joined: list[PageBox] = []
    for box in boxes:
        whole = box
        while near := next((one for one in joined if _are_adjacent(one, whole)), None):
            joined.remove(near)
            whole = near.around(whole)
        joined.append(whole)
    return sorted(joined, key=lambda one: (one.page, one.top, one.left))


def _are_adjacent(one: PageBox, other: PageBox) -> bool:
    across = max(one.left, other.left) - min(one.right, other.right)
    down = max(one.top, other.top) - min(one.bottom, other.bottom)
    if one.page != other.page or max(across, down) > _MOST_BETWEEN:
        return False
    return one.around(other).area <= _MOST_MORE * (one.area + other.area)


def _placed(blocks: Iterable[BoxedLike]) -> Iterable[tuple[int, int, PageBox]]:
    for block in blocks:
        if block.page is not None and block.box is not None:
            yield block.start, block.end, PageBox(block.page, *(round(side, 1) for side in block.box))


# Imported by the preloaded parent of a sandbox, so that its children do not import it for every document.
PRELOAD = ("octavo.extract.chunks.chunking",)

Box = tuple[int, float, float, float, float]
Row = tuple[int, int, int | None, int | None, tuple[str, ...], int, float | None, tuple[Box, ...]]


async def chunk_in_sandbox(sandbox: Sandbox, document: bytes, markdown: str) -> list[Chunk]:
    """Split a document into chunks. `document` is the extracted document as JSON, and `markdown` is its text."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as made:
        await asyncio.to_thread(_fill, given, document)
        await sandbox.run(cut_document.call(), input_file=given, output_file=made)
        return await asyncio.to_thread(lambda: read_chunks(made.read(), markdown))


def _fill(file: BinaryIO, content: bytes) -> None:
    file.write(content)
    file.flush()


def read_chunks(made: bytes, markdown: str) -> list[Chunk]:
    """Parse and validate the chunks that a child process of the sandbox wrote.

    Validation is needed because a hostile file may have taken over that process. Raises `Defect` if the chunks are
    invalid.
    """
    # Imported late: the preloaded parent imports this module too, and its forks are faster without pydantic.
    from pydantic import ValidationError

    try:
        rows = _row_type().validate_json(made)
    except ValidationError:
        rows = None
    if rows is None or not all(map(_has_valid_places, rows)):
        raise Defect("The sandbox returned an invalid list of chunks.")
    before = 0
    for start, end, *_ in rows:
        if not before <= start < end <= len(markdown):
            raise Defect("The sandbox returned chunks outside the text.")
        before = end
    return [
        Chunk(
            *(index, start, end, markdown[start:end], page_from, page_to, path, words, seconds),
            boxes=tuple(PageBox(*box) for box in boxes),
        )
        for index, (start, end, page_from, page_to, path, words, seconds, boxes) in enumerate(rows)
    ]


@cache
def _row_type() -> TypeAdapter[list[Row]]:
    from pydantic import ConfigDict, TypeAdapter

    return TypeAdapter(list[Row], config=ConfigDict(allow_inf_nan=False))


def _has_valid_places(row: Row) -> bool:
    *_, seconds, boxes = row
    return (seconds is None or seconds >= 0) and all(page >= 1 for page, *_ in boxes)


@dataclass(frozen=True, slots=True)
class Block:
    kind: str
    start: int
    end: int
    text: str
    level: int | None
    page: int | None
    box: tuple[float, float, float, float] | None


@dataclass(frozen=True, slots=True)
class Page:
    number: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Moment:
    start: int
    seconds: float


@sandboxed
def cut_document(task: Task) -> None:
    """Split a document and write its chunks without their texts, which the caller already has."""
    task.output.write(cut(task.input.read()))


def cut(extracted: bytes) -> bytes:
    """Split a document and return its chunks without their texts. The input and the output are JSON.

    Runs in the sandbox.
    """
    document = json.loads(extracted)
    blocks = [Block(*(block[name] for name in Block.__slots__)) for block in document["blocks"]]
    pages = [Page(*(page[name] for name in Page.__slots__)) for page in document["pages"]]
    # Documents extracted by an earlier version have no moments.
    moments = [Moment(*(moment[name] for name in Moment.__slots__)) for moment in document.get("moments", ())]
    rows = [
        [one.start, one.end, one.page_from, one.page_to, one.heading_path, one.word_count, one.seconds, one.boxes]
        for one in chunk(document["markdown"], blocks, pages, moments)
    ]
    return json.dumps(rows).encode()
