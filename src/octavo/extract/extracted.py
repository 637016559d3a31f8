"""Defines `Extracted`, the result of reading a file. It is sent from the sandbox and stored as JSON."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from itertools import chain, takewhile
from math import inf, isfinite
from typing import TYPE_CHECKING, NamedTuple, cast

from octavo.core.errors import Defect
from octavo.core.types import JSON

if TYPE_CHECKING:
    from pydantic import TypeAdapter


class SourceType(StrEnum):
    """The type of a document.

    It is detected from the content of the file, except for `WEB`, `YOUTUBE` and `PASTE`, which depend on how the
    document was added.
    """

    PDF = "pdf"
    EPUB = "epub"
    FB2 = "fb2"
    DOCX = "docx"
    PPTX = "pptx"
    XLSX = "xlsx"
    XLSB = "xlsb"
    XLS = "xls"
    ODT = "odt"
    ODS = "ods"
    ODP = "odp"
    RTF = "rtf"
    EML = "eml"
    MSG = "msg"
    CSV = "csv"
    HTML = "html"
    MHTML = "mhtml"
    MARKDOWN = "markdown"
    RST = "rst"
    ORG = "org"
    ASCIIDOC = "asciidoc"
    LATEX = "latex"
    JATS = "jats"
    DOCBOOK = "docbook"
    XML = "xml"
    JSON = "json"
    IPYNB = "ipynb"
    VTT = "vtt"
    SRT = "srt"
    TEXT = "text"
    IMAGE = "image"
    ARCHIVE = "archive"
    DOC = "doc"
    PPT = "ppt"
    IWORK = "iwork"
    MOBI = "mobi"
    DJVU = "djvu"
    AUDIO = "audio"
    VIDEO = "video"
    EXTENSION = "extension"
    OTHER = "other"
    WEB = "web"
    YOUTUBE = "youtube"
    PASTE = "paste"


# Types that are read page by page, without a processor.
PAGED = frozenset({SourceType.PDF, SourceType.IMAGE})


class Quality(StrEnum):
    """How completely a file was read.

    `PARTIAL` means that some text is missing or may be wrong. `STORED_ONLY` means that reading was not attempted.
    """

    FULL = "full"
    PARTIAL = "partial"
    OCR = "ocr"
    STORED_ONLY = "stored_only"
    EMPTY = "empty"


class BlockKind(StrEnum):
    """The kind of a block, such as a heading or table.

    `HTML` is markup inside Markdown, including comments. `RULE` is a horizontal line.
    """

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    LIST = "list"
    TABLE = "table"
    CODE = "code"
    QUOTE = "quote"
    IMAGE = "image"
    HTML = "html"
    RULE = "rule"
    FRONT_MATTER = "front_matter"


class Box(NamedTuple):
    """An area of a page, in points from its upper left corner."""

    left: float
    top: float
    right: float
    bottom: float


class RegionKind(StrEnum):
    """The kind of a region on a page.

    `BOX` is text in a frame next to the main text. `FIELD` is a form field with its value.
    """

    BODY = "body"
    HEADING = "heading"
    LIST = "list"
    TABLE = "table"
    FIGURE = "figure"
    FORMULA = "formula"
    CAPTION = "caption"
    BOX = "box"
    HEADER = "header"
    FOOTER = "footer"
    FOOTNOTE = "footnote"
    FIELD = "field"


@dataclass(frozen=True, slots=True)
class Region:
    """An area of a page with one kind of content.

    `order` is its position in the reading order, counted from 0. `confidence` is between 0 and 1. `text` is plain text.
    It is also set for regions that are left out of the Markdown, such as page numbers.
    """

    page: int
    kind: RegionKind
    box: Box
    order: int
    confidence: float
    text: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture in the document, such as a chart, formula, photo or cover.

    `number` counts from 1. The Markdown contains `![alternative](figures/<number>.png)` at offset `start`. The picture
    is an area of a page (`page` and `box`), or a picture file inside the document (`member`).
    """

    number: int
    kind: str
    start: int
    page: int | None = None
    box: Box | None = None
    member: str | None = None
    caption: str = ""
    alternative: str = ""


@dataclass(frozen=True, slots=True)
class QuoteOnPage:
    """The position of a quote on a page. Contains the page size in points and, if the quote was found, its boxes."""

    width: float
    height: float
    boxes: list[Box]


