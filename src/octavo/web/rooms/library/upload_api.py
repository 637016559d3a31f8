"""The API for adding files, either in three requests (create an upload, send the bytes, finalize) or in one.

Also adds web pages from the browser: with a bookmarklet or, if Octavo is installed as an app, from the share menu.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from octavo.core.errors import BadInput
from octavo.core.http import Page
from octavo.core.types import Extraction
from octavo.database import Connection
from octavo.intake import NewUpload, Outcome, clean_filename
from octavo.intake.links import MOST_CHARACTERS
from octavo.intake.upload_rows import AUTOMATIC, Policy, list_uploads, with_details
from octavo.jobs.views import DEFAULT_LIMIT
from octavo.owners.callers import Caller
from octavo.records.documents import ReceivedBytes, Ticket, UploadState, UploadView
from octavo.storage import Body
from octavo.web.context.callers import EditCaller, ReadCaller
from octavo.web.context.idempotency import Idempotency, IdempotencyOf
from octavo.web.context.intake import (
    IntakeOf,
    LimitsOf,
    as_member,
    as_seen,
    check_extraction,
    check_link,
    early_limited,
)
from octavo.web.context.services import ServicesOf
from octavo.web.http.assets import asset
from octavo.web.http.downloads import attachment
from octavo.web.http.multipart import FormReader
from octavo.web.http.parameters import RAW, Cursor, ExtractionField, Limit, problems, read_name
from octavo.web.http.problems import describe_validation_errors
from octavo.web.rooms.library.adding import SCHEMA, read_json_source
from octavo.web.shell.frame import LibraryFrame, render

router = APIRouter(prefix="/api/v1", tags=["uploads"])
Plain = r"^[^\x00-\x1f\x7f]*$"
# A string is accepted even in strict mode.
VersionOf = Annotated[UUID, Field(strict=False)]


def _whole(value: object) -> object:
    """Convert a float without decimals, such as 12.0, to an integer, because JSON does not distinguish the two."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


