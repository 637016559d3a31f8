"""Compares a document with all other documents of the same account.

Finds candidates, lets a model judge them, and saves the connections.
"""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from octavo.ai.calls import Caller, CallerGone
from octavo.choreography import Cause, job_after
from octavo.connect import detection
from octavo.connect.evidence import DetectedConnection, SentenceCache
from octavo.connect.model_judge import JudgeBudget, ModelJudge
from octavo.connect.neighbours import needs_index
from octavo.core.errors import RETRY_RULES, OctavoError
from octavo.core.types import JSON
from octavo.database import Connection
from octavo.describe.embedding import embedding_model
from octavo.jobs.job_run import LeaseLost, Run
from octavo.jobs.queue import enqueue
from octavo.pipeline.tools import Tools


class DocumentComparison:
    """One attempt at a comparison. The result is kept in memory until it is saved."""

    def __init__(self, run: Run[Tools], document: UUID, *, is_last: bool) -> None:
        self._run = run
        self._tools = run.tools
        self._document = document
        self._is_last = is_last
        self._found: list[DetectedConnection] = []
        self._started = datetime.min.replace(tzinfo=UTC)
        self._sentences = SentenceCache()

    async def find(self) -> JSON:
        outcome, model = detection.DetectionResult(), ""
        async with self._tools.database.connection() as connection:
            self._started = await detection.start_of_comparison(connection)
            chunks = await detection.chunks_of(connection, self._document)
            chosen = await detection.find_model(connection, self._document, embedding_model(self._tools.settings))
            owner = await self._run.current_owner(connection)
            among = await detection.search_scope(connection, owner, self._document, chosen) if chosen else None
            if among and await needs_index(connection, among):
                index = {"model": among.model.id}
                await enqueue(connection, [job_after(Cause.MANY_VECTORS, owner, index, key=among.model.index)])
        if among:
            model = among.model.name
            for start in range(0, len(chunks), detection.CHUNKS_PER_BATCH):
                part = chunks[start : start + detection.CHUNKS_PER_BATCH]
                await detection.compare(
                    self._tools.database,
                    among,
                    part,
                    self._sentences,
                    outcome,
                    for_model=not self._tools.gateway.is_offline,
                )
                if len(part) < len(chunks):
                    await self._run.progress(start + len(part), len(chunks), "passages", "connecting")
            await detection.judge_contradictions(outcome)
        asked = await self._judge(outcome)
        self._found += outcome.from_extensions
        by_engine: dict[str, JSON] = {
            engine: {"found": sum(one.engine is engine for one in self._found), "seconds": round(seconds, 3)}
            for engine, seconds in outcome.seconds.items()
        }
        return {"passages": len(chunks), "model": model, "engines": by_engine, **asked}

    async def _judge(self, outcome: detection.DetectionResult) -> dict[str, JSON]:
        """Let a model judge the candidates. A temporary error is raised, so that the job is retried.

        If the error is permanent, or this is the last attempt, contradictions keep the judgement of the bundled model
        octavo-small. Candidates that only a configured model can confirm are dropped.
        """
        job, budget = self._run.job, JudgeBudget()
        if self._tools.gateway.is_offline:
            self._found = [*outcome.similar, *outcome.contradictions]
            return {"calls": 0, "cost_usd": 0.0}
        judge = ModelJudge(
            self._tools.gateway,
            Caller(job.owner_id, self._document, job.id, job.lease_token),
            budget,
            self._sentences,
        )
        told: dict[str, JSON] = {}
        try:
            judged = await judge.judge(outcome.contradictions)
            judged += await judge.confirm(outcome.opposite_tones)
            self._found = [*outcome.similar, *judged, *await judge.explain(outcome.bridges)]
        except (LeaseLost, CallerGone):
            raise
        except OctavoError as error:
            if RETRY_RULES[error.error_class] and not self._is_last:
                raise
            self._found = [*outcome.similar, *outcome.contradictions]
            told["not_judged"] = error.code
        return {"calls": budget.calls, "cost_usd": float(budget.spent), **told}

    async def save(self, connection: Connection, made: JSON) -> None:
        owner = await self._run.current_owner(connection)
        counts = await detection.save(connection, owner, self._document, self._found, self._started)
        if isinstance(made, dict) and isinstance(made["engines"], dict):
            _note_kept(made["engines"], counts)


def _note_kept(engines: dict[str, JSON], counts: dict[str, int]) -> None:
    for engine, kept in counts.items():
        one = engines.get(engine)
        if isinstance(one, dict):
            one["kept"] = kept
