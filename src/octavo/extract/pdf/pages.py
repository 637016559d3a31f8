"""What is known of a PDF and of its pages before they are one document, and how that is written down between steps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from math import isfinite
from typing import TYPE_CHECKING, TypeVar

from octavo.extract.contract import BlockKind, Box, Metadata
from octavo.model.errors import Defect
from octavo.model.json import JSON

if TYPE_CHECKING:
    from pydantic import TypeAdapter


Record = TypeVar("Record")


@dataclass(frozen=True, slots=True)
class Bookmark:
    """An entry of the file's own table of contents; the outermost have level 1. `page` is a number, not a label."""

    level: int
    title: str
    page: int | None


@dataclass(frozen=True, slots=True)
class PdfFacts:
    """What the file says of itself."""

    page_count: int
    bookmarks: tuple[Bookmark, ...] = ()
    metadata: Metadata = field(default_factory=Metadata)
    encrypted: bool = False
    tagged: bool = False


@dataclass(frozen=True, slots=True)
class PageBlock:
    """A piece of a page in reading order.

    `text` is Markdown: of headings and paragraphs without marks, so that one can become the other, and with line ends
    only where they were meant; of all else the block as it will stand. `size` is the height of its letters in points,
    0 if unknown; `lines` how many it has.
    """

    kind: BlockKind
    text: str
    box: Box | None = None
    size: float = 0.0
    bold: bool = False
    lines: int = 1


@dataclass(frozen=True, slots=True)
class PageText:
    """`pictures`: something is drawn on it that may hold text; only looked at where there is none.

    `plain`: the text is without layout, so that headings, tables and places are missing. `failed`: why there is
    nothing, if the page could not be read.
    """

    number: int
    label: str
    width: float | None
    height: float | None
    blocks: tuple[PageBlock, ...] = ()
    pictures: bool = False
    right_to_left: bool = False
    plain: bool = False
    failed: str | None = None

    def __post_init__(self) -> None:
        numbers = [self.width or 0.0, self.height or 0.0]
        numbers += [number for block in self.blocks for number in (*(block.box or ()), block.size)]
        if not all(map(isfinite, numbers)):
            raise ValueError("a measure is not a number")


@dataclass(frozen=True, slots=True)
class Batch:
    """The pages from one number to another, all of them."""

    pages: tuple[PageText, ...]

    @property
    def first(self) -> int:
        return self.pages[0].number

    @property
    def last(self) -> int:
        return self.pages[-1].number


def batch_to_json(batch: Batch) -> bytes:
    return _dump([{**_fields(page), "blocks": [_fields(block) for block in page.blocks]} for page in batch.pages])


def batch_from_json(document: bytes) -> Batch:
    return Batch(tuple(_load(document, _pages())))


def facts_to_json(facts: PdfFacts) -> bytes:
    bookmarks: list[JSON] = [_fields(bookmark) for bookmark in facts.bookmarks]
    return _dump({**_fields(facts), "bookmarks": bookmarks, "metadata": _fields(facts.metadata)})


def facts_from_json(document: bytes) -> PdfFacts:
    return _load(document, _facts())


def _fields(record: PdfFacts | Bookmark | PageText | PageBlock | Metadata) -> dict[str, JSON]:
    return {name: getattr(record, name) for name in record.__slots__}


def _dump(value: Sequence[JSON] | dict[str, JSON]) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _load(document: bytes, adapter: TypeAdapter[Record]) -> Record:
    """Checked, because the sandbox's child wrote it; without the input in the message, which is somebody's text."""
    from pydantic import ValidationError

    try:
        return adapter.validate_json(document, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise Defect(f"What was read of a PDF cannot be used. {first['loc']}: {first['msg']}") from None


@cache
def _pages() -> TypeAdapter[list[PageText]]:
    from pydantic import TypeAdapter

    return TypeAdapter(list[PageText])


@cache
def _facts() -> TypeAdapter[PdfFacts]:
    from pydantic import TypeAdapter

    return TypeAdapter(PdfFacts)
