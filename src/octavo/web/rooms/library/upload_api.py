"""The API for adding files, either in three requests (create an upload, send the bytes, finalize) or in one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, ClassVar
from uuid import UUID

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from octavo.core.errors import BadInput, TooLarge
from octavo.core.pagination import Page
from octavo.core.types import Extraction
from octavo.intake import NewUpload, Outcome, clean_filename
from octavo.intake.links import link_source, paste_source, video_source
from octavo.intake.links.sources import NewSource
from octavo.intake.upload_rows import Policy, list_uploads, with_details
from octavo.jobs.views import DEFAULT_LIMIT
from octavo.records.documents import Received, Ticket, UploadState, UploadView
from octavo.web.context.callers import ReadCaller, WriteCaller
from octavo.web.context.idempotency import IdempotencyOf
from octavo.web.context.intake import IntakeOf, LimitsOf, check_extraction, check_link, early_limited
from octavo.web.context.services import ServicesOf
from octavo.web.http.downloads import attachment
from octavo.web.http.multipart import FormReader
from octavo.web.http.parameters import RAW, Cursor, ExtractionField, Limit, problems, read_name
from octavo.web.http.problems import describe_validation_errors

router = APIRouter(prefix="/api/v1", tags=["uploads"])
Plain = r"^[^\x00-\x1f\x7f]*$"
# A string is accepted even in strict mode.
VersionOf = Annotated[UUID, Field(strict=False)]


def _whole(value: object) -> object:
    """Convert a whole float such as 12.0 to an integer, because JSON does not distinguish the two."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


