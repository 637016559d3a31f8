"""Job kind that prepares an analysis of a document. Its stages produce:

- `planned`: segments (ranges of pages), and the pages shown before each segment as context
- `cutting`: the file of each segment, stored one by one (only if files are sent to a model)
- `lined_up`: the items (one prompt for one segment), and the jobs that answer them
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from octavo.ai.estimates import DocumentSize, Estimator
from octavo.ai.tasks import ANSWER_SEGMENT
from octavo.analyse.analyses import start_analysis
from octavo.analyse.document_text import AnalysedDocument, load_analysis, measure
from octavo.analyse.errors import NoPrompts
from octavo.analyse.progress import enqueue_due_items
from octavo.analyse.segments import Segment, limits_for_chunks, limits_for_pages, plan_segments
from octavo.choreography import Cause
from octavo.core.settings import Settings
from octavo.core.types import JSON, new_id
from octavo.database import Connection, Row, fetch_rows, load_queries
from octavo.extract.extracted import SourceType
from octavo.extract.pdf.pdf_file import PdfInSandbox
from octavo.jobs.job_run import Run
from octavo.jobs.kinds import JobKind
from octavo.library.errors import SourceGone
from octavo.pipeline.revision_files import RevisionFiles
from octavo.pipeline.tools import Tools

QUERIES = load_queries("analyses")
REQUESTED = "analysis_asked"
PDF_TYPE = "application/pdf"
NO_REVISION = 0


async def analyse_document(run: Run[Tools]) -> JSON:
    analysed = await load_analysis(run.tools.database, run.job.id)
    work = AnalysisPreparation(run, analysed)
    await run.stage("planned", work.plan, save=work.save_plan)
    await work.cut_all()
    return await run.stage("lined_up", work.count, save=work.enqueue_items)


def sends_files(tools: Tools, analysed: AnalysedDocument) -> bool:
    """Whether pages are sent to the models as files. The document must be a PDF and the models must accept PDFs."""
    sight = tools.gateway.vision_limits(ANSWER_SEGMENT.name)
    return analysed.source_type == SourceType.PDF and sight is not None and sight.pdfs


def name_of(pages: Segment) -> str:
    """Return the artifact kind under which the file of a segment (a range of pages) is stored.

    The database function `segment_file` must return the same name.
    """
    return f"segment:{pages.context_first}-{pages.last}"


class SegmentFiles(RevisionFiles):
    """The files that contain the page ranges (segments) of an analysis.

    They belong to the document, not to a revision, so all analyses of the document share them.
    """

    def __init__(self, run: Run[Tools], document: UUID) -> None:
        super().__init__(run, document, NO_REVISION)
        self._of = document
        self._database = run.tools.database

    async def has(self, pages: Segment) -> bool:
        async with self._database.connection() as connection:
            values = {"document": self._of, "kind": name_of(pages)}
            return bool(await fetch_rows(connection, QUERIES.segment_file, values))

    async def keep(self, connection: Connection, kind: str, made: JSON, content_type: str) -> None:
        """Insert the database row of a file.

        If another analysis has just stored a file with the same pages, that file is kept, because it may already be in
        use. The new file is deleted later.
        """
        await connection.execute(QUERIES.lock_segment_files, {"document": self._of})
        if await fetch_rows(connection, QUERIES.segment_file, {"document": self._of, "kind": kind}):
            self._unused += [str(made["key"])] if isinstance(made, dict) else []
        else:
            await super().keep(connection, kind, made, content_type)


class AnalysisPreparation:
    def __init__(self, run: Run[Tools], analysed: AnalysedDocument) -> None:
        self._run = run
        self._tools = run.tools
        self._analysed = analysed
        self._files = SegmentFiles(run, analysed.document_id)

    # planned

    async def plan(self) -> JSON:
        analysed, room = self._analysed, self._tools.gateway.call_limits(ANSWER_SEGMENT.name)
        lengths = await measure(self._tools.database, analysed)
        as_files = lengths.unit == "pages" and sends_files(self._tools, analysed)
        tokens = lengths.tokens(as_files=as_files)
        if lengths.unit == "passages":
            shape = limits_for_chunks(tokens, room)
        else:
            shape = limits_for_pages(len(tokens), analysed.bytes, room)
        segments = [as_row(one, tokens, ready=not as_files) for one in plan_segments(tokens, shape)]
        return {"unit": lengths.unit, "units": len(tokens), "segments": segments}

    async def save_plan(self, connection: Connection, made: JSON) -> None:
        if not isinstance(made, dict):
            raise TypeError("this stage returns the plan")
        values: dict[str, Any] = {"analysis": self._analysed.id}
        await connection.execute(QUERIES.set_planned, values | {"unit": made["unit"], "units": made["units"]})
        await insert_segments(connection, self._analysed.id, None, made["segments"])

    # cutting

    async def cut_all(self) -> None:
        async with self._tools.database.connection() as connection:
            rows = await fetch_rows(connection, QUERIES.segments_to_cut, {"analysis": self._analysed.id})
        if not rows:
            return
        if self._analysed.source_key is None:
            raise SourceGone
        async with self._files.local_copy(self._analysed.source_key) as path:
            pdf = PdfInSandbox(self._tools.sandbox, path, limits=self._tools.sandbox.limits)
            for row in rows:
                await self._cut(pdf, row["id"], Segment(row["first"], row["last"], row["context_first"]))

    async def _cut(self, pdf: PdfInSandbox, segment: UUID, pages: Segment) -> None:
        async def work() -> JSON:
            return await cut_segment(self._files, pdf, pages, pages)

        async def save(connection: Connection, made: JSON) -> None:
            self._files.begin_saving()
            await keep_segment(connection, self._files, segment, pages, made)
            await connection.execute(QUERIES.note_progress, {"analysis": self._analysed.id})

        await self._run.stage("cutting", work, part=str(pages.first), save=save)
        await self._files.remove_unused()

    # lined_up

    async def count(self) -> JSON:
        return None

    async def enqueue_items(self, connection: Connection, _made: JSON) -> None:
        values = {"analysis": self._analysed.id}
        await connection.execute(QUERIES.set_processing, values)
        await connection.execute(QUERIES.insert_items, values)
        await enqueue_due_items(connection, self._analysed.id)


def as_row(segment: Segment, tokens: list[int], *, ready: bool) -> JSON:
    return {
        "id": str(new_id()),
        "first": segment.first,
        "last": segment.last,
        "context_first": segment.context_first,
        "tokens": sum(tokens[segment.context_first - 1 : segment.last]),
        "ready": ready,
    }


async def insert_segments(connection: Connection, analysis: UUID, parent: UUID | None, rows: JSON) -> None:
    values = {"analysis": analysis, "parent": parent, "segments": Jsonb(rows)}
    await connection.execute(QUERIES.insert_segments, values)


async def cut_segment(files: SegmentFiles, pdf: PdfInSandbox, pages: Segment, place: Segment) -> JSON:
    """Write the pages of a segment to a separate file, and return a reference to the stored file.

    Returns None if an earlier analysis has already stored this segment. `pages` contains the page numbers in the
    document, and `place` the numbers of the same pages in the file `pdf`.
    """
    if await files.has(pages):
        return None
    return {
        **await files.put(f"segment-{pages.first}-{pages.last}.pdf", await pdf.copy(place.context_first, place.last))
    }


async def keep_segment(connection: Connection, files: SegmentFiles, segment: UUID, pages: Segment, made: JSON) -> None:
    """Insert the database row of a segment's file and mark the segment as ready, in the caller's transaction."""
    if made is not None:
        await files.keep(connection, name_of(pages), made, PDF_TYPE)
    await connection.execute(QUERIES.set_ready, {"segment": segment})


async def analyse_long_document(run: Run[Tools], document: UUID) -> None:
    """Start an analysis with all active prompts if the document is long, not yet analysed, and cheap enough."""
    settings = run.tools.settings
    if not settings.analyse_pages:
        return
    values = {"document": document, "pages": settings.analyse_pages, "bytes": settings.analyse_bytes}

    async with run.tools.database.connection() as connection:
        rows = await fetch_rows(connection, QUERIES.long_document, values)
    if not rows:
        return

    async def estimate() -> JSON:
        cost = estimate_analysis(settings, rows[0])
        return {"estimated_usd": cost, "started": cost <= settings.analyse_budget}

    async def start(connection: Connection, made: JSON) -> None:
        if not (isinstance(made, dict) and made["started"]):
            return
        for row in await fetch_rows(connection, QUERIES.long_document, values):
            with suppress(NoPrompts):
                await start_analysis(connection, row["owner_id"], document, cause=Cause.LONG_TEXT_READY)

    await run.stage(REQUESTED, estimate, save=start)


def estimate_analysis(settings: Settings, document: Row) -> float:
    """Return the expected cost of all active prompts in US dollars. The document's page shows the same estimate."""
    is_offline = document["owner_kind"] == "anonymous" and not settings.anonymous_models
    size = DocumentSize.of(document["word_count"], document["page_count"])
    return Estimator(settings, is_offline=is_offline).estimate(size, document["prompts"]).analysis.usd


KIND = JobKind("analyse_document", analyse_document, time_limit_seconds=600, limit_renewed_by_stage=True)
