"""The API for exporting a library as a tar file, and for restoring documents and records from an export."""

from __future__ import annotations

import asyncio
import base64
from array import array
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any
from uuid import UUID

import psycopg
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from octavo.ai.vectors import Vectors
from octavo.choreography import Cause, compare_documents, job_after
from octavo.core.errors import BadInput, NotFound, OctavoError, PageNotDrawn, TooLarge
from octavo.core.types import Lane, new_id
from octavo.database import Connection, fetch_rows
from octavo.describe.embedding import embedding_model, save_chunk_vectors
from octavo.extract.extracted import SourceType
from octavo.intake import Intake, IntakeLimits
from octavo.intake.errors import InvalidExport, NotRestorable, UploadClosed
from octavo.intake.restoring import (
    BINARY_FILES,
    QUERIES,
    Restoring,
    StoredFile,
    check_layout,
    check_texts,
    forget_uploads,
    has_result,
    known_documents,
    named_as,
    restore_records,
)
from octavo.intake.upload_rows import Upload, check_quota
from octavo.jobs.queue import enqueue
from octavo.language import DIMENSIONS, NAME
from octavo.library.bulk import MOST_SELECTED
from octavo.library.documents import Filters, select_documents
from octavo.library.errors import NotReady
from octavo.library.exporting import (
    Export,
    ExportOptions,
    Place,
    StoredExport,
    begin_export,
    find_export,
    find_stored_export,
    newest_export,
)
from octavo.owners import Caller
from octavo.records.documents import KnownDocuments, PreparedExport, PreparedExports, Restored, RestoredDocument
from octavo.records.exports import (
    DocumentImport,
    Origin,
    RecordsImport,
    VectorsRecord,
)
from octavo.storage import ObjectInfo, ObjectStream, Stored, attachment_header
from octavo.web.context.callers import ReadCaller, WriteCaller
from octavo.web.context.idempotency import IdempotencyOf
from octavo.web.context.intake import JSON_BODY, MOST_RECORDS, IntakeOf, LimitsOf, read_body
from octavo.web.context.page_pictures import UNCHANGED, FigureRequest, Width
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.downloads import attachment, is_known, is_still, read_range
from octavo.web.http.limits import ConcurrencyLimit
from octavo.web.http.parameters import problems
from octavo.web.rooms.library.api import (
    LANGUAGE,
    FilterAmount,
    FilterDate,
    FilterRequest,
    FilterSize,
    FilterText,
    RangeHeaders,
)
from octavo.web.rooms.library.exports import whole_or_cut

router = APIRouter(prefix="/api/v1", tags=["export and import"])
MOST_KNOWN = 500
# The largest record of one document with its text, in bytes.
MOST_DOCUMENT = 192 << 20
# The texts and files made from a source can have this many bytes, plus this many times the bytes of the source.
MOST_BESIDE, RESULT_RATIO = 64 << 20, 50
# How many documents are restored in parallel, how many wait, and when to retry if too many wait.
PARALLEL_IMPORTS, IMPORTS_WAIT, IMPORTS_BUSY_SECONDS = 4, 40, 5.0
TAR: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A tar file: original files, Markdown, figures, pages with links, and JSON Lines.",
        "content": {"application/x-tar": {"schema": {"type": "string"}}},
    }
}


class ExportRequest(BaseModel):
    """The documents to export. Without a filter, all documents are exported. The filters are those of `GET /documents`.

    If `figures` is false, the export contains no pictures of figures.
    """

    model_config = ConfigDict(extra="forbid")

    q: FilterText = None
    tag: FilterText = None
    collection: FilterText = None
    kind: FilterText = None
    sender: FilterText = None
    before: FilterDate = None
    after: FilterDate = None
    amount_min: FilterAmount = None
    amount_max: FilterAmount = None
    language: Annotated[str | None, Field(pattern=LANGUAGE)] = None
    size_min: FilterSize = None
    size_max: FilterSize = None
    figures: bool = True

    def as_filters(self) -> Filters | None:
        given = self.model_dump(exclude_none=True, exclude={"resume", "figures"})
        return replace(FilterRequest(**given).as_filters(), versions=True) if given else None

    def as_options(self) -> ExportOptions:
        return ExportOptions(filters=self.as_filters(), figures=self.figures)


