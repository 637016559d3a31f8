"""The API for shares."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Self
from uuid import UUID

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, model_validator

from octavo.core.pagination import Page
from octavo.library import shares
from octavo.library.shares import DEFAULT_DAYS, MOST_DAYS
from octavo.owners import Caller
from octavo.records.account import NewShare, Share
from octavo.web.context.callers import KnownCaller
from octavo.web.context.idempotency import Idempotency, IdempotencyOf
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.parameters import WHOLE, problems

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

    With `sign_in`, only people with an account of this installation can open the link.
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
