"""Job kind that improves a document's title, summary and tags if they were made without a model during an outage.

The job waits until a provider is available. It then generates the title, summary, tags and vectors with the configured
models. Until then, or if it fails, the document keeps its earlier title, summary and tags. Model answers that were
already paid for are reused.
"""

from __future__ import annotations

from functools import partial

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from octavo.choreography import Cause, compare_documents, job_after
from octavo.core.errors import BadInput
from octavo.core.types import JSON
from octavo.database import Connection, fetch_rows, load_queries
from octavo.describe.stages import DocumentDescriber, DocumentText, FollowUps
from octavo.jobs.job_run import Run
from octavo.jobs.kinds import JobKind
from octavo.jobs.queue import enqueue
from octavo.library.documents import IMPROVE_DOCUMENT
from octavo.pipeline.tools import Tools
from octavo.pipeline.vector_jobs import enqueue_embed_tags

QUERIES = load_queries("describe")


class ImproveInput(BaseModel):
    """The input of the job: the revision whose title, summary and tags are generated again.

    `generation` and `picture` are copied from the job that first generated the title, summary and tags, without a
    model.
    """

    model_config = ConfigDict(extra="forbid")

    revision: int = Field(ge=1)
    generation: int = Field(default=0, ge=0)
    picture: str | None = None


def read_improve_input(given: dict[str, JSON]) -> ImproveInput:
    try:
        return ImproveInput.model_validate(given)
    except ValidationError:
        raise BadInput("revision: must be a positive integer.") from None


async def improve_document(run: Run[Tools]) -> JSON:
    """Generate title, summary and tags of the revision with the configured models.

    Does nothing if a newer revision has replaced this one.
    """
    document, wanted = run.job.document_id, read_improve_input(run.input)
    if document is None:
        raise BadInput("This job needs a document.")
    async with run.tools.database.connection() as connection:
        current = await fetch_rows(connection, QUERIES.current_revision, {"document": document})
    if [row["revision"] for row in current] != [wanted.revision]:
        return {"improved": False}
    text = DocumentText(document, wanted.revision, wanted.generation, wanted.picture)
    follow_ups = FollowUps(tagged=partial(enqueue_embed_tags, run=run), offline=None)
    await DocumentDescriber(run, run.tools, text, follow_ups).describe()

    async def work() -> JSON:
        return None

    async def save(connection: Connection, _made: JSON) -> None:
        await compare_documents(connection, Cause.IMPROVED, [document], f"improved:{run.job.id}")

    await run.stage("improved", work, save=save)
    return {"improved": True}


async def enqueue_improvement(connection: Connection, run: Run[Tools], text: DocumentText) -> None:
    """Queue a job that generates the title, summary and tags of this revision again.

    Repeated calls for the same job and revision have no effect.
    """
    wanted: dict[str, JSON] = {"revision": text.revision, "generation": text.generation}
    if text.picture:
        wanted["picture"] = text.picture
    key, owner = f"improve:{run.job.id}:{text.revision}", await run.current_owner(connection)
    improvement = job_after(Cause.DESCRIBED_OFFLINE, owner, wanted, key=key, document=text.document)
    await enqueue(connection, [improvement])


KIND = JobKind(
    IMPROVE_DOCUMENT,
    improve_document,
    time_limit_seconds=600,
    limit_renewed_by_stage=True,
    check_input=read_improve_input,
)