class ExportQuery(ExportRequest):
    """The documents to export. `resume` is the last complete batch of an interrupted export."""

    resume: Annotated[str | None, Field(max_length=200)] = None


@router.get("/export", responses={**TAR, **problems(401, 422)}, response_class=StreamingResponse)
async def export(
    request: Request, services: ServicesOf, caller: ReadCaller, wanted: Annotated[ExportQuery, Query()]
) -> StreamingResponse:
    """Export your library, or the documents that match the filters, as a tar file.

    Documents in the trash are not exported. With a filter, the export contains only the matching documents, the records
    that belong to them, and your prompts and mappings.
    """
    chosen: list[UUID] | None = None
    if filters := wanted.as_filters():
        async with services.database.connection() as connection:
            chosen = await select_documents(connection, caller.owner_id, filters, MOST_SELECTED)
    place = Place.read(wanted.resume) if wanted.resume else Place()

    async def draw(document: UUID, number: int) -> bytes | None:
        with suppress(PageNotDrawn, NotFound, NotReady):
            request = FigureRequest(caller.owner_id, document, number, Width.LARGE)
            _, stream = await services.pictures.stream_figure(request)
            return b"".join([part async for part in stream])
        return None

    made = Export(services.database, services.bucket, caller.owner_id, chosen, draw if wanted.figures else None, place)
    headers = {
        "content-disposition": attachment_header("octavo-export.tar"),
        "x-content-type-options": "nosniff",
        "cache-control": "private, no-store",
    }
    return StreamingResponse(whole_or_cut(request, made.stream()), headers=headers, media_type="application/x-tar")


# Prepared exports ----------------------------------------------------------------------------------------------------


@router.post("/exports", status_code=202, responses=problems(400, 401, 403, 409, 422))
async def prepare(
    services: ServicesOf, caller: WriteCaller, wanted: ExportRequest, idempotency: IdempotencyOf
) -> PreparedExport:
    """Prepare an export as a file that stays on the server for a day. Its download can be resumed.

    A job writes the file. Your account has only one prepared export: a new one replaces it.
    """
    async with services.database.transaction() as connection:
        made, unused = await begin_export(connection, caller.owner_id, wanted.as_options())
        found = await find_export(connection, caller.owner_id, made)
        await idempotency.keep(connection, found)
    await services.bucket.delete(unused)
    return found


@router.get("/exports", responses=problems(401, 422))
async def prepared(services: ServicesOf, caller: ReadCaller) -> PreparedExports:
    """List your prepared export, if there is one."""
    async with services.database.connection() as connection:
        found = await newest_export(connection, caller.owner_id)
    return PreparedExports([found] if found else [])


@router.get("/exports/{export}", responses=problems(401, 404, 422))
async def prepared_export(services: ServicesOf, caller: ReadCaller, export: UUID) -> PreparedExport:
    """Return the state of a prepared export."""
    async with services.database.connection() as connection:
        return await find_export(connection, caller.owner_id, export)


