"""Job kind that combines the answers to one prompt for all segments (ranges of pages) into one answer."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from uuid import UUID

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from octavo.ai.calls import LOCAL, Caller, OfflineUse
from octavo.ai.tasks import CONSOLIDATE_ANSWERS
from octavo.ai.tasks.consolidate_answers import AnswersToConsolidate, SegmentResult
from octavo.analyse.document_text import AnalysedDocument, Citation, PageTexts, load_analysis, read_texts, verify
from octavo.analyse.errors import Incomplete
from octavo.analyse.progress import settle
from octavo.analyse.segments import MOST_NAMED, check_coverage
from octavo.core.errors import BadInput, Cancelled, OctavoError, TokenLimit
from octavo.core.types import JSON
from octavo.database import Connection, Row, fetch_rows, load_queries
from octavo.jobs.job_run import Run
from octavo.jobs.kinds import JobKind
from octavo.language import find_subject
from octavo.language.insights import PageCitation
from octavo.pipeline.answer_segment import gives_up
from octavo.pipeline.tools import Tools

QUERIES = load_queries("analyses")
STAGE = "consolidated"


@dataclass(frozen=True, slots=True)
class Result:
    analysis_id: UUID
    prompt_id: UUID
    question: str
    system: str
    generation: int


@dataclass(frozen=True, slots=True)
class ConsolidatedAnswer:
    """One prompt's combined answer for the whole document, in the format in which it is stored."""

    answer: str
    citations: list[Citation]
    made_by: str
    failed_models: list[dict[str, str]]
    gaps: list[Row]


async def consolidate_answers(run: Run[Tools]) -> JSON:
    if await run.finished_parts(STAGE):
        return None  # committed before; only its completion was not reported
    result = await load_result(run)
    work = Consolidation(run, result, await load_analysis(run.tools.database, result.analysis_id))
    return await work.consolidate()


async def load_result(run: Run[Tools]) -> Result:
    async with run.database.connection() as connection, connection.cursor(row_factory=class_row(Result)) as cursor:
        await cursor.execute(QUERIES.result, {"job": run.job.id})
        result = await cursor.fetchone()
    if result is None:
        raise Cancelled
    return result


