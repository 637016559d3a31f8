"""Edits, retries, deletes and restores documents, and sets their budgets.

Each change and its events are saved in one transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any
from uuid import UUID

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from octavo.ai.ledger import Budgets, lock_ledger, set_budget
from octavo.choreography import Cause, compare_documents, job_after
from octavo.core.errors import BadInput, BudgetTooHigh, NotFound
from octavo.core.types import JSON, Extraction, JobStatus, Lane, new_id
from octavo.database import Connection, fetch_rows, load_queries
from octavo.jobs import queue
from octavo.jobs.queue import RETRYABLE, NewJob, enqueue
from octavo.library.collections import clean_label, ensure_collection
from octavo.library.documents import show_document
from octavo.library.errors import SourceGone, StillProcessed
from octavo.library.facts import FOLLOWED, say_facts
from octavo.library.fields import check_values, save_values
from octavo.records.account import DocumentBudget
from octavo.records.documents import Retried

QUERIES = load_queries("documents")
CHANGES = load_queries("changes")
BUDGETS = load_queries("budgets")
MOST_TAGS = 50
KIND = "process_document"
FETCHED = "fetched"
CHUNKED = "chunked"
# Stages that only describe a text that already exists.
DESCRIBING = frozenset({"classified", "enriched", "embedded"})
FIELDS = ("title", "author", "document_date", "tags", "collection", "expires_on")


class Unset:
    """Marks a field that should not change. None cannot be used for this, because it clears the field."""


UNSET = Unset()


@dataclass(frozen=True, slots=True)
class Edit:
    """Changes that a person makes to documents.

    `tags` replaces all tags. `added_tags` and `removed_tags` add and remove single tags. `facts` contains changes to
    facts that are not fields of this class, and `custom` contains values of custom fields. A value of None removes the
    fact or the value. `expires_on` is the day on which the documents are moved to the
    trash.
    """

    title: str | Unset | None = UNSET
    author: str | Unset | None = UNSET
    document_date: date | Unset | None = UNSET
    tags: Sequence[str] | Unset = UNSET
    collection: str | Unset | None = UNSET
    facts: Mapping[str, str | None] = field(default_factory=dict[str, str | None])
    added_tags: Sequence[str] = ()
    removed_tags: Sequence[str] = ()
    custom: Mapping[str, str | None] = field(default_factory=dict[str, str | None])
    expires_on: date | Unset | None = UNSET

    @property
    def fields(self) -> list[str]:
        """The names of the changed fields."""
        changed = [name for name in FIELDS if not isinstance(getattr(self, name), Unset)]
        return changed if "tags" in changed or not (self.added_tags or self.removed_tags) else [*changed, "tags"]

    @property
    def said(self) -> dict[str, str | None]:
        """The facts that the edit sets or removes."""
        named = {FOLLOWED[name]: _as_text(getattr(self, name)) for name in self.fields if name in FOLLOWED}
        return named | dict(self.facts)


@dataclass(frozen=True, slots=True)
class LockedDocument:
    """A document that is locked until the end of the transaction."""

    id: UUID
    owner_id: UUID
    process_id: UUID
    status: str
    quality: str | None
    revision: int
    last_revision: int
    needs_classification: bool
    source_type: str
    deleted_at: Any
    sha256: str


async def lock_documents(
    connection: Connection,
    owner: UUID,
    documents: Iterable[UUID],
    *,
    trashed: bool | None = False,
    beside: Iterable[UUID] = (),
) -> list[LockedDocument]:
    """Lock the account's `documents`, and also the documents in `beside`. Only `documents` are returned.

    Raises `NotFound` if one of `documents` is missing.
    """
    wanted = set(documents)
    await connection.execute(QUERIES.hold_owner, {"owner": owner})
    async with connection.cursor(row_factory=class_row(LockedDocument)) as cursor:
        await cursor.execute(QUERIES.lock_documents, {"owner": owner, "documents": list(wanted.union(beside))})
        held = await cursor.fetchall()
    fitting = [one for one in held if trashed is None or (one.deleted_at is not None) is trashed]
    found = [one for one in fitting if one.id in wanted]
    if missing := wanted - {one.id for one in found}:
        raise NotFound(f"Document {min(missing)}.")
    return found


async def lock_contents(
    connection: Connection, owner: UUID, documents: Iterable[UUID], *, trashed: bool | None = False
) -> list[LockedDocument]:
    """Lock documents, and all other documents with the same content.

    A change to one of them can make another one the original.
    """
    wanted = list(documents)
    values = {"owner": owner, "documents": wanted}
    await connection.execute(QUERIES.hold_owner, {"owner": owner})
    await connection.execute(QUERIES.lock_contents, values)
    twins = [row[0] for row in await (await connection.execute(QUERIES.documents_like, values)).fetchall()]
    await connection.execute(QUERIES.lock_jobs_of, {"documents": twins})
    return await lock_documents(connection, owner, wanted, trashed=trashed, beside=twins)


# Editing -----------------------------------------------------------------------------------------------------------


async def edit_documents(
    connection: Connection, owner: UUID, documents: Iterable[UUID], edit: Edit, *, change: UUID | None = None
) -> int:
    """Apply an edit to all these documents. If there is an error, no document is changed.

    If the id of a `change` is given, the earlier and the new values are stored under it, so that the change can be
    undone.
    """
    held = await lock_documents(connection, owner, documents)
    collection = await _collection(connection, owner, edit.collection)
    custom = await check_values(connection, owner, edit.custom)
    ids, said = [one.id for one in held], edit.said
    if change is not None:
        names = {*said, *(name for name in edit.fields if name not in FOLLOWED)}
        kept = {"change": change, "documents": ids, "names": sorted(names), "facts": list(said)}
        kept["custom"] = list(custom.values)
        await connection.execute(CHANGES.keep_values, kept)
    values = {"documents": ids, "fields": [name for name in edit.fields if name == "tags"]}
    columns = _field_parameters("collection", collection) | _field_parameters("expires_on", edit.expires_on)
    await connection.execute(QUERIES.edit, values | columns)
    await say_facts(connection, ids, said)
    await _change_tags(connection, owner, ids, edit)
    await save_values(connection, ids, custom)
    if change is not None:
        await connection.execute(CHANGES.keep_result, {"change": change, "documents": ids})
    # Events contain only the names of the fields. Values may be private, and events are sent to external recipients.
    await record_event(
        connection, "edited", ids, {"fields": [*edit.fields, *edit.facts, *(["fields"] if edit.custom else [])]}
    )
    return len(held)


async def _change_tags(connection: Connection, owner: UUID, documents: list[UUID], edit: Edit) -> None:
    given = await _tags(connection, owner, edit.tags)
    added = await _tags(connection, owner, edit.added_tags) or []
    if given is not None:
        await connection.execute(QUERIES.set_tags, {"documents": documents, "tags": given})
    if added:
        await connection.execute(QUERIES.add_tags, {"documents": documents, "tags": added})
        (most,) = await fetch_rows(connection, QUERIES.most_tagged, {"documents": documents})
        _check_number(most["number"])
    if edit.removed_tags:
        values = {"owner": owner, "documents": documents, "names": _labels(edit.removed_tags)}
        await connection.execute(QUERIES.remove_tags, values)
    if documents and (new := [*(given or ()), *added]):
        await _embed_tags(connection, owner, documents[0], new)


def _as_text(value: str | date | None) -> str | None:
    return value.isoformat() if isinstance(value, date) else value


def _field_parameters(name: str, value: object) -> dict[str, object]:
    unset = isinstance(value, Unset)
    return {f"set_{name}": not unset, name: None if unset else value}


async def _collection(connection: Connection, owner: UUID, name: str | Unset | None) -> UUID | Unset | None:
    if name is None or isinstance(name, Unset):
        return name
    return await ensure_collection(connection, owner, name)


async def _tags(connection: Connection, owner: UUID, names: Sequence[str] | Unset) -> list[UUID] | None:
    if isinstance(names, Unset):
        return None
    _check_number(len(names))
    wanted = _labels(names)
    values = {"owner": owner, "ids": [new_id() for _ in wanted], "names": wanted}
    return [row[0] for row in await (await connection.execute(QUERIES.ensure_tags, values)).fetchall()]


def _labels(names: Sequence[str]) -> list[str]:
    return [clean_label(name, "tag") for name in names]


def _check_number(tags: int) -> None:
    if tags > MOST_TAGS:
        raise BadInput(f"The limit per document is {MOST_TAGS} tags.")


async def _embed_tags(connection: Connection, owner: UUID, document: UUID, tags: Sequence[UUID]) -> None:
    """Enqueue a job to embed tags that have no vectors yet.

    All edited documents get the same tags, so one job is enough.
    """
    rows = await (await connection.execute(QUERIES.tags_without_vectors, {"tags": list(tags)})).fetchall()
    if rows:
        await enqueue(connection, [job_after(Cause.TAGGED, owner, document=document)])


# Retrying ----------------------------------------------------------------------------------------------------------


async def retry_document(
    connection: Connection,
    owner: UUID,
    document: UUID,
    from_stage: str | None,
    extraction: Extraction = Extraction.PLAIN,
    lane: Lane = Lane.INTERACTIVE,
) -> Retried:
    """Retry a failed document, or create a new revision of a complete one. Repeated calls create only one job.

    - If a document lacks only its title, summary and tags, the rest is not processed again.
    - If `from_stage` is a stage that generates title, summary or tags, these are generated again.
    - An `extraction` other than plain creates a new revision. If an unfinished job of the document already uses this
      extraction, that job is continued instead.

    Pass the lane `bulk` if many documents are retried.
    """
    if from_stage is not None and extraction is not Extraction.PLAIN:
        raise BadInput("Extraction by a model always starts from the file, so `from_stage` is not allowed.")
    (held,) = await lock_documents(connection, owner, [document])
    if held.quality == "stored_only" and held.status == "completed":
        return Retried(held.id, held.process_id, "skipped")
    row = await (await connection.execute(QUERIES.has_source, {"document": held.id})).fetchone()
    if not row or not row[0]:
        raise SourceGone
    if extraction is not Extraction.PLAIN and not await _has_extraction(connection, held, extraction):
        return await _begin_revision(connection, held, None, extraction, lane=lane)
    if held.status == "pending":
        if not await _is_paused(connection, held):
            return Retried(held.id, held.process_id, "pending")
        held_status = "failed"
    else:
        held_status = held.status
    if held_status == "failed":
        again = from_stage if from_stage is not None else await _stage_to_repeat(connection, held)
        return await _resume(connection, held, again, lane)
    if held.needs_classification and (from_stage is None or from_stage in DESCRIBING):
        return await _add_description(connection, held, lane)
    return await _begin_revision(
        connection, held, from_stage, extraction, regenerate=extraction is not Extraction.PLAIN, lane=lane
    )


async def _resume(connection: Connection, held: LockedDocument, from_stage: str | None, lane: Lane) -> Retried:
    await queue.requeue(connection, held.process_id, from_stage=from_stage)
    if lane is Lane.INTERACTIVE:
        await queue.prioritise_jobs(connection, held.owner_id, [held.process_id])
    return Retried(held.id, held.process_id, "pending")


async def _has_extraction(connection: Connection, held: LockedDocument, extraction: Extraction) -> bool:
    """Whether the document's job uses this extraction method.

    Raises `StillProcessed` if the job is running with another method.
    """
    row = await (await connection.execute(QUERIES.job_extraction, {"job": held.process_id})).fetchone()
    if row is not None and row[0] == extraction:
        return True
    if held.status == "pending":
        raise StillProcessed
    return False


async def _add_description(connection: Connection, held: LockedDocument, lane: Lane) -> Retried:
    """Generate the missing title, summary and tags by resuming the document's job.

    If there is no job to resume, for example because the document is a duplicate, a new revision is started.
    """
    if not await _is_paused(connection, held):
        return await _begin_revision(connection, held, None, lane=lane)
    return await _resume(connection, held, None, lane)


async def _stage_to_repeat(connection: Connection, held: LockedDocument) -> str | None:
    """Return the stage from which to retry. Returns None to continue after the last finished stage.

    A web page that was fetched but not processed is fetched again, because it may have changed.
    """
    row = await (await connection.execute(QUERIES.last_stage, {"job": held.process_id})).fetchone()
    return FETCHED if row and row[0] == FETCHED else None


async def _is_paused(connection: Connection, held: LockedDocument) -> bool:
    row = await (await connection.execute(QUERIES.job_status, {"job": held.process_id})).fetchone()
    return row is not None and JobStatus(row[0]) in RETRYABLE


async def _begin_revision(
    connection: Connection,
    held: LockedDocument,
    from_stage: str | None,
    extraction: Extraction = Extraction.PLAIN,
    *,
    regenerate: bool = False,
    lane: Lane = Lane.INTERACTIVE,
) -> Retried:
    """Start a new revision. `regenerate` requests new answers from models instead of reusing earlier ones."""
    process = new_id()
    values: dict[str, Any] = {"document": held.id, "process": process}
    row = await (await connection.execute(QUERIES.begin_revision, values)).fetchone()
    revision = int(row[0]) if row else 0
    job = process_job(Cause.REVISION_REQUESTED, held.owner_id, held.id, revision, process, lane)
    if extraction is not Extraction.PLAIN:
        job.input["extraction"] = extraction
    describing = from_stage in DESCRIBING
    if describing or regenerate:
        job.input["generation"] = revision
    if describing:
        # Chunks belong to a revision, so the new revision creates and describes them again.
        from_stage = CHUNKED
    await enqueue(connection, [job])
    if from_stage:
        values = {
            "document": held.id,
            "revision": revision,
            "job": process,
            "before": held.process_id,
            "before_revision": held.revision,
            "stage": from_stage,
        }
        row = await (await connection.execute(QUERIES.inherit_stages, values)).fetchone()
        if not describing and (not row or not row[0]):  # a duplicate has no stages to continue from
            raise BadInput(f"There is no finished stage {from_stage}.")
    return Retried(held.id, process, "pending")


def process_job(
    cause: Cause, owner: UUID, document: UUID, revision: int, job: UUID, lane: Lane | None = None
) -> NewJob:
    """Return the job that creates a revision of a document. Its key ensures that it is enqueued only once."""
    key = f"process:{document}:{revision}"
    return job_after(cause, owner, {"revision": revision}, key=key, document=document, job=job, lane=lane)


# Deleting ----------------------------------------------------------------------------------------------------------


async def trash_documents(
    connection: Connection,
    owner: UUID,
    documents: Iterable[UUID],
    event: str = "deleted",
    *,
    change: UUID | None = None,
) -> int:
    """Move documents to the trash and cancel their jobs. The same content can then be added again.

    If `change` is the id of a change, the deletion is recorded under it, so that it can be undone.
    """
    held = await lock_contents(connection, owner, documents)
    ids = [one.id for one in held]
    if change is not None:
        await connection.execute(CHANGES.keep_deleted, {"change": change, "documents": ids})
    await connection.execute(QUERIES.stop_jobs, {"documents": ids})
    await connection.execute(QUERIES.trash, {"documents": ids})
    await connection.execute(QUERIES.release_uploads, {"documents": ids})
    await connection.execute(QUERIES.settle_contents, {"documents": ids})
    await record_event(connection, event, ids, {})
    return len(held)


async def restore_documents(connection: Connection, owner: UUID, documents: Iterable[UUID]) -> int:
    """Restore documents from the trash and resume their jobs.

    If the same content has been added again in the meantime, the restored documents become duplicates.
    """
    held = await lock_contents(connection, owner, documents, trashed=True)
    ids = [one.id for one in held]
    await connection.execute(QUERIES.restore, {"documents": ids})
    await connection.execute(QUERIES.reclaim_uploads, {"owner": owner, "documents": ids})
    await connection.execute(QUERIES.resume_stopped, {"documents": ids})
    because = {one.id: f"restored:{one.deleted_at}" for one in held}
    await compare_documents(connection, Cause.RESTORED, ids, because)
    await record_event(connection, "restored", ids, {})
    return len(held)


async def purge_documents(
    connection: Connection, owner: UUID, documents: Iterable[UUID], event: str = "purged"
) -> list[str]:
    """Delete documents permanently. Returns the keys of unused objects, to be deleted after the commit."""
    held = await lock_contents(connection, owner, documents, trashed=None)
    ids = [one.id for one in held]
    await record_event(connection, event, ids, {})
    await connection.execute(QUERIES.stop_jobs, {"documents": ids})
    await connection.execute(QUERIES.release_uploads, {"documents": ids})
    await connection.execute(QUERIES.settle_contents, {"documents": ids})
    keys = [row[0] for row in await (await connection.execute(QUERIES.purge, {"documents": ids})).fetchall()]
    await connection.execute(QUERIES.delete_jobs_of, {"documents": ids})
    unused = await (await connection.execute(QUERIES.delete_unused_objects, {"keys": keys})).fetchall()
    return [row[0] for row in unused]


async def record_event(
    connection: Connection, kind: str, documents: Sequence[UUID], detail: Mapping[str, JSON]
) -> None:
    """Record an event for each of these documents."""
    values = {"kind": kind, "documents": list(documents), "detail": Jsonb(dict(detail))}
    await connection.execute(QUERIES.record, values)


# Budgets ----------------------------------------------------------------------------------------------------------


async def read_document_budget(
    connection: Connection, owner: UUID, document: UUID, defaults: Budgets
) -> DocumentBudget:
    await show_document(connection, owner, document)
    values = {"owner": owner, "document": document, "usual": defaults.limits}
    (row,) = await fetch_rows(connection, BUDGETS.document, values)
    own, general = row["own_usd"], float(row["usual_usd"])
    return DocumentBudget(
        document_id=document,
        usd=general if own is None else float(own),
        usual_usd=general,
        is_set=own is not None,
        most_usd=float(row["most_usd"]),
        spent_usd=float(row["spent_usd"]),
        paused=row["paused"],
        needed_usd=float(row["needed_usd"]),
        over=row["over"],
    )


async def set_document_budget(
    connection: Connection, owner: UUID, document: UUID, most: float | None, defaults: Budgets
) -> DocumentBudget:
    """Set the budget of a document. None restores the default."""
    await lock_documents(connection, owner, [document])
    await lock_ledger(connection)
    before = await read_document_budget(connection, owner, document, defaults)
    if most is not None and most > before.most_usd:
        raise BudgetTooHigh(f"The maximum is {before.most_usd:.2f} USD.")
    await set_budget(connection, "document", document, most)
    await record_event(connection, "edited", [document], {"fields": ["budget"], "budget_usd": most})
    return await read_document_budget(connection, owner, document, defaults)