class Announcement(BaseModel):
    """Describes a file to upload.

    `bytes` and `sha256` are checked against the received data. `source` says where the file comes from, in words or as
    a URL. If `version_of` is the id of a document, the file becomes a new version of it, and the old version is kept.
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
        return with_details(upload, title=self.title, source=self.source, extraction=extraction)


class RawFields(BaseModel):
    """Options of an upload that is sent as raw bytes. They are sent as query parameters."""

    duplicates: Policy = "reuse"
    extraction: ExtractionField = Extraction.PLAIN
    title: str | None = Field(default=None, max_length=500, pattern=Plain)
    source: str | None = Field(default=None, max_length=2000, pattern=Plain)
    sha256: str | None = Field(default=None, pattern=r"^[0-9a-fA-F]{64}$")
    bytes: int | None = Field(default=None, ge=0, le=1 << 50)
    version_of: UUID | None = None


# Documents that are added as JSON: a link, a video or text ----------------------------------------------------------

# Longer texts are added as a file.
PASTE_BYTES = 16 << 20
# JSON may escape a two-byte character as six bytes.
_JSON_FACTOR = 3
_ADDRESS_BYTES = 64 << 10
Line = Annotated[str, Field(max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]
Origin = Annotated[str, Field(max_length=2000, pattern=r"^[^\x00-\x1f\x7f]*$")]
_ANY_OBJECT: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])


class JsonSource(BaseModel):
    """A document sent as JSON. `source` says where the document comes from: a description or a URL."""

    model_config = ConfigDict(extra="forbid", strict=True)
    key: ClassVar[str]

    title: Line | None = None
    source: Origin | None = None
    duplicates: Policy = "reuse"
    extraction: ExtractionField = Extraction.PLAIN
    version_of: Annotated[UUID, Field(strict=False)] | None = None

    def as_source(self, allow: frozenset[str]) -> NewSource:
        raise NotImplementedError


class LinkSource(JsonSource):
    """A web page, or the transcript of a video if `url` is the address of a YouTube video."""

    key = "url"
    url: str = Field(min_length=1)

    def as_source(self, allow: frozenset[str]) -> NewSource:
        return link_source(self.url, allow=allow, title=self.title, duplicates=self.duplicates)


class VideoSource(JsonSource):
    """The transcript of a YouTube video."""

    key = "youtube_url"
    youtube_url: str = Field(min_length=1)

    def as_source(self, allow: frozenset[str]) -> NewSource:
        del allow
        return video_source(self.youtube_url, title=self.title, duplicates=self.duplicates)


class TextSource(JsonSource):
    """Pasted text."""

    key = "text"
    text: str

    def as_source(self, allow: frozenset[str]) -> NewSource:
        del allow
        return paste_source(self.text, title=self.title, attribution=self.source, duplicates=self.duplicates)


_KINDS: dict[str, type[JsonSource]] = {kind.key: kind for kind in (LinkSource, VideoSource, TextSource)}
# Refers to the types in the OpenAPI description.
SOURCES = tuple(_KINDS.values())
SCHEMA: dict[str, Any] = {"oneOf": [{"$ref": f"#/components/schemas/{kind.__name__}"} for kind in SOURCES]}


async def read_json_source(body: AsyncIterable[bytes], upload_bytes: int, allow: frozenset[str]) -> NewSource:
    """Read a source from a JSON body. Stops reading as soon as the body is longer than any valid source."""
    limit = min(upload_bytes, PASTE_BYTES)
    read = bytearray()
    async for chunk in body:
        read += chunk
        if len(read) > _JSON_FACTOR * limit + _ADDRESS_BYTES:
            raise _too_long(limit)
    source = await asyncio.to_thread(lambda: _read_source(_parse(bytes(read)), allow))
    if len(source.body) > limit:
        raise _too_long(limit)
    return source


def _read_source(given: JsonSource, allow: frozenset[str]) -> NewSource:
    source = given.as_source(allow)
    extraction = None if given.extraction is Extraction.PLAIN else given.extraction
    upload = with_details(source.upload, source=given.source, extraction=extraction)
    return replace(source, upload=replace(upload, version_of=given.version_of))


def _parse(body: bytes) -> JsonSource:
    try:
        fields = _ANY_OBJECT.validate_json(body)
        present = [name for name in _KINDS if fields.get(name) is not None]
        if len(present) != 1:
            raise BadInput("Send exactly one of `url`, `youtube_url` and `text`.")
        return _KINDS[present[0]].model_validate(fields)
    except ValidationError as error:
        raise BadInput(describe_validation_errors(error.errors())) from None


def _too_long(limit: int) -> TooLarge:
    return TooLarge(f"Pasted text is limited to {limit:,} bytes. Add longer text as a file.")


# Routes ------------------------------------------------------------------------------------------------------------


@router.post("/uploads", status_code=201, responses=problems(400, 401, 403, 404, 413, 422, 429))
async def begin(
    services: ServicesOf,
    intake: IntakeOf,
    limits: LimitsOf,
    caller: WriteCaller,
    announced: Announcement,
    idempotency: IdempotencyOf,
) -> Ticket:
    """Create an upload for a file. Send the bytes to `put_url`, then finalize the upload to create the document."""
    check_extraction(services.settings, caller, announced.extraction)
    return await intake.begin(caller.owner_id, announced.as_upload(), limits, on_created=idempotency.keep)


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
async def receive(intake: IntakeOf, limits: LimitsOf, caller: WriteCaller, upload: UUID, request: Request) -> Received:
    """Upload the content of the file for which this upload was created, as the raw request body."""
    stored = await intake.receive(caller.owner_id, upload, early_limited(request, limits, request.stream()), limits)
    return Received(bytes=stored.bytes, sha256=stored.sha256)


@router.get("/uploads/{upload}/content", responses=problems(401, 404, 409, 422), response_class=Response)
async def content(intake: IntakeOf, caller: ReadCaller, upload: UUID) -> StreamingResponse:
    """Download the bytes of an upload."""
    found = await intake.read(caller.owner_id, upload)
    return attachment(await intake.content(caller.owner_id, upload), found.filename, found.content_type)


@router.post("/uploads/{upload}/finalize", responses=problems(401, 403, 404, 409, 413, 422))
async def finalize(
    intake: IntakeOf, limits: LimitsOf, caller: WriteCaller, upload: UUID, idempotency: IdempotencyOf
) -> Outcome:
    """Create the document, or return the existing one with the same content. Repeated calls return the same result."""
    return await intake.finalize(caller.owner_id, upload, limits, on_created=idempotency.keep)


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
    caller: WriteCaller,
    request: Request,
    services: ServicesOf,
    idempotency: IdempotencyOf,
    fields: Annotated[RawFields, Query()],
    content_type: Annotated[str, Header()] = "application/octet-stream",
    x_upload_filename: Annotated[str | None, Header(max_length=3000)] = None,
) -> Outcome:
    """Add a document in one request: a form with `file` as its last field, raw bytes with `X-Upload-Filename`, or JSON.

    For raw bytes, send these fields as query parameters: `duplicates`, `title`, `source`, `extraction`, `sha256`,
    `bytes`, `version_of`. JSON contains exactly one of `url`, `youtube_url` and `text`.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    take = partial(intake.take, caller.owner_id, limits=limits, on_created=idempotency.keep)
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
    raise BadInput("Send a form with `file`, raw bytes with the header X-Upload-Filename, or JSON with a link or text.")


def _check_fields(fields: Mapping[str, str], filename: str, content_type: str) -> Announcement:
    known = {name: value for name, value in fields.items() if name in Announcement.model_fields}
    named = {"filename": clean_filename(filename), "content_type": content_type}
    try:
        return Announcement.model_validate(known | named, strict=False)  # form fields are strings
    except ValidationError as error:
        raise BadInput(describe_validation_errors(error.errors())) from None
