"""What follows what: the one table that says after which event which kind of job is enqueued.

Code that starts work builds its jobs here and enqueues them in the transaction of the event, so that both are
committed or neither is. Triggers and functions of the database check and count; they start nothing. Two things are not
in this table: schedules, which run by the clock, and `octavo jobs add`. This is a module beside the packages, and not
part of `pipeline`, because the packages below `pipeline` start jobs, too. `make docs` prints the table as
docs/reference/what-follows-what.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from octavo.core.ids import new_id
from octavo.core.types import JSON
from octavo.database import Connection, fetch_rows, load_queries
from octavo.jobs.queue import NewJob, enqueue

QUERIES = load_queries("choreography")

# Sources of events that are not job kinds.
PERSON, RELAY = "a person", "the event relay"


class Cause(StrEnum):
    """An event that is followed by a job."""

    UPLOAD_STORED = "upload stored"
    REVISION_REQUESTED = "new revision requested"
    TAGGED = "tags assigned"
    EMBEDDED = "vectors complete"
    VECTORS_REQUESTED = "vectors requested"
    OTHER_MODEL = "vectors of another model complete"
    DESCRIBED_LATE = "description completed after the vectors"
    RESTORED = "restored from the trash"
    VISITOR_MERGED = "visitor signed in"
    COMPARISON_REQUESTED = "comparison requested"
    MANY_VECTORS = "many vectors without an index"
    LONG_TEXT_READY = "long text ready"
    ANALYSIS_REQUESTED = "analysis requested"
    ITEM_DUE = "segment ready to be asked"
    PROMPT_ANSWERED = "all segments of a prompt answered"
    CONVERSION_REQUESTED = "conversion requested"
    DELIVERY_DUE = "delivery due"
    TEST_DELIVERY_REQUESTED = "test delivery requested"


@dataclass(frozen=True, slots=True)
class Consequence:
    """One job of `kind` for each event. `sources` are the job kinds, or others, that bring the event about.

    A lower `priority` runs earlier; 5 is the priority of the jobs that a person waits for.
    """

    kind: str
    sources: tuple[str, ...]
    when: str
    priority: int = 5
    max_attempts: int | None = None


CHOREOGRAPHY: Mapping[Cause, Consequence] = {
    Cause.UPLOAD_STORED: Consequence(
        "process_document", (PERSON,), "A file, link or text is stored, and no processed document has the same content."
    ),
    Cause.REVISION_REQUESTED: Consequence(
        "process_document", (PERSON,), "A processed document is to be processed again, as a new revision."
    ),
    Cause.TAGGED: Consequence("embed_tags", ("process_document",), "A description gave a document tags."),
    Cause.EMBEDDED: Consequence(
        "detect_connections",
        ("process_document", "embed_document", PERSON),
        "All chunks of a revision have vectors, or an upload shares the results of a document that has them.",
        priority=6,
    ),
    Cause.VECTORS_REQUESTED: Consequence(
        "embed_document", (PERSON,), "Documents without vectors of a model are to get them."
    ),
    Cause.OTHER_MODEL: Consequence(
        "detect_connections", ("embed_document",), "All chunks of a document have vectors of another model.", priority=6
    ),
    Cause.DESCRIBED_LATE: Consequence(
        "detect_connections",
        ("process_document",),
        "A retry completed the description of a document that was compared without it. Bridges need descriptions.",
        priority=6,
    ),
    Cause.RESTORED: Consequence(
        "detect_connections",
        (PERSON,),
        "A document is back from the trash. Documents added in between were not compared with it.",
        priority=6,
    ),
    Cause.VISITOR_MERGED: Consequence(
        "detect_connections",
        (PERSON,),
        "The documents of a visitor moved to the account that the visitor signed in to.",
        priority=6,
    ),
    Cause.COMPARISON_REQUESTED: Consequence(
        "detect_connections", (PERSON,), "Documents are to be compared again.", priority=7
    ),
    Cause.MANY_VECTORS: Consequence(
        "index_vectors", ("detect_connections",), "An owner has too many vectors of a model to compare all of them."
    ),
    Cause.LONG_TEXT_READY: Consequence(
        "analyse_document",
        ("process_document",),
        "The text of a document longer than OCTAVO_ANALYSE_PAGES is ready, and it was never analysed.",
    ),
    Cause.ANALYSIS_REQUESTED: Consequence("analyse_document", (PERSON,), "An analysis is started."),
    Cause.ITEM_DUE: Consequence(
        "answer_segment",
        ("analyse_document", "answer_segment", "recover_analyses", PERSON),
        "A prompt can be asked of a segment. In sequential mode the segment before it must be answered first.",
    ),
    Cause.PROMPT_ANSWERED: Consequence(
        "consolidate_answers",
        ("answer_segment", "recover_analyses", PERSON),
        "All segments of an analysis are answered for one prompt.",
        priority=4,
    ),
    Cause.CONVERSION_REQUESTED: Consequence(
        "convert", (PERSON,), "A file or document is to be converted, and the owner has no such conversion yet."
    ),
    Cause.DELIVERY_DUE: Consequence(
        "deliver",
        (RELAY,),
        "A recipient subscribed to an event, and got all earlier ones of the same process.",
        priority=3,
    ),
    Cause.TEST_DELIVERY_REQUESTED: Consequence(
        "deliver", (PERSON,), "A recipient is to get a test message.", priority=3, max_attempts=1
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
) -> NewJob:
    """The job that follows an event; the caller enqueues it in the transaction of the event."""
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
        id=job or new_id(),
    )


async def compare_documents(
    connection: Connection, cause: Cause, documents: Sequence[UUID], because: str | None = None
) -> None:
    """Enqueue a comparison of each document with all others of its owner.

    Documents in the trash and documents without vectors are skipped. A revision is enqueued once for each `because`.
    """
    rows = await fetch_rows(connection, QUERIES.documents_to_compare, {"documents": list(documents)})
    jobs = [comparison_job(cause, row["owner_id"], row["id"], row["revision"], because) for row in rows]
    if jobs:
        await enqueue(connection, jobs)


def comparison_job(cause: Cause, owner: UUID, document: UUID, revision: int, because: str | None = None) -> NewJob:
    key = ":".join(filter(None, ("connections", str(document), str(revision), because)))
    return job_after(cause, owner, {"revision": revision}, key=key, document=document)
