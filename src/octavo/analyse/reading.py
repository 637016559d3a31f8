"""What an analysis is about, and the texts of its pages or passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from psycopg.rows import class_row

from octavo.ai.calls import CHARACTERS_A_TOKEN, PAGE_TOKENS
from octavo.analyse.errors import DocumentChanged
from octavo.core.errors import Cancelled
from octavo.database import Database, fetch_rows, load_queries
from octavo.storage import Bucket

QUERIES = load_queries("analyses")
MARKDOWN_BYTES = 1 << 30
Unit = Literal["pages", "passages"]


@dataclass(frozen=True, slots=True)
class Analysed:
    """`unit` and `units` are known when it is planned."""

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
class Lengths:
    """How long the text of each unit is, in order."""

    unit: Unit
    characters: Sequence[int]

    def tokens(self, *, as_files: bool) -> list[int]:
        """Rather too many than too few; a page that is sent as it looks costs what pictures do."""
        if as_files:
            return [PAGE_TOKENS for _ in self.characters]
        return [count // CHARACTERS_A_TOKEN + 1 for count in self.characters]


async def load_analysis(database: Database, analysis: UUID) -> Analysed:
    """Raises `Cancelled` where it, or its document, is not there any more."""
    async with database.connection() as connection, connection.cursor(row_factory=class_row(Analysed)) as cursor:
        await cursor.execute(QUERIES.analysis, {"analysis": analysis})
        found = await cursor.fetchone()
    if found is None or found.deleted:
        raise Cancelled
    return found


async def measure(database: Database, analysed: Analysed) -> Lengths:
    """By pages where there are any. Raises `DocumentChanged` where this revision is gone."""
    place = {"document": analysed.document_id, "revision": analysed.revision}
    async with database.connection() as connection:
        pages = await fetch_rows(connection, QUERIES.page_lengths, place)
        if pages:
            return Lengths("pages", [row["characters"] for row in pages])
        passages = await fetch_rows(connection, QUERIES.passage_lengths, place)
    if not passages:
        raise DocumentChanged
    return Lengths("passages", [row["characters"] for row in passages])


async def read_texts(
    database: Database, bucket: Bucket, analysed: Analysed, first: int, last: int
) -> list[tuple[int, str]]:
    """Numbers and texts of these units, in order."""
    place = {"document": analysed.document_id, "revision": analysed.revision, "first": first, "last": last}
    async with database.connection() as connection:
        if analysed.unit == "passages":
            rows = await fetch_rows(connection, QUERIES.passages, place)
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
