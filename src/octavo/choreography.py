"""Defines in one table which job follows which event.

Each event leads to one job, which is built here. The caller queues the job in the same transaction as the event, so
that both are committed or neither is. Database triggers never queue jobs, and database functions queue only jobs that
were built here. The table contains all jobs except scheduled ones and those created with `octavo jobs add`.

This module is not part of `pipeline`, because packages that `pipeline` imports also queue jobs. `make docs` writes the
table to docs/reference/what-follows-what.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from uuid import UUID

from octavo.core.types import JSON, Lane, new_id
from octavo.database import Connection, fetch_rows, load_queries
from octavo.jobs.queue import NewJob, enqueue

QUERIES = load_queries("choreography")

# Sources of events other than job kinds.
PERSON, RELAY, WATCHER = "a person", "the event relay", "the source watcher"


class Cause(StrEnum):
    """An event after which a job is queued."""

    UPLOAD_STORED = "upload stored"
    FILES_FOUND = "files found in a source"
    PART_STORED = "file from an archive or email stored"
    REVISION_REQUESTED = "new revision requested"
    TAGGED = "tags assigned"
    DESCRIBED_OFFLINE = "model providers unavailable"
    IMPROVED = "summary and tags improved"
    EMBEDDED = "vectors complete"
    VECTORS_REQUESTED = "vectors requested"
    MODEL_CHANGED = "embedding model changed"
    OTHER_MODEL = "vectors from a new model complete"
    DESCRIBED_LATE = "summary and tags completed late"
    RESTORED = "restored from the trash"
    VISITOR_MERGED = "visitor signed in"
    COMPARISON_REQUESTED = "comparison requested"
    MANY_VECTORS = "many vectors without an index"
    LONG_TEXT_READY = "long text ready"
    ANALYSIS_REQUESTED = "analysis requested"
    RULE_ANALYSIS = "rule starts an analysis"
    ITEM_DUE = "segment ready for a prompt"
    PROMPT_ANSWERED = "prompt answered for all segments"
    CONVERSION_REQUESTED = "conversion requested"
    BATCH_REQUESTED = "conversion of many documents requested"
    RULE_CONVERSION = "rule starts a conversion"
    BATCH_PART_LISTED = "document in a batch listed"
    DELIVERY_DUE = "delivery due"
    TEST_DELIVERY_REQUESTED = "test delivery requested"
    EXPORT_REQUESTED = "export requested"
    REPLAY_REQUESTED = "replay of a delivery requested"


@dataclass(frozen=True, slots=True)
class Consequence:
    """The job that follows an event.

    `sources` lists everything that can trigger the event: kinds of jobs, a person, the event relay, or the source
    watcher. Jobs with a lower `priority` run first; the default of 5 is for jobs that a person is waiting for. If
    `lane` is None, the job gets the lane of the newest job of its document.
    """

    kind: str
    sources: tuple[str, ...]
    when: str
    priority: int = 5
    max_attempts: int | None = None
    lane: Lane | None = None


CHOREOGRAPHY: Mapping[Cause, Consequence] = {
    Cause.UPLOAD_STORED: Consequence(
        "process_document",
        (PERSON, "add_files"),
        "A file, link or text is stored, and no processed document has the same content.",
    ),
    Cause.FILES_FOUND: Consequence(
        "add_files",
        (WATCHER,),
        "Files in a watched folder have stopped changing, and no other job is adding files from this source.",
        priority=6,
        lane=Lane.INTERACTIVE,
    ),
    Cause.PART_STORED: Consequence(
        "process_document",
        ("process_document",),
        "A file from an archive or email is stored, and no processed document has the same content.",
        priority=8,
        lane=Lane.BULK,
    ),
    Cause.REVISION_REQUESTED: Consequence(
        "process_document", (PERSON,), "Somebody asked to process a document again.", lane=Lane.INTERACTIVE
    ),
    Cause.TAGGED: Consequence(
        "embed_tags",
        ("process_document", "embed_document", PERSON),
        "A document got new tags, or its vectors were recomputed with another model.",
    ),
    Cause.DESCRIBED_OFFLINE: Consequence(
        "improve_document",
        ("process_document",),
        "The model providers were unavailable, so a document's title, summary, tags or vectors were made locally.",
        priority=7,
    ),
    Cause.IMPROVED: Consequence(
        "detect_connections",
        ("improve_document",),
        "A model replaced the title, summary and tags that were generated without one.",
        priority=6,
    ),
    Cause.EMBEDDED: Consequence(
        "detect_connections",
        ("process_document", "embed_document", PERSON),
        "All chunks of a revision have vectors, or an upload reuses the vectors of an identical document.",
        priority=6,
    ),
    Cause.VECTORS_REQUESTED: Consequence(
        "embed_document",
        (PERSON,),
        "Somebody requested vectors for documents that have none from the chosen model.",
        lane=Lane.BULK,
    ),
    Cause.MODEL_CHANGED: Consequence(
        "embed_document",
        ("renew_vectors",),
        "A document's vectors come from a model other than the configured one. "
        "Searches use the old vectors until the new ones are complete.",
        priority=8,
        lane=Lane.BULK,
    ),
    Cause.OTHER_MODEL: Consequence(
        "detect_connections",
        ("embed_document",),
        "All chunks of a document have vectors from the new model.",
        priority=6,
    ),
    Cause.DESCRIBED_LATE: Consequence(
        "detect_connections",
        ("process_document",),
        "A document was compared with others before it had a summary and tags, and now has them. "
        "It is compared again, because some connections depend on them.",
        priority=6,
    ),
    Cause.RESTORED: Consequence(
        "detect_connections",
        (PERSON,),
        "A document was restored from the trash. Documents added in the meantime were not compared with it.",
        priority=6,
    ),
    Cause.VISITOR_MERGED: Consequence(
        "detect_connections",
        (PERSON,),
        "A visitor's documents were moved to the account that the visitor signed in to.",
        priority=6,
        lane=Lane.BULK,
    ),
    Cause.COMPARISON_REQUESTED: Consequence(
        "detect_connections",
        (PERSON,),
        "Somebody asked to compare documents again.",
        priority=7,
        lane=Lane.BULK,
    ),
    Cause.MANY_VECTORS: Consequence(
        "index_vectors",
        ("detect_connections", "renew_vectors"),
        "An owner has so many vectors that searching them without an index would take too long.",
        lane=Lane.BULK,
    ),
    Cause.LONG_TEXT_READY: Consequence(
        "analyse_document",
        ("process_document",),
        "The text of a document with more pages than OCTAVO_ANALYSE_PAGES is ready for its first analysis.",
    ),
    Cause.ANALYSIS_REQUESTED: Consequence(
        "analyse_document", (PERSON,), "An analysis was requested.", lane=Lane.INTERACTIVE
    ),
    Cause.RULE_ANALYSIS: Consequence(
        "analyse_document", ("process_document",), "A rule that starts an analysis matches a new document."
    ),
    Cause.ITEM_DUE: Consequence(
        "answer_segment",
        ("analyse_document", "answer_segment", "recover_analyses", PERSON),
        "A segment is ready for a prompt. In sequential mode, the previous segment must have an answer first.",
    ),
    Cause.PROMPT_ANSWERED: Consequence(
        "consolidate_answers",
        ("answer_segment", "recover_analyses", PERSON),
        "A prompt has been answered for every segment of an analysis.",
        priority=4,
    ),
    Cause.CONVERSION_REQUESTED: Consequence(
        "convert",
        (PERSON,),
        "A conversion was requested, and the owner does not have an identical one yet.",
        lane=Lane.INTERACTIVE,
    ),
    Cause.BATCH_REQUESTED: Consequence(
        "convert_batch",
        (PERSON,),
        "Somebody asked to convert selected documents, or all documents that match a filter.",
        lane=Lane.INTERACTIVE,
    ),
    Cause.RULE_CONVERSION: Consequence(
        "convert_batch",
        ("process_document",),
        "A rule that starts a conversion matches a new document.",
        lane=Lane.BULK,
    ),
    Cause.BATCH_PART_LISTED: Consequence(
        "convert",
        ("convert_batch",),
        "A document in a batch is a PDF, and the owner does not have an identical conversion yet.",
        priority=7,
        lane=Lane.BULK,
    ),
    Cause.DELIVERY_DUE: Consequence(
        "deliver",
        (RELAY,),
        "A recipient is subscribed to this type of event and has received all earlier events with the same process id.",
        priority=3,
        lane=Lane.INTERACTIVE,
    ),
    Cause.TEST_DELIVERY_REQUESTED: Consequence(
        "deliver",
        (PERSON,),
        "A test message to a recipient was requested.",
        priority=3,
        max_attempts=1,
        lane=Lane.INTERACTIVE,
    ),
    Cause.EXPORT_REQUESTED: Consequence(
        "export_library",
        (PERSON,),
        "Somebody asked to prepare an export of the library or of some documents.",
        priority=6,
        lane=Lane.INTERACTIVE,
    ),
    Cause.REPLAY_REQUESTED: Consequence(
        "deliver", (PERSON,), "Somebody asked to send an event to a recipient again.", priority=3
    ),
}


def job_after(
    cause: Cause,
    owner: UUID,
    job_input: Mapping[str, JSON] | None = None,
    *,
    key: str | None = None,
    document: UUID | None = None,
    parent: UUID | None = None,
    cap_key: str | None = None,
    cap: int | None = None,
    job: UUID | None = None,
    lane: Lane | None = None,
) -> NewJob:
    """Build the job that follows an event. The caller queues it in the transaction of the event.

    `lane` replaces the lane in the table.
    """
    follows = CHOREOGRAPHY[cause]
    return NewJob(
        follows.kind,
        owner,
        dict(job_input or {}),
        key=key,
        document_id=document,
        parent_id=parent,
        priority=follows.priority,
        max_attempts=follows.max_attempts,
        cap_key=cap_key,
        cap=cap,
        lane=lane or follows.lane,
        id=job or new_id(),
    )


async def compare_documents(
    connection: Connection,
    cause: Cause,
    documents: Sequence[UUID],
    because: Mapping[UUID, str] | str | None = None,
    cap_key: str | None = None,
) -> None:
    """Queue jobs that compare each of these documents with all other documents of its owner.

    Documents in the trash and documents without vectors are skipped. `because` is the reason: either one for all
    documents, or one for each. It is part of the job's key, so each revision is queued at most once for the same
    reason. `cap_key` names an existing cap, which limits how many of the jobs run at the same time.
    """
    rows = await fetch_rows(connection, QUERIES.documents_to_compare, {"documents": list(documents)})
    reasons = because if isinstance(because, Mapping) else dict.fromkeys(documents, because)
    jobs = [comparison_job(cause, row["owner_id"], row["id"], row["revision"], reasons[row["id"]]) for row in rows]
    if jobs:
        await enqueue(connection, [replace(job, cap_key=cap_key) for job in jobs] if cap_key else jobs)


def comparison_job(cause: Cause, owner: UUID, document: UUID, revision: int, because: str | None = None) -> NewJob:
    key = ":".join(filter(None, ("connections", str(document), str(revision), because)))
    return job_after(cause, owner, {"revision": revision}, key=key, document=document)
