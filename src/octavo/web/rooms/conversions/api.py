"""The API for conversions: convert PDFs to XML, read and correct values, list revisions, and download results."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Annotated, Any, Literal
from uuid import UUID

import psycopg
from fastapi import APIRouter, Header, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from octavo.convert import conversions as library
from octavo.convert.conversions import StoredConversion, find_result, show_conversion
from octavo.convert.corrections import Correction, Corrections, RowChange
from octavo.convert.errors import UnknownMapping
from octavo.convert.mappings.mapping import Mapping as MappingRules
from octavo.convert.mappings.stored_mappings import (
    DEFAULT_MAPPING,
    StoredMapping,
    find_mapping,
    mapping_of_conversion,
)
from octavo.convert.results import render_xml, store_result
from octavo.convert.submissions import ConversionIntake, OnSubmitted, Submission, ignore_submission
from octavo.convert.values import Conversion, conversion_from_json, conversion_from_record
from octavo.core.errors import BadInput, Defect, NotFound, NotPdf, OctavoError
from octavo.core.http import Page
from octavo.core.types import JSON, JobStatus, new_id
from octavo.database import Connection
from octavo.extract.extracted import SourceType
from octavo.facts.words import Box
from octavo.intake import Intake, IntakeLimits
from octavo.intake.errors import InvalidExport, NotRestorable, UploadClosed
from octavo.intake.restoring import ConversionFiles, forget_uploads, has_conversion, restore_conversion
from octavo.intake.upload_rows import check_quota, lock_usage
from octavo.jobs.views import DEFAULT_LIMIT
from octavo.owners import Caller
from octavo.records.conversions import BatchView, ConversionView, FoundValue, PageWord, RevisionView
from octavo.records.documents import Restored
from octavo.records.exports import ConversionRecord
from octavo.storage import attachment_header
from octavo.web.context.callers import ReadCaller, WriteCaller
from octavo.web.context.idempotency import Idempotency, IdempotencyOf
from octavo.web.context.intake import JSON_BODY, MOST_RECORDS, IntakeOf, LimitsOf, early_limited, read_body
from octavo.web.context.page_pictures import HEADERS, MEDIA_TYPE, PICTURE, UNCHANGED, FilePageRequest, Width
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.downloads import attachment, is_known
from octavo.web.http.multipart import FormReader
from octavo.web.http.parameters import (
    RAW,
    WHOLE,
    Cursor,
    IdPart,
    IfMatch,
    Limit,
    check_match,
    etag_of,
    problems,
    read_name,
)
from octavo.web.http.problems import describe_validation_errors
from octavo.web.rooms.conversions.mapping_api import MappingTrials

router = APIRouter(prefix="/api/v1", tags=["conversions"])
XML_TYPE, JSON_TYPE = "application/xml", "application/json"
_JSON_BYTES = 64 << 10
Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
Text = Annotated[str, Field(max_length=2000, pattern=r"^[^\x00]*$")]
Side = Annotated[float, Field(strict=True, ge=0, le=100_000, allow_inf_nan=False)]
State = JobStatus | Literal["needs_review"]


class DocumentToConvert(BaseModel):
    model_config = ConfigDict(extra="forbid")

    document_id: UUID
    mapping: Name = DEFAULT_MAPPING


class ConvertRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    mapping: Name = DEFAULT_MAPPING


class AgainRequest(BaseModel):
    """A request to convert a file again. If `mapping` is null, the same mapping is used."""

    model_config = ConfigDict(extra="forbid")

    mapping: Name | None = None


class OneCorrection(BaseModel):
    """The correct value of a field, and its position if it is known.

    `page` can be sent without `box`. `box` is left, top, right and bottom, in points from the upper left corner of the
    page.
    """

    model_config = ConfigDict(extra="forbid")

    name: Name
    value: Text | None
    page: Annotated[int, Field(ge=1, le=1_000_000), WHOLE] | None = None
    box: tuple[Side, Side, Side, Side] | None = None

    def as_correction(self) -> Correction:
        if self.box and (not self.page or self.box[0] >= self.box[2] or self.box[1] >= self.box[3]):
            raise BadInput(f"{self.name}: a box requires a page, with left < right and top < bottom.")
        return Correction(self.name, self.value, self.page, Box(*self.box) if self.box else None)


class OneRow(BaseModel):
    """A row of a table to add, remove or move.

    Rows are counted from 1. If `row` is null, a new row is added at the end.
    """

    model_config = ConfigDict(extra="forbid")

    table: Name
    action: Literal["add", "remove", "move"]
    row: Annotated[int, Field(ge=1, le=99_999), WHOLE] | None = None
    to: Annotated[int, Field(ge=1, le=99_999), WHOLE] | None = None
    values: dict[Name, Text] | None = None

    def as_change(self) -> RowChange:
        return RowChange(self.table, self.action, self.row, self.to, self.values)


class CorrectionRequest(BaseModel):
    """Corrections of extracted values. Only the values that are sent are changed; null clears a value.

    `rows` adds, removes or moves table rows after the values have been corrected. `accept` lists failed checks to
    ignore, because their values are correct. `restore` lists corrected fields to reset to their extracted value.
    """

    model_config = ConfigDict(extra="forbid")

    values: list[OneCorrection] = Field(default=[], max_length=500)
    rows: list[OneRow] = Field(default=[], max_length=500)
    accept: list[Text] = Field(default=[], max_length=100)
    restore: list[Name] = Field(default=[], max_length=500)


@router.post(
    "/conversions",
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
                        "properties": {"mapping": {"type": "string"}, "file": {"type": "string", "format": "binary"}},
                    }
                },
                "application/json": {"schema": {"$ref": "#/components/schemas/DocumentToConvert"}},
                **RAW,
            },
        }
    },
)
async def convert(
    services: ServicesOf,
    limits: LimitsOf,
    caller: WriteCaller,
    request: Request,
    idempotency: IdempotencyOf,
    mapping: Annotated[
        Name | None,
        Query(
            description="Name of the mapping, if the body is the raw file. "
            "In a form or JSON, send the `mapping` field instead."
        ),
    ] = None,
    content_type: Annotated[str, Header()] = "",
    x_upload_filename: Annotated[str | None, Header(max_length=3000)] = None,
) -> ConversionView:
    """Convert a PDF.

    Send a form with `file` and `mapping`, raw bytes with an `X-Upload-Filename` header, or JSON with `document_id`. If
    the same content was already converted with the same mapping, the existing conversion is returned.
    """
    intake, owner = conversion_intake(services, limits, _keep(idempotency, caller.owner_id)), caller.owner_id
    if mapping:
        await intake.find_mapping(owner, mapping)
    media_type = content_type.partition(";")[0].strip().lower()
    async with services.limits.transfers.one(owner, limits.concurrent):
        if x_upload_filename is not None:
            name = read_name(x_upload_filename)
            body = early_limited(request, limits, idempotency.stream())
            begun = await intake.submit_file(owner, name, lambda: mapping or DEFAULT_MAPPING, body)
        elif media_type == "application/json":
            wanted = await _read_json(idempotency.stream())
            begun = await intake.submit_document(owner, wanted.document_id, wanted.mapping)
        elif media_type == "multipart/form-data":
            form = await FormReader(content_type, idempotency.stream()).read()
            fields, body = form.fields, early_limited(request, limits, form.file)
            begun = await intake.submit_file(
                owner, form.filename, lambda: fields.get("mapping") or DEFAULT_MAPPING, body
            )
        else:
            raise BadInput(
                "Send a form with `file`, raw bytes with the X-Upload-Filename header, or JSON with `document_id`."
            )
    return await _begun(services, owner, begun)


@router.post("/documents/{document}/convert", status_code=202, responses=problems(401, 403, 404, 409, 410, 415, 422))
async def convert_document(
    services: ServicesOf,
    limits: LimitsOf,
    caller: WriteCaller,
    document: UUID,
    idempotency: IdempotencyOf,
    wanted: ConvertRequest | None = None,
) -> ConversionView:
    """Convert a PDF in the library. The stored file is used, so nothing is uploaded and no new document is created.

    If the same content was already converted with the same mapping, the existing conversion is returned.
    """
    name = (wanted or ConvertRequest()).mapping
    intake = conversion_intake(services, limits, _keep(idempotency, caller.owner_id))
    begun = await intake.submit_document(caller.owner_id, document, name)
    return await _begun(services, caller.owner_id, begun)


@router.post("/conversions/{conversion}/again", status_code=202, responses=problems(401, 403, 404, 409, 410, 422))
async def convert_again(
    services: ServicesOf,
    limits: LimitsOf,
    caller: WriteCaller,
    conversion: UUID,
    idempotency: IdempotencyOf,
    wanted: AgainRequest | None = None,
) -> ConversionView:
    """Convert the file of a conversion again, with the same mapping or another one.

    The earlier conversion is kept, and its corrections are applied to the new one. If a conversion of this file with
    this mapping is already in progress, that conversion is returned.
    """
    intake = conversion_intake(services, limits, _keep(idempotency, caller.owner_id))
    begun = await intake.convert_again(caller.owner_id, conversion, wanted.mapping if wanted else None)
    return await _begun(services, caller.owner_id, begun)


async def _begun(services: Services, owner: UUID, begun: Submission) -> ConversionView:
    async with services.database.connection() as connection:
        return await _submitted(connection, owner, begun)


async def _submitted(connection: Connection, owner: UUID, begun: Submission) -> ConversionView:
    found = await _show(connection, owner, begun.id)
    return found if begun.created else found.model_copy(update={"duplicate_of": begun.id})


def _keep(idempotency: Idempotency, owner: UUID) -> OnSubmitted:
    """Return a function that stores the response to this request in the transaction that queues the conversion."""

    async def keep(connection: Connection, begun: Submission) -> None:
        await idempotency.keep(connection, await _submitted(connection, owner, begun))

    return keep


def conversion_intake(
    services: Services, limits: IntakeLimits, on_submitted: OnSubmitted = ignore_submission
) -> ConversionIntake:
    """Return the service that accepts PDFs for conversion.

    If a remote conversion service has a lower size limit, that limit applies.
    """
    settings = services.settings
    most = limits.upload_bytes
    if settings.conversion_gateway_url:
        most = min(most, settings.conversion_gateway_bytes)
    return ConversionIntake(
        services.database, services.bucket, most, settings.conversion_source_days, limits.stored_bytes, on_submitted
    )


async def _read_json(stream: AsyncIterable[bytes]) -> DocumentToConvert:
    body = bytearray()
    async for chunk in stream:
        body += chunk
        if len(body) > _JSON_BYTES:
            raise BadInput("The request body is too large.")
    try:
        return DocumentToConvert.model_validate_json(bytes(body))
    except ValidationError as error:
        raise BadInput(describe_validation_errors(error.errors())) from None


@router.get("/conversions", responses=problems(401, 422))
async def conversions(
    services: ServicesOf,
    caller: ReadCaller,
    id: IdPart = None,  # noqa: A002 - the name of the query parameter
    status: State | None = None,
    batch: UUID | None = None,
    document_id: UUID | None = None,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[ConversionView]:
    """List your conversions, newest first, without their values.

    If `batch` or `document_id` is given, only the conversions of this batch or document are listed.
    """
    async with services.database.connection() as connection:
        found = await library.list_conversions(
            connection,
            caller.owner_id,
            status=status,
            id_part=id,
            batch=batch,
            document=document_id,
            cursor=cursor,
            limit=limit,
        )
    return Page([_view(one) for one in found.items], found.next_cursor)


@router.get("/conversion-batches/{batch}", responses=problems(401, 404, 422))
async def show_batch(services: ServicesOf, caller: ReadCaller, batch: UUID) -> BatchView:
    """Return the progress of a batch, a group of conversions that were requested together."""
    async with services.database.connection() as connection:
        found = await library.list_batches(connection, caller.owner_id, batch)
    if not found:
        raise NotFound
    return BatchView.model_validate(found[0], from_attributes=True)


@router.get("/training-samples", responses=problems(401, 422), response_class=Response)
async def samples(services: ServicesOf, caller: ReadCaller) -> Response:
    """Download all corrections as JSON Lines: the values before and after correction, and the history of changes.

    Corrections are kept for OCTAVO_CORRECTION_DAYS days, longer than the results of conversions.
    """
    async with services.database.connection() as connection:
        return _json_lines(await library.training_samples(connection, caller.owner_id))


@router.get("/model-checks", responses=problems(401, 422), response_class=Response)
async def checks(services: ServicesOf, caller: ReadCaller) -> Response:
    """Download a record of all model calls that were made to find missing values, as JSON Lines.

    Each line contains the answers of the model, and the values that were accepted from them.
    """
    async with services.database.connection() as connection:
        return _json_lines(await library.model_checks(connection, caller.owner_id))


def _json_lines(rows: Sequence[Mapping[str, Any]]) -> Response:
    lines = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in rows)
    return Response(lines, media_type="application/jsonl", headers={"x-content-type-options": "nosniff"})


@router.get("/conversions/{conversion}", responses=problems(401, 404, 422))
async def conversion(services: ServicesOf, caller: ReadCaller, conversion: UUID, response: Response) -> ConversionView:
    """Return the status of a conversion and, once it is complete, its values with their positions."""
    async with services.database.connection() as connection:
        found = await _show(connection, caller.owner_id, conversion)
    response.headers["etag"] = etag_of(found.id, found.revision)
    return found


@router.patch("/conversions/{conversion}", responses=problems(400, 401, 403, 404, 409, 410, 422))
async def correct(
    services: ServicesOf,
    caller: WriteCaller,
    conversion: UUID,
    wanted: CorrectionRequest,
    response: Response,
    if_match: IfMatch = None,
) -> ConversionView:
    """Correct values and rows, or accept failed checks. This creates a new revision.

    If one of the changes is invalid, none is made.
    """
    if not (wanted.values or wanted.rows or wanted.accept or wanted.restore):
        raise BadInput("Send `values`, `rows`, `accept` or `restore`.")
    if if_match is not None:  # saving also refuses a correction if another one was saved meanwhile
        async with services.database.connection() as connection:
            now = await _show(connection, caller.owner_id, conversion)
        check_match(if_match, etag_of(now.id, now.revision))
    await corrections_of(services).correct(
        caller.owner_id,
        conversion,
        caller.user_id,
        [one.as_correction() for one in wanted.values],
        rows=[one.as_change() for one in wanted.rows],
        accept=wanted.accept,
        restore=wanted.restore,
        person=person_without_account(caller),
    )
    async with services.database.connection() as connection:
        corrected = await _show(connection, caller.owner_id, conversion)
    response.headers["etag"] = etag_of(corrected.id, corrected.revision)
    return corrected


def corrections_of(services: Services) -> Corrections:
    settings = services.settings
    days, kept = settings.conversion_result_days, settings.correction_days
    return Corrections(services.database, services.bucket, days, kept, services.pictures.read_quote)


def person_without_account(caller: Caller) -> str:
    """Return the name to record for a correction by a caller who has no account.

    The correction of a caller with an account is recorded with their email address.
    """
    if caller.via == "key":
        return "API key"
    return "Visitor" if caller.is_anonymous else "Local user"


@router.delete("/conversions/{conversion}", status_code=204, responses=problems(401, 403, 404, 422))
async def delete(services: ServicesOf, caller: WriteCaller, conversion: UUID) -> None:
    """Delete a conversion with its values, corrections and files.

    If the converted file is a document in the library, the document is kept.
    """
    async with services.database.transaction() as connection:
        keys = await library.delete_conversion(connection, caller.owner_id, conversion)
    await services.bucket.delete(keys)


@router.get("/conversions/{conversion}/words", responses=problems(401, 404, 410, 413, 422))
async def words(
    services: ServicesOf,
    caller: ReadCaller,
    conversion: UUID,
    page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
) -> Page[PageWord]:
    """List the words on a page with their boxes, in points. The list is empty if the page is a scan.

    The review page uses the words to let people select values on the page.
    """
    async with services.database.connection() as connection:
        await show_conversion(connection, caller.owner_id, conversion)
        file = await find_result(connection, caller.owner_id, conversion, "source")
    found = await services.pictures.read_words(file.key, page)
    return Page(
        [
            PageWord(text=word.text, box=(box.left, box.top, box.right, box.bottom))
            for word in found
            if (box := word.box)
        ],
        None,
    )


@router.get("/conversions/{conversion}/revisions", responses=problems(401, 404, 422))
async def revisions(services: ServicesOf, caller: ReadCaller, conversion: UUID) -> Page[RevisionView]:
    """List the revisions of a conversion: the original values, then one revision for each correction."""
    async with services.database.connection() as connection:
        found = await library.show_conversion(connection, caller.owner_id, conversion)
        made = await library.list_revisions(connection, caller.owner_id, conversion)
        mapping = await _mapping(connection, caller.owner_id, found)
    read = await mapping.read_in_thread()
    views = [
        RevisionView(
            number=one.number,
            made_by=one.made_by,
            user_id=one.user_id,
            person=one.person,
            created_at=one.created_at,
            changes=json.loads(one.changes) if one.changes else None,
            values=_values(conversion_from_json(one.record.encode(), read)),
        )
        for one in made
    ]
    return Page(views, None)


@router.get("/conversions/{conversion}/download", responses=problems(401, 404, 409, 410, 422), response_class=Response)
async def download(
    services: ServicesOf, caller: ReadCaller, conversion: UUID, form: Literal["xml", "plain", "json"] = "xml"
) -> Response:
    """Download the result as XML or JSON.

    `xml` contains the positions of the values; `plain` is XML without positions.
    """
    async with services.database.connection() as connection:
        found = await library.show_conversion(connection, caller.owner_id, conversion)
        record = found.complete_record
        file = await library.find_result(connection, caller.owner_id, conversion)
        mapping = await _mapping(connection, caller.owner_id, found)
    name = f"{found.filename.removesuffix('.pdf')}.{'json' if form == 'json' else 'xml'}"
    if form == "xml":
        answer: Response = attachment(
            await services.bucket.stream(file.key), name, XML_TYPE, {"etag": f'"{file.sha256}"'}
        )
    else:
        read = await mapping.read_in_thread()
        answer = await asyncio.to_thread(_rendered, conversion_from_json(record, read), read, form, name)
    await _count(services, conversion)
    return answer


@router.get("/conversions/{conversion}/source", responses=problems(401, 404, 409, 410, 422), response_class=Response)
async def source(services: ServicesOf, caller: ReadCaller, conversion: UUID) -> StreamingResponse:
    """Download the converted file, if it is still stored."""
    async with services.database.connection() as connection:
        found = await library.show_conversion(connection, caller.owner_id, conversion)
        file = await library.find_result(connection, caller.owner_id, conversion, "source")
    return attachment(await services.bucket.stream(file.key), found.filename, "application/pdf")


async def _count(services: Services, conversion: UUID) -> None:
    async with services.database.transaction() as connection:
        at_once = services.settings.conversion_delete_after_download
        await library.count_download(connection, conversion, expire_now=at_once)


def _rendered(found: Conversion, mapping: MappingRules, form: str, name: str) -> Response:
    body = (
        json.dumps(found.as_json(), ensure_ascii=False).encode()
        if form == "json"
        else render_xml(found, mapping, plain=True)
    )
    headers = {
        "content-disposition": attachment_header(name),
        "content-security-policy": "sandbox",
        "x-content-type-options": "nosniff",
        "cache-control": "private, no-store",
    }
    return Response(body, media_type=JSON_TYPE if form == "json" else XML_TYPE, headers=headers)


async def _show(connection: Connection, owner: UUID, conversion: UUID) -> ConversionView:
    found = await library.show_conversion(connection, owner, conversion)
    if found.record is None or found.status != JobStatus.COMPLETE:
        return _view(found)
    mapping = await _mapping(connection, owner, found)
    return _view(found, conversion_from_json(found.record.encode(), await mapping.read_in_thread()))


async def _mapping(connection: Connection, owner: UUID, found: StoredConversion) -> StoredMapping:
    return await mapping_of_conversion(connection, owner, found.id, found.mapping)


def _view(found: StoredConversion, conversion: Conversion | None = None) -> ConversionView:
    fields: dict[str, Any] = {
        name: getattr(found, name) for name in ConversionView.model_fields if hasattr(found, name)
    }
    fields["status"] = found.state
    if found.error_code:
        fields["error"] = {"code": found.error_code, "message": found.error_message or ""}
    else:
        fields["error"] = None
    if conversion:
        made = conversion.as_json()
        fields |= {name: made[name] for name in ("values", "checks", "missing", "model")}
    return ConversionView(**fields)


def _values(conversion: Conversion) -> list[FoundValue]:
    rows: list[dict[str, JSON]] = [one.as_json() for one in conversion.values]
    return [FoundValue.model_validate(row) for row in rows]


@router.get(
    "/conversions/{conversion}/pages/{number}.png",
    response_class=Response,
    responses={**PICTURE, **UNCHANGED, **problems(401, 404, 410, 413, 422)},
)
async def page_picture(
    services: ServicesOf,
    caller: ReadCaller,
    conversion: UUID,
    number: Annotated[int, Path(ge=1, le=1_000_000)],
    width: Annotated[Width, Query(description="Maximum width in pixels.")] = Width.MEDIUM,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """Return a picture of one page of the converted file, if the file is still stored."""
    async with services.database.connection() as connection:
        await show_conversion(connection, caller.owner_id, conversion)
        file = await find_result(connection, caller.owner_id, conversion, "source")
    etag = f'"{sha256(f"{file.sha256} {number} {width}".encode()).hexdigest()}"'
    headers = {"etag": etag, **HEADERS}
    if is_known(etag, if_none_match):
        return Response(status_code=304, headers=headers)
    drawn = await services.pictures.draw_file(FilePageRequest(file.key, number, width))
    return Response(drawn, headers=headers, media_type=MEDIA_TYPE)


# Conversions of an export -------------------------------------------------------------------------------------------


@router.post(
    "/import/conversions",
    tags=["export and import"],
    responses=problems(400, 401, 403, 404, 409, 413, 422),
    openapi_extra={"requestBody": JSON_BODY},
)
async def restore_one_conversion(
    request: Request,
    services: ServicesOf,
    caller: WriteCaller,
    intake: IntakeOf,
    limits: LimitsOf,
    upload: Annotated[
        UUID | None,
        Query(description="Id of the upload that contains the converted file, if the conversion has no document."),
    ] = None,
) -> Restored:
    """Restore one conversion from an export, with all revisions of its values. Its XML file is written again.

    The upload is removed if it is not needed, for example because you already have the conversion.
    """
    record = await read_body(request, ConversionRecord, MOST_RECORDS)
    try:
        async with services.database.connection() as connection:
            known = await has_conversion(connection, caller.owner_id, record.model_dump(mode="json"))
        if known:
            return Restored(added=0, skipped=1)
        if upload:
            await _check_source(intake, caller.owner_id, upload, record)
        return await _restore(request, services, caller, record, upload, limits)
    finally:
        if upload:
            async with services.database.transaction() as connection:
                unused = await forget_uploads(connection, caller.owner_id, [upload])
            await services.bucket.delete(unused)


async def _check_source(intake: Intake, owner: UUID, upload: UUID, record: ConversionRecord) -> None:
    found = await intake.read(owner, upload)
    if found.state != "pending" or found.sha256 is None:
        raise UploadClosed
    if (found.sha256, found.bytes) != (record.sha256, record.bytes):
        raise NotRestorable("The checksum of the converted file differs.")
    if await intake.source_type(found) != SourceType.PDF:
        raise NotPdf


async def _restore(
    request: Request,
    services: Services,
    caller: Caller,
    record: ConversionRecord,
    upload: UUID | None,
    limits: IntakeLimits,
) -> Restored:
    owner, settings = caller.owner_id, services.settings
    mapping = await _exported_mapping(request, services, caller, record)
    read = await mapping.read_in_thread()
    numbers = [one.number for one in record.revisions]
    if len(set(numbers)) != len(numbers) or record.revision not in numbers:
        raise InvalidExport("A revision of the conversion is missing.")
    try:
        found = {one.number: conversion_from_record(one.record, read) for one in record.revisions}
    except Defect:
        raise InvalidExport("The values of the conversion do not match its mapping.") from None
    stored = (await store_result(services.bucket, f"derived/{new_id()}", found[record.revision], mapping)).stored
    files = ConversionFiles(stored, upload, settings.conversion_result_days, settings.conversion_source_days)
    try:
        async with services.database.transaction() as connection:
            if upload:
                await lock_usage(connection, owner)
            added = await restore_conversion(connection, owner, record.model_dump(mode="json"), files)
            if upload:
                await check_quota(connection, owner, limits.stored_bytes)
    except (psycopg.DataError, psycopg.IntegrityError) as error:
        await services.bucket.delete([stored.key])
        raise InvalidExport(error.diag.constraint_name) from None
    except OctavoError:
        await services.bucket.delete([stored.key])
        raise
    if not added:
        await services.bucket.delete([stored.key])
    return Restored(added=int(added), skipped=int(not added))


async def _exported_mapping(
    request: Request, services: Services, caller: Caller, record: ConversionRecord
) -> StoredMapping:
    """Return the mapping of an exported conversion.

    If the stored mapping has the same text, it is returned. Otherwise, the exported mapping is first checked in the
    sandbox.
    """
    with suppress(UnknownMapping):
        async with services.database.connection() as connection:
            found = await find_mapping(connection, caller.owner_id, record.mapping)
        if found.text == record.mapping_text:
            return found
    await services.shared(MappingTrials).check(request, caller, record.mapping_text, record.mapping_file)
    return StoredMapping(record.mapping, record.mapping_file, record.mapping_text)
