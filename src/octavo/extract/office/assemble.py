"""Builds an extracted document from its finished Markdown: blocks, pages, outline, figures and metadata."""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from octavo.core.errors import Empty
from octavo.core.texts import count_words
from octavo.extract.decode import clean
from octavo.extract.extracted import Block, Extracted, Figure, Metadata, OutlineEntry, Page, Quality, SourceType
from octavo.extract.markdown import outline_of, read_blocks
from octavo.extract.markdown.inline import PAGE_BREAK

_MOST_CHARACTERS = 500
_DATE = re.compile(r"\d{4}(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?)?(?=\Z|[T\s])")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*")
# Default titles that office programs write.
_NO_TITLE = re.compile(
    r"(?:word|microsoft word) document|(?:office )?powerpoint[ -]\w+|document\d*|untitled\b.*|unknown", re.IGNORECASE
)
MOST_FIGURES = 2000
_BOILERPLATE = re.compile(r"(?:Description automatically generated|AI-generated content may be incorrect)\.?")
_GIF_HEAD, _PNG_HEAD = 10, 24
_SPACER_PIXELS = 3
_FIGURE = re.compile(r"!\[(?:[^\[\]\\]|\\.){0,2000}\]\(figures/(\d{1,4})\.png\)")
_ALTERNATIVE_ESCAPES = str.maketrans({mark: f"\\{mark}" for mark in "\\[]*_`<&~|"})
# Windows vector formats. Octavo cannot draw them.
_NOT_DRAWN = (".emf", ".wmf", ".emz", ".wmz")


@dataclass(slots=True)
class Figures:
    """Collects the pictures of a document in the order in which they are read."""

    found: list[Figure] = field(default_factory=list[Figure])

    def add(self, member: str | None, alternative: str = "", *, kind: str = "picture", caption: str = "") -> str:
        """Add a picture and return its Markdown.

        If there are too many pictures, only the alternative text is returned.
        """
        alternative = clean_line(_BOILERPLATE.sub("", alternative)) or ""
        if len(self.found) >= MOST_FIGURES:
            return alternative.translate(_ALTERNATIVE_ESCAPES)
        number = len(self.found) + 1
        if member is None or member.lower().endswith(_NOT_DRAWN):
            member, kind = None, "drawing"
        figure = Figure(number, kind, 0, member=member, caption=clean_line(caption) or "", alternative=alternative)
        self.found.append(figure)
        return f"![{alternative.translate(_ALTERNATIVE_ESCAPES)}](figures/{number}.png)"

    def placed(self, markdown: str) -> tuple[Figure, ...]:
        """Return the figures with their offsets in the Markdown.

        Figures that do not occur in the Markdown are left out.
        """
        starts: dict[int, int] = {}
        for match in _FIGURE.finditer(markdown) if self.found else ():
            starts.setdefault(int(match[1]), match.start())
        return tuple(replace(one, start=starts[one.number]) for one in self.found if one.number in starts)


def is_picture(data: bytes) -> bool:
    """Whether the bytes are a picture with content, and not a spacer of a few pixels."""
    if data[:6] in {b"GIF87a", b"GIF89a"}:
        size = struct.unpack_from("<HH", data, 6) if len(data) > _GIF_HEAD else (0, 0)
    elif data.startswith(b"\x89PNG"):
        size = struct.unpack_from(">II", data, 16) if len(data) > _PNG_HEAD else (0, 0)
    else:
        return bool(data)
    return min(size) > _SPACER_PIXELS


def without_figures(markdown: str) -> str:
    """Remove the pictures from the Markdown before its words are counted."""
    return _FIGURE.sub(" ", markdown)


