"""Actions on documents and jobs, such as retry and delete. They are submitted as forms, so they also work without
scripts.

The response redirects back to the page. Scripts submit the same forms with the header `Accept: application/json`. The
response is then empty, and live events report the result.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Literal, TypeAlias
from uuid import UUID

from fastapi import APIRouter, Form, Request, Response

from octavo.core.errors import NotAllowed, NotFound
from octavo.core.texts import gettext as _
from octavo.core.texts import mark
from octavo.core.types import Extraction, JobStatus
from octavo.database import Connection, load_queries, read_clock
from octavo.jobs.queue import (
    IllegalTransition,
    cancel_jobs,
    discard_dead_letters,
    pause_imports,
    prioritise_jobs,
    resume_imports,
    retry_jobs,
    retry_waiting_jobs,
)
from octavo.jobs.views import MOST_LIMIT, show_job
from octavo.library import changes
from octavo.library.documents import Filters, list_documents, show_document
from octavo.web.context.callers import SOME_COLLECTIONS, EditCaller, WriteCaller
from octavo.web.context.intake import check_extraction
from octavo.web.context.services import ServicesOf
from octavo.web.shell.document_status import is_stale
from octavo.web.shell.forms import Back, Question, ask, done
from octavo.web.shell.frame import LibraryFrame

router = APIRouter(include_in_schema=False, prefix="/actions")
QUERIES = load_queries("pages")
LIBRARY, TRASH = "/library", "/trash"
DESCRIBED = "classified"
Sure = Annotated[bool, Form()]
Change: TypeAlias = Callable[[Connection, UUID, UUID], Awaitable[object]]


# One document ------------------------------------------------------------------------------------------------------


async def cancel(connection: Connection, owner: UUID, document: UUID) -> None:
    found = await show_document(connection, owner, document)
    await _cancel_job(connection, owner, found.process_id)


async def retry(connection: Connection, owner: UUID, document: UUID) -> None:
    await changes.retry_document(connection, owner, document, None)


async def resume(connection: Connection, owner: UUID, document: UUID) -> None:
    """Queue a stalled job again, and take it away from its worker if it has one. Its finished stages are kept.

    Calling this repeatedly is safe, because a job that is queued or makes progress is not changed.
    """
    (held,) = await changes.lock_documents(connection, owner, [document])
    job = await show_job(connection, owner, held.process_id)
    if job.status != JobStatus.PROCESSING:
        await changes.retry_document(connection, owner, document, None)
    elif is_stale(job, await read_clock(connection)):
        await cancel_jobs(connection, owner, [job.id])
        await retry_jobs(connection, owner, [job.id])


async def try_now(connection: Connection, owner: UUID, document: UUID) -> None:
    """Start the next attempt of the document's waiting jobs now.

    Calling this repeatedly is safe, because jobs that are not waiting are not changed.
    """
    await show_document(connection, owner, document)
    await retry_waiting_jobs(connection, owner, document)


async def prioritise(connection: Connection, owner: UUID, document: UUID) -> None:
    """Move the document's job ahead of imports in the queue."""
    found = await show_document(connection, owner, document)
    await _prioritise_job(connection, owner, found.process_id)


async def restart(connection: Connection, owner: UUID, document: UUID) -> None:
    await changes.retry_document(connection, owner, document, "")


async def classify(connection: Connection, owner: UUID, document: UUID) -> None:
    """Generate the title, summary and tags again. The text is not extracted from the file again."""
    await changes.retry_document(connection, owner, document, DESCRIBED)


async def clean(connection: Connection, owner: UUID, document: UUID) -> None:
    """Process the document again, with a model that cleans up the extracted text."""
    await changes.retry_document(connection, owner, document, None, Extraction.CLEAN)


async def reread(connection: Connection, owner: UUID, document: UUID) -> None:
    """Process the document again, with a model that extracts the text from images of the pages."""
    await changes.retry_document(connection, owner, document, None, Extraction.PAGES)


async def discard(connection: Connection, owner: UUID, document: UUID) -> None:
    found = await show_document(connection, owner, document)
    await discard_dead_letters(connection, [found.process_id], owner_id=owner)


async def trash(connection: Connection, owner: UUID, document: UUID) -> None:
    try:
        await changes.trash_documents(connection, owner, [document])
    except NotFound:
        await show_document(connection, owner, document, trashed=True)  # repeated request


async def restore(connection: Connection, owner: UUID, document: UUID) -> None:
    try:
        await changes.restore_documents(connection, owner, [document])
    except NotFound:
        await show_document(connection, owner, document)


Action = Literal[
    "cancel", "retry", "try_now", "prioritise", "resume", "restart", "classify", "clean", "reread", "trash", "restore"
]
ACTIONS: dict[Action, Change] = {
    "cancel": cancel,
    "retry": retry,
    "try_now": try_now,
    "prioritise": prioritise,
    "resume": resume,
    "restart": restart,
    "classify": classify,
    "clean": clean,
    "reread": reread,
    "trash": trash,
    "restore": restore,
}
# Actions that limited members can use.
FOR_LIMITED = frozenset({"trash", "restore", "retry", "try_now"})
# Actions that need a model.
WRITING = frozenset({"clean", "reread"})


