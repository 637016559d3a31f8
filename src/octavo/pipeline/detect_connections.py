"""Compares a document with all others of its owner: the three engines, then what models say, then one save.

A document is compared when its vectors are there, and again when it comes back or has vectors of another model. What it
was connected with before makes way in the transaction that brings the new.
"""

from __future__ import annotations

from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from octavo.ai.contract import Caller, CallerGone
from octavo.connect import steps
from octavo.connect.bridge import explain_offline
from octavo.connect.contract import Found
from octavo.connect.evidence import Readings
from octavo.connect.judging import Judge, Purse
from octavo.connect.neighbours import needs_index
from octavo.database import Connection, fetch_rows, load_queries
from octavo.jobs.kinds import JobKind
from octavo.jobs.queue import NewJob, enqueue
from octavo.jobs.run import LeaseLost, Run
from octavo.library.embedding import name_of_model
from octavo.model.errors import RETRY_RULES, BadInput, Cancelled, OctavoError
from octavo.model.json import JSON
from octavo.pipeline.index_vectors import KIND as INDEX
from octavo.pipeline.tools import Tools

QUERIES = load_queries("connections")
NAME = "detect_connections"
MOST_ATTEMPTS = 3


class ConnectInput(BaseModel):
    """The revision whose vectors had it put in line."""

    model_config = ConfigDict(extra="forbid")

    revision: int = Field(ge=1)


def read_input(given: dict[str, JSON]) -> ConnectInput:
    try:
        return ConnectInput.model_validate(given)
    except ValidationError:
        raise BadInput("A revision is missing.") from None


async def detect_connections(run: Run[Tools]) -> JSON:
    work = Connecting(run, await _document(run))
    return await run.stage("connected", work.find, save=work.save)


async def _document(run: Run[Tools]) -> UUID:
    """The document, if the revision that is read is still the one to compare."""
    wanted, document = read_input(run.input), run.job.document_id
    async with run.tools.database.connection() as connection:
        rows = await fetch_rows(connection, QUERIES.subject, {"document": document})
    if document is None or not rows or rows[0]["is_out"] or rows[0]["revision"] != wanted.revision:
        raise Cancelled
    return document


class Connecting:
    """One attempt: what it found waits in memory for the transaction in which it is saved."""

    def __init__(self, run: Run[Tools], document: UUID) -> None:
        self._run = run
        self._tools = run.tools
        self._document = document
        self._found: list[Found] = []
        self._readings = Readings()

    async def find(self) -> JSON:
        outcome, model = steps.Outcome(), ""
        async with self._tools.database.connection() as connection:
            chunks = await steps.passages_of(connection, self._document)
            chosen = await steps.find_model(connection, self._document, name_of_model(self._tools.settings))
            owner = self._run.job.owner_id
            among = await steps.open_field(connection, owner, self._document, chosen) if chosen else None
            if among and await needs_index(connection, among):
                await enqueue(connection, [NewJob(INDEX.name, owner, {"model": among.model.id}, key=among.model.index)])
        if among:
            model = among.model.name
            for start in range(0, len(chunks), steps.PASSAGES_AT_ONCE):
                part = chunks[start : start + steps.PASSAGES_AT_ONCE]
                await steps.compare(self._tools.database, among, part, self._readings, outcome)
                await self._run.progress(start + len(part), len(chunks), "passages", "connecting")
        asked = await self._judge(outcome)
        by_engine: dict[str, JSON] = {
            engine: {"found": sum(one.engine is engine for one in self._found), "seconds": round(seconds, 3)}
            for engine, seconds in outcome.seconds.items()
        }
        return {"passages": len(chunks), "model": model, "engines": by_engine, **asked}

    async def _judge(self, outcome: steps.Outcome) -> dict[str, JSON]:
        """Whatever keeps models from answering keeps no connection from being found; what passes is waited for."""
        job, purse = self._run.job, Purse()
        judge = Judge(
            self._tools.gateway, Caller(job.owner_id, self._document, job.id, job.lease_token), purse, self._readings
        )
        told: dict[str, JSON] = {}
        try:
            judged = await judge.judge(outcome.contradictions)
            self._found = [*outcome.similar, *judged, *await judge.explain(outcome.bridges)]
        except (LeaseLost, CallerGone):
            raise
        except OctavoError as error:
            if RETRY_RULES[error.error_class] and job.attempt < MOST_ATTEMPTS:
                raise
            bridges = explain_offline(outcome.bridges, self._readings)
            self._found = [*outcome.similar, *outcome.contradictions, *bridges]
            told["not_judged"] = error.code
        return {"calls": purse.calls, "cost_usd": float(purse.spent), **told}

    async def save(self, connection: Connection, made: JSON) -> None:
        counts = await steps.save(connection, self._run.job.owner_id, self._document, self._found)
        if isinstance(made, dict) and isinstance(made["engines"], dict):
            _note_kept(made["engines"], counts)


def _note_kept(engines: dict[str, JSON], counts: dict[str, int]) -> None:
    for engine, kept in counts.items():
        one = engines.get(engine)
        if isinstance(one, dict):
            one["kept"] = kept


KIND = JobKind(
    NAME,
    detect_connections,
    time_limit_seconds=600,
    limit_renewed_by_stage=True,
    max_attempts=MOST_ATTEMPTS,
    check_input=read_input,
)
