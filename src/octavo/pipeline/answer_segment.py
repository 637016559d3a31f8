"""Job kind that answers one prompt for one segment (range of pages) of a document.

A segment that is too long for the model is split.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from octavo.ai.calls import Caller, FileReference, ModelAnswer, OfflineUse
from octavo.ai.tasks import ANSWER_SEGMENT
from octavo.ai.tasks.answer_segment import SegmentAnswer, SegmentToAnswer
from octavo.analyse.document_text import (
    AnalysedDocument,
    Citation,
    PageTexts,
    load_analysis,
    measure,
    read_texts,
    verify,
)
from octavo.analyse.progress import enqueue_due_items, settle
from octavo.analyse.segments import Segment, subdivide
from octavo.core.errors import RETRY_RULES, BadInput, Cancelled, OctavoError, QuotaExhausted, TokenLimit
from octavo.core.types import JSON
from octavo.database import Connection, fetch_rows, load_queries
from octavo.extract.pdf.pdf_file import PdfInSandbox
from octavo.jobs.job_run import ClaimedJob, Run
from octavo.jobs.kinds import JobKind
from octavo.pipeline.analyse_document import (
    PDF_TYPE,
    SegmentFiles,
    as_row,
    cut_segment,
    insert_segments,
    keep_segment,
)
from octavo.pipeline.tools import Tools

QUERIES = load_queries("analyses")
SEGMENT_BYTES = 256 << 20
ANSWERED, SPLIT = "answered", "split"
# Temporary errors of all models are retried before `local` answers.
ATTEMPTS_BEFORE_LOCAL = 3
LONGEST_WAIT_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Item:
    """One prompt for one segment (range of pages).

    `is_cut` is true if the segment has already been split because it was too long for another prompt.
    """

    id: UUID
    analysis_id: UUID
    segment_id: UUID
    prompt_id: UUID
    generation: int
    question: str
    system: str
    first: int
    last: int
    context_first: int
    sha256: str | None
    file_key: str | None
    is_cut: bool

    @property
    def segment(self) -> Segment:
        return Segment(self.first, self.last, self.context_first)


async def answer_segment(run: Run[Tools]) -> JSON:
    if await run.finished_parts(ANSWERED) or await run.finished_parts(SPLIT):
        return None  # committed before; only its completion was not reported
    item = await load_item(run)
    work = SegmentQuestion(run, item, await load_analysis(run.tools.database, item.analysis_id))
    if item.is_cut:
        return await work.split()
    try:
        return await work.answer()
    except TokenLimit:
        if not subdivide(item.segment):
            raise
    return await work.split()


def gives_up(error: OctavoError, attempt: int) -> bool:
    """Whether to answer without a model instead of retrying.

    Returns True if a retry is useless or would have to wait too long, or if several attempts have failed.
    """
    far = isinstance(error, QuotaExhausted) or (error.retry_after_seconds or 0) > LONGEST_WAIT_SECONDS
    return RETRY_RULES[error.error_class] is None or far or attempt >= ATTEMPTS_BEFORE_LOCAL


async def after_failure(tools: Tools, job: ClaimedJob) -> None:
    """Continue an analysis after one of its jobs has failed for good: start the next jobs, or combine the answers."""
    if job.parent_id is None:
        return
    async with tools.database.transaction() as connection:
        await connection.execute(QUERIES.hold_analysis, {"analysis": job.parent_id})
        if await fetch_rows(connection, QUERIES.has_failed, {"job": job.id}):
            await enqueue_due_items(connection, job.parent_id)
            await settle(connection, job.parent_id)


async def load_item(run: Run[Tools]) -> Item:
    """Load the prompt and the segment (range of pages) of the job.

    Raises `Cancelled` if they are no longer assigned to this job.
    """
    async with run.database.connection() as connection, connection.cursor(row_factory=class_row(Item)) as cursor:
        await cursor.execute(QUERIES.item, {"job": run.job.id})
        item = await cursor.fetchone()
    if item is None:
        raise Cancelled
    return item


class SegmentQuestion:
    def __init__(self, run: Run[Tools], item: Item, analysed: AnalysedDocument) -> None:
        self._run = run
        self._tools = run.tools
        self._item = item
        self._analysed = analysed
        self._files = SegmentFiles(run, analysed.document_id)

    # answered

    async def answer(self) -> JSON:
        given = await self._task_input()
        made: list[tuple[ModelAnswer[SegmentAnswer], list[Citation]]] = []

        async def work() -> JSON:
            job = self._run.job
            caller = Caller(job.owner_id, self._analysed.document_id, job.id, job.lease_token, self._item.generation)
            offline = OfflineUse(decide=self._goes_offline)
            answered = await self._tools.gateway.ask(ANSWER_SEGMENT, given, caller, offline)
            cited = [(one.page, one.quote, one.relevance) for one in answered.output.citations]
            own = [one for one in cited if self._item.first <= one[0] <= self._item.last]
            made.append((answered, verify(own, PageTexts(dict(given.texts)))))
            return answered.made_by

        async def save(connection: Connection, _made: JSON) -> None:
            answered, citations = made[-1]
            answer = answered.output.model_dump(mode="json") | {"citations": [asdict(one) for one in citations]}
            values: dict[str, Any] = {
                **self._place(),
                "answer": Jsonb(answer),
                "made_by": answered.made_by,
                "failed_models": Jsonb([asdict(one) for one in answered.failed]),
            }
            await self._must_change(connection, QUERIES.save_answer, values)
            await self._go_on(connection)

        return await self._run.stage(ANSWERED, work, save=save)

    def _goes_offline(self, error: OctavoError) -> bool:
        """Whether to answer without a model after this error.

        Returns True only if neither a shorter range of pages nor a later retry can succeed.
        """
        if isinstance(error, TokenLimit):
            return not subdivide(self._item.segment)
        return gives_up(error, self._run.job.attempt)

    async def _task_input(self) -> SegmentToAnswer:
        item, tools = self._item, self._tools
        texts = await read_texts(tools.database, tools.bucket, self._analysed, item.context_first, item.last)
        return SegmentToAnswer(
            question=item.question,
            system=item.system,
            texts=[one for one in texts if one[0] >= item.first],
            context=[one for one in texts if one[0] < item.first],
            file=self._file(),
            before=await self._before(),
            unit=self._analysed.one_unit,
        )

    async def _before(self) -> str:
        """Return the summary of the previous segment, which is sent as context.

        It is loaded once and reused by later attempts, so that every attempt sends the same request.
        """

        async def work() -> JSON:
            item = self._item
            values = {"analysis": item.analysis_id, "prompt": item.prompt_id, "first": item.first}
            async with self._tools.database.connection() as connection:
                rows = await fetch_rows(connection, QUERIES.summary_before, values)
            return rows[0]["summary"] if rows else ""

        return str(await self._run.stage("context", work)) if self._item.first > 1 else ""

    def _file(self) -> FileReference | None:
        item = self._item
        if item.sha256 is None or item.file_key is None:
            return None
        key = item.file_key

        async def read() -> bytes:
            return await self._tools.bucket.read(key, limit=SEGMENT_BYTES)

        return FileReference(item.sha256, PDF_TYPE, item.segment.shown, read)

    # split

    async def split(self) -> JSON:
        """Replace the segment (range of pages) with shorter segments for this prompt.

        The shorter segments are created only once, and all prompts share them.
        """
        cut: list[tuple[Segment, JSON, JSON]] = []

        async def work() -> JSON:
            if not self._item.is_cut:
                cut[:] = await self._cut()
            return len(cut)

        async def save(connection: Connection, _made: JSON) -> None:
            self._files.begin_saving()
            await self._must_change(connection, QUERIES.set_split, self._place())
            held = await (await connection.execute(QUERIES.hold_segment, {"segment": self._item.segment_id})).fetchone()
            if held and not held[0]:
                rows: list[JSON] = [row for _, row, _ in cut]
                await insert_segments(connection, self._item.analysis_id, self._item.segment_id, rows)
                for pages, row, file in cut:
                    if isinstance(row, dict):
                        await keep_segment(connection, self._files, UUID(str(row["id"])), pages, file)
            await connection.execute(QUERIES.insert_parts, {"item": self._item.id})
            await enqueue_due_items(connection, self._item.analysis_id)
            await self._go_on(connection)

        made = await self._run.stage(SPLIT, work, save=save)
        await self._files.remove_unused()
        return made

    async def _cut(self) -> list[tuple[Segment, JSON, JSON]]:
        """Divide the segment into shorter ones.

        Returns each of them with its database row and, if pages are sent as files, its file.
        """
        lengths = await measure(self._tools.database, self._analysed)
        tokens = lengths.tokens(as_files=self._item.file_key is not None)
        parts = [(one, as_row(one, tokens, ready=False)) for one in subdivide(self._item.segment)]
        if self._item.file_key is None:
            return [(part, row, None) for part, row in parts]
        before = self._item.context_first - 1
        async with self._files.local_copy(self._item.file_key) as path:
            pdf = PdfInSandbox(self._tools.sandbox, path, limits=self._tools.sandbox.limits)
            return [
                (part, row, await cut_segment(self._files, pdf, part, Segment(*(one - before for one in part))))
                for part, row in parts
            ]

    # both

    def _place(self) -> dict[str, Any]:
        return {"item": self._item.id, "job": self._run.job.id}

    async def _must_change(self, connection: Connection, query: bytes, values: dict[str, Any]) -> None:
        await connection.execute(QUERIES.hold_analysis, {"analysis": self._item.analysis_id})
        if not (await connection.execute(query, values)).rowcount:
            raise Cancelled  # the item was requested again or removed in the meantime

    async def _go_on(self, connection: Connection) -> None:
        if self._analysed.mode == "sequential":
            await enqueue_due_items(connection, self._item.analysis_id)
        await settle(connection, self._item.analysis_id)


def check_input(given: dict[str, JSON]) -> None:
    if set(given) != {"item"}:
        raise BadInput("item: must be an item of an analysis. Start the analysis instead.")


KIND = JobKind(
    "answer_segment",
    answer_segment,
    time_limit_seconds=900,
    check_input=check_input,
    after_failure=after_failure,
)
