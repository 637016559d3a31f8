"""Loads the document of an analysis and the texts of its pages or chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from psycopg.rows import class_row

from octavo.ai.calls import CHARACTERS_PER_TOKEN, PAGE_TOKENS
from octavo.analyse.errors import DocumentChanged
from octavo.core.errors import Cancelled
from octavo.database import Database, fetch_rows, load_queries
from octavo.storage import Bucket

QUERIES = load_queries("analyses")
MARKDOWN_BYTES = 1 << 30
Unit = Literal["pages", "passages"]


@dataclass(frozen=True, slots=True)
class AnalysedDocument:
    """An analysis and its document.

    `unit` (pages or passages) and `units` (their number) are None until the analysis has been planned.
    """

    id: UUID
    owner_id: UUID
    document_id: UUID
    revision: int
    mode: str
    unit: Unit | None
    units: int | None
    source_type: str
    bytes: int
    deleted: bool
    source_key: str | None
    markdown_key: str | None

    @property
    def one_unit(self) -> str:
        return "passage" if self.unit == "passages" else "page"


@dataclass(frozen=True, slots=True)
class UnitLengths:
    """The text length of each page (or chunk, if there are no pages) in characters, in order."""

    unit: Unit
    characters: Sequence[int]

    def tokens(self, *, as_files: bool) -> list[int]:
        """Estimate the number of tokens of each page or chunk.

        The estimate is rather too high than too low. If `as_files` is true, pages are sent as files, and every page
        counts as much as an image.
        """
        if as_files:
            return [PAGE_TOKENS for _ in self.characters]
        return [count // CHARACTERS_PER_TOKEN + 1 for count in self.characters]


async def load_analysis(database: Database, analysis: UUID) -> AnalysedDocument:
    """Load an analysis. Raises `Cancelled` if it or its document was deleted."""
    async with (
        database.connection() as connection,
        connection.cursor(row_factory=class_row(AnalysedDocument)) as cursor,
    ):
        await cursor.execute(QUERIES.analysis, {"analysis": analysis})
        found = await cursor.fetchone()
    if found is None or found.deleted:
        raise Cancelled
    return found


async def measure(database: Database, analysed: AnalysedDocument) -> UnitLengths:
    """Measure the text length of the pages or, if there are no pages, of the chunks.

    Raises `DocumentChanged` if the revision no longer exists.
    """
    place = {"document": analysed.document_id, "revision": analysed.revision}
    async with database.connection() as connection:
        pages = await fetch_rows(connection, QUERIES.page_lengths, place)
        if pages:
            return UnitLengths("pages", [row["characters"] for row in pages])
        chunks = await fetch_rows(connection, QUERIES.chunk_lengths, place)
    if not chunks:
        raise DocumentChanged
    return UnitLengths("passages", [row["characters"] for row in chunks])


async def read_texts(
    database: Database, bucket: Bucket, analysed: AnalysedDocument, first: int, last: int
) -> list[tuple[int, str]]:
    """Read pages or chunks `first` to `last` as (number, text) pairs. Raises `DocumentChanged` if any are missing."""
    place = {"document": analysed.document_id, "revision": analysed.revision, "first": first, "last": last}
    async with database.connection() as connection:
        if analysed.unit == "passages":
            rows = await fetch_rows(connection, QUERIES.chunk_texts, place)
            texts = [(row["number"], row["content"]) for row in rows]
        else:
            ranges = await fetch_rows(connection, QUERIES.page_ranges, place)
            if analysed.markdown_key is None:
                raise DocumentChanged
            markdown = (await bucket.read(analysed.markdown_key, limit=MARKDOWN_BYTES)).decode()
            texts = [(row["number"], markdown[row["char_start"] : row["char_end"]]) for row in ranges]
    if len(texts) != last - first + 1:
        raise DocumentChanged
    return texts
