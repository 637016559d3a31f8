"""A new version of a document, and what changed between two: side by side, word by word."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from fastapi import APIRouter, Request, Response

from octavo.library.differences import Kind, shorten
from octavo.library.documents import show_document
from octavo.library.versions import Comparison, Pick, TextChange, compare_documents
from octavo.web.intake import IntakeOf, LimitsOf
from octavo.web.pages import render
from octavo.web.pages.adding import ContentType, SameFile, added, as_upload, read_file
from octavo.web.pages.frame import LibraryFrame
from octavo.web.pages.reader import read_id, read_number
from octavo.web.parts import PartsOf, Writing

router = APIRouter(include_in_schema=False)
AROUND = 240
NAMES = {
    "document_date": "Date",
    "page_count": "Pages",
    "word_count": "Words",
    "filename": "File",
    "source_type": "Type",
    "bytes": "Size",
}


@dataclass(frozen=True, slots=True)
class Cells:
    """One change as two cells, each with its parts."""

    change: TextChange
    old: list[tuple[Kind, str]]
    new: list[tuple[Kind, str]]


@router.get("/documents/{document}/version")
async def choose_version(request: Request, parts: PartsOf, frame: LibraryFrame, document: str) -> Response:
    async with parts.database.connection() as connection:
        found = await show_document(connection, frame.caller.owner_id, read_id(document))
    return render(request, "version.html", frame, d=found)


@router.post("/actions/documents/{document}/version")
async def add_version(
    request: Request,
    parts: PartsOf,
    caller: Writing,
    intake: IntakeOf,
    limits: LimitsOf,
    document: UUID,
    content_type: ContentType = "",
) -> Response:
    """The old one stays as it is; what a person put right on it is taken over."""
    owner = caller.owner_id
    with parts.limits.transfers.one(owner, limits.concurrent):
        form = await read_file(request, content_type)
        outcome = await intake.take(owner, as_upload(form, version_of=document), form.file, limits)
    if outcome.state == "deduplicated":
        raise SameFile
    return added(request, [outcome], f"/documents/{outcome.document_id}")


@router.get("/documents/{document}/compare/{other}")
async def compare(request: Request, parts: PartsOf, frame: LibraryFrame, document: str, other: str) -> Response:
    """From `other`, an older version or the number of a revision, to the document."""
    ident, revision = read_id(document), read_number(other)
    old = Pick(ident, revision) if revision else Pick(read_id(other))
    async with parts.comparing.take():
        found = await compare_documents(parts.database, parts.bucket, frame.caller.owner_id, old, Pick(ident))
    cells = [make_cells(one) for one in found.text or ()]
    return render(request, "compare.html", frame, found=found, cells=cells, fields=say_fields(found))


def make_cells(change: TextChange) -> Cells:
    parts = list(shorten([(part.kind, part.text) for part in change.parts], AROUND))
    return Cells(
        change,
        [(kind, text) for kind, text in parts if kind != "added"],
        [(kind, text) for kind, text in parts if kind != "removed"],
    )


def say_fields(found: Comparison) -> list[tuple[str, str, str]]:
    return [(NAMES.get(one.field, one.field.capitalize()), say(one.old), say(one.new)) for one in found.fields]


def say(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return f"{value:,}" if isinstance(value, int) else str(value or "—")
