"""Builds the index of a model's vectors, once an owner has too many of them to compare all. Nobody waits for it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, ValidationError

from octavo.core.errors import BadInput
from octavo.core.types import JSON
from octavo.jobs.job_run import Run
from octavo.jobs.kinds import JobKind
from octavo.pipeline.tools import Tools


class IndexInput(BaseModel):
    model_config = ConfigDict(extra="forbid")

    model: int


def read_input(given: dict[str, JSON]) -> IndexInput:
    try:
        return IndexInput.model_validate(given)
    except ValidationError:
        raise BadInput("A model is missing.") from None


async def index_vectors(run: Run[Tools]) -> JSON:
    from octavo.connect.neighbours import build_index  # with the first job: a worker that starts need not wait for it

    return {"index": await build_index(run.tools.database, read_input(run.input).model)}


KIND = JobKind("index_vectors", index_vectors, time_limit_seconds=7200, cap=1, check_input=read_input)
