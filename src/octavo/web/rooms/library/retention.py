"""Settings page for retention: how long collections keep their documents, and the periods of this installation."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Form, Request, Response

from octavo.library import collections
from octavo.web.context.callers import WriteCaller
from octavo.web.context.services import Services, ServicesOf
from octavo.web.rooms.library.collections import MOST_DAYS, CollectionEdit
from octavo.web.shell.forms import read_form
from octavo.web.shell.frame import Frame
from octavo.web.shell.settings import SettingsFrame, show
from octavo.web.shell.templates import back_to

router = APIRouter(include_in_schema=False, prefix="/settings/retention")
WRONG = 422
SENTENCES = {"keep_days": f"Enter a number of days from 1 to {MOST_DAYS:,}, or leave it empty."}


@router.get("")
async def retention_page(request: Request, services: ServicesOf, frame: SettingsFrame, said: str = "") -> Response:
    return await _show(request, services, frame, said=said)


@router.post("/{collection}")
async def save(
    request: Request,
    services: ServicesOf,
    caller: WriteCaller,
    frame: SettingsFrame,
    collection: UUID,
    days: Annotated[str, Form(max_length=20)] = "",
) -> Response:
    """Set how long a collection keeps its documents; an empty field keeps them forever."""
    text = days.strip()
    given = {"keep_days": int(text) if text.isascii() and text.isdecimal() else text or None}
    wanted, wrong = read_form(CollectionEdit, given, SENTENCES)
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