@router.post("/documents/{document}/discard")
async def discard_document(
    request: Request,
    services: ServicesOf,
    caller: WriteCaller,
    frame: LibraryFrame,
    document: UUID,
    back: Back = LIBRARY,
    sure: Sure = False,  # noqa: FBT002 - a form field
) -> Response:
    """Discard a document's job that failed for good, so that it is not retried. Requires confirmation.

    The file is kept.
    """
    async with services.database.transaction() as connection:
        if sure:
            await discard(connection, caller.owner_id, document)
            return done(request, back)
        found = await show_document(connection, caller.owner_id, document)
    text = _("This document will not be retried automatically. Its file is kept, so you can process it again later.")
    return ask(
        request,
        Question(_("Discard “%(title)s”?", title=found.title), text, request.url.path, _("Discard"), LIBRARY, SURE),
        frame,
    )


@router.post("/documents/{document}/purge")
async def purge_document(
    request: Request,
    services: ServicesOf,
    caller: WriteCaller,
    frame: LibraryFrame,
    document: UUID,
    back: Back = TRASH,
    sure: Sure = False,  # noqa: FBT002 - a form field
) -> Response:
    async with services.database.transaction() as connection:
        if not sure:
            found = await show_document(connection, caller.owner_id, document, trashed=True)
            question = Question(
                _("Delete “%(title)s” permanently?", title=found.title), GONE, request.url.path, FOR_GOOD, TRASH, SURE
            )
            return ask(request, question, frame)
        keys = await changes.purge_documents(connection, caller.owner_id, [document])
    await services.bucket.delete(keys)
    return done(request, back)


@router.post("/documents/{document}/{verb}")
async def act_on_document(
    request: Request, services: ServicesOf, caller: EditCaller, document: UUID, verb: Action, back: Back = LIBRARY
) -> Response:
    if caller.limited and verb not in FOR_LIMITED:
        raise NotAllowed(_(SOME_COLLECTIONS))
    if verb in WRITING:
        check_extraction(services.settings, caller, verb)
    async with services.database.transaction() as connection:
        await ACTIONS[verb](connection, caller.owner_id, document)
    return done(request, back)


# Jobs --------------------------------------------------------------------------------------------------------------


@router.post("/jobs/{job}/{verb}")
async def act_on_job(
    request: Request,
    services: ServicesOf,
    caller: WriteCaller,
    job: UUID,
    verb: Literal["cancel", "retry", "prioritise"],
    back: Back = LIBRARY,
) -> Response:
    async with services.database.transaction() as connection:
        if verb == "cancel":
            await _cancel_job(connection, caller.owner_id, job)
        elif verb == "prioritise":
            await _prioritise_job(connection, caller.owner_id, job)
        else:
            await retry_jobs(connection, caller.owner_id, [job])
    return done(request, back)


async def _cancel_job(connection: Connection, owner: UUID, job: UUID) -> None:
    try:
        async with connection.transaction():
            await cancel_jobs(connection, owner, [job])
    except IllegalTransition:
        return  # the job has ended meanwhile


async def _prioritise_job(connection: Connection, owner: UUID, job: UUID) -> None:
    try:
        async with connection.transaction():
            await prioritise_jobs(connection, owner, [job])
    except IllegalTransition:
        return  # the job has ended meanwhile


@router.post("/imports/{verb}")
async def act_on_imports(
    request: Request,
    services: ServicesOf,
    caller: WriteCaller,
    verb: Literal["pause", "resume"],
    back: Back = LIBRARY,
) -> Response:
    async with services.database.transaction() as connection:
        await (pause_imports if verb == "pause" else resume_imports)(connection, caller.owner_id)
    return done(request, back)


# The trash --------------------------------------------------------------------------------------------------------


@router.post("/trash/empty")
async def empty_trash(
    request: Request,
    services: ServicesOf,
    caller: WriteCaller,
    frame: LibraryFrame,
    sure: Sure = False,  # noqa: FBT002 - a form field
) -> Response:
    """Delete all documents in the trash permanently, in batches with one transaction each. Requires confirmation."""
    if not sure:
        return ask(request, Question(_("Empty the trash?"), GONE, request.url.path, FOR_GOOD, TRASH, SURE), frame)
    trashed = Filters(trashed=True)
    while True:
        async with services.database.transaction() as connection:
            page = await list_documents(connection, caller.owner_id, trashed, limit=MOST_LIMIT)
            ids = [one.id for one in page.items]
            keys = await changes.purge_documents(connection, caller.owner_id, ids) if ids else []
        await services.bucket.delete(keys)
        if page.next_cursor is None:
            return done(request, TRASH)


GONE = mark("This cannot be undone. Copies of the file that belong to other owners are kept.")
FOR_GOOD = mark("Delete permanently")
SURE = (("sure", "true"),)
