"""The page for editing the title, author, date, tags, collection, expiry date and custom fields of a document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request, Response

from octavo.core.errors import BadInput
from octavo.core.texts import gettext as _
from octavo.database import Connection
from octavo.library import changes
from octavo.library.collections import Collection, Tag, list_collections, list_tags
from octavo.library.documents import show_document
from octavo.library.fields import list_fields, suggest_facts
from octavo.records.automation import FieldView
from octavo.records.documents import Document
from octavo.web.context.callers import EditCaller
from octavo.web.context.services import ServicesOf
from octavo.web.rooms.library.api import EditRequest
from octavo.web.shell.forms import read_form, read_id
from octavo.web.shell.frame import Frame, LibraryFrame, back_to, render

router = APIRouter(include_in_schema=False, prefix="/documents/{document}/edit")
WRONG = 422
MOST_SUGGESTED = 200
FIELD = "field:"
Field = Annotated[str, Form(max_length=20_000)]


def _sentences() -> dict[str, str]:
    """Return the error message for each field of the form."""
    line = _("Use a single line of at most 500 characters.")
    return {
        "title": line,
        "author": line,
        "document_date": _("Use a date such as 2026-11-15."),
        "tags": _("Use at most %(most)s tags of at most 200 characters each.", most=changes.MOST_TAGS),
        "collection": _("Use a single line of at most 200 characters."),
        "expires_on": _("Use a date such as 2026-11-15."),
        "fields": _("Use single lines of at most 500 characters."),
    }


@dataclass(frozen=True, slots=True)
class Suggestions:
    """The suggestions that the form shows: collections, tags and custom fields of the account.

    `values` contains suggested values of custom fields, taken from the facts of the document.
    """

    collections: list[Collection]
    tags: list[Tag]
    fields: list[FieldView]
    values: dict[str, str]


@router.get("")
async def form(
    request: Request, services: ServicesOf, caller: EditCaller, frame: LibraryFrame, document: str
) -> Response:
    async with services.database.connection() as connection:
        found = await show_document(connection, caller.owner_id, read_id(document))
        suggestions = await _suggestions(connection, frame, found)
    return _show(request, frame, found, suggestions, as_written(found), {})


@router.post("")
async def save(  # noqa: PLR0917 - fields of a form
    request: Request,
    services: ServicesOf,
    caller: EditCaller,
    frame: LibraryFrame,
    document: str,
    title: Field = "",
    author: Field = "",
    document_date: Field = "",
    tags: Field = "",
    collection: Field = "",
    expires_on: Field = "",
) -> Response:
    """Save only the fields that were changed."""
    ident = read_id(document)
    written = {"title": title, "author": author, "document_date": document_date, "tags": tags, "collection": collection}
    written["expires_on"] = expires_on
    async with services.database.transaction() as connection:
        found = await show_document(connection, caller.owner_id, ident)
        changed = {name: value for name, value in written.items() if value.strip() != as_written(found)[name]}
        custom = await _changed_fields(request, found)
        given = read_fields(changed) | ({"fields": custom} if custom else {})
        wanted, wrong = read_form(EditRequest, given, _sentences())
        if wanted is not None and given:
            try:
                async with connection.transaction():
                    await changes.edit_documents(connection, caller.owner_id, [ident], wanted.as_edit())
            except BadInput as error:
                wrong = {"fields" if custom else next(iter(changed)): error.line}
                wanted = None
    if wanted is None:
        async with services.database.connection() as connection:
            suggestions = await _suggestions(connection, frame, found)
        return _show(request, frame, found, suggestions, written, wrong, WRONG)
    return back_to(f"/documents/{ident}")


async def _changed_fields(request: Request, document: Document) -> dict[str, str | None]:
    """Return the custom fields that were changed in the form. An empty field clears the value."""
    sent = {name.removeprefix(FIELD): value for name, value in (await request.form()).items() if name.startswith(FIELD)}
    texts = {name: value.strip() for name, value in sent.items() if isinstance(value, str)}
    return {name: text or None for name, text in texts.items() if text != document.fields.get(name, "")}


def as_written(document: Document) -> dict[str, str]:
    """Return the values for the form fields of a document. The title is empty if it is only the file name."""
    return {
        "title": document.title if document.title != document.filename else "",
        "author": document.author or "",
        "document_date": document.document_date.isoformat() if document.document_date else "",
        "tags": ", ".join(document.tags),
        "collection": document.collection or "",
        "expires_on": document.expires_on.isoformat() if document.expires_on else "",
    }


def read_fields(written: Mapping[str, str]) -> dict[str, Any]:
    """Convert form fields to the format of the API: an empty field becomes null, and tags become a list."""
    given: dict[str, Any] = {name: value.strip() or None for name, value in written.items()}
    if "tags" in given:
        given["tags"] = [tag.strip() for tag in written["tags"].split(",") if tag.strip()]
    return given


async def _suggestions(connection: Connection, frame: Frame, document: Document) -> Suggestions:
    owner = frame.caller.owner_id
    collections, tags = await list_collections(connection, owner), await list_tags(connection, owner)
    fields = await list_fields(connection, owner)
    facts = await suggest_facts(connection, owner, document.id) if fields else []
    values = {name: value for one in facts for name, value in one.suggests.items()}
    return Suggestions(collections[:MOST_SUGGESTED], tags[:MOST_SUGGESTED], fields, values)


def _show(
    request: Request,
    frame: Frame,
    document: Document,
    suggestions: Suggestions,
    written: Mapping[str, str],
    wrong: Mapping[str, str],
    status: int = 200,
) -> Response:
    return render(
        request, "edit.html", frame, status, d=document, written=written, wrong=wrong, suggestions=suggestions
    )
