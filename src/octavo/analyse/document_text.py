"""Loads the document of an analysis and the texts of its pages or chunks, and checks citations against them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
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
        """Estimate the number of tokens in each page or chunk.

        The estimate errs on the high side. If `as_files` is true, pages are sent as files, and every page counts as
        one image.
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


# Citations ------------------------------------------------------------------------------------------------------------


LEAST_CHARACTERS = 3
_MARKS = re.compile(r"\\(?=[^\w\s])|[*_`#>|~\[\]]|\u00ad")
_LEFT_OUT = re.compile(r"\.\.\.|…")
_QUOTE_MARKS = str.maketrans(
    dict.fromkeys("\u201c\u201d\u201e\u00ab\u00bb", '"') | dict.fromkeys("\u2018\u2019\u201a", "'")
)


@dataclass(frozen=True, slots=True)
class Citation:
    """A quote with its position.

    `page` is a page number or, if the document has no pages, a chunk number. Both start at 1.
    """

    page: int
    quote: str
    verified: bool
    relevance: float = 1.0


class PageTexts:
    """The texts of a document's pages, prepared for finding quotes in them."""

    def __init__(self, texts: Mapping[int, str]) -> None:
        self._texts = texts
        self._plain: dict[int, str] = {}

    def contain(self, quote: str, page: int) -> bool:
        """Whether the page contains the quote. An ellipsis in the quote matches any text.

        Returns False for very short quotes, because many pages contain them by chance.
        """
        parts = [part for part in map(plain, _LEFT_OUT.split(quote)) if part]
        if sum(map(len, parts)) < LEAST_CHARACTERS:
            return False
        text, place = self._of(page), 0
        for part in parts:
            found = text.find(part, place)
            if found < 0:
                return False
            place = found + len(part)
        return True

    def pages_with(self, quote: str) -> list[int]:
        return [page for page in self._texts if self.contain(quote, page)]

    def _of(self, page: int) -> str:
        if page not in self._plain:
            self._plain[page] = plain(self._texts.get(page, ""))
        return self._plain[page]


def verify(cited: Iterable[tuple[int, str, float]], texts: PageTexts) -> list[Citation]:
    """Check citations, given as (page, quote, relevance), against the texts of the pages.

    If a quote is not on the cited page but on exactly one other page, the page number is corrected. Of several
    citations with the same page and quote, only the first is returned.
    """
    found: dict[tuple[int, str], Citation] = {}
    for page, quote, relevance in cited:
        verified = texts.contain(quote, page)
        if not verified and len(others := texts.pages_with(quote)) == 1:
            page, verified = others[0], True  # noqa: PLW2901 - the model named the wrong page
        found.setdefault((page, plain(quote)), Citation(page, quote, verified, relevance))
    return list(found.values())


def plain(text: str) -> str:
    """Normalise a text for comparison: no Markdown, single spaces, straight quotation marks."""
    return " ".join(_MARKS.sub("", unicodedata.normalize("NFKC", text)).translate(_QUOTE_MARKS).split())