class Consolidation:
    def __init__(self, run: Run[Tools], result: Result, analysed: AnalysedDocument) -> None:
        job = run.job
        self._run = run
        self._result = result
        self._analysed = analysed
        self._failed: list[dict[str, str]] = []
        self._made_by = ""
        self._caller = Caller(job.owner_id, analysed.document_id, job.id, job.lease_token, result.generation)

    async def consolidate(self) -> JSON:
        made: list[ConsolidatedAnswer] = []

        async def work() -> JSON:
            made.append(await self._consolidate())
            return made[-1].made_by

        async def save(connection: Connection, _made: JSON) -> None:
            await connection.execute(QUERIES.hold_analysis, {"analysis": self._result.analysis_id})
            one = made[-1]
            values = {
                "analysis": self._result.analysis_id,
                "prompt": self._result.prompt_id,
                "job": self._run.job.id,
                "answer": one.answer,
                "citations": Jsonb([asdict(citation) for citation in one.citations]),
                "made_by": one.made_by,
                "failed_models": Jsonb(one.failed_models),
                "gaps": Jsonb(one.gaps),
            }
            if not (await connection.execute(QUERIES.save_result, values)).rowcount:
                raise Cancelled
            await settle(connection, self._result.analysis_id)

        return await self._run.stage(STAGE, work, save=save)

    async def _consolidate(self) -> ConsolidatedAnswer:
        rows, gaps = await self._answers()
        note = describe_gaps(gaps, self._analysed.one_unit)
        if len(rows) == 1:  # nothing to consolidate, so no call is needed
            (row,) = rows
            citations = [Citation(**one) for one in row["answer"]["citations"]]
            answer = note + row["answer"]["answer"]
            return ConsolidatedAnswer(answer, citations, row["made_by"], row["failed_models"], gaps)
        whole = await self._join([as_segment_result(row) for row in rows])
        texts = PageTexts(dict(await self._texts(whole)))
        cited = [(one.page, one.quote, one.relevance) for one in whole.citations]
        return ConsolidatedAnswer(note + whole.answer, verify(cited, texts), self._made_by, self._failed, gaps)

    async def _answers(self) -> tuple[list[Row], list[Row]]:
        """Return the answers for all segments (ranges of pages), and the segments that failed.

        Raises `Incomplete` unless both together cover every page exactly once.
        """
        values = {"analysis": self._result.analysis_id, "prompt": self._result.prompt_id}
        async with self._run.database.connection() as connection:
            rows = await fetch_rows(connection, QUERIES.answers, values)
            gaps = await fetch_rows(connection, QUERIES.failed_items, values)
        proof = check_coverage([(row["first"], row["last"]) for row in [*rows, *gaps]], self._analysed.units or 0)
        if not proof.is_complete:
            raise Incomplete(f"In the answers, {proof.explain(self._analysed.unit or 'pages')}.")
        return rows, gaps

    async def _join(self, parts: list[SegmentResult]) -> SegmentResult:
        """Combine the answers for several page ranges into one answer.

        If they do not fit into one call, each half is combined first.
        """
        given = AnswersToConsolidate(
            self._result.question, self._result.system, parts, self._analysed.one_unit, await self._local_texts(parts)
        )
        gateway, half = self._run.tools.gateway, len(parts) // 2
        fits = CONSOLIDATE_ANSWERS.request(given).input_tokens <= gateway.call_limits(CONSOLIDATE_ANSWERS.name).tokens
        if not fits and half > 1:
            return await self._join([await self._join(parts[:half]), await self._join(parts[half:])])
        try:
            offline = OfflineUse(decide=lambda error: self._goes_offline(error, half))
            answered = await gateway.ask(CONSOLIDATE_ANSWERS, given, self._caller, offline)
        except TokenLimit:
            if half <= 1:
                raise
            return await self._join([await self._join(parts[:half]), await self._join(parts[half:])])
        self._made_by, self._failed = answered.made_by, [asdict(one) for one in answered.failed]
        output = answered.output
        return SegmentResult(parts[0].first, parts[-1].last, output.answer, output.citations, answered.made_by)

    def _goes_offline(self, error: OctavoError, half: int) -> bool:
        return half <= 1 if isinstance(error, TokenLimit) else gives_up(error, self._run.job.attempt)

    async def _local_texts(self, parts: list[SegmentResult]) -> list[tuple[int, str]]:
        """Return the page numbers and texts of all page ranges that were answered without a model.

        The caller makes one list from all of them. The result is empty if the question does not request a list.
        """
        tools = self._run.tools
        texts: list[tuple[int, str]] = []
        for part in parts:
            if part.made_by == LOCAL and find_subject(self._result.question):
                texts += await read_texts(tools.database, tools.bucket, self._analysed, part.first, part.last)
        return texts

    async def _texts(self, said: SegmentResult) -> list[tuple[int, str]]:
        """Return the texts of all pages, to check the citations of an answer.

        All pages are needed, because a citation may have a wrong page number. Returns an empty list if there are no
        citations.
        """
        if not said.citations:
            return []
        tools = self._run.tools
        return await read_texts(tools.database, tools.bucket, self._analysed, 1, self._analysed.units or 0)


def as_segment_result(row: Row) -> SegmentResult:
    """Convert a stored answer for one range of pages to a `SegmentResult`. Verified quotes come first."""
    kept = sorted((Citation(**one) for one in row["answer"]["citations"]), key=lambda one: not one.verified)
    cited = [PageCitation(page=one.page, quote=one.quote, relevance=one.relevance) for one in kept]
    return SegmentResult(row["first"], row["last"], row["answer"]["answer"], cited, row["made_by"])


def describe_gaps(gaps: list[Row], unit: str) -> str:
    """Return a note in Markdown, shown above an answer that does not cover the whole document."""
    if not gaps:
        return ""
    named = [f"{one['first']} to {one['last']}" if one["last"] > one["first"] else str(one["first"]) for one in gaps]
    more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
    reasons = " ".join(dict.fromkeys(one["message"] for one in gaps[:MOST_NAMED]))
    return f"> Not answered: {unit} {', '.join(named[:MOST_NAMED])}{more}. {reasons}\n\n"


def check_input(given: dict[str, JSON]) -> None:
    if set(given) != {"prompt"}:
        raise BadInput("prompt: must be a prompt of an analysis. Start the analysis instead.")


KIND = JobKind(
    "consolidate_answers",
    consolidate_answers,
    time_limit_seconds=900,
    limit_renewed_by_stage=True,
    check_input=check_input,
)
