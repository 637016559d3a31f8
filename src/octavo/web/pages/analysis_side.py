"""What is opened beside an analysis: one answer of the grid, or the page of a citation with a box around the quote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from octavo.analyse import views
from octavo.analyse.views import CitationView, ItemView, ResultView
from octavo.core.errors import NotFound, OctavoError
from octavo.database import Connection
from octavo.extract.contract import FoundQuote
from octavo.library.documents import show_document
from octavo.library.pictures import is_pictured
from octavo.web.parts import Parts


@dataclass(frozen=True, slots=True)
class Opened:
    """What the address names; what is not there is left out. `cited` counts from 0."""

    page: int | None = None
    item: UUID | None = None
    prompt: UUID | None = None
    cited: int | None = None


@dataclass(frozen=True, slots=True)
class Side:
    """`found` is where the quote stands on the page; None where nobody can tell."""

    item: ItemView | None
    page: int | None
    citation: CitationView | None
    found: FoundQuote | None
    has_picture: bool

    @property
    def height(self) -> int:
        """Of a picture that is 800 across; the usual shape of paper where nothing else is known."""
        return round(800 * self.found.height / self.found.width) if self.found else 1035

    @property
    def words(self) -> str | None:
        """What is said where there is no box."""
        if not self.citation or (self.found and self.found.boxes):
            return None
        if not self.citation.verified:
            return "Unverified: these words were not found on this page."
        return "The words are in the text of this page, but where they stand on the picture is not known."


async def open_side(
    parts: Parts, owner: UUID, analysis: UUID, document: UUID, results: Sequence[ResultView], opened: Opened
) -> Side | None:
    async with parts.database.connection() as connection:
        item = await _item(connection, owner, analysis, opened.item) if opened.item else None
        citation = _citation(item, results, opened)
        page = citation.page if citation else opened.page
        if page is None:
            return Side(item, None, None, None, has_picture=False) if item else None
        has_picture = is_pictured(await show_document(connection, owner, document))
    found = await _find(parts, owner, document, citation) if citation and has_picture else None
    return Side(item, page, citation, found, has_picture)


async def _item(connection: Connection, owner: UUID, analysis: UUID, item: UUID) -> ItemView | None:
    try:
        return await views.show_item(connection, owner, analysis, item)
    except NotFound:
        return None


def _citation(item: ItemView | None, results: Sequence[ResultView], opened: Opened) -> CitationView | None:
    if opened.cited is None:
        return None
    result = next((one for one in results if one.prompt_id == opened.prompt), None)
    cited = item.citations if item else result.citations if result else []
    return cited[opened.cited] if opened.cited < len(cited) else None


async def _find(parts: Parts, owner: UUID, document: UUID, citation: CitationView) -> FoundQuote | None:
    """Looked for only where it is known to stand; a file that cannot be read any more keeps nobody from the page."""
    if not citation.verified:
        return None
    try:
        return await parts.pictures.find_quote(owner, document, citation.page, citation.quote)
    except OctavoError:
        return None