class Announcement(BaseModel):
    """Describes a file to upload.

    `bytes` and `sha256` are compared with the received data. `source` says where the file comes from, in words or as a
    URL. If `version_of` is the id of a document, the file becomes a new version of that document, and the old version
    is kept. `collection` is the name of the collection for a new document. It is created if necessary.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    filename: str = Field(max_length=1000)
    content_type: str = Field(default="application/octet-stream", max_length=200, pattern=Plain)
    bytes: Annotated[int, Field(ge=0, le=1 << 50), BeforeValidator(_whole)] | None = None
    sha256: str | None = Field(default=None, pattern=r"^[0-9a-fA-F]{64}$")
    duplicates: Policy = "reuse"
    title: str | None = Field(default=None, max_length=500, pattern=Plain)
    source: str | None = Field(default=None, max_length=2000, pattern=Plain)
    extraction: ExtractionField = Extraction.PLAIN
    version_of: VersionOf | None = None
    collection: str | None = Field(default=None, max_length=200, pattern=Plain)

    def as_upload(self) -> NewUpload:
        extraction = None if self.extraction is Extraction.PLAIN else self.extraction
        upload = NewUpload(
            self.filename,
            self.content_type,
            self.bytes,
            self.sha256.lower() if self.sha256 else None,
            self.duplicates,
            version_of=self.version_of,
        )
        details = {"title": self.title, "source": self.source, "extraction": extraction}
        return with_details(upload, **details, collection=self.collection)


ImportId = Annotated[
    UUID | None,
    Field(
        description="Id of the import. Send the same id with all files that are added together. They are processed "
        "after documents that are added by hand, and share one notification."
    ),
]


class RawFields(BaseModel):
    """Options of an upload that is sent as raw bytes. They are sent as query parameters."""

    duplicates: Policy = "reuse"
    extraction: ExtractionField = Extraction.PLAIN
    title: str | None = Field(default=None, max_length=500, pattern=Plain)
    source: str | None = Field(default=None, max_length=2000, pattern=Plain)
    sha256: str | None = Field(default=None, pattern=r"^[0-9a-fA-F]{64}$")
    bytes: int | None = Field(default=None, ge=0, le=1 << 50)
    version_of: UUID | None = None
    collection: str | None = Field(default=None, max_length=200, pattern=Plain)
    import_id: ImportId = None


def as_part(upload: NewUpload, caller: Caller, import_id: UUID | None) -> NewUpload:
    """Assign the upload to the import that the client names.

    If a client with an API key names no import, the database chooses one.
    """
    return with_details(
        upload, **{"import": str(import_id) if import_id else AUTOMATIC if caller.via == "key" else None}
    )


@router.post("/uploads", status_code=201, responses=problems(400, 401, 403, 404, 413, 422, 429))
async def begin(
    services: ServicesOf,
    intake: IntakeOf,
    limits: LimitsOf,
    caller: EditCaller,
    announced: Announcement,
    idempotency: IdempotencyOf,
    import_id: Annotated[ImportId, Query()] = None,
) -> Ticket:
    """Create an upload for a file. Send the bytes to `put_url`, then finalize the upload to create the document."""
    check_extraction(services.settings, caller, announced.extraction)
    upload = await as_member(services, caller, as_part(announced.as_upload(), caller, import_id))
    return await intake.begin(caller.owner_id, upload, limits, on_created=idempotency.keep)


@router.get("/uploads", responses=problems(400, 401, 422))
async def uploads(
    services: ServicesOf,
    caller: ReadCaller,
    state: UploadState = "rejected",
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[UploadView]:
    """List your uploads in one state, newest first. Refused uploads (`rejected`) have the reason in `error`."""
    async with services.database.connection() as connection:
        return await list_uploads(connection, caller.owner_id, state, cursor=cursor, limit=limit)


@router.put(
    "/uploads/{upload}/content",
    responses=problems(401, 403, 404, 409, 413, 422),
    openapi_extra={"requestBody": {"required": True, "content": RAW}},
)
async def receive(
    intake: IntakeOf, limits: LimitsOf, caller: EditCaller, upload: UUID, request: Request
) -> ReceivedBytes:
    """Upload the content of a file as the raw request body. The upload must have been created before."""
    stored = await intake.receive(caller.owner_id, upload, early_limited(request, limits, request.stream()), limits)
    return ReceivedBytes(bytes=stored.bytes, sha256=stored.sha256)


@router.get("/uploads/{upload}/content", responses=problems(401, 404, 409, 422), response_class=Response)
async def content(intake: IntakeOf, caller: ReadCaller, upload: UUID) -> StreamingResponse:
    """Download the bytes of an upload."""
    found = await intake.read(caller.owner_id, upload)
    return attachment(await intake.content(caller.owner_id, upload), found.filename, found.content_type)


@router.post("/uploads/{upload}/finalize", responses=problems(401, 403, 404, 409, 413, 422))
async def finalize(
    intake: IntakeOf, limits: LimitsOf, caller: EditCaller, upload: UUID, idempotency: IdempotencyOf
) -> Outcome:
    """Create the document, or return the existing one with the same content. Repeated calls return the same result."""
    keep = partial(_keep_seen, idempotency, caller)
    return as_seen(caller, await intake.finalize(caller.owner_id, upload, limits, on_created=keep))


async def _keep_seen(idempotency: Idempotency, caller: Caller, connection: Connection, outcome: Outcome) -> None:
    await idempotency.keep(connection, as_seen(caller, outcome))


@router.post(
    "/documents",
    status_code=202,
    responses=problems(400, 401, 403, 404, 409, 413, 415, 422, 429),
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "multipart/form-data": {
                    "schema": {
                        "type": "object",
                        "required": ["file"],
                        "properties": {
                            "duplicates": {"type": "string", "enum": ["reuse", "new", "reject"]},
                            "title": {"type": "string"},
                            "source": {"type": "string"},
                            "extraction": {"type": "string", "enum": [*Extraction]},
                            "version_of": {"type": "string", "format": "uuid"},
                            "collection": {"type": "string"},
                            "file": {"type": "string", "format": "binary"},
                        },
                    }
                },
                "application/json": {"schema": SCHEMA},
                **RAW,
            },
        }
    },
)
async def add(  # noqa: PLR0917 - parameters of a request
    intake: IntakeOf,
    limits: LimitsOf,
    caller: EditCaller,
    request: Request,
    services: ServicesOf,
    idempotency: IdempotencyOf,
    fields: Annotated[RawFields, Query()],
    content_type: Annotated[str, Header()] = "application/octet-stream",
    x_upload_filename: Annotated[str | None, Header(max_length=3000)] = None,
) -> Outcome:
    """Add a document in one request: a form with `file` as its last field, raw bytes with `X-Upload-Filename`, or JSON.

    `import_id` is always a query parameter. With raw bytes, these fields are query parameters, too: `duplicates`,
    `title`, `source`, `extraction`, `sha256`, `bytes`, `version_of`, `collection`. JSON contains exactly one of `url`,
    `youtube_url` and `text`.
    """
    media_type = content_type.partition(";")[0].strip().lower()

    async def take(upload: NewUpload, body: Body) -> Outcome:
        keep = partial(_keep_seen, idempotency, caller)
        member = await as_member(services, caller, as_part(upload, caller, fields.import_id))
        return as_seen(caller, await intake.take(caller.owner_id, member, body, limits, on_created=keep))

    async with services.limits.transfers.one(caller.owner_id, limits.concurrent):
        if x_upload_filename is not None:
            named = {name: str(value) for name, value in fields.model_dump(exclude_none=True).items()}
            announced = _check_fields(named, read_name(x_upload_filename), content_type)
            check_extraction(services.settings, caller, announced.extraction)
            return await take(announced.as_upload(), early_limited(request, limits, idempotency.stream()))
        if media_type == "application/json":
            given = await read_json_source(
                idempotency.stream(), limits.upload_bytes, frozenset(services.settings.fetch_allow)
            )
            check_extraction(services.settings, caller, given.upload.given.get("extraction"))
            await check_link(services, given.upload)
            return await take(given.upload, given.body)
        if media_type == "multipart/form-data":
            form = await FormReader(content_type, idempotency.stream()).read()
            announced = _check_fields(form.fields, form.filename, form.content_type)
            check_extraction(services.settings, caller, announced.extraction)
            return await take(announced.as_upload(), early_limited(request, limits, form.file))
    raise BadInput("Send a form with `file`, raw bytes with the X-Upload-Filename header, or JSON with a link or text.")


def _check_fields(fields: Mapping[str, str], filename: str, content_type: str) -> Announcement:
    known = {name: value for name, value in fields.items() if name in Announcement.model_fields}
    named = {"filename": clean_filename(filename), "content_type": content_type}
    try:
        return Announcement.model_validate(known | named, strict=False)  # form fields are strings
    except ValidationError as error:
        raise BadInput(describe_validation_errors(error.errors())) from None


share_router = APIRouter(include_in_schema=False)
MOST_TEXT = 20_000
_LINK = re.compile(r"https?://\S+", re.IGNORECASE)
Shared = Annotated[str, Query(max_length=MOST_TEXT)]
MANIFEST_TYPE = "application/manifest+json"


@share_router.get("/share")
async def share(
    request: Request, services: ServicesOf, frame: LibraryFrame, url: Shared = "", title: Shared = "", text: Shared = ""
) -> Response:
    """Show a form with the content that another app or the bookmarklet has sent.

    Nothing is added until the form is submitted. If nothing was sent, the page explains how to set up the bookmarklet
    and the share menu.
    """
    base = (services.settings.public_url or str(request.base_url)).rstrip("/")
    shared, bookmark = shared_text(url, text), bookmarklet(base)
    return render(request, "share.html", frame, shared=shared, title=title[:500], bookmarklet=bookmark)


def shared_text(url: str, text: str) -> str:
    """Return the link or the text to add. Many apps share a link only as a part of the text."""
    if url.strip():
        return url.strip()[:MOST_CHARACTERS]
    links = _LINK.findall(text)
    return links[0][:MOST_CHARACTERS] if len(links) == 1 else text.strip()


def bookmarklet(base: str) -> str:
    """Return the code of a bookmark that opens the share page with the URL and the title of the current page."""
    here = "encodeURIComponent(location.href)+'&title='+encodeURIComponent(document.title)"
    return f"javascript:void(window.open('{base}/share?url='+{here}))"


@share_router.get("/manifest.webmanifest")
async def manifest() -> Response:
    """Return the web app manifest. Devices need it to install Octavo and to show it in the share menu."""
    icon = {"src": asset("shell/mark.svg"), "sizes": "any", "type": "image/svg+xml", "purpose": "any"}
    target = {"action": "/share", "method": "GET", "params": {"title": "title", "text": "text", "url": "url"}}
    about = {"id": "/", "name": "Octavo", "short_name": "Octavo", "start_url": "/library", "display": "standalone"}
    return JSONResponse({**about, "icons": [icon], "share_target": target}, media_type=MANIFEST_TYPE)
