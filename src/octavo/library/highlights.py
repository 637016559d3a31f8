"""The highlights and notes that people add to documents, and their reading positions.

A highlight is stored with its quote and the text around the quote, so that its position can be found again when the
document is processed again or has a new version. If the new text does not contain the quote, the highlight is kept and
marked as lost.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from octavo.core.errors import BadInput, NotFound
from octavo.core.http import Page, make_cursor, make_text_cursor, read_cursor, read_text_cursor
from octavo.core.types import new_id
from octavo.database import Connection, Row, fetch_rows, load_queries
from octavo.jobs.views import DEFAULT_LIMIT
from octavo.language.text_positions import CONTEXT, Anchor, QuoteFinder
from octavo.library.changes import lock_documents
from octavo.library.documents import like_pattern, show_document
from octavo.library.errors import NeverReady, NotReady
from octavo.records.documents import Highlight, HighlightColour, Span

QUERIES = load_queries("highlights")
MOST_QUOTE, MOST_NOTE = 10_000, 10_000
MOST_HIGHLIGHTS = 2000
# Sorts highlights without a position after all others.
LAST_PLACE = 2**31 - 1
NOT_IN_TEXT = "quote: not found in the text of this document. Copy the passage exactly as it is shown."


@dataclass(frozen=True, slots=True)
class NewHighlight:
    """A highlight to add: its quote, or its positions in the Markdown.

    If the text contains the quote several times, the occurrence that best matches `text_before` is used. If several
    occurrences match it equally well, the one nearest to `start` is used.
    """

    quote: str | None = None
    text_before: str = ""
    start: int | None = None
    end: int | None = None
    colour: HighlightColour = "yellow"
    note: str = ""


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
    quote, span = await asyncio.to_thread(_locate, QuoteFinder(text), new)
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
    """Update the positions of a document's highlights, in the transaction that wrote the document's new chunks."""
    kept = await fetch_rows(connection, QUERIES.kept, {"document": document})
    if not kept:
        return
    text = await _read_text(connection, document)
    places = await asyncio.to_thread(_find_places, text, kept)
    await connection.execute(QUERIES.place_highlights, {"places": Jsonb(places)})


async def _read_text(connection: Connection, document: UUID) -> str:
    """Return the Markdown of a document up to its last chunk.

    It is joined from the chunks, so the white space between them may differ from the original.
    """
    parts: list[str] = []
    end = 0
    for row in await fetch_rows(connection, QUERIES.chunk_texts, {"document": document}):
        parts += ["\n" * (row["start"] - end), row["content"]]
        end = row["start"] + len(row["content"])
    return "".join(parts)


def _find_places(text: str, kept: Sequence[Row]) -> list[dict[str, Any]]:
    found = QuoteFinder(text)
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


# Reading position ---------------------------------------------------------------------------------------------------


async def read_position(connection: Connection, owner: UUID, document: UUID, user: UUID | None) -> int | None:
    """Return the character position where a person stopped reading. Returns None if they have not started."""
    rows = await fetch_rows(connection, QUERIES.position, {"owner": owner, "document": document, "user": user})
    return rows[0]["start"] if rows else None


async def keep_position(connection: Connection, owner: UUID, document: UUID, user: UUID | None, start: int) -> None:
    values = {"owner": owner, "document": document, "user": user, "start": start}
    if not await fetch_rows(connection, QUERIES.keep_position, values):
        raise NotFound


# Finding a quote in a text ------------------------------------------------------------------------------------------


def _locate(text: QuoteFinder, new: NewHighlight) -> tuple[str, Span]:
    if new.quote is not None:
        quote = _one_line(new.quote)
        if (span := text.find(Anchor(quote, new.text_before, start=new.start))) is None:
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