@dataclass(frozen=True, slots=True)
class Page:
    """A page. Its text is `markdown[start:end]`; a page without text has `start == end`.

    `unsure` is a sentence that explains why the text may be incomplete or wrong. It is None if there is no doubt.
    """

    number: int
    label: str
    start: int
    end: int
    width: float | None = None
    height: float | None = None
    unsure: str | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """A block of the text, such as a paragraph or table.

    `markdown[start:end]` is the block with its markup, and `text` is its plain text. Only headings have a level.
    """

    kind: BlockKind
    start: int
    end: int
    text: str
    level: int | None = None
    page: int | None = None
    box: Box | None = None


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """One entry of the table of contents. `start` is its offset in the Markdown, if known."""

    level: int
    title: str
    page: int | None = None
    start: int | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """Links a position in the text to a time in a recording.

    The text that starts at offset `start` is spoken `seconds` after the beginning of the recording.
    """

    start: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Metadata:
    """Metadata from the file.

    `date` is an ISO 8601 date, such as `2024-05-17`, `2024-05` or `2024`.
    """

    title: str | None = None
    author: str | None = None
    date: str | None = None
    language: str | None = None
    extra: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Extracted:
    """A document as text. Offsets count characters of `markdown`. Pages and blocks are in reading order."""

    source_type: SourceType
    markdown: str
    word_count: int
    quality: Quality = Quality.FULL
    pages: tuple[Page, ...] = ()
    blocks: tuple[Block, ...] = ()
    outline: tuple[OutlineEntry, ...] = ()
    metadata: Metadata = field(default_factory=Metadata)
    moments: tuple[Moment, ...] = ()
    regions: tuple[Region, ...] = ()
    figures: tuple[Figure, ...] = ()

    def __post_init__(self) -> None:
        _check_ranges("page", self.pages, len(self.markdown))
        _check_ranges("block", self.blocks, len(self.markdown))
        _check_moments(self.moments, len(self.markdown))
        boxes = [one.box for one in chain(self.blocks, self.regions, self.figures) if one.box]
        sizes = [(page.width or 0.0, page.height or 0.0) for page in self.pages]
        sums = [*map(sum, boxes), *map(sum, sizes)]
        # The sum is NaN if any of them is.
        if not isfinite(sum(sums)) and not all(map(isfinite, sums)):
            raise ValueError("a page size or box is not a number")

    @property
    def pages_with_text(self) -> int:
        """The number of pages that have text."""
        return sum(page.end > page.start for page in self.pages)


def _check_ranges(what: str, ranges: Sequence[Page | Block], length: int) -> None:
    """Check that all ranges are inside the text and sorted by their start. Lookups by offset depend on this order."""
    before = 0
    for one in ranges:
        if not before <= one.start <= one.end <= length:
            raise ValueError(f"{what} at {one.start}:{one.end} is out of order or outside the text")
        before = one.start


def _check_moments(moments: Sequence[Moment], length: int) -> None:
    before = Moment(-1, 0.0)
    for one in moments:
        # Comparisons with NaN are false.
        if not (before.start < one.start < length and before.seconds <= one.seconds < inf):
            raise ValueError(f"moment at {one.start} is out of order or outside the text")
        before = one


def to_document(extracted: Extracted) -> dict[str, JSON]:
    """Convert the document to JSON values, with the field names of `octavo extract --json`."""
    return {
        "source_type": extracted.source_type,
        "markdown": extracted.markdown,
        "word_count": extracted.word_count,
        "quality": extracted.quality,
        "pages": [_fields(page) for page in extracted.pages],
        "blocks": [_fields(block) for block in extracted.blocks],
        "outline": [_fields(entry) for entry in extracted.outline],
        "metadata": _fields(extracted.metadata),
        "moments": [_fields(moment) for moment in extracted.moments],
        "regions": [_fields(region) for region in extracted.regions],
        "figures": [_fields(figure) for figure in extracted.figures],
    }


Record = Page | Block | OutlineEntry | Metadata | Moment | Region | Figure


def _fields(record: Record) -> JSON:
    """Return the fields of a dataclass object as a dictionary.

    `dataclasses.asdict` is not used, because it copies every value. For a book, that takes ten times as long.
    """
    return {name: getattr(record, name) for name in record.__slots__}


def to_json(extracted: Extracted) -> bytes:
    return b"".join(json_pieces(extracted))


_RECORDS_A_PIECE = 1000