@router.get(
    "/exports/{export}/content",
    responses={**TAR, **UNCHANGED, **problems(401, 404, 409, 416, 422)},
    response_class=Response,
)
async def prepared_content(
    request: Request, services: ServicesOf, caller: ReadCaller, export: UUID, asked: RangeHeaders
) -> Response:
    """Download a prepared export: a tar file. The download can be resumed with `Range` and `If-Range`."""
    async with services.database.connection() as connection:
        found, stored = await find_stored_export(connection, caller.owner_id, export)
    if is_known(stored.etag, asked.if_none_match):
        return Response(status_code=304, headers={"etag": stored.etag, "cache-control": "private, no-store"})
    last = stored.parts[-1]
    if await services.bucket.stat(last.key) is None or await services.bucket.stat(stored.parts[0].key) is None:
        raise NotFound
    info = ObjectInfo(last.key, stored.bytes, found.created_at)
    same = is_still(asked.if_range, stored.etag, info.last_modified)
    start, end = read_range(asked.range if same else None, stored.bytes)
    body = whole_or_cut(request, _read_parts(services, stored, start, end))
    return attachment(
        ObjectStream(info, start, end, body), "octavo-export.tar", "application/x-tar", {"etag": stored.etag}
    )


async def _read_parts(services: Services, stored: StoredExport, start: int, end: int) -> AsyncGenerator[bytes]:
    for key, first, last in stored.cut(start, end):
        async for chunk in await services.bucket.stream(key, start=first, end=last):
            yield chunk


# Import --------------------------------------------------------------------------------------------------------------


class KnownRequest(BaseModel):
    """Documents of an export to look up in your library."""

    model_config = ConfigDict(extra="forbid")

    documents: Annotated[list[Origin], Field(max_length=MOST_KNOWN)]


@router.post("/import/known", responses=problems(401, 403, 422))
async def known(services: ServicesOf, caller: WriteCaller, asked: KnownRequest) -> KnownDocuments:
    """Return those documents of an export that already exist in your account.

    They were restored earlier, or your account has a document with the same content. Documents in the trash are
    included. To import a document that is in the trash, delete it permanently first, or restore it from the trash.
    """
    async with services.database.connection() as connection:
        return await known_documents(connection, caller.owner_id, asked.documents)


@router.post(
    "/import/documents",
    responses=problems(400, 401, 403, 404, 409, 413, 422),
    openapi_extra={"requestBody": JSON_BODY},
)
async def restore_document(
    request: Request,
    services: ServicesOf,
    caller: WriteCaller,
    intake: IntakeOf,
    limits: LimitsOf,
    import_id: Annotated[
        UUID, Query(description="Id of the import. Send the same id with all documents that are imported together.")
    ],
) -> RestoredDocument:
    """Restore one document from an export, in one transaction. If you already have it, nothing changes.

    The body contains `record` (a line of `documents/*.jsonl`), `layout` (its `layout.json`), `texts` (by kind and
    revision, such as `markdown-1`), and `uploads` with the ids of uploads that contain the other files. The document's
    text and results are used unchanged. A document without results is processed again.
    """
    async with services.shared(import_limit).take():
        wanted = await read_body(request, DocumentImport, MOST_DOCUMENT)
        owner, ids = caller.owner_id, list(wanted.uploads.values())
        existing = await _find_existing(services, owner, wanted)
        if existing:
            await _drop_uploads(services, owner, ids)
            return RestoredDocument(document_id=existing, state="exists")
        try:
            return await _restore(services, caller, intake, limits, wanted, import_id)
        except OctavoError:
            await _drop_uploads(services, owner, ids)
            raise


def import_limit(_: Services) -> ConcurrencyLimit:
    """Limit how many documents are restored in parallel, because each is kept in memory with its text and vectors."""
    return ConcurrencyLimit(PARALLEL_IMPORTS, IMPORTS_WAIT, IMPORTS_BUSY_SECONDS)


async def _find_existing(services: Services, owner: UUID, wanted: DocumentImport) -> UUID | None:
    record = wanted.record
    origin = Origin(id=record.id, sha256=record.sha256, copy_of=record.duplicate_of)
    async with services.database.connection() as connection:
        return (await known_documents(connection, owner, [origin])).items.get(record.id)


