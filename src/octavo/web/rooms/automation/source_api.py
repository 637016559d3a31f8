"""The API for sources of documents."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from octavo.core.pagination import Page
from octavo.intake.sources import definitions as sources
from octavo.intake.sources.places import SourcePlan
from octavo.records.automation import (
    AfterAdding,
    FailedFile,
    SourceAccess,
    SourceKind,
    SourceView,
    Subfolders,
    WhenChanged,
)
from octavo.web.context.callers import AdminCaller, ReadCaller, WriteCaller
from octavo.web.context.idempotency import IdempotencyOf
from octavo.web.context.services import ServicesOf
from octavo.web.http.parameters import WHOLE, problems

router = APIRouter(prefix="/api/v1")
PLAIN = r"^[^\x00-\x1f\x7f]*$"
Label = Annotated[str, Field(min_length=1, max_length=200, pattern=PLAIN)]
Secret = Annotated[str, Field(min_length=1, max_length=4000, pattern=PLAIN)]
Address = Annotated[str, Field(min_length=1, max_length=2000, pattern=PLAIN)]
Seconds = Annotated[int, Field(ge=sources.LEAST_SECONDS, le=sources.MOST_SECONDS), WHOLE]


class OptionsRequest(BaseModel):
    """The files that a source adds, and how it handles added files. Some options apply only to some kinds of
    sources.
    """

    model_config = ConfigDict(extra="forbid")

    subfolders: Subfolders = "plain"
    after: AfterAdding = "keep"
    changed: WhenChanged = "version"
    move_to: Label | None = None
    sender: Label | None = None
    subject: Label | None = None
    attachments: StrictBool = False

    def given(self) -> dict[str, Any]:
        return self.model_dump(include=self.model_fields_set)


class SourceRequest(BaseModel):
    """A source to add.

    `path` is a folder on the server, or a URL: `imaps://host/mailbox`, `s3://bucket/prefix`, or `https://…` for WebDAV
    and feeds. For S3, the user is the access key and the password is the secret key. With `token_url` and `client_id`,
    the password is an OAuth refresh token.
    """

    model_config = ConfigDict(extra="forbid")

    kind: SourceKind
    path: Annotated[str, Field(min_length=1, max_length=4000, pattern=r"^[^\x00-\x1f\x7f]+$")]
    name: Label | None = None
    options: OptionsRequest = OptionsRequest()
    every_seconds: Seconds | None = None
    user: Label | None = None
    password: Secret | None = None
    token_url: Address | None = None
    client_id: Label | None = None
    client_secret: Secret | None = None
    endpoint: Address | None = None
    region: Label | None = None

    def as_plan(self) -> SourcePlan:
        access = SourceAccess(self.user, self.token_url, self.client_id, self.endpoint, self.region)
        options = self.options.given()
        more = (self.password, self.client_secret, self.every_seconds)
        return SourcePlan(self.kind, self.path, self.name, options, access, *more)


class SourceEdit(BaseModel):
    """Changes to a source. Fields that are not sent stay unchanged."""

    model_config = ConfigDict(extra="forbid")

    name: Label | None = None
    options: OptionsRequest | None = None
    every_seconds: Seconds | None = None
    paused: StrictBool | None = None
    password: Secret | None = None
    client_secret: Secret | None = None


@router.get("/sources", tags=["sources"], responses=problems(401))
async def list_sources(services: ServicesOf, caller: ReadCaller) -> Page[SourceView]:
    """List your sources of documents, oldest first."""
    async with services.database.connection() as connection:
        return Page(await sources.list_sources(connection, caller.owner_id), None)


@router.post("/sources", tags=["sources"], status_code=201, responses=problems(400, 401, 403, 409, 422))
async def add_source(
    services: ServicesOf, caller: AdminCaller, wanted: SourceRequest, idempotency: IdempotencyOf
) -> SourceView:
    """Add a source of documents: a folder, a mailbox, S3, WebDAV or a feed.

    Requires an administrator, because a source reads files and servers that others cannot read.
    """
    async with services.database.transaction() as connection:
        added = await sources.add_source(connection, services.settings, caller.owner_id, wanted.as_plan())
        return await idempotency.keep(connection, added)


@router.get("/sources/{source}", tags=["sources"], responses=problems(401, 404, 422))
async def show_source(services: ServicesOf, caller: ReadCaller, source: UUID) -> SourceView:
    """Return one source."""
    async with services.database.connection() as connection:
        return await sources.show_source(connection, caller.owner_id, source)


@router.patch("/sources/{source}", tags=["sources"], responses=problems(400, 401, 403, 404, 409, 422))
async def edit_source(services: ServicesOf, caller: AdminCaller, source: UUID, wanted: SourceEdit) -> SourceView:
    """Change the name, the options, the interval or the password of a source, or pause it. Requires an administrator.

    The address and the user cannot be changed, so that a password is never sent to another server.
    """
    async with services.database.transaction() as connection:
        if wanted.paused is not None:
            await sources.pause_source(connection, caller.owner_id, source, paused=wanted.paused)
        return await sources.edit_source(
            connection,
            services.settings,
            caller.owner_id,
            source,
            name=wanted.name,
            options=wanted.options.given() if wanted.options else None,
            every_seconds=wanted.every_seconds,
            password=wanted.password,
            client_secret=wanted.client_secret,
        )


@router.delete("/sources/{source}", tags=["sources"], status_code=204, responses=problems(401, 403, 404, 422))
async def delete_source(services: ServicesOf, caller: AdminCaller, source: UUID) -> None:
    """Stop watching a source. Its documents and its files stay. Requires an administrator."""
    async with services.database.transaction() as connection:
        await sources.delete_source(connection, caller.owner_id, source)


@router.get("/sources/{source}/failed", tags=["sources"], responses=problems(401, 404, 422))
async def list_failed_files(services: ServicesOf, caller: ReadCaller, source: UUID) -> Page[FailedFile]:
    """List the files of a source that could not be added, newest first, and the reasons."""
    async with services.database.connection() as connection:
        return Page(await sources.list_failed(connection, caller.owner_id, source), None)


@router.post("/sources/{source}/run", tags=["sources"], responses=problems(401, 403, 404, 422))
async def run_source(services: ServicesOf, caller: WriteCaller, source: UUID) -> SourceView:
    """Check a source for new files now. Files that could not be added are retried."""
    async with services.database.transaction() as connection:
        return await sources.run_source(connection, caller.owner_id, source)


@router.post("/sources/{source}/pause", tags=["sources"], responses=problems(401, 403, 404, 422))
async def pause_source(services: ServicesOf, caller: WriteCaller, source: UUID) -> SourceView:
    """Pause a source. Files that arrive meanwhile are added when it is resumed."""
    async with services.database.transaction() as connection:
        return await sources.pause_source(connection, caller.owner_id, source, paused=True)


@router.post("/sources/{source}/resume", tags=["sources"], responses=problems(401, 403, 404, 422))
async def resume_source(services: ServicesOf, caller: WriteCaller, source: UUID) -> SourceView:
    """Resume a paused source."""
    async with services.database.transaction() as connection:
        return await sources.pause_source(connection, caller.owner_id, source, paused=False)
