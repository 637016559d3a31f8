"""The settings page that lists, creates and revokes links to documents and collections."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Form, Request, Response

from octavo.core.errors import NotAllowed, NotFound
from octavo.core.texts import Texts
from octavo.library import shares
from octavo.library.collections import list_collections
from octavo.library.documents import find_documents
from octavo.web.context.callers import KnownCaller
from octavo.web.context.services import Services, ServicesOf
from octavo.web.rooms.sharing.api import NewShareRequest, make_share
from octavo.web.shell.forms import read_form, read_id
from octavo.web.shell.frame import Frame
from octavo.web.shell.settings import SettingsFrame, show
from octavo.web.shell.templates import back_to

router = APIRouter(include_in_schema=False, prefix="/settings/shares")
Field = Annotated[str, Form(max_length=100)]
LASTS = Texts({"1": "Tomorrow", "7": "In a week", "30": "In 30 days", "365": "In a year"})
READERS = Texts({"": "Anybody with the link", "yes": "People with an account"})
WRONG = Texts({"expires_in_days": "Choose when the link expires.", "collection_id": "Choose a collection."})


@router.get("")
async def list_all(
    request: Request, services: ServicesOf, frame: SettingsFrame, document: str = "", said: str = ""
) -> Response:
    """List the links. With a `document`, the page also shows the form for sharing it."""
    return await _show(request, services, frame, document=document, said=said)


async def _show(
    request: Request,
    services: Services,
    frame: Frame,
    status: int = 200,
    *,
    document: str = "",
    **values: Any,  # noqa: ANN401
) -> Response:
    caller = frame.caller
    if caller.is_anonymous or not caller.may_write:
        raise NotAllowed
    async with services.database.connection() as connection:
        found = await find_documents(connection, caller.owner_id, [read_id(document)]) if document else []
        if document and not found:
            raise NotFound
        more = {
            "shares": await shares.list_shares(connection, caller),
            "collections": {str(one.id): one.name for one in await list_collections(connection, caller.owner_id)},
            "document": found[0] if found else None,
        }
    return show(request, "shares", frame, status, **more, lasts=LASTS, readers=READERS, **values)


@router.post("")
async def share(
    request: Request,
    services: ServicesOf,
    frame: SettingsFrame,
    document: Field = "",
    collection: Field = "",
    days: Field = "7",
    sign_in: Field = "",
) -> Response:
    """Create a link. The page is rendered without a redirect, because the link is shown only once."""
    given = {"expires_in_days": days, "sign_in": bool(sign_in)}
    given |= {"document_id": document} if document else {"collection_id": collection or None}
    wanted, wrong = read_form(NewShareRequest, given, WRONG)
    if wanted is None:
        return await _show(request, services, frame, 422, document=document, wrong=wrong)
    made = await make_share(request, services, frame.caller, wanted)
    return await _show(request, services, frame, 201, document=document, made=made)


@router.post("/{share}/revoke")
async def revoke(services: ServicesOf, caller: KnownCaller, share: UUID) -> Response:
    async with services.database.transaction() as connection:
        await shares.revoke_share(connection, caller, share)
    return back_to("/settings/shares?said=share_revoked")