async def _drop_uploads(services: Services, owner: UUID, uploads: Sequence[UUID]) -> None:
    """Remove uploads that did not become a document, with their files."""
    async with services.database.transaction() as connection:
        unused = await forget_uploads(connection, owner, uploads)
    await services.bucket.delete(unused)


async def _restore(
    services: Services,
    caller: Caller,
    intake: Intake,
    limits: IntakeLimits,
    wanted: DocumentImport,
    import_id: UUID,
) -> RestoredDocument:
    owner, record = caller.owner_id, wanted.record
    if record.source_type not in {*SourceType}:
        raise InvalidExport("Unknown type of source.")
    texts = await asyncio.to_thread(_check, wanted)
    uploads = {kind: await intake.read(owner, upload) for kind, upload in wanted.uploads.items()}
    files = _received(wanted, uploads)
    _limit_size(files, texts)
    source = named_as(uploads["source"], owner, record, UNDETECTED)
    detected = None if has_result(record) else await intake.source_type(source)
    folder = f"derived/{new_id()}"
    stored = {
        place: await services.bucket.put(f"{folder}/{place[0]}-{place[1]}.md", body) for place, body in texts.items()
    }
    written = [StoredFile(kind, revision, MARKDOWN, one) for (kind, revision), one in stored.items()]
    rest = [one.id for kind, one in uploads.items() if kind != "source"]
    try:
        async with services.database.transaction() as connection:
            work = Restoring(connection, owner, caller.user_id, record)
            existing = await work.find()
            if existing is None and detected is None:
                chunks = await work.restore(uploads["source"], [*files, *written], wanted, import_id)
                await _embed(services, connection, work, chunks, wanted.layout.vectors)
                await check_quota(connection, owner, limits.stored_bytes)
                await forget_uploads(connection, owner, rest)
                return RestoredDocument(document_id=work.document, state="restored")
            if existing is None and detected:
                await work.prepare(source)
                await intake.place(connection, source, detected, limits)
                await work.edit(whole=False)
                outcome = RestoredDocument(document_id=work.document, state="added")
                unused = await forget_uploads(connection, owner, rest)
            else:
                outcome = RestoredDocument(document_id=existing or work.document, state="exists")
                unused = await forget_uploads(connection, owner, [one.id for one in uploads.values()])
    except (psycopg.DataError, psycopg.IntegrityError) as error:
        await services.bucket.delete([one.key for one in stored.values()])
        raise InvalidExport(error.diag.constraint_name) from None
    except OctavoError:
        await services.bucket.delete([one.key for one in stored.values()])
        raise
    await services.bucket.delete([*unused, *(one.key for one in stored.values())])
    return outcome


def _check(wanted: DocumentImport) -> dict[tuple[str, int], bytes]:
    record, texts = wanted.record, check_texts(wanted)
    check_layout(wanted, wanted.texts.get(f"markdown-{record.revision}", "") if record.text_ready else "")
    return texts


def _limit_size(files: Sequence[StoredFile], texts: Mapping[tuple[str, int], bytes]) -> None:
    """Refuse results that are far larger than their source, because results do not count towards the storage limit."""
    source = sum(one.stored.bytes for one in files if one.kind == "source")
    rest = sum(one.stored.bytes for one in files if one.kind != "source") + sum(map(len, texts.values()))
    if rest > MOST_BESIDE + RESULT_RATIO * source:
        raise TooLarge("The results of this document are too large compared with its source file.")


MARKDOWN = "text/markdown; charset=utf-8"
# Types that cannot be detected from the bytes of a file.
UNDETECTED = frozenset({SourceType.WEB, SourceType.YOUTUBE, SourceType.PASTE})


