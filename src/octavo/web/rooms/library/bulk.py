"""Applies one action to many documents, which are selected by id or by a filter.

Contains the API and the form of the library page.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from octavo.analyse.analyses import start_analyses
from octavo.core.errors import BadInput, NotAllowed, NotFound
from octavo.core.texts import Texts
from octavo.core.texts import gettext as _
from octavo.core.types import Lane, new_id
from octavo.database import Connection
from octavo.library import changes
from octavo.library.bulk import (
    MOST_SELECTED,
    MOST_TOGETHER,
    Act,
    BatchResult,
    BulkAction,
    BulkResult,
    Chosen,
    find_present,
    undo_change,
)
from octavo.library.changes import Edit
from octavo.library.documents import count_documents
from octavo.owners import Caller
from octavo.owners.grants import require_writable
from octavo.records.documents import BulkAnswer
from octavo.records.jobs import JobError
from octavo.web.context.callers import SOME_COLLECTIONS, EditCaller, ReadCaller
from octavo.web.context.idempotency import Idempotency, IdempotencyOf
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.parameters import problems
from octavo.web.http.problems import WrongMethod
from octavo.web.rooms.library.api import EditRequest, FilterRequest, Label, Plain
from octavo.web.rooms.library.exports import download_sources
from octavo.web.shell.forms import LIBRARY, MOST_IDS, done, read_form, read_selected

router = APIRouter(prefix="/api/v1/documents/bulk", tags=["documents"])
pages = APIRouter(include_in_schema=False, prefix="/actions")
MOST_PROMPTS = 100
NOT_POST = ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"]
ActionName = Literal["delete", "restore", "purge", "retry", "edit", "convert", "analyse"]
Tags = Annotated[list[Label], Field(max_length=changes.MOST_TAGS)]
# Whether the documents must be in the trash; None allows both.
TRASHED: dict[str, bool | None] = {"restore": True, "purge": None}


class BulkEdit(EditRequest):
    """Changes to many documents.

    `tags` replaces all tags; `add_tags` and `remove_tags` change only the tags that they contain. `mapping` is used
    only by the `convert` action, and `prompt_ids` only by the `analyse` action.
    """

    kind: str | None = Field(default=None, max_length=200, pattern=Plain)
    add_tags: Tags | None = None
    remove_tags: Tags | None = None
    mapping: Label | None = None
    prompt_ids: Annotated[list[UUID], Field(min_length=1, max_length=MOST_PROMPTS)] | None = None

    def as_edit(self) -> Edit:
        named = set(EditRequest.model_fields) & self.model_fields_set - {"fields"}
        given: dict[str, Any] = {name: getattr(self, name) for name in named}
        if "tags" in given:
            given["tags"] = given["tags"] or []
        facts = {"kind": self.kind} if "kind" in self.model_fields_set else {}
        return Edit(
            **given,
            facts=facts,
            custom=self.fields or {},
            added_tags=self.add_tags or (),
            removed_tags=self.remove_tags or (),
        )


EDITED = frozenset({*EditRequest.model_fields, "kind", "add_tags", "remove_tags"})
ALLOWED = {"edit": EDITED, "convert": {"mapping"}, "analyse": {"prompt_ids"}}


class SelectionRequest(BaseModel):
    """Documents selected by id or by a filter."""

    model_config = ConfigDict(extra="forbid")

    ids: list[UUID] | None = Field(default=None, min_length=1, max_length=MOST_IDS)
    filter: FilterRequest | None = None

    def check(self) -> None:
        if (self.ids is None) == (self.filter is None):
            raise BadInput("Either `ids` or `filter` is required.")

    def as_chosen(self) -> Chosen:
        return Chosen(frozenset(self.ids or ()), self.filter.as_filters() if self.filter else None)


class BulkRequest(SelectionRequest):
    """One action for many documents, selected by id or by a filter."""

    action: ActionName
    edit: BulkEdit | None = None

    def check(self) -> None:
        super().check()
        if self.edit is None and self.action == "edit":
            raise BadInput("`edit` is required for the action edit.")
        if self.edit and self.edit.model_fields_set - ALLOWED.get(self.action, set()):
            raise BadInput(
                "`edit` is only allowed for the actions edit, convert and analyse. For convert, it contains only "
                "`mapping`; for analyse, only `prompt_ids`."
            )


@router.post("", response_model_exclude_none=True, responses=problems(400, 401, 403, 404, 409, 422))
async def bulk(services: ServicesOf, caller: EditCaller, wanted: BulkRequest, idempotency: IdempotencyOf) -> BulkAnswer:
    """Apply one action to many documents.

    The documents are changed in batches of 500. If the action fails for one document, neither its batch nor the
    following batches are changed. With an `Idempotency-Key`, either all documents are changed or none; a filter can
    then match up to 10,000 documents. Edits and deletions can be undone.

    The `convert` action queues a conversion of each document with the mapping in `edit.mapping`. A single notification
    is sent when all conversions have ended. The `analyse` action runs the prompts in `edit.prompt_ids`, or all active
    prompts, on each document that has text.
    """
    wanted.check()
    chosen = wanted.as_chosen()
    await check_limits(services, caller, chosen, wanted.action)
    return await apply(services, caller.owner_id, chosen, wanted.action, wanted.edit, idempotency)


@router.post("/{change}/undo", response_model_exclude_none=True, responses=problems(401, 403, 404, 422))
async def undo(services: ServicesOf, caller: EditCaller, change: UUID) -> BulkAnswer:
    """Undo an edit or a deletion of many documents. The edited fields get exactly the values that they had before.

    `change` is the `undo_id` of the action. Repeating the request changes nothing.
    """
    return BulkAnswer(changed=await undo_change(services.database, caller.owner_id, change))


@router.post(
    "/download",
    response_class=StreamingResponse,
    responses={
        200: {"description": "A ZIP file.", "content": {"application/zip": {"schema": {"type": "string"}}}},
        **problems(400, 401, 404, 422),
    },
)
async def download(
    request: Request, services: ServicesOf, caller: ReadCaller, wanted: SelectionRequest
) -> StreamingResponse:
    """Download the sources of many documents as one ZIP file. Documents without a stored file are left out."""
    wanted.check()
    return await _download(request, services, caller.owner_id, wanted.as_chosen())


@router.api_route("", methods=NOT_POST, include_in_schema=False)
async def refuse_other_methods() -> None:
    """Refuse methods other than POST. Without this route, `bulk` would be read as the id of a document."""
    raise WrongMethod(["POST"])


# Actions that limited members can use. When they change a document, a database trigger checks its collection.
FOR_LIMITED = frozenset[ActionName]({"edit", "delete", "restore"})


async def check_limits(services: Services, caller: Caller, chosen: Chosen, action: ActionName) -> None:
    """Check that a limited member can apply this action to the selected documents."""
    if not caller.limited:
        return
    if action not in FOR_LIMITED:
        raise NotAllowed(SOME_COLLECTIONS)
    async with services.database.connection() as connection:
        await require_writable(connection, caller, chosen.ids)


async def apply(
    services: Services,
    owner: UUID,
    chosen: Chosen,
    action: ActionName,
    edit: BulkEdit | None = None,
    idempotency: Idempotency | None = None,
) -> BulkAnswer:
    """Apply an action to the documents that are selected now.

    If the request has an Idempotency-Key, one transaction makes all changes and stores the response.
    """
    if action == "convert":
        return await _convert(services, owner, chosen, edit, idempotency)
    kept = idempotency if idempotency and idempotency.has_key else None
    ids = await chosen.select(services.database, owner, MOST_TOGETHER if kept else MOST_SELECTED)
    shown = ids if chosen.by_filter else None
    change = new_id() if action in {"edit", "delete"} else None
    wanted = BulkAction(
        services.database,
        services.bucket,
        owner,
        _act(owner, action, edit, change),
        trashed=TRASHED.get(action, False),
        skips=chosen.by_filter,
        on_changed=partial(_keep, kept, shown, change) if kept else None,
    )
    return _answer(await wanted.run(ids), shown, change)


async def _keep(
    kept: Idempotency, ids: list[UUID] | None, change: UUID | None, connection: Connection, changed: int
) -> None:
    await kept.keep(connection, _answer(BulkResult(changed), ids, change))


def _answer(result: BulkResult, ids: list[UUID] | None, change: UUID | None) -> BulkAnswer:
    error = JobError(result.error.code, result.error.line) if result.error else None
    return BulkAnswer(changed=result.changed, ids=ids, undo_id=change if result.changed else None, error=error)


def _act(owner: UUID, action: ActionName, edit: BulkEdit | None, change: UUID | None) -> Act:
    if action == "edit" and edit:
        return partial(_edit, owner, edit.as_edit(), change)
    if action == "analyse":
        return partial(_analyse, owner, edit.prompt_ids if edit else None)
    if action == "delete":
        return partial(_delete, owner, change)
    return partial({"restore": _restore, "purge": _purge}.get(action, _retry), owner)


async def _edit(
    owner: UUID, edit: Edit, change: UUID | None, connection: Connection, documents: Sequence[UUID]
) -> BatchResult:
    return BatchResult(await changes.edit_documents(connection, owner, documents, edit, change=change))


async def _delete(owner: UUID, change: UUID | None, connection: Connection, documents: Sequence[UUID]) -> BatchResult:
    return BatchResult(await changes.trash_documents(connection, owner, documents, change=change))


async def _restore(owner: UUID, connection: Connection, documents: Sequence[UUID]) -> BatchResult:
    return BatchResult(await changes.restore_documents(connection, owner, documents))


async def _purge(owner: UUID, connection: Connection, documents: Sequence[UUID]) -> BatchResult:
    return BatchResult(len(documents), await changes.purge_documents(connection, owner, documents))


async def _retry(owner: UUID, connection: Connection, documents: Sequence[UUID]) -> BatchResult:
    for document in documents:
        await changes.retry_document(connection, owner, document, None, lane=Lane.BULK)
    return BatchResult(len(documents))


async def _analyse(
    owner: UUID, prompts: list[UUID] | None, connection: Connection, documents: Sequence[UUID]
) -> BatchResult:
    await changes.lock_documents(connection, owner, documents)
    return BatchResult(len(await start_analyses(connection, owner, documents, prompts)))


async def _convert(
    services: Services, owner: UUID, chosen: Chosen, edit: BulkEdit | None, idempotency: Idempotency | None
) -> BulkAnswer:
    # Imported here, so that only the conversions room loads the conversion engine when the server starts.
    from octavo.convert.mappings.stored_mappings import DEFAULT_MAPPING, find_mapping
    from octavo.convert.submissions import begin_batch

    ids, filters = sorted(chosen.ids), chosen.filters
    async with services.database.transaction() as connection:
        mapping = await find_mapping(connection, owner, (edit and edit.mapping) or DEFAULT_MAPPING)
        if filters is None:
            await changes.lock_documents(connection, owner, ids)
        changed = len(ids) if filters is None else await count_documents(connection, owner, filters)
        batch = await begin_batch(connection, owner, mapping, documents=ids, filters=filters)
        answer = BulkAnswer(changed=changed, batch_id=batch)
        if idempotency:
            await idempotency.keep(connection, answer)
    return answer


async def _download(request: Request, services: Services, owner: UUID, chosen: Chosen) -> StreamingResponse:
    ids = await chosen.select(services.database, owner)
    if chosen.filters is None:
        async with services.database.connection() as connection:
            if len(await find_present(connection, owner, ids)) < len(ids):
                raise NotFound
    return download_sources(request, services, owner, ids)


# The form of the library page ---------------------------------------------------------------------------------------

# Fields of the form, and the fields of the API that they set. Filters have other names.
FORM_FIELDS = {"new_collection": "collection", "new_author": "author", "new_date": "document_date", "new_kind": "kind"}
FORM_ACTIONS: dict[str, ActionName] = {"edit": "edit", "retry": "retry", "delete": "delete"}
FORM_TAGS = {"add_tag": "add_tags", "remove_tag": "remove_tags"}
SENTENCES = Texts({"document_date": "Use a date such as 2026-11-15."})


@pages.post("/bulk")
async def act_on_many(request: Request, services: ServicesOf, caller: EditCaller) -> Response:
    """Apply one action to the documents that are selected on the library page, for browsers without scripts."""
    sent = [(name, value) for name, value in (await request.form()).multi_items() if isinstance(value, str)]
    fields, selection = dict(sent), read_selected(sent)
    action = fields.get("action", "")
    if action == "download":
        return await _download(request, services, caller.owner_id, selection)
    if action not in FORM_ACTIONS:
        raise BadInput(_("Choose an action: edit, retry, download or delete."))
    edit = read_edit(fields) if action == "edit" else None
    await check_limits(services, caller, selection, FORM_ACTIONS[action])
    await apply(services, caller.owner_id, selection, FORM_ACTIONS[action], edit)
    return done(request, fields.get("back", LIBRARY))


def read_edit(fields: dict[str, str]) -> BulkEdit:
    """Read the changes from the form. Empty fields change nothing."""
    given: dict[str, Any] = {
        name: fields[field].strip() for field, name in FORM_FIELDS.items() if fields.get(field, "").strip()
    }
    for field, name in FORM_TAGS.items():
        if tags := [tag.strip() for tag in fields.get(field, "").split(",") if tag.strip()]:
            given[name] = tags
    if not given:
        raise BadInput(_("Enter a tag, a collection, a date, an author or a kind."))
    wanted, wrong = read_form(BulkEdit, given, SENTENCES)
    if wanted is None:
        raise BadInput(next(iter(wrong.values())))
    return wanted
