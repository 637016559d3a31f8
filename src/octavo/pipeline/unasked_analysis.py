"""Long documents are analysed without being asked for, where the settings say so: once, with all active prompts."""

from __future__ import annotations

from contextlib import suppress
from uuid import UUID

from octavo.analyse.analyses import start_analysis
from octavo.analyse.errors import NoPrompts
from octavo.choreography import Cause
from octavo.core.types import JSON
from octavo.database import Connection, fetch_rows, load_queries
from octavo.jobs.job_run import Run
from octavo.pipeline.tools import Tools

QUERIES = load_queries("analyses")
STAGE = "analysis_asked"


async def analyse_unasked(run: Run[Tools], document: UUID) -> None:
    """As soon as it can be read; a document that was ever analysed is left alone."""
    settings = run.tools.settings
    if not settings.analyse_pages:
        return

    async def decide() -> JSON:
        return None

    async def start(connection: Connection, _made: JSON) -> None:
        values = {"document": document, "pages": settings.analyse_pages, "bytes": settings.analyse_bytes}
        for row in await fetch_rows(connection, QUERIES.long_document, values):
            with suppress(NoPrompts):
                await start_analysis(connection, row["owner_id"], document, cause=Cause.LONG_TEXT_READY)

    await run.stage(STAGE, decide, save=start)
