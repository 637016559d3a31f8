"""The search page: matching passages grouped by document, with highlighted words.

Two passages can be opened side by side: the `beside` query parameter names the first passage, and each hit then has a
link that opens it next to that passage.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import AfterValidator, BaseModel, Field

from octavo.core.errors import NotFound, OctavoError
from octavo.core.texts import Texts, mark, primary_language
from octavo.core.texts import gettext as _
from octavo.core.types import first_day
from octavo.database import Connection, fetch_rows, load_queries
from octavo.describe.embedding import embedding_progress
from octavo.library.collections import list_collections, list_tags
from octavo.library.documents import show_document
from octavo.library.fields import list_fields
from octavo.library.highlights import find_highlights
from octavo.records.documents import Document
from octavo.records.search import Why
from octavo.search import Filters, Mode, SearchHit, SearchPage, find_page
from octavo.web.context.services import Services, ServicesOf
from octavo.web.shell.document_rows import KINDS
from octavo.web.shell.frame import Frame, FrameFor, render

router = APIRouter(include_in_schema=False)
SearchFrame = Annotated[Frame, Depends(FrameFor("search"))]
QUERIES = load_queries("search")
HITS, OF_ONE, MOST_TAGS, MOST_MARKED = 30, 4, 40, 3
_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_CHOSEN = re.compile(f"({_UUID}):({_UUID})")
REASONS: Mapping[Why, str] = Texts(
    {
        "words": "Matches by words",
        "meaning": "Matches by meaning",
        "both": "Matches by words and meaning",
        "title": "Matches the title",
        "tag": "Matches the tag",
        "filename": "Matches the file name",
    }
)
NO_TEXT = mark("This document has no text.")
MODES: Mapping[Mode, str] = Texts({"hybrid": "Words and meaning", "text": "Words", "semantic": "Meaning"})
Text = Annotated[str, Field(max_length=500)]
Language = Annotated[Text, AfterValidator(lambda tag: primary_language(tag) or "")]


class SearchQuery(BaseModel):
    """Query parameters of the search page. Empty ones are ignored, so that plain forms can send all of them."""

    # Any text is accepted; for an invalid search the page shows a message.
    q: str = ""
    mode: Mode | Literal[""] = ""
    tag: Text = ""
    collection: Text = ""
    kind: Text = ""
    language: Language = ""
    since: Text = ""
    until: Text = ""
    field: Text = ""
    versions: Literal["", "1"] = ""
    beside: Text = ""
    cursor: Text = ""

    @property
    def narrowed(self) -> bool:
        return any((self.tag, self.collection, self.kind, self.language, self.since, self.until, self.field))

    def address(self, **changed: str) -> str:
        """Return the path of this search with some query parameters changed, such as the page or a corrected query."""
        return "/search?" + urlencode({name: value for name, value in (self.model_dump() | changed).items() if value})

    def filters(self) -> Filters:
        return Filters(
            tags=[self.tag] if self.tag else (),
            collection=self.collection or None,
            kinds=[self.kind] if self.kind else (),
            language=self.language or None,
            since=first_day(self.since),
            until=first_day(self.until),
            versions=bool(self.versions),
            field=self.field or None,
        )


@dataclass(frozen=True, slots=True)
class SnippetPart:
    """A part of a snippet. `found` is true if the part matches the query and is highlighted."""

    text: str
    found: bool


@dataclass(frozen=True, slots=True)
class HitPlace:
    """A matching chunk and the path that opens it. `matched` is the tag or file name that matched, if any."""

    address: str
    page: int | None
    heading: str
    parts: list[SnippetPart]
    reason: str
    matched: str | None
    moment: str | None = None
    seconds: int = 0
    document_id: UUID | None = None
    chunk_id: UUID | None = None

    @property
    def key(self) -> str:
        """The value of the `beside` query parameter that selects this passage."""
        return f"{self.document_id}:{self.chunk_id}"


@dataclass(frozen=True, slots=True)
class ChosenPassage:
    """The passage that is shown on the left of the split view. The hit that is opened next is shown on the right."""

    key: str
    document: Document
    chunk_id: str

    def address(self, place: HitPlace) -> str:
        """Return the path of the split view with this passage and a hit."""
        return f"/documents/{self.document.id}/beside/{place.document_id}?left={self.chunk_id}&right={place.chunk_id}"


@dataclass(frozen=True, slots=True)
class Group:
    """A document with its matching chunks, best first."""

    document_id: UUID
    title: str
    source_type: str
    places: list[HitPlace]


@router.get("/search")
async def search_page(
    request: Request, services: ServicesOf, frame: SearchFrame, asked: Annotated[SearchQuery, Query()]
) -> Response:
    """Show the search page. Query, mode and filters are query parameters."""
    owner = frame.caller.owner_id
    found, wrong = await _find(services, owner, asked) if asked.q.strip() else (None, None)
    async with services.database.connection() as connection:
        choices = await _choices(connection, owner)
        chosen = await _chosen(connection, owner, asked.beside) if asked.beside else None
        marked = await find_highlights(connection, owner, asked.q, limit=MOST_MARKED) if found else None
        renewal = await embedding_progress(connection, owner, services.settings)
    return render(
        request,
        "search.html",
        frame,
        200 if wrong is None else 422,
        source_kinds=KINDS,
        asked=asked,
        modes=MODES,
        found=found,
        wrong=wrong,
        more=asked.address(cursor=found.next_cursor) if found and found.next_cursor else None,
        meant=asked.address(q=found.suggestion) if found and found.suggestion else None,
        groups=group(found.items) if found else [],
        chosen=chosen,
        marked=marked.items if marked and not asked.cursor else [],
        renewal=renewal if renewal.done < renewal.documents else None,
        **choices,
    )


async def _chosen(connection: Connection, owner: UUID, key: str) -> ChosenPassage | None:
    """Return the passage that was chosen for the split view. Returns None if there is no such passage."""
    parts = _CHOSEN.fullmatch(key)
    try:
        return ChosenPassage(key, await show_document(connection, owner, UUID(parts[1])), parts[2]) if parts else None
    except NotFound:
        return None


async def _find(services: Services, owner: UUID, asked: SearchQuery) -> tuple[SearchPage | None, str | None]:
    """Return the results and None. If the search failed, return None and a message that explains why."""
    try:
        mode = asked.mode or "hybrid"
        return await find_page(
            services.database,
            services.models,
            owner,
            asked.q,
            cursor=asked.cursor or None,
            mode=mode,
            limit=HITS,
            filters=asked.filters(),
            most_of_one=OF_ONE,
        ), None
    except OctavoError as error:
        return None, error.line


async def _choices(connection: Connection, owner: UUID) -> dict[str, object]:
    """Return the filters to choose from: only values that exist in the library."""
    kinds = await fetch_rows(connection, QUERIES.kinds, {"owner": owner})
    return {
        "collections": await list_collections(connection, owner),
        "has_fields": bool(await list_fields(connection, owner)),
        "all_tags": (await list_tags(connection, owner))[:MOST_TAGS],
        "kinds": sorted({row["source_type"] for row in kinds if row["source_type"]}),
        "languages": sorted({row["language"] for row in kinds if row["language"]}),
    }


def group(hits: Iterable[SearchHit]) -> list[Group]:
    """Group hits by document. Documents are sorted by their best hit."""
    groups: dict[UUID, Group] = {}
    for hit in hits:
        one = groups.setdefault(hit.document_id, Group(hit.document_id, hit.title, hit.source_type, []))
        place = f"?c={hit.chunk_id}#c-{hit.chunk_id}" if hit.chunk_id else ""
        heading = " / ".join(part for part in hit.heading_path if part != hit.title)
        matched = hit.matched if hit.why in {"tag", "filename"} else None
        snippet = _(NO_TEXT) if hit.chunk_id is None and hit.snippet == hit.title else hit.snippet
        parts = list(cut(snippet, hit.marks if snippet is hit.snippet else []))
        address = f"/documents/{hit.document_id}{place}"
        one.places.append(
            HitPlace(
                address,
                hit.page,
                heading,
                parts,
                REASONS[hit.why],
                matched,
                hit.url,
                int(hit.seconds or 0),
                hit.document_id,
                hit.chunk_id,
            )
        )
    return list(groups.values())


def cut(text: str, marks: Iterable[tuple[int, int]]) -> Iterable[SnippetPart]:
    """Split a snippet into matched and other parts, so that the template can highlight matches and escape all text."""
    end = 0
    for start, stop in marks:
        if start > end:
            yield SnippetPart(text[end:start], found=False)
        yield SnippetPart(text[start:stop], found=True)
        end = stop
    if end < len(text):
        yield SnippetPart(text[end:], found=False)
