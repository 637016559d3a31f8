"""Job kind that compares a document with all other documents of the same account.

It looks for similar chunks, contradictions and bridges, and a model judges the candidates. The result replaces the
document's earlier connections in one transaction.
"""

from __future__ import annotations

from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from octavo.connect import connections
from octavo.core.errors import BadInput, Cancelled
from octavo.core.types import JSON
from octavo.database import fetch_rows, load_queries
from octavo.jobs.job_run import Run
from octavo.jobs.kinds import JobKind
from octavo.pipeline.tools import Tools

QUERIES = load_queries("connections")
MOST_ATTEMPTS = 3


class ConnectInput(BaseModel):
    """The input of the job. `revision` is the revision to compare."""

    model_config = ConfigDict(extra="forbid")

    revision: int = Field(ge=1)


def read_input(given: dict[str, JSON]) -> ConnectInput:
    try:
        return ConnectInput.model_validate(given)
    except ValidationError:
        raise BadInput("revision: must be a positive integer.") from None


async def detect_connections(run: Run[Tools]) -> JSON:
    from octavo.pipeline.document_comparison import DocumentComparison  # imported late, so that workers start quickly

    work = DocumentComparison(run, await _document(run), is_last=run.job.attempt >= MOST_ATTEMPTS)
    return await run.stage("connected", work.find, save=work.save)


async def _document(run: Run[Tools]) -> UUID:
    """Return the id of the document. Raises `Cancelled` if the requested revision is no longer the current one."""
    wanted, document = read_input(run.input), run.job.document_id
    async with run.tools.database.connection() as connection:
        rows = await fetch_rows(connection, QUERIES.subject, {"document": document})
    if document is None or not rows or rows[0]["is_out"] or rows[0]["revision"] != wanted.revision:
        raise Cancelled
    return document


KIND = JobKind(
    connections.KIND,
    detect_connections,
    time_limit_seconds=600,
    limit_renewed_by_stage=True,
    max_attempts=MOST_ATTEMPTS,
    check_input=read_input,
)
