"""What happened to a document, in words. Pure: an event in, a sentence out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from octavo.database import Connection, fetch_rows, load_queries
from octavo.jobs.views import EventView

QUERIES = load_queries("reader")
SENTENCES = {
    "created": "Added to the line",
    "queued": "Put in line",
    "processing": "Work began",
    "retry": "Goes back in line",
    "complete": "Finished",
    "failed": "Failed",
    "dead_letter": "Given up",
    "paused": "Paused",
    "cancelled": "Stopped",
    "deduplicated": "The same file was added again",
    "deleted": "Moved to the trash",
    "restored": "Brought back from the trash",
    "downloaded": "The original was downloaded",
    "superseded": "A newer version was added",
    "expired": "Removed by retention",
    "analysis.created": "An analysis was asked for",
    "analysis.queued": "The analysis is in line",
    "analysis.analyzing": "The analysis is planned",
    "analysis.processing": "Prompts are asked",
    "analysis.consolidating": "Answers are put together",
    "analysis.completed": "The analysis is complete",
    "analysis.failed": "The analysis failed",
    "analysis.abandoned": "The analysis has not moved for two days",
}
# What was done when a stage is over.
STAGES = {
    "fetched": "Fetched",
    "inherited": "Took over what was there",
    "pictured": "Made a copy for screens",
    "reading": "Read some pages",
    "recognising": "Recognised a page",
    "extracted": "Read the file",
    "markdown_saved": "Saved the text",
    "rewriting": "A model wrote some of it",
    "rewritten": "A model wrote the text",
    "chunked": "Split into passages",
    "classified": "Catalogued",
    "describing": "Described some passages",
    "enriched": "Described its passages",
    "indexing": "Indexed some passages",
    "embedded": "Indexed",
    "connected": "Connected",
    "planned": "Planned an analysis",
    "cutting": "Cut some pages out for an analysis",
    "lined_up": "Put an analysis in line",
}
FIELDS = {"title": "title", "author": "author", "document_date": "date", "tags": "tags", "collection": "collection"}
TONES = {"complete": "ok", "failed": "bad", "dead_letter": "bad", "paused": "warn", "analysis.failed": "bad"}


@dataclass(frozen=True, slots=True)
class Happening:
    """`more` is what else is known of it: the cause of a failure, how long a stage took."""

    id: int
    at: datetime
    sentence: str
    more: str | None
    tone: str


async def list_happenings(
    connection: Connection, owner: UUID, document: UUID, *, before: int | None = None, most: int
) -> list[Happening]:
    """Newest first."""
    values = {"owner": owner, "document": document, "before": before, "most": most}
    return [tell(EventView(**row)) for row in await fetch_rows(connection, QUERIES.happened, values)]


def tell(event: EventView) -> Happening:
    sentence = _sentence(event.kind, event.detail)
    return Happening(event.id, event.at, sentence, _more(event.detail), TONES.get(event.kind, ""))


def stage_done(stage: str) -> str:
    return STAGES.get(stage, stage.replace("_", " ").capitalize())


def _sentence(kind: str, detail: dict[str, Any]) -> str:
    if kind == "stage":
        return stage_done(str(detail.get("stage", "")))
    if kind == "edited":
        fields = [FIELDS.get(str(name), str(name)) for name in detail.get("fields", ())]
        return f"Changed {' and '.join(filter(None, [', '.join(fields[:-1]), *fields[-1:]]))}" if fields else "Changed"
    return SENTENCES.get(kind, kind.replace("_", " ").capitalize())


def _more(detail: dict[str, Any]) -> str | None:
    error = detail.get("error")
    if isinstance(error, dict):
        known = cast("dict[str, Any]", error)
        return f"{str(known.get('message', '')).rstrip('.')} ({known.get('code')})"
    seconds = detail.get("seconds")
    if isinstance(seconds, int | float):
        return f"{seconds:.1f} s" if seconds >= 0.1 else "at once"  # noqa: PLR2004 - nobody notices less
    attempt = detail.get("attempt")
    return f"attempt {attempt}" if isinstance(attempt, int) and attempt > 1 else None