def to_extracted(
    source_type: SourceType,
    markdown: str,
    metadata: Metadata,
    *,
    pages: Sequence[Page] = (),
    outline: tuple[OutlineEntry, ...] | None = None,
    quality: Quality = Quality.FULL,
    has_title: bool = True,
    figures: Figures | None = None,
) -> Extracted:
    """Assemble a document. If `outline` is None, the outline is made from the headings.

    If `has_title` is true and the metadata contains no title, the first outline entry of the highest level becomes the
    title. A document that contains only pictures keeps them, and its quality is `EMPTY`. Raises `Empty` if there are
    neither words nor pictures.
    """
    words = count_words(without_figures(markdown))
    placed = figures.placed(markdown) if figures else ()
    if not words and not any(one.member for one in placed):
        raise Empty("The file contains no text.")
    blocks = tuple(assign_pages(read_blocks(markdown), pages))
    outline = outline_of(blocks) if outline is None else outline
    if not metadata.title and outline and has_title:
        metadata = replace(metadata, title=min(outline, key=lambda entry: entry.level).title)
    quality = quality if words else Quality.EMPTY
    return Extracted(source_type, markdown, words, quality, tuple(pages), blocks, outline, metadata, figures=placed)


def add_page_numbers(
    outline: tuple[OutlineEntry, ...] | None, pages: Sequence[Page]
) -> tuple[OutlineEntry, ...] | None:
    """Add the number of the page on which each outline entry starts."""
    starts = [page.start for page in pages]
    if outline is None or not starts:
        return outline
    places = (bisect_right(starts, entry.start) - 1 if entry.start is not None else -1 for entry in outline)
    return tuple(
        replace(entry, page=pages[place].number) if place >= 0 else entry
        for entry, place in zip(outline, places, strict=True)
    )


def assign_pages(blocks: Iterable[Block], pages: Sequence[Page]) -> Iterator[Block]:
    """Assign each block to the page on which it starts."""
    filled = [page for page in pages if page.end > page.start]
    starts = [page.start for page in filled]
    for block in blocks:
        place = bisect_right(starts, block.start) - 1
        yield replace(block, page=filled[place].number) if place >= 0 else block


def join_pages(contents: Sequence[str]) -> tuple[str, list[Page]]:
    """Join the texts of pages, separated by blank lines. Pages are numbered from 1."""
    pages: list[Page] = []
    end = 0
    for number, content in enumerate(contents, 1):
        start = end + 2 if end and content else end
        end = start + len(content)
        pages.append(Page(number, str(number), start, end))
    return "\n\n".join(filter(None, contents)), pages


def take_page_breaks(text: str) -> tuple[str, list[int]]:
    """Remove page breaks from a text and clean it. Returns the text and the offsets of the page breaks."""
    parts = [clean(part) for part in text.strip().split(PAGE_BREAK)]
    offsets: list[int] = []
    length = 0
    for part in parts[:-1]:
        length += len(part)
        offsets.append(length)
    return "".join(parts), offsets


def pages_between(breaks: Sequence[int], length: int) -> list[Page]:
    """Divide a text into pages. The first page starts at the beginning, and each further page at a page break."""
    starts = [0, *breaks]
    ends = [*breaks, length]
    return [Page(number, str(number), *ends_of) for number, ends_of in enumerate(zip(starts, ends, strict=True), 1)]


def clean_line(text: str | None) -> str | None:
    """Clean a metadata value: put it on one line and limit its length. Returns None if it is empty."""
    return " ".join(clean(text).split())[:_MOST_CHARACTERS] or None if text else None


def clean_title(text: str | None) -> str | None:
    found = clean_line(text)
    return None if found and _NO_TITLE.fullmatch(found) else found


def clean_date(text: str | None) -> str | None:
    """Return the ISO 8601 date (year, month or day) at the start of the text. Returns None if there is no date."""
    found = _DATE.match((text or "").strip())
    return found.group() if found else None


def clean_language(text: str | None) -> str | None:
    found = (text or "").strip()
    return found if _LANGUAGE.fullmatch(found) else None


def non_empty(**fields: str | None) -> dict[str, str]:
    """Clean metadata fields and drop empty ones."""
    return {name: value for name, text in fields.items() if (value := clean_line(text))}