def json_pieces(extracted: Extracted) -> Iterator[bytes]:
    """Yield the document as JSON, in pieces, because a single string would take several times the document's size in
    memory.
    """
    for number, name in enumerate(extracted.__slots__):
        value = getattr(extracted, name)
        yield f'{"," if number else "{"}"{name}":'.encode()
        if isinstance(value, tuple):
            yield from _list_pieces(cast("tuple[Record, ...]", value))
        else:
            yield _dump(_fields(value) if isinstance(value, Metadata) else value)
    yield b"}"


def _list_pieces(records: Sequence[Record]) -> Iterator[bytes]:
    yield b"["
    for start in range(0, len(records), _RECORDS_A_PIECE):
        part: list[JSON] = [_fields(one) for one in records[start : start + _RECORDS_A_PIECE]]
        yield (b"," if start else b"") + _dump(part)[1:-1]
    yield b"]"


# Characters that Unicode reserves for internal use: placeholders of processors, or part of a damaged file.
_NONCHARACTER = re.compile("[\ufdd0-\ufdef\ufffe\uffff]")


def _dump(value: JSON) -> bytes:
    """Serialise the value as JSON.

    Unicode noncharacters are replaced with U+FFFD, which does not change any offset. Raises `ValueError` if the value
    contains U+0000.
    """
    written = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    document = _NONCHARACTER.sub("\ufffd", written).encode()
    _refuse_nul(document)
    return document


def from_json(document: bytes) -> Extracted:
    """Parse and validate the document that a child process of the sandbox wrote.

    Validation is needed because a hostile file may have taken over that process. Raises `Defect` if the document is
    invalid.
    """
    # Imported late: children only write documents and do not need pydantic.
    from pydantic import ValidationError

    try:
        _refuse_nul(document)
        return _adapter().validate_json(document, strict=True)
    except ValidationError as error:
        # The message leaves out the input, so that no text of the document is logged.
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise Defect(f"{_NOT_EXTRACTED} {first['loc']}: {first['msg']}") from None
    except ValueError as error:
        raise Defect(f"{_NOT_EXTRACTED} {error}") from None


_NOT_EXTRACTED = "The sandbox returned an invalid document."
# U+0000 in JSON, after an odd number of backslashes. PostgreSQL cannot store it.
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


def _refuse_nul(document: bytes) -> None:
    # Searching for these letters first is faster: otherwise the expression would be tried at every byte.
    if b"\\u0000" in document and _NUL.search(document):
        raise ValueError("the text contains U+0000")


@cache
def _adapter() -> TypeAdapter[Extracted]:
    from pydantic import TypeAdapter

    return TypeAdapter(Extracted)


# Captions -----------------------------------------------------------------------------------------------------------

_CAPTION = re.compile(
    r"(?:figures?|fig\.?|tables?|tab\.|charts?|plate|photo|abb(?:ildung|\.)|tabelle|bild|figura|tabla|figuur|tabel|tableau"
    r"|schéma|rys\.|рис(?:унок|\.)|таблица|obr\.)\s*[A-Z]{0,3}[.-]?\d|[図图圖表]\s*\d|그림\s*\d",
    re.IGNORECASE,
)
# The most other pictures between a picture and its caption, if a figure consists of several pictures.
_MOST_BETWEEN = 3
_MOST_CAPTION = 1000


def is_caption(text: str) -> bool:
    """Whether a line starts like the caption of a figure or a table, such as "Fig. 3"."""
    return bool(_CAPTION.match(text.strip()))


def add_captions(extracted: Extracted) -> Extracted:
    """Add missing captions of figures.

    Text next to a figure becomes its caption if it starts like a caption, such as "Fig. 3".
    """
    if all(figure.caption for figure in extracted.figures):
        return extracted
    starts = [block.start for block in extracted.blocks]
    figures = tuple(
        figure if figure.caption else replace(figure, caption=_caption(extracted.blocks, starts, figure.start))
        for figure in extracted.figures
    )
    return replace(extracted, figures=figures)


def _caption(blocks: Sequence[Block], starts: Sequence[int], position: int) -> str:
    at = bisect_right(starts, position) - 1
    after = takewhile(
        lambda one: one.kind is BlockKind.IMAGE or is_caption(one.text), blocks[at + 1 : at + 2 + _MOST_BETWEEN]
    )
    near = [*after, *blocks[max(at - 1, 0) : max(at, 0)]]
    return next((one.text[:_MOST_CAPTION] for one in near if is_caption(one.text)), "")
