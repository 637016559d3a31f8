"""The library page: all documents with their status, the trash, and HTML fragments for live updates."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from decimal import Decimal
from typing import Annotated, Any, Literal
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter, Form, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, BeforeValidator, Field

from octavo.core.errors import NotFound
from octavo.core.formatting import format_bytes, read_decimal, write_decimal
from octavo.core.settings import Settings
from octavo.core.texts import Texts
from octavo.core.texts import gettext as _
from octavo.core.types import first_day
from octavo.database import Connection, fetch_rows, load_queries
from octavo.describe.embedding import embedding_model
from octavo.intake.upload_rows import list_uploads
from octavo.intake.uploads import MOST_REFUSED
from octavo.library.collections import list_collections, list_tags
from octavo.library.documents import Filters, Sort, Tab, count_documents, find_documents, list_documents
from octavo.library.facts import delete_view, list_facets, list_views, save_view
from octavo.records.search import SimilarTag
from octavo.search.related import close_tags
from octavo.web.context.callers import ReadCaller, WriteCaller
from octavo.web.context.services import ServicesOf
from octavo.web.rooms.library.api import LANGUAGE, MOST_BYTES, FilterRequest
from octavo.web.shell.document_rows import kind_label, make_rows
from octavo.web.shell.frame import LibraryFrame, back_to, load_frame, render

router = APIRouter(include_in_schema=False)
QUERIES = load_queries("pages")
ROWS = 50
MOST_FRAGMENTS = 100
MOST_SIMILAR = 6
TABS = Texts(
    {
        "": "All",
        "working": "Working",
        "needs_you": "Needs you",
        "failed": "Failed",
        "stored_only": "Stored only",
    }
)
SORTS: Mapping[Sort, str] = Texts(
    {
        "newest": "Newest first",
        "oldest": "Oldest first",
        "title": "By title",
        "-date": "Latest date first",
        "date": "Earliest date first",
        "sender": "By sender",
        "kind": "By kind",
        "-amount": "Largest amount first",
        "amount": "Smallest amount first",
        "language": "By language",
        "-size": "Largest file first",
        "size": "Smallest file first",
        "collection": "By collection",
        "state": "By state",
    }
)
MOST_AMOUNT = 10**15
FACTS = ("kind", "sender", "after", "before", "amount_min", "amount_max", "language", "field", "size_min", "size_max")
VIEWS = {"grid": "cards", "list": ""}
UNITS = {"": 1, "b": 1, "bytes": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30}
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,3})?) ?(|b|bytes|kb|mb|gb)", re.IGNORECASE)
Text = Annotated[str, Field(max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]


class LibraryQuery(BaseModel):
    """Query parameters of the library page. Empty ones are ignored, so that plain forms can send all of them."""

    status: Tab | Literal[""] = ""
    tag: Text = ""
    collection: Text = ""
    q: Text = ""
    kind: Text = ""
    sender: Text = ""
    after: Text = ""
    before: Text = ""
    amount_min: Text = ""
    amount_max: Text = ""
    language: Text = ""
    field: Text = ""
    size_min: Text = ""
    size_max: Text = ""
    import_id: Text = ""
    sort: Sort = "newest"
    view: Annotated[Literal["", "cards"], BeforeValidator(lambda view: VIEWS.get(view, view))] = ""
    cursor: str | None = Field(default=None, max_length=3000)

    @property
    def filters(self) -> Filters:
        """The filters of the query. Invalid languages, dates, amounts, sizes and import ids are ignored."""
        texts: dict[str, Any] = {
            name: getattr(self, name) or None for name in ("q", "tag", "collection", "kind", "sender", "field")
        }
        return Filters(
            **texts,
            language=self.language if re.fullmatch(LANGUAGE, self.language) else None,
            tab=self.status or None,
            after=first_day(self.after),
            before=first_day(self.before),
            amount_min=read_amount(self.amount_min),
            amount_max=read_amount(self.amount_max),
            size_min=read_size(self.size_min),
            size_max=read_size(self.size_max),
            import_id=read_import(self.import_id),
        )

    @property
    def fields(self) -> list[tuple[str, str]]:
        """The filters as form fields, for forms that act on all matching documents."""
        given = {
            name: value for name, value in asdict(self.filters).items() if value is not None and value is not False
        }
        return [("status" if name == "tab" else name, str(value)) for name, value in given.items()]

    def as_request(self) -> FilterRequest:
        """Return the filters in the format of the API."""
        return FilterRequest.model_validate(
            {"state" if name == "status" else name: value for name, value in self.fields}
        )

    @property
    def by_facts(self) -> list[str]:
        """The values of all active filters on facts, size and import, as readable text."""
        sizes = {"size_min": f"> {self.shown_size('size_min')}", "size_max": f"< {self.shown_size('size_max')}"}
        one_import = [_("One import")] if self.filters.import_id else []
        facts = [sizes.get(name, value.replace("_", " ")) for name in FACTS if (value := str(getattr(self, name)))]
        return [*one_import, *facts]

    def shown_size(self, name: Literal["size_min", "size_max"]) -> str:
        """Format a size with a unit, such as 5 MB. If that would not be exact, return the size as it was entered."""
        text: str = getattr(self, name)
        size = read_size(text)
        written = format_bytes(size) if size is not None else text
        return written if read_size(written) == size else text

    @property
    def narrowed(self) -> bool:
        return self.filters != Filters()

    def address(self, **changed: str) -> str:
        """Return the path of this page with some query parameters changed.

        It leads to the first page of results, unless `changed` contains a cursor.
        """
        wanted = self.model_dump(exclude={"cursor"}, exclude_defaults=True) | changed
        given = {name: value for name, value in wanted.items() if value and (name, value) != ("sort", "newest")}
        return f"/library?{urlencode(given)}" if given else "/library"


class ViewForm(LibraryQuery):
    """The form that saves a view: its name, and the query parameters of the page."""

    name: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]


def read_size(text: str) -> int | None:
    """Parse a size such as 5 MB, 300 KB or 1024, and return it in bytes. Returns None if the text is not a size."""
    found = _SIZE.fullmatch(text.strip())
    return min(int(float(found[1]) * UNITS[found[2].lower()]), MOST_BYTES) if found else None


def read_import(text: str) -> UUID | None:
    return UUID(text) if re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", text) else None


def read_amount(text: str) -> Decimal | None:
    number = read_decimal(text.strip())
    return number if number is not None and abs(number) < MOST_AMOUNT else None


@router.get("/views/{view}")
async def open_view(services: ServicesOf, caller: ReadCaller, view: UUID) -> Response:
    """Redirect to the library page with the filters and the sort order of a saved view."""
    async with services.database.connection() as connection:
        saved = next((one for one in await list_views(connection, caller.owner_id) if one.id == view), None)
    if saved is None:
        raise NotFound
    given = {name: str(value) for name, value in saved.filter.items()}
    # Amounts are read in the format of the page's language.
    given |= {name: write_decimal(float(given[name])) for name in ("amount_min", "amount_max") if given.get(name)}
    given["status"] = given.pop("state", given.get("status", ""))
    return back_to(
        f"/library?{urlencode({name: value for name, value in given.items() if value} | {'sort': saved.sort})}"
    )


@router.post("/views")
async def save_current_view(services: ServicesOf, caller: WriteCaller, asked: Annotated[ViewForm, Form()]) -> Response:
    """Save the filters and the sort order of the page under a name."""
    filters = asked.as_request().as_json()
    async with services.database.transaction() as connection:
        saved = await save_view(connection, caller.owner_id, asked.name, filters, asked.sort)
    return back_to(f"/views/{saved.id}")


@router.post("/views/{view}/delete")
async def remove_view(services: ServicesOf, caller: WriteCaller, view: UUID) -> Response:
    async with services.database.transaction() as connection:
        await delete_view(connection, caller.owner_id, view)
    return back_to("/library")


@router.get("/")
async def home(caller: ReadCaller) -> Response:
    del caller  # a dependency: a first visit gets its cookie here
    return RedirectResponse("/library", 303)


@router.get("/library")
async def library(
    request: Request,
    services: ServicesOf,
    frame: LibraryFrame,
    asked: Annotated[LibraryQuery, Query()],
) -> Response:
    """Show the list of documents. Filters, order and view are query parameters."""
    owner = frame.caller.owner_id
    async with services.database.connection() as connection:
        page = await list_documents(connection, owner, asked.filters, sort=asked.sort, cursor=asked.cursor, limit=ROWS)
        rows = await make_rows(connection, owner, page.items, frame.now, cards=bool(asked.view))
        matching = await count_documents(connection, owner, asked.filters) if asked.narrowed else None
        counts = (await fetch_rows(connection, QUERIES.tabs, {"owner": owner}))[0]
        collections = await list_collections(connection, owner)
        tags = await list_tags(connection, owner)
        facets = await list_facets(connection, owner)
        views = await list_views(connection, owner)
        similar = await _similar_tags(connection, owner, asked.tag, services.settings) if asked.tag else []
    return render(
        request,
        "library.html",
        frame,
        kind_label=kind_label,
        rows=rows,
        counts=counts,
        matching=matching,
        filter=asked.as_request().model_dump_json(exclude_defaults=True),
        collections=collections,
        all_tags=tags,
        similar_tags=similar,
        tabs=TABS,
        sorts=SORTS,
        asked=asked,
        facets=facets,
        views=views,
        cards=bool(asked.view),
        next_address=asked.address(cursor=page.next_cursor) if page.next_cursor else None,
    )


@router.get("/trash")
async def trash(
    request: Request,
    services: ServicesOf,
    frame: LibraryFrame,
    cursor: Annotated[str | None, Query(max_length=1500)] = None,
) -> Response:
    owner = frame.caller.owner_id
    async with services.database.connection() as connection:
        page = await list_documents(connection, owner, Filters(trashed=True), cursor=cursor, limit=ROWS)
        rows = await make_rows(connection, owner, page.items, frame.now)
    more = f"/trash?{urlencode({'cursor': page.next_cursor})}" if page.next_cursor else None
    return render(request, "trash.html", frame, rows=rows, next_address=more, days=services.settings.trash_days)


async def _similar_tags(connection: Connection, owner: UUID, tag: str, settings: Settings) -> list[SimilarTag]:
    return await close_tags(connection, owner, [tag], embedding_model(settings), MOST_SIMILAR)


@router.get("/uploads")
async def refused_uploads(
    request: Request,
    services: ServicesOf,
    frame: LibraryFrame,
    cursor: Annotated[str | None, Query(max_length=1500)] = None,
) -> Response:
    async with services.database.connection() as connection:
        page = await list_uploads(connection, frame.caller.owner_id, "rejected", cursor=cursor, limit=ROWS)
    more = f"/uploads?{urlencode({'cursor': page.next_cursor})}" if page.next_cursor else None
    return render(request, "uploads.html", frame, uploads=page.items, next_address=more, most=MOST_REFUSED)


# Fragments for scripts ---------------------------------------------------------------------------------------------


@router.get("/fragments/rows")
async def rows(
    request: Request,
    services: ServicesOf,
    caller: ReadCaller,
    id: Annotated[list[UUID], Query(max_length=MOST_FRAGMENTS)],  # noqa: A002 - the name of the query parameter
    view: str = "",
) -> Response:
    """Return the rows of these documents, without the rest of the page. Documents that no longer exist are left out."""
    async with services.database.connection() as connection:
        frame = await load_frame(connection, caller, "library", services.settings)
        found = await find_documents(connection, caller.owner_id, id)
        made = await make_rows(connection, caller.owner_id, found, frame.now, cards=view == "cards")
    return render(request, "rows.html", frame, rows=made, cards=view == "cards")


@router.get("/fragments/frame")
async def frame_pieces(request: Request, services: ServicesOf, caller: ReadCaller) -> Response:
    """Return the elements around the page content that are updated live.

    These are the list of running jobs and the counts in the navigation.
    """
    async with services.database.connection() as connection:
        frame = await load_frame(connection, caller, "library", services.settings)
        counts = (await fetch_rows(connection, QUERIES.tabs, {"owner": caller.owner_id}))[0]
    return render(request, "frame.html", frame, counts=counts)
