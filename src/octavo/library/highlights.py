"""Highlights and notes on passages of documents.

A highlight is kept by its quote and the text around the quote. So its position can be found again when the document is
processed again, and in a new version. If the new text does not contain the quote, the highlight is kept as lost.
"""

from __future__ import annotations

import asyncio
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, islice, takewhile
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from octavo.core.errors import BadInput, NotFound
from octavo.core.ids import new_id
from octavo.core.pagination import Page, make_cursor, make_text_cursor, read_cursor, read_text_cursor
from octavo.database import Connection, Row, fetch_rows, load_queries
from octavo.jobs.views import DEFAULT_LIMIT
from octavo.language.markdown_segments import blank_markup
from octavo.library.changes import lock_documents
from octavo.library.documents import like_pattern, show_document
from octavo.library.errors import NeverReady, NotReady
from octavo.records.documents import Highlight, HighlightColour, Span

QUERIES = load_queries("highlights")
MOST_QUOTE = 10_000
MOST_HIGHLIGHTS = 2000
# How much text before and after a quote is stored.
CONTEXT = 80
MOST_OCCURRENCES = 1000
# Sorts highlights without a position after all others.
LAST_PLACE = 2**31 - 1
NOT_IN_TEXT = "quote: not found in the text of this document. Copy the passage exactly as it is shown."
_SOLID, _LETTERS = re.compile(r"\S+"), re.compile(r"[^\W_]+")
_LAST_MARKS = ".,;:!?\u2026)]\"'\u201d\u2019\u00bb"
_LINE_MARK = re.compile(r"^[ \t>]*(?:#{1,6}|[-+*•]|\d{1,3}[.)])[ \t]+", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class NewHighlight:
    """A highlight to add: its quote, or its positions in the Markdown.

    With a quote, `start` selects the occurrence that is nearest to it.
    """

    quote: str | None = None
    start: int | None = None
    end: int | None = None
    colour: HighlightColour = "yellow"
    note: str = ""


@dataclass(frozen=True, slots=True)
class Anchor:
    """What identifies a passage: its quote, the text around it, and its last position."""

    quote: str
    text_before: str = ""
    text_after: str = ""
    start: int | None = None


# Reading ------------------------------------------------------------------------------------------------------------


async def list_highlights(
    connection: Connection, owner: UUID, document: UUID, *, cursor: str | None = None, limit: int = DEFAULT_LIMIT
) -> Page[Highlight]:
    """List the highlights of a document in text order. Lost highlights come last."""
    await show_document(connection, owner, document)
    place, after = _read_place(cursor) if cursor else (-1, UUID(int=0))
    values = {"owner": owner, "document": document, "after_place": place, "after_id": after, "most": limit + 1}
    rows = await fetch_rows(connection, QUERIES.highlights, values)
    found = [Highlight(**row) for row in rows[:limit]]
    return Page(found, _place_cursor(found[-1]) if len(rows) > limit else None)


async def find_highlights(
    connection: Connection, owner: UUID, q: str | None, *, cursor: str | None = None, limit: int = DEFAULT_LIMIT
) -> Page[Highlight]:
    """List an account's highlights, newest first. If `q` is given, its words must be in the quote or the note.

    Highlights of superseded versions are omitted, because the newest version has copies of them.
    """
    at, after = read_cursor(cursor) if cursor else (None, None)
    words = [like_pattern(word) for word in (q or "").split()]
    values = {"owner": owner, "words": words, "after_at": at, "after_id": after, "most": limit + 1}
    rows = await fetch_rows(connection, QUERIES.all_highlights, values)
    found = [Highlight(**row) for row in rows[:limit]]
    return Page(found, make_cursor(found[-1].created_at, found[-1].id) if len(rows) > limit else None)


async def show_highlight(connection: Connection, owner: UUID, highlight: UUID) -> Highlight:
    rows = await fetch_rows(connection, QUERIES.highlight, {"owner": owner, "id": highlight})
    if not rows:
        raise NotFound
    return Highlight(**rows[0])


def _place_cursor(one: Highlight) -> str:
    return make_text_cursor(str(LAST_PLACE if one.start is None else one.start), one.id)


def _read_place(cursor: str) -> tuple[int, UUID]:
    place, after = read_text_cursor(cursor)
    if not re.fullmatch(r"[0-9]{1,10}", place) or int(place) > LAST_PLACE:
        raise BadInput("Invalid cursor. Use the next_cursor of the previous page.")
    return int(place), after


# Writing ------------------------------------------------------------------------------------------------------------


async def add_highlight(
    connection: Connection, owner: UUID, document: UUID, user: UUID | None, new: NewHighlight
) -> Highlight:
    """Add a highlight. The document is locked, so that its text is not replaced at the same time."""
    await lock_documents(connection, owner, [document])
    (count,) = await fetch_rows(connection, QUERIES.count_highlights, {"document": document})
    if count["number"] >= MOST_HIGHLIGHTS:
        raise BadInput(f"A document can have at most {MOST_HIGHLIGHTS:,} highlights. Delete some first.")
    text = await _read_text(connection, document)
    if not text:
        status = (await show_document(connection, owner, document)).status
        raise NotReady if status == "pending" else NeverReady
    quote, span = await asyncio.to_thread(_locate, DocumentText(text), new)
    made = new_id()
    values = {"id": made, "document": document, "user": user, "quote": quote, "colour": new.colour, "note": new.note}
    await connection.execute(QUERIES.insert_highlight, values | _place(span, text))
    return await show_highlight(connection, owner, made)


async def edit_highlight(
    connection: Connection, owner: UUID, highlight: UUID, note: str | None, colour: HighlightColour | None
) -> Highlight:
    """Change the note or the colour of a highlight. None leaves the value unchanged."""
    values = {"owner": owner, "id": highlight, "note": note, "colour": colour}
    await connection.execute(QUERIES.edit_highlight, values)
    return await show_highlight(connection, owner, highlight)


async def delete_highlight(connection: Connection, owner: UUID, highlight: UUID) -> None:
    if not await fetch_rows(connection, QUERIES.delete_highlight, {"owner": owner, "id": highlight}):
        raise NotFound


async def place_highlights(connection: Connection, document: UUID) -> None:
    """Find the highlights of a document in its new chunks, in the transaction that wrote the chunks."""
    kept = await fetch_rows(connection, QUERIES.kept, {"document": document})
    if not kept:
        return
    text = await _read_text(connection, document)
    places = await asyncio.to_thread(_find_places, text, kept)
    await connection.execute(QUERIES.place_highlights, {"places": Jsonb(places)})


async def _read_text(connection: Connection, document: UUID) -> str:
    """Return the Markdown of a document up to its last chunk. White space between chunks is not the original one."""
    parts: list[str] = []
    end = 0
    for row in await fetch_rows(connection, QUERIES.chunk_texts, {"document": document}):
        parts += ["\n" * (row["start"] - end), row["content"]]
        end = row["start"] + len(row["content"])
    return "".join(parts)


def _find_places(text: str, kept: Sequence[Row]) -> list[dict[str, Any]]:
    found = DocumentText(text)
    places: list[dict[str, Any]] = []
    for row in kept:
        span = found.find(Anchor(row["quote"], row["text_before"], row["text_after"], row["start"]))
        places.append({"id": str(row["id"]), **(_place(span, text) if span else {})})
    return places


def _place(span: Span, text: str) -> dict[str, Any]:
    before, after = text[max(0, span.start - CONTEXT) : span.start], text[span.end : span.end + CONTEXT]
    return {"start": span.start, "end": span.end, "text_before": _one_line(before), "text_after": _one_line(after)}


def _one_line(text: str) -> str:
    return " ".join(text.split())


# Finding a quote in a text ------------------------------------------------------------------------------------------


def _locate(text: DocumentText, new: NewHighlight) -> tuple[str, Span]:
    if new.quote is not None:
        quote = _one_line(new.quote)
        if (span := text.find(Anchor(quote, start=new.start))) is None:
            raise BadInput(NOT_IN_TEXT)
        return quote, span
    start, end = new.start or 0, new.end or 0
    written = text.text[start:end]
    if end > len(text.text) or not written.strip():
        raise BadInput(f"start, end: must select text. The text has {len(text.text):,} characters.")
    if len(written) > MOST_QUOTE:
        raise BadInput(f"start, end: must select at most {MOST_QUOTE:,} characters.")
    left, right = len(written) - len(written.lstrip()), len(written) - len(written.rstrip())
    return _one_line(written), Span(start + left, end - right)


class DocumentText:
    """The Markdown of a document, prepared for finding many quotes in it.

    White space does not count. A quote that is not found as it is, is compared by its letters and digits without
    Markdown, because people copy it from a page without Markdown.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def _solid(self) -> SqueezedText:
        return SqueezedText(self.text, _SOLID)

    @cached_property
    def _letters(self) -> SqueezedText:
        return SqueezedText(_without_markup(self.text), _LETTERS)

    def find(self, anchor: Anchor) -> Span | None:
        """Find the occurrence of a quote that fits best: whole words, the same text around it, the same position."""
        found = list(islice(self._solid.find_all(anchor.quote), MOST_OCCURRENCES)) or [
            self._with_last_marks(one, anchor.quote)
            for one in islice(self._letters.find_all(_without_markup(anchor.quote)), MOST_OCCURRENCES)
        ]
        return max(found, key=lambda one: self._rank(one, anchor), default=None)

    def _with_last_marks(self, span: Span, quote: str) -> Span:
        """Extend a passage by the punctuation at the end of its quote."""
        end = span.end
        for mark in quote[len(quote.rstrip(_LAST_MARKS)) :]:
            end += self.text.startswith(mark, end)
        return Span(span.start, end)

    def _rank(self, span: Span, anchor: Anchor) -> tuple[int, int, int]:
        text = self.text
        whole = 2 - _cuts_word(text, span.start) - _cuts_word(text, span.end)
        before, after = text[max(0, span.start - 2 * CONTEXT) : span.start], text[span.end : span.end + 2 * CONTEXT]
        same = _same_length(reversed(_letters(before)), reversed(_letters(anchor.text_before)))
        same += _same_length(_letters(after), _letters(anchor.text_after))
        return whole, same, -abs(span.start - (anchor.start or 0))


class SqueezedText:
    """A text reduced to the parts that match a pattern, and the positions of these parts in the text."""

    def __init__(self, text: str, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern
        parts = list(pattern.finditer(text))
        self._text = "".join(part.group() for part in parts)
        self._starts = [part.start() for part in parts]
        self._offsets = list(accumulate((part.end() - part.start() for part in parts), initial=0))[:-1]

    def find_all(self, quote: str) -> Iterator[Span]:
        wanted = "".join(self._pattern.findall(quote))
        at = self._text.find(wanted) if wanted else -1
        while at >= 0:
            yield Span(self._place(at), self._place(at + len(wanted) - 1) + 1)
            at = self._text.find(wanted, at + 1)

    def _place(self, offset: int) -> int:
        part = bisect_right(self._offsets, offset) - 1
        return self._starts[part] + offset - self._offsets[part]


def _cuts_word(text: str, place: int) -> bool:
    return 0 < place < len(text) and text[place - 1 : place + 1].isalnum()


def _without_markup(text: str) -> str:
    return _LINE_MARK.sub(lambda mark: " " * len(mark.group()), blank_markup(text))


def _letters(text: str) -> str:
    return "".join(_LETTERS.findall(text))


def _same_length(one: Iterable[str], other: Iterable[str]) -> int:
    """Return how many characters at the beginning are the same."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
