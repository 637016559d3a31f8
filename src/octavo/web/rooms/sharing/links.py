"""The API for shares, and the settings page that lists, creates and revokes links to documents and collections."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Self
from uuid import UUID

from fastapi import APIRouter, Form, Request, Response
from pydantic import BaseModel, ConfigDict, Field, model_validator

from octavo.core.errors import NotAllowed, NotFound
from octavo.core.http import Page
from octavo.core.texts import Texts
from octavo.library import shares
from octavo.library.collections import list_collections
from octavo.library.documents import find_documents
from octavo.library.shares import DEFAULT_DAYS, MOST_DAYS
from octavo.owners import Caller
from octavo.records.account import NewShare, Share
from octavo.web.context.callers import KnownCaller
from octavo.web.context.idempotency import Idempotency, IdempotencyOf
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.parameters import WHOLE, problems
from octavo.web.shell.forms import read_form, read_id
from octavo.web.shell.frame import Frame, back_to
from octavo.web.shell.settings import SettingsFrame, show

router = APIRouter(prefix="/api/v1/shares", tags=["documents"])


class NewShareRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    document_id: UUID | None = None
    collection_id: UUID | None = None
    expires_in_days: Annotated[int, Field(ge=1, le=MOST_DAYS), WHOLE] = DEFAULT_DAYS
    sign_in: bool = False

    @model_validator(mode="after")
    def _one_thing(self) -> Self:
        if (self.document_id is None) == (self.collection_id is None):
            raise ValueError("name either a document_id or a collection_id")
        return self


@router.get("", responses=problems(401, 403))
async def list_shares(services: ServicesOf, caller: KnownCaller) -> Page[Share]:
    """List the links that share documents and collections of the current account, newest first."""
    async with services.database.connection() as connection:
        return Page(await shares.list_shares(connection, caller), None)


@router.post("", status_code=201, responses=problems(400, 401, 403, 404, 422))
async def add_share(
    request: Request, services: ServicesOf, caller: KnownCaller, wanted: NewShareRequest, idempotency: IdempotencyOf
) -> NewShare:
    """Create a link that lets others read a document or a collection. The link is returned only in this response.

    If `sign_in` is true, only people with an account on this installation can open the link.
    """
    return await make_share(request, services, caller, wanted, idempotency)


async def make_share(
    request: Request,
    services: Services,
    caller: Caller,
    wanted: NewShareRequest,
    idempotency: Idempotency | None = None,
) -> NewShare:
    async with services.database.transaction() as connection:
        made, token = await shares.share(
            connection,
            caller,
            document=wanted.document_id,
            collection=wanted.collection_id,
            days=wanted.expires_in_days,
            sign_in=wanted.sign_in,
        )
        base = services.settings.public_url or str(request.base_url).rstrip("/")
        new = NewShare(**asdict(made), link=f"{base}/shared/{token}")
        return await idempotency.keep(connection, new) if idempotency else new


@router.delete("/{share}", status_code=204, responses=problems(401, 403, 404, 422))
async def revoke_share(services: ServicesOf, caller: KnownCaller, share: UUID) -> None:
    """Revoke a link. It stops working immediately."""
    async with services.database.transaction() as connection:
        await shares.revoke_share(connection, caller, share)


pages_router = APIRouter(include_in_schema=False, prefix="/settings/shares")
FormText = Annotated[str, Form(max_length=100)]
LASTS = Texts({"1": "Tomorrow", "7": "In a week", "30": "In 30 days", "365": "In a year"})
READERS = Texts({"": "Anybody with the link", "yes": "People with an account"})
WRONG = Texts({"expires_in_days": "Choose when the link expires.", "collection_id": "Choose a collection."})


@pages_router.get("")
async def list_all(
    request: Request, services: ServicesOf, frame: SettingsFrame, document: str = "", said: str = ""
) -> Response:
    """List the links. If a `document` is given, the page also shows the form for sharing it."""
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


@pages_router.post("")
async def share(
    request: Request,
    services: ServicesOf,
    frame: SettingsFrame,
    document: FormText = "",
    collection: FormText = "",
    days: FormText = "7",
    sign_in: FormText = "",
) -> Response:
    """Create a link. The page is rendered without a redirect, because the link is shown only once."""
    given = {"expires_in_days": days, "sign_in": bool(sign_in)}
    given |= {"document_id": document} if document else {"collection_id": collection or None}
    wanted, wrong = read_form(NewShareRequest, given, WRONG)
    if wanted is None:
        return await _show(request, services, frame, 422, document=document, wrong=wrong)
    made = await make_share(request, services, frame.caller, wanted)
    return await _show(request, services, frame, 201, document=document, made=made)


@pages_router.post("/{share}/revoke")
async def revoke(services: ServicesOf, caller: KnownCaller, share: UUID) -> Response:
    async with services.database.transaction() as connection:
        await shares.revoke_share(connection, caller, share)
    return back_to("/settings/shares?said=share_revoked")
