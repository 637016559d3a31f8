"""The API for documents: list, read, edit, delete, retry and download them, and list their events."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Query, Response
from pydantic import BaseModel, ConfigDict, Field, RootModel, SecretStr, StrictBool

from octavo.core.errors import BadInput, NotAllowed
from octavo.core.http import Page
from octavo.core.types import Extraction, first_day
from octavo.database import read_clock
from octavo.jobs.views import DEFAULT_LIMIT, EventView
from octavo.library import changes
from octavo.library.changes import Edit
from octavo.library.documents import (
    Filters,
    Sort,
    State,
    list_chunks,
    list_documents,
    list_events,
    show_document,
)
from octavo.library.fields import MOST_FIELDS, MOST_VALUE, suggest_facts
from octavo.library.files import count_download, find_file
from octavo.owners import Caller
from octavo.records.documents import Chunk, Document, FactView, Retried, SignedLink
from octavo.web.context.callers import SOME_COLLECTIONS, EditCaller, ReadCaller
from octavo.web.context.idempotency import IdempotencyOf
from octavo.web.context.intake import check_extraction
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.downloads import attachment, is_known, is_still, names_a_date, read_range
from octavo.web.http.parameters import (
    IF_GIVEN,
    WHOLE,
    Cursor,
    Date,
    ExtractionField,
    IdPart,
    IfMatch,
    Limit,
    RetryRequest,
    check_match,
    etag_of,
    lock_edit,
    problems,
)
from octavo.web.rooms.library.adding import FileUnlocker

router = APIRouter(prefix="/api/v1/documents", tags=["documents"])
LINK_SECONDS = 300
JPEG_KIND = "image_jpeg"
Plain = r"^[^\x00-\x1f\x7f]*$"
Wanted = Annotated[str | None, Query(max_length=500, pattern=Plain), IF_GIVEN]
PartialDate = Annotated[str | None, Query(pattern=r"^([0-9]{4}(-[0-9]{2}){0,2})?$"), IF_GIVEN]
Amount = Annotated[Decimal | None, Query(max_digits=21, decimal_places=6), IF_GIVEN]
FilterText = Annotated[str | None, Field(max_length=500, pattern=Plain)]
FilterDate = Annotated[str | None, Field(pattern=r"^[0-9]{4}(-[0-9]{2}){0,2}$")]
FilterAmount = Annotated[Decimal | None, Field(max_digits=21, decimal_places=6)]
MOST_BYTES = 2**53 - 1
LANGUAGE = r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$"
Size = Annotated[int | None, Query(ge=0, le=MOST_BYTES, description="In bytes."), IF_GIVEN]
FilterSize = Annotated[int | None, Field(ge=0, le=MOST_BYTES), WHOLE]
Label = Annotated[str, Field(min_length=1, max_length=200, pattern=Plain)]
FactName = Literal[
    "kind", "title", "sender", "author", "recipient", "number", "date", "due_date", "period", "amount", "currency",
    "language", "iban", "vat_id", "doi", "isbn", "order_id", "account_id", "register_id", "party",
]  # fmt: skip
FieldText = Annotated[str, Field(max_length=MOST_VALUE, pattern=Plain)]
FieldValues = Annotated[dict[Label, FieldText | None], Field(max_length=MOST_FIELDS)]
FactValue = Annotated[str | None, Field(max_length=500, pattern=Plain)]
UNCHANGED: dict[int | str, dict[str, Any]] = {
    304: {"description": "Not modified: the caller already has the current file."}
}


class EditRequest(BaseModel):
    """Changes to a document. Only the fields that are sent are changed; null clears a field."""

    model_config = ConfigDict(extra="forbid")

    title: str | None = Field(default=None, max_length=500, pattern=Plain)
    author: str | None = Field(default=None, max_length=500, pattern=Plain)
    document_date: Date | None = None
    tags: list[Label] | None = Field(default=None, max_length=changes.MOST_TAGS)
    collection: Label | None = None
    fields: FieldValues | None = None
    expires_on: Date | None = None

    def as_edit(self) -> Edit:
        given: dict[str, Any] = {name: getattr(self, name) for name in self.model_fields_set - {"fields"}}
        if "tags" in given:
            given["tags"] = given["tags"] or []
        return Edit(**given, custom=self.fields or {})


class RetryDocumentRequest(RetryRequest):
    """A request to process a document again.

    `password` unlocks a PDF that was added as a file. The password is used once and not stored, but the unlocked file
    is stored. If `extraction` is not `plain`, a model produces the text, and the text extracted without a model is kept
    as well.
    """

    password: SecretStr | None = Field(default=None, min_length=1, max_length=500)
    extraction: ExtractionField = Extraction.PLAIN


class FilterRequest(BaseModel):
    """Selects documents. The fields are the query parameters of `GET /documents`."""

    model_config = ConfigDict(extra="forbid")

    q: FilterText = None
    status: Literal["pending", "completed", "failed"] | None = None
    tag: FilterText = None
    collection: FilterText = None
    trashed: StrictBool = False
    versions: StrictBool = False
    kind: FilterText = None
    sender: FilterText = None
    before: FilterDate = None
    after: FilterDate = None
    amount_min: FilterAmount = None
    amount_max: FilterAmount = None
    language: Annotated[str | None, Field(pattern=LANGUAGE)] = None
    state: State | None = None
    size_min: FilterSize = None
    size_max: FilterSize = None
    import_id: UUID | None = None
    field: FilterText = None

    def as_filters(self) -> Filters:
        given: dict[str, Any] = self.model_dump(exclude={"before", "after"})
        return Filters(**given, before=read_bound("before", self.before), after=read_bound("after", self.after))

    def as_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_defaults=True)


class CorrectedFacts(RootModel[dict[FactName, FactValue]]):
    """Corrections by a person: the value of each fact. Null means that the document does not have this fact."""


@dataclass(frozen=True, slots=True)
class DownloadHeaders:
    """Range and cache headers of a download request."""

    range: Annotated[str | None, Header()] = None
    if_range: Annotated[
        str | None, Header(description="Return the range only if the file still has this ETag or date.")
    ] = None
    if_none_match: Annotated[str | None, Header(description="ETags that the caller already has.")] = None


RangeHeaders = Annotated[DownloadHeaders, Depends()]


@router.get("", responses=problems(401, 422))
async def documents(  # noqa: PLR0917 - query parameters
    services: ServicesOf,
    caller: ReadCaller,
    id: IdPart = None,  # noqa: A002 - the name of the query parameter
    q: Wanted = None,
    status: Literal["pending", "completed", "failed"] | None = None,
    tag: Wanted = None,
    collection: Wanted = None,
    trashed: bool = False,  # noqa: FBT001, FBT002 - a query parameter
    versions: bool = False,  # noqa: FBT001, FBT002 - a query parameter
    kind: Wanted = None,
    sender: Wanted = None,
    before: PartialDate = None,
    after: PartialDate = None,
    amount_min: Amount = None,
    amount_max: Amount = None,
    language: Annotated[str | None, Query(pattern=LANGUAGE)] = None,
    state: State | None = None,
    size_min: Size = None,
    size_max: Size = None,
    import_id: UUID | None = None,
    field: Wanted = None,
    sort: Sort = "newest",
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[Document]:
    """List your documents, newest first.

    If `trashed` is true, the trash is listed instead. If `versions` is true, older versions are included. `sender` is a
    part of the sender's name. `field` is a custom field and its value, as in `Project:Coast`, or only the name of the
    field. `after` and `before` are days, months or years; `before` is exclusive.

    `sort` is `newest`, `oldest`, `title` or a property such as `date` or `amount`. A minus sign reverses the order of a
    property, as in `-date`. Documents without the property come last.
    """
    filters = Filters(
        *(id, q, status, tag, collection, trashed),
        versions=versions,
        kind=kind,
        sender=sender,
        before=read_bound("before", before),
        after=read_bound("after", after),
        amount_min=amount_min,
        amount_max=amount_max,
        language=language,
        state=state,
        size_min=size_min,
        size_max=size_max,
        import_id=import_id,
        field=field,
    )
    async with services.database.connection() as connection:
        return await list_documents(connection, caller.owner_id, filters, sort=sort, cursor=cursor, limit=limit)


def read_bound(name: str, text: str | None) -> date | None:
    day = first_day(text)
    if text and day is None:
        raise BadInput(f"{name}: must be a day, month or year such as 2026-11-15, 2026-11 or 2026.")
    return day


@router.get("/{document}", responses=problems(401, 404, 422))
async def document(
    services: ServicesOf,
    caller: ReadCaller,
    document: UUID,
    response: Response,
    trashed: bool = False,  # noqa: FBT001, FBT002 - a query parameter
) -> Document:
    """Return one of your documents. If `trashed` is true, the document must be in the trash."""
    async with services.database.connection() as connection:
        found = await show_document(connection, caller.owner_id, document, trashed=trashed)
    response.headers["etag"] = document_etag(found)
    return found


@router.patch("/{document}", responses=problems(400, 401, 403, 404, 422))
async def edit(
    services: ServicesOf,
    caller: EditCaller,
    document: UUID,
    wanted: EditRequest,
    response: Response,
    if_match: IfMatch = None,
) -> Document:
    """Change the title, author, date, tags, collection, custom fields or expiry date of a document."""
    async with services.database.transaction() as connection:
        if if_match is not None:
            await lock_edit(connection, if_match, document)
            check_match(if_match, document_etag(await show_document(connection, caller.owner_id, document)))
        await changes.edit_documents(connection, caller.owner_id, [document], wanted.as_edit())
        edited = await show_document(connection, caller.owner_id, document)
    if caller.limited:
        edited = await show_limited(services, caller, document)
    response.headers["etag"] = document_etag(edited)
    return edited


async def show_limited(services: Services, caller: Caller, document: UUID) -> Document:
    """Read a document again after a change, as a limited member sees it.

    The transaction that made the change can see more than the member.
    """
    async with services.database.connection() as connection:
        return await show_document(connection, caller.owner_id, document)


def document_etag(document: Document) -> str:
    return etag_of(*(getattr(document, name) for name in sorted(EditRequest.model_fields)))


@router.delete("/{document}", status_code=204, responses=problems(401, 403, 404, 422))
async def delete(
    services: ServicesOf,
    caller: EditCaller,
    document: UUID,
    purge: bool = False,  # noqa: FBT001, FBT002 - a query parameter
) -> None:
    """Move a document to the trash. If `purge` is true, delete it permanently, even if it is not in the trash."""
    if purge and caller.limited:
        raise NotAllowed(SOME_COLLECTIONS)
    async with services.database.transaction() as connection:
        if not purge:
            await changes.trash_documents(connection, caller.owner_id, [document])
            return
        keys = await changes.purge_documents(connection, caller.owner_id, [document])
    await services.bucket.delete(keys)


@router.post("/{document}/restore", responses=problems(401, 403, 404, 422))
async def restore(services: ServicesOf, caller: EditCaller, document: UUID) -> Document:
    """Restore a document from the trash."""
    async with services.database.transaction() as connection:
        await changes.restore_documents(connection, caller.owner_id, [document])
        restored = await show_document(connection, caller.owner_id, document)
    return await show_limited(services, caller, document) if caller.limited else restored


@router.post("/{document}/retry", responses=problems(400, 401, 403, 404, 409, 422))
async def retry(
    services: ServicesOf,
    caller: EditCaller,
    document: UUID,
    idempotency: IdempotencyOf,
    wanted: RetryDocumentRequest | None = None,
) -> Retried:
    """Resume a failed document, process a completed one again, or unlock a password-protected PDF."""
    wanted = wanted or RetryDocumentRequest()
    how = wanted.from_stage, wanted.extraction
    check_extraction(services.settings, caller, wanted.extraction)
    if wanted.password:
        return await services.shared(FileUnlocker).retry(
            caller.owner_id, document, wanted.password.get_secret_value(), *how, on_retried=idempotency.keep
        )
    async with services.database.transaction() as connection:
        retried = await changes.retry_document(connection, caller.owner_id, document, *how)
        return await idempotency.keep(connection, retried)


@router.get("/{document}/chunks", responses=problems(401, 404, 422))
async def chunks(
    services: ServicesOf, caller: ReadCaller, document: UUID, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> Page[Chunk]:
    """List the chunks of a document, in order."""
    async with services.database.connection() as connection:
        return await list_chunks(connection, caller.owner_id, document, cursor=cursor, limit=limit)


@router.get("/{document}/facts", responses=problems(401, 404, 422))
async def facts(services: ServicesOf, caller: ReadCaller, document: UUID, response: Response) -> Page[FactView]:
    """List the facts about a document, such as its kind, title, sender, number, date and amount.

    Each fact includes its position in the text and its source.
    """
    async with services.database.connection() as connection:
        found = await suggest_facts(connection, caller.owner_id, document)
    response.headers["etag"] = etag_of(found)
    return Page(found, None)


@router.patch("/{document}/facts", responses=problems(400, 401, 403, 404, 422))
async def correct_facts(
    services: ServicesOf,
    caller: EditCaller,
    document: UUID,
    wanted: CorrectedFacts,
    response: Response,
    if_match: IfMatch = None,
) -> Page[FactView]:
    """Correct facts. Send null for a fact that the document does not have. Octavo never overwrites corrections."""
    async with services.database.transaction() as connection:
        if if_match is not None:
            await lock_edit(connection, if_match, document)
            check_match(if_match, etag_of(await suggest_facts(connection, caller.owner_id, document)))
        await changes.edit_documents(connection, caller.owner_id, [document], Edit(facts={**wanted.root}))
        found = await suggest_facts(connection, caller.owner_id, document)
    response.headers["etag"] = etag_of(found)
    return Page(found, None)


@router.get("/{document}/events", responses=problems(401, 404, 422))
async def events(
    services: ServicesOf, caller: ReadCaller, document: UUID, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> Page[EventView]:
    """List the events of a document, oldest first."""
    async with services.database.connection() as connection:
        return await list_events(connection, caller.owner_id, document, cursor=cursor, limit=limit)


@router.get(
    "/{document}/markdown", responses={**UNCHANGED, **problems(401, 404, 409, 416, 422)}, response_class=Response
)
async def markdown(
    services: ServicesOf,
    caller: ReadCaller,
    document: UUID,
    asked: RangeHeaders,
    plain: bool = False,  # noqa: FBT001, FBT002 - a query parameter
) -> Response:
    """Download the text of a document.

    If `plain` is true, the text is returned as it was extracted from the file, even if a model rewrote it.
    """
    kind = await _text_kind(services, caller.owner_id, document) if plain else "markdown"
    return await _download(services, caller.owner_id, document, kind, asked)


async def _text_kind(services: Services, owner: UUID, document: UUID) -> str:
    """Return the kind of stored file that contains the text as extracted without a model.

    This is `plain_markdown` or, if no model changed the text, `markdown`.
    """
    async with services.database.connection() as connection:
        found = await show_document(connection, owner, document)
    return "plain_markdown" if "text_by" in found.metadata else "markdown"


@router.get("/{document}/source", responses={**UNCHANGED, **problems(401, 404, 409, 416, 422)}, response_class=Response)
async def source(services: ServicesOf, caller: ReadCaller, document: UUID, asked: RangeHeaders) -> Response:
    """Download the source of a document: its original file."""
    return await _download(services, caller.owner_id, document, "source", asked)


@router.get(
    "/{document}/picture", responses={**UNCHANGED, **problems(401, 404, 409, 416, 422)}, response_class=Response
)
async def picture(services: ServicesOf, caller: ReadCaller, document: UUID, asked: RangeHeaders) -> Response:
    """Return the JPEG copy of a picture: upright and at most 2048 pixels wide and high.

    The source is kept unchanged.
    """
    return await _download(services, caller.owner_id, document, JPEG_KIND, asked)


@router.post("/{document}/link", responses=problems(401, 404, 409, 422))
async def link(
    services: ServicesOf, caller: ReadCaller, document: UUID, kind: Literal["source", "markdown"] = "source"
) -> SignedLink:
    """Create a link for downloading the file without signing in. It expires after five minutes."""
    async with services.database.transaction() as connection:
        file = await find_file(connection, caller.owner_id, document, kind)
        await count_download(connection, document)
        now = await read_clock(connection)
    name = _label(file.filename, kind)
    url = await services.bucket.sign_get(
        file.key, now=now, seconds=LINK_SECONDS, filename=name, content_type=file.content_type
    )
    return SignedLink(url=url, expires_in_seconds=LINK_SECONDS)


async def _download(services: Services, owner: UUID, document: UUID, kind: str, asked: DownloadHeaders) -> Response:
    async with services.database.connection() as connection:
        file = await find_file(connection, owner, document, kind)
    etag = f'"{file.sha256}"'
    if is_known(etag, asked.if_none_match):
        return Response(status_code=304, headers={"etag": etag, "cache-control": "private, no-store"})
    info = await services.bucket.stat(file.key) if names_a_date(asked.if_range) else None
    same = is_still(asked.if_range, etag, info.last_modified if info else None)
    start, end = read_range(asked.range if same else None, file.bytes)
    if kind == "source" and start == 0:
        async with services.database.connection() as connection:
            await count_download(connection, document)
    stream = await services.bucket.stream(file.key, start=start, end=end)
    return attachment(stream, _label(file.filename, kind), file.content_type, {"etag": etag})


def _label(filename: str, kind: str) -> str:
    if kind == JPEG_KIND:
        return f"{filename.rpartition('.')[0] or filename}.jpg"
    if kind == "source" or filename.lower().endswith(".md"):
        return filename
    return f"{filename}.md"