@router.post("/import/records", responses=problems(400, 401, 403, 413, 422), openapi_extra={"requestBody": JSON_BODY})
async def restore_other_records(request: Request, services: ServicesOf, caller: WriteCaller) -> Restored:
    """Restore records such as threads and analyses from an export, in one transaction. Existing records do not change.

    The body contains lists of records by kind: `collections`, `fields`, `rules`, `parts`, `connections`, `verdicts`,
    `weights`, `views`, `prompts`, `threads` and `analyses`.
    """
    given = await read_body(request, RecordsImport, MOST_RECORDS)
    for view in given.views:
        _check_filter(view.filter)
    async with services.database.transaction() as connection:
        return await restore_records(connection, caller.owner_id, given)


def _received(wanted: DocumentImport, uploads: Mapping[str, Upload]) -> list[StoredFile]:
    """Return the files that were sent as uploads. Raises an error if they are not exactly the files in the record."""
    needed = {one.kind: one for one in wanted.record.files if one.kind in BINARY_FILES}
    different = len({one.id for one in uploads.values()}) == len(uploads)
    if "source" not in needed or needed["source"].sha256 != wanted.record.sha256 or uploads.keys() != needed.keys():
        raise NotRestorable("Send exactly the files that the record lists.")
    if not different:
        raise NotRestorable("Send each file as a separate upload.")
    found: list[StoredFile] = []
    for kind, upload in uploads.items():
        if upload.state != "pending" or upload.object_key is None or upload.bytes is None or upload.sha256 is None:
            raise UploadClosed
        if upload.sha256 != needed[kind].sha256:
            raise NotRestorable(f"The checksum of {needed[kind].path or kind} differs.")
        stored = Stored(upload.object_key, upload.bytes, upload.sha256)
        revision = 0 if kind in {"source", "unlocked"} else wanted.record.revision
        found.append(StoredFile(kind, revision, needed[kind].content_type, stored))
    if wanted.record.bytes != uploads["source"].bytes:
        raise NotRestorable("The file does not have the expected size.")
    return found


async def _embed(
    services: Services, connection: Connection, work: Restoring, chunks: Sequence[UUID], given: VectorsRecord | None
) -> None:
    """Store the exported vectors if they come from the configured model; otherwise, queue the job that computes them.

    The model name in an export is not trusted: vectors are used only if their length is the known vector length of this
    model.
    """
    if not chunks:
        if work.record.embeddings_ready:
            await connection.execute(QUERIES.ready_vectors, {"document": work.document})
        return
    vectors = await _vectors(services, connection, len(chunks), given)
    if vectors is None:
        key = f"embed:{work.document}:restored"
        job = job_after(Cause.VECTORS_REQUESTED, work.owner, key=key, document=work.document, lane=Lane.BULK)
        await enqueue(connection, [job])
        return
    await save_chunk_vectors(connection, chunks, vectors)
    await connection.execute(QUERIES.ready_vectors, {"document": work.document})
    if (await fetch_rows(connection, QUERIES.has_other_documents, {"owner": work.owner}))[0]["found"]:
        await compare_documents(connection, Cause.EMBEDDED, [work.document])


async def _vectors(
    services: Services, connection: Connection, chunks: int, given: VectorsRecord | None
) -> Vectors | None:
    model = embedding_model(services.settings)
    if given is None or given.model != model:
        return None
    rows = await fetch_rows(connection, QUERIES.vector_length, {"model": model})
    known: int | None = rows[0]["dimensions"] if rows else DIMENSIONS if model == NAME else None
    if known is None or known != given.dimensions:
        return None
    numbers = array("f")
    try:
        numbers.frombytes(base64.b64decode(given.data, validate=True))
    except ValueError:
        raise InvalidExport("The vectors cannot be read.") from None
    if len(numbers) != chunks * known:
        raise InvalidExport("The number of vectors differs from the number of chunks.")
    return Vectors(model, [list(numbers[n * known : (n + 1) * known]) for n in range(chunks)])


def _check_filter(given: Mapping[str, Any]) -> None:
    try:
        FilterRequest.model_validate(given)
    except (ValidationError, BadInput):
        raise InvalidExport("The filter of a view is invalid.") from None
