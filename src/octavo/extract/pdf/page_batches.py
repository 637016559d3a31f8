"""Data structures for the pages of a PDF before they become one document, and their JSON form.

The JSON is passed between the processes that read and assemble the pages.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from math import isfinite
from operator import itemgetter
from typing import Any, TypeVar

from octavo.core.errors import Defect
from octavo.core.types import JSON
from octavo.extract.extracted import BlockKind, Box, Metadata, RegionKind

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Bookmark:
    """A bookmark of the file. Level 1 is the top level. `page` is a page number, not a page label."""

    level: int
    title: str
    page: int | None


@dataclass(frozen=True, slots=True)
class PdfFacts:
    """Facts about a whole PDF: page count, bookmarks, metadata, and whether it is encrypted or tagged."""

    page_count: int
    bookmarks: tuple[Bookmark, ...] = ()
    metadata: Metadata = field(default_factory=Metadata)
    encrypted: bool = False
    tagged: bool = False


@dataclass(frozen=True, slots=True)
class PageBlock:
    """A block of a page, such as a heading, paragraph or table. The blocks of a page are in reading order.

    `text` is the final Markdown of the block. Headings and paragraphs are an exception: they contain no Markdown
    markers, because a heading can still become a paragraph, and a paragraph a heading. Line breaks in them are
    intended. `size` is the letter height in points. It is 0 if unknown. `lines` is the number of lines. If the block is
    a picture, `figure` is its kind and `text` is its alternative text.
    """

    kind: BlockKind
    text: str
    box: Box | None = None
    size: float = 0.0
    bold: bool = False
    lines: int = 1
    region: RegionKind = RegionKind.BODY
    confidence: float = 1.0
    figure: str = ""
    italic: bool = False


@dataclass(frozen=True, slots=True)
class PageText:
    """The text of a page.

    - `pictures`: whether the page has images that may contain text. Checked only if the page has little or no text.
    - `plain`: whether the text was read without layout, so that headings, tables and boxes are missing.
    - `recognised`: whether the text comes from OCR.
    - `failed`: the reason why the page could not be read.
    - `unsure`: the reason why the text may be wrong.
    - `fields`: the form fields of the page, which become regions. Their values are also in `blocks`.
    """

    number: int
    label: str
    width: float | None
    height: float | None
    blocks: tuple[PageBlock, ...] = ()
    pictures: bool = False
    right_to_left: bool = False
    plain: bool = False
    recognised: bool = False
    failed: str | None = None
    unsure: str | None = None
    fields: tuple[PageBlock, ...] = ()

    @property
    def is_unread(self) -> bool:
        """Whether the page may contain text in images that has not been read by OCR yet."""
        return self.pictures and not self.recognised

    def __post_init__(self) -> None:
        numbers = [self.width or 0.0, self.height or 0.0]
        numbers += [
            number
            for block in (*self.blocks, *self.fields)
            for number in (*(block.box or ()), block.size, block.confidence)
        ]
        if not all(map(isfinite, numbers)):
            raise ValueError("a page size or box is not a number")


@dataclass(frozen=True, slots=True)
class Batch:
    """The extracted text of consecutive pages."""

    pages: tuple[PageText, ...]

    @property
    def first(self) -> int:
        return self.pages[0].number

    @property
    def last(self) -> int:
        return self.pages[-1].number


def batch_to_json(batch: Batch) -> bytes:
    return _dump([{**_fields(page), **{name: _blocks(getattr(page, name)) for name in _LISTS}} for page in batch.pages])


_LISTS = ("blocks", "fields")


def _blocks(blocks: Sequence[PageBlock]) -> list[JSON]:
    return [_fields(block) for block in blocks]


def batch_from_json(document: bytes) -> Batch:
    with _refusing():
        return Batch(tuple(_page(one) for one in json.loads(document)))


def facts_to_json(facts: PdfFacts) -> bytes:
    bookmarks: list[JSON] = [_fields(bookmark) for bookmark in facts.bookmarks]
    return _dump({**_fields(facts), "bookmarks": bookmarks, "metadata": _fields(facts.metadata)})


def facts_from_json(document: bytes) -> PdfFacts:
    with _refusing():
        read = json.loads(document)
        return PdfFacts(
            page_count=_is(int, read["page_count"]),
            bookmarks=tuple(_bookmark(one) for one in read["bookmarks"]),
            metadata=_metadata(read["metadata"]),
            encrypted=_is(bool, read["encrypted"]),
            tagged=_is(bool, read["tagged"]),
        )


def _fields(record: PdfFacts | Bookmark | PageText | PageBlock | Metadata) -> dict[str, JSON]:
    return {name: getattr(record, name) for name in record.__slots__}


def _dump(value: Sequence[JSON] | dict[str, JSON]) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


# Sandbox output is validated without pydantic: each step is a new process, and importing pydantic takes longer
# than reading ten pages.


@contextmanager
def _refusing() -> Generator[None]:
    """Raise `Defect` if the code in the `with` block reads invalid JSON.

    The original error is not chained, because it may contain text from the document.
    """
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise Defect("The sandbox returned invalid pages for a PDF.") from None


def _is(kind: type[Value], value: object) -> Value:
    if type(value) is not kind:
        raise TypeError
    return value


def _or_none(kind: type[Value], value: object) -> Value | None:
    return None if value is None else _is(kind, value)


def _as_types(kinds: Sequence[type[Any]], values: Sequence[object]) -> tuple[Any, ...]:
    """Check the types of values. JSON does not distinguish between 1 and 1.0, so a whole number is valid as a float."""
    return tuple(
        float(value) if kind is float and type(value) is int else _is(kind, value)
        for kind, value in zip(kinds, values, strict=True)
    )


def _page(read: dict[str, Any]) -> PageText:
    return PageText(
        number=_is(int, read["number"]),
        label=_is(str, read["label"]),
        width=_size(read["width"]),
        height=_size(read["height"]),
        blocks=tuple(_block(one) for one in read["blocks"]),
        pictures=_is(bool, read["pictures"]),
        right_to_left=_is(bool, read["right_to_left"]),
        plain=_is(bool, read["plain"]),
        recognised=_is(bool, read["recognised"]),
        failed=_or_none(str, read["failed"]),
        unsure=_or_none(str, read["unsure"]),
        fields=tuple(_block(one) for one in read["fields"]),
    )


def _size(value: object) -> float | None:
    return None if value is None else _as_types([float], [value])[0]


_PLAIN_FIELDS = {
    "text": str, "size": float, "bold": bool, "lines": int, "confidence": float, "figure": str, "italic": bool
}  # fmt: skip
_PLAIN_TYPES = list(_PLAIN_FIELDS.values())
_plain_values = itemgetter(*_PLAIN_FIELDS)
_BOX_TYPES = [float] * 4


def _block(read: dict[str, Any]) -> PageBlock:
    # A book has thousands of blocks. Their types are compared as lists, which avoids a call for each value.
    box, values = read["box"], _plain_values(read)
    if list(map(type, values)) != _PLAIN_TYPES:
        values = _as_types(_PLAIN_TYPES, values)
    if box is not None and list(map(type, box)) != _BOX_TYPES:
        box = _as_types(_BOX_TYPES, box)
    text, size, bold, lines, confidence, figure, italic = values
    kind, region = BlockKind(read["kind"]), RegionKind(read["region"])
    place = None if box is None else Box(*box)
    return PageBlock(kind, text, place, size, bold, lines, region, confidence, figure, italic)


def _bookmark(read: dict[str, Any]) -> Bookmark:
    return Bookmark(_is(int, read["level"]), _is(str, read["title"]), _or_none(int, read["page"]))


def _metadata(read: dict[str, Any]) -> Metadata:
    title, author, date, language = (_or_none(str, read[name]) for name in ("title", "author", "date", "language"))
    extra = {_is(str, name): _is(str, value) for name, value in read["extra"].items()}
    return Metadata(title, author, date, language, extra)


# Measured: larger batches are hardly faster and need more memory.
BATCH_PAGES = 100


def batch_ranges(page_count: int, start: int = 1, size: int = BATCH_PAGES) -> Iterator[tuple[int, int]]:
    """Yield the first and last page number of each batch, starting with the batch that contains page `start`.

    The boundaries do not depend on `start`. Otherwise, the text of a page could change, because it depends slightly on
    the other pages of its batch.
    """
    first = (start - 1) // size * size + 1
    for number in range(first, page_count + 1, size):
        yield number, min(number + size - 1, page_count)


def unreadable(first: int, last: int, reason: str) -> Batch:
    """Make a batch for pages that cannot be read. Its pages have no text. `reason` says why they cannot be read."""
    return Batch(tuple(PageText(number, str(number), None, None, failed=reason) for number in range(first, last + 1)))


def write_ranges(numbers: Iterable[int]) -> str:
    """Write page numbers as ranges, such as "1-3,7"."""
    runs = groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])
    ends = [(run[0][1], run[-1][1]) for run in (list(group) for _, group in runs)]
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ends)


def read_ranges(written: str) -> Iterator[int]:
    for run in filter(None, written.split(",")):
        first, _, last = run.partition("-")
        yield from range(int(first), int(last or first) + 1)
