"""The API for collections, tags and saved views, and the settings page for the retention time of collections."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Form, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from octavo.core.formatting import format_number
from octavo.core.http import Page
from octavo.core.texts import gettext as _
from octavo.library import collections, facts
from octavo.library.collections import Collection, Tag
from octavo.library.documents import Sort
from octavo.records.documents import SavedView
from octavo.web.context.callers import ReadCaller, WriteCaller
from octavo.web.context.idempotency import IdempotencyOf
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.parameters import WHOLE, problems
from octavo.web.rooms.library.api import FilterRequest
from octavo.web.shell.forms import read_form
from octavo.web.shell.frame import Frame, back_to
from octavo.web.shell.settings import SettingsFrame, show

router = APIRouter(prefix="/api/v1", tags=["documents"])
MOST_DAYS = 36_500


class CollectionName(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]


@dataclass(frozen=True, slots=True)
class MadeCollection(Collection):
    """The created or existing collection.

    For clients that expect a list, `items` repeats the collection, and `next_cursor` is null.
    """

    items: list[Collection]
    next_cursor: str | None = None


class CollectionEdit(BaseModel):
    """Changes to a collection. Only the fields that are sent are changed.

    If `keep_days` is null, documents are kept forever.
    """

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")] | None = None
    keep_days: Annotated[int, Field(ge=1, le=MOST_DAYS), WHOLE] | None = None


@router.get("/collections", responses=problems(401))
async def list_collections(services: ServicesOf, caller: ReadCaller) -> Page[Collection]:
    """List your collections by name, with the number of documents in each."""
    async with services.database.connection() as connection:
        return Page(await collections.list_collections(connection, caller.owner_id), None)


@router.post("/collections", status_code=201, responses=problems(400, 401, 403, 422))
async def make_collection(
    services: ServicesOf, caller: WriteCaller, wanted: CollectionName, idempotency: IdempotencyOf
) -> MadeCollection:
    """Return the collection with this name. It is created if it does not exist."""
    async with services.database.transaction() as connection:
        made = await collections.ensure_collection(connection, caller.owner_id, wanted.name)
        all_of_them = await collections.list_collections(connection, caller.owner_id)
        (found,) = [one for one in all_of_them if one.id == made]
        return await idempotency.keep(connection, MadeCollection(**asdict(found), items=[found]))


@router.patch("/collections/{collection}", status_code=204, responses=problems(400, 401, 403, 404, 409, 422))
async def edit_collection(services: ServicesOf, caller: WriteCaller, collection: UUID, wanted: CollectionEdit) -> None:
    """Rename a collection, or set how many days its documents are kept after their last change."""
    async with services.database.transaction() as connection:
        if wanted.name is not None:
            await collections.rename_collection(connection, caller.owner_id, collection, wanted.name)
        if "keep_days" in wanted.model_fields_set:
            await collections.keep_collection(connection, caller.owner_id, collection, wanted.keep_days)


@router.delete("/collections/{collection}", status_code=204, responses=problems(401, 403, 404, 422))
async def delete_collection(services: ServicesOf, caller: WriteCaller, collection: UUID) -> None:
    """Delete a collection. Its documents are kept."""
    async with services.database.transaction() as connection:
        await collections.delete_collection(connection, caller.owner_id, collection)


@router.get("/tags", responses=problems(401))
async def list_tags(services: ServicesOf, caller: ReadCaller) -> Page[Tag]:
    """List your tags, most used first."""
    async with services.database.connection() as connection:
        return Page(await collections.list_tags(connection, caller.owner_id), None)


class ViewRequest(BaseModel):
    """A view to save: filters and a sort order of the library."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
    filter: FilterRequest = FilterRequest()
    sort: Sort = "newest"


@router.get("/views", responses=problems(401))
async def views(services: ServicesOf, caller: ReadCaller) -> Page[SavedView]:
    """List your saved views by name."""
    async with services.database.connection() as connection:
        return Page(await facts.list_views(connection, caller.owner_id), None)


@router.post("/views", status_code=201, responses=problems(400, 401, 403, 422))
async def save_view(
    services: ServicesOf, caller: WriteCaller, wanted: ViewRequest, idempotency: IdempotencyOf
) -> SavedView:
    """Save filters and a sort order of the library. A view with the same name is replaced."""
    wanted.filter.as_filters()
    async with services.database.transaction() as connection:
        saved = await facts.save_view(connection, caller.owner_id, wanted.name, wanted.filter.as_json(), wanted.sort)
        return await idempotency.keep(connection, saved)


@router.delete("/views/{view}", status_code=204, responses=problems(401, 403, 404, 422))
async def delete_view(services: ServicesOf, caller: WriteCaller, view: UUID) -> None:
    """Delete a saved view."""
    async with services.database.transaction() as connection:
        await facts.delete_view(connection, caller.owner_id, view)


pages = APIRouter(include_in_schema=False, prefix="/settings/retention")
WRONG = 422


def _sentences() -> dict[str, str]:
    most = format_number(MOST_DAYS)
    return {"keep_days": _("Enter a number of days from 1 to %(most)s, or leave it empty.", most=most)}


@pages.get("")
async def retention_page(request: Request, services: ServicesOf, frame: SettingsFrame, said: str = "") -> Response:
    return await _show(request, services, frame, said=said)


@pages.post("/{collection}")
async def save(
    request: Request,
    services: ServicesOf,
    caller: WriteCaller,
    frame: SettingsFrame,
    collection: UUID,
    days: Annotated[str, Form(max_length=20)] = "",
) -> Response:
    """Set how many days a collection keeps its documents. If the field is empty, they are kept forever."""
    text = days.strip()
    given = {"keep_days": int(text) if text.isascii() and text.isdecimal() else text or None}
    wanted, wrong = read_form(CollectionEdit, given, _sentences())
    if wanted is None:
        values = {"wrong": wrong["keep_days"], "wrong_at": collection, "written": days}
        return await _show(request, services, frame, WRONG, **values)
    async with services.database.transaction() as connection:
        await collections.keep_collection(connection, caller.owner_id, collection, wanted.keep_days)
    return back_to("/settings/retention?said=retention")


async def _show(request: Request, services: Services, frame: Frame, status: int = 200, **values: Any) -> Response:  # noqa: ANN401
    async with services.database.connection() as connection:
        found = await collections.list_collections(connection, frame.caller.owner_id)
    return show(request, "retention", frame, status, collections=found, settings=services.settings, **values)
