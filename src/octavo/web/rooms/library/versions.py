"""Pages and API for versions of a document: add a version, list all versions, and compare two of them side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response

from octavo.core.http import Page
from octavo.core.texts import Texts
from octavo.jobs.views import DEFAULT_LIMIT
from octavo.library.differences import Kind, shorten
from octavo.library.documents import list_parts, show_document
from octavo.library.versions import DocumentRevision, compare_documents, list_versions
from octavo.records.documents import Comparison, Document, TextChange, Version
from octavo.web.context.callers import EditCaller, ReadCaller
from octavo.web.context.intake import IntakeOf, LimitsOf, as_member, early_limited
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.limits import ConcurrencyLimit
from octavo.web.http.parameters import WHOLE, Cursor, Limit, problems
from octavo.web.rooms.library.adding import ContentType, SameFile, added, as_upload, read_file
from octavo.web.shell.forms import read_id, read_number
from octavo.web.shell.frame import LibraryFrame, render

router = APIRouter(include_in_schema=False)
AROUND = 240
# Comparing long texts keeps a processor busy for a second or two, so only one comparison runs at a time.
COMPARING_WAIT, COMPARING_BUSY_SECONDS = 20, 2.0
NAMES = Texts(
    {
        "document_date": "Date",
        "page_count": "Pages",
        "word_count": "Words",
        "filename": "File",
        "source_type": "Type",
        "bytes": "Size",
    }
)


def comparison_limit(_: Services) -> ConcurrencyLimit:
    return ConcurrencyLimit(1, COMPARING_WAIT, COMPARING_BUSY_SECONDS)


@dataclass(frozen=True, slots=True)
class Cells:
    """One text change as the two cells of a table row: the old and the new text."""

    change: TextChange
    old: list[tuple[Kind, str]]
    new: list[tuple[Kind, str]]


@router.get("/documents/{document}/version")
async def choose_version(request: Request, services: ServicesOf, frame: LibraryFrame, document: str) -> Response:
    async with services.database.connection() as connection:
        found = await show_document(connection, frame.caller.owner_id, read_id(document))
    return render(request, "version.html", frame, d=found)


@router.post("/actions/documents/{document}/version")
async def add_version(
    request: Request,
    services: ServicesOf,
    caller: EditCaller,
    intake: IntakeOf,
    limits: LimitsOf,
    document: UUID,
    content_type: ContentType = "",
) -> Response:
    """Add a new version. The old version is kept, and edits made by people are copied to the new one."""
    owner = caller.owner_id
    async with services.limits.transfers.one(owner, limits.concurrent):
        form = await read_file(request, content_type)
        body = early_limited(request, limits, form.file)
        upload = await as_member(services, caller, as_upload(form, version_of=document))
        outcome = await intake.take(owner, upload, body, limits)
    if outcome.state == "deduplicated":
        raise SameFile
    return added(request, [outcome], f"/documents/{outcome.document_id}")


@router.get("/documents/{document}/compare/{other}")
async def compare(request: Request, services: ServicesOf, frame: LibraryFrame, document: str, other: str) -> Response:
    """Show the changes from `other` to this document. `other` is the id of an older version, or a revision number."""
    ident, revision = read_id(document), read_number(other)
    old = DocumentRevision(ident, revision) if revision else DocumentRevision(read_id(other))
    async with services.shared(comparison_limit).take():
        found = await compare_documents(
            services.database, services.bucket, frame.caller.owner_id, old, DocumentRevision(ident)
        )
    cells = [make_cells(one) for one in found.text or ()]
    return render(request, "compare.html", frame, found=found, cells=cells, fields=format_fields(found))


def make_cells(change: TextChange) -> Cells:
    parts = list(shorten([(part.kind, part.text) for part in change.parts], AROUND))
    return Cells(
        change,
        [(kind, text) for kind, text in parts if kind != "added"],
        [(kind, text) for kind, text in parts if kind != "removed"],
    )


def format_fields(found: Comparison) -> list[tuple[str, str, str]]:
    return [
        (NAMES.get(one.field, one.field.capitalize()), format_value(one.old), format_value(one.new))
        for one in found.fields
    ]


def format_value(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return f"{value:,}" if isinstance(value, int) else str(value or "—")


api_router = APIRouter(prefix="/api/v1/documents/{document}", tags=["documents"])
Revision = Annotated[int | None, Query(ge=1, lt=1 << 31), WHOLE]


@api_router.get("/versions", responses=problems(401, 404, 422))
async def versions(services: ServicesOf, caller: ReadCaller, document: UUID) -> Page[Version]:
    """List all versions of the document, newest first. `document` can be the id of any of them."""
    async with services.database.connection() as connection:
        return Page(await list_versions(connection, caller.owner_id, document), None)


@api_router.get("/children", responses=problems(401, 404, 422))
async def children(
    services: ServicesOf, caller: ReadCaller, document: UUID, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> Page[Document]:
    """List the documents made from the files of an archive or the attachments of an email, in their original order."""
    async with services.database.connection() as connection:
        return await list_parts(connection, caller.owner_id, document, cursor=cursor, limit=limit)


@api_router.get("/diff", responses=problems(401, 404, 409, 413, 422, 429))
async def diff(
    services: ServicesOf,
    caller: ReadCaller,
    document: UUID,
    since: UUID | None = None,
    since_revision: Revision = None,
    revision: Revision = None,
) -> Comparison:
    """Return the changes from another document (`since`) or revision (`since_revision`) to this document.

    By default, the document is compared with its previous version. A first version is compared with its previous
    revision.
    """
    old = DocumentRevision(since or document, since_revision) if since or since_revision else None
    async with services.shared(comparison_limit).take():
        return await compare_documents(
            services.database, services.bucket, caller.owner_id, old, DocumentRevision(document, revision)
        )
