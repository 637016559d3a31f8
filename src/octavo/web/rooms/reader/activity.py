"""Turns the events of a document into sentences for its activity list."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from octavo.connect.connections import KIND as COMPARISON
from octavo.core.texts import Texts, translate_sentences
from octavo.core.texts import gettext as _
from octavo.database import Connection, fetch_rows, load_queries
from octavo.jobs.views import EventView

QUERIES = load_queries("reader")
SENTENCES = Texts(
    {
        "created": "Queued",
        "queued": "Queued",
        "processing": "Started",
        "retry": "Queued for another attempt",
        "try_now": "Next attempt started early",
        "complete": "Finished",
        "failed": "Failed",
        "dead_letter": "Failed for good",
        "paused": "Paused",
        "cancelled": "Cancelled",
        "deduplicated": "Same file added again",
        "deleted": "Moved to the trash",
        "restored": "Restored from the trash",
        "downloaded": "Original downloaded",
        "superseded": "New version added",
        "matched": "Sent to recipients by a rule",
        "expired": "Moved to the trash after its retention period",
        "analysis.created": "Analysis requested",
        "analysis.queued": "Analysis queued",
        "analysis.analyzing": "Analysis planned",
        "analysis.processing": "Analysis running",
        "analysis.consolidating": "Combining answers",
        "analysis.completed": "Analysis complete",
        "analysis.failed": "Analysis failed",
        "analysis.stalled": "Analysis stalled",
        "analysis.abandoned": "Analysis abandoned",
        "analysis.stopped": "Analysis stopped",
    }
)
# Events of the job that compares a document with the others.
COMPARISON_SENTENCES = Texts(
    {
        "created": "Comparison queued",
        "queued": "Comparison queued",
        "processing": "Comparison started",
        "retry": "Comparison queued for another attempt",
        "complete": "Comparison finished",
        "failed": "Comparison failed",
        "dead_letter": "Comparison failed for good",
        "paused": "Comparison paused",
        "cancelled": "Comparison cancelled",
    }
)
JOB_NAMES = Texts(
    {
        "process_document": "Processing",
        "detect_connections": "Comparison",
        "embed_document": "Indexing",
        "embed_tags": "Tag indexing",
        "analyse_document": "Analysis",
        "answer_segment": "Part of an analysis",
        "consolidate_answers": "Combining the answers of an analysis",
        "convert": "Conversion",
    }
)
# The result of each finished stage.
STAGES = Texts(
    {
        "fetched": "Fetched",
        "inherited": "Reused existing results",
        "pictured": "Created page previews",
        "reading": "Read some pages",
        "recognising": "Recognised the text of a page",
        "extracted": "Read the file",
        "markdown_saved": "Saved the text",
        "rewriting": "A model wrote part of the text",
        "rewritten": "A model wrote the text",
        "chunked": "Split into passages",
        "parts_added": "Added a file from the archive or email",
        "facts_found": "Found facts",
        "classified": "Classified",
        "describing": "Described some passages",
        "enriched": "Described the passages",
        "indexing": "Indexed some passages",
        "embedded": "Indexed",
        "improvement_planned": "Summary made without a model; will be improved",
        "improved": "Description improved",
        "connected": "Connected",
        "planned": "Planned an analysis",
        "cutting": "Prepared pages for an analysis",
        "lined_up": "Queued an analysis",
    }
)
# The states of jobs, as the page shows them.
STATES = Texts(
    {
        "queued": "Queued",
        "processing": "Processing",
        "complete": "Complete",
        "failed": "Failed",
        "dead_letter": "Failed for good",
        "paused": "Paused",
        "cancelled": "Cancelled",
    }
)
FIELDS = Texts(
    {
        "title": "title",
        "author": "author",
        "document_date": "date",
        "tags": "tags",
        "collection": "collection",
        "expires_on": "expiry date",
    }
)
TONES = {"complete": "ok", "failed": "bad", "dead_letter": "bad", "paused": "warn", "analysis.failed": "bad"}


@dataclass(frozen=True, slots=True)
class Activity:
    """An event as a sentence.

    `more` is the cause of a failure, the duration of a stage, or the number of the attempt.
    """

    id: int
    at: datetime
    sentence: str
    more: str | None
    tone: str


async def list_activity(
    connection: Connection, owner: UUID, document: UUID, *, before: int | None = None, most: int
) -> list[Activity]:
    """List the activity of a document, newest first."""
    values = {"owner": owner, "document": document, "before": before, "most": most}
    rows = await fetch_rows(connection, QUERIES.happened, values)
    kinds = [row.pop("job_kind") for row in rows]
    return [describe_event(EventView(**row), kind) for row, kind in zip(rows, kinds, strict=True)]


def describe_event(event: EventView, job_kind: str | None = None) -> Activity:
    sentence = _sentence(event.kind, event.detail)
    if job_kind == COMPARISON:
        sentence = COMPARISON_SENTENCES.get(event.kind, sentence)
    if job_kind == "convert" and event.kind == "expired":
        sentence = _("Expired conversion files deleted")
    return Activity(event.id, event.at, sentence, _more(event.detail), TONES.get(event.kind, ""))


def stage_done(stage: str) -> str:
    return STAGES.get(stage, stage.replace("_", " ").capitalize())


def _sentence(kind: str, detail: dict[str, Any]) -> str:
    if kind == "stage":
        return stage_done(str(detail.get("stage", "")))
    if kind == "edited":
        fields = [FIELDS.get(str(name), str(name)) for name in detail.get("fields", ())]
        return (
            _("Changed %(fields)s", fields=_(" and ").join(filter(None, [", ".join(fields[:-1]), *fields[-1:]])))
            if fields
            else _("Changed")
        )
    return SENTENCES.get(kind, kind.replace("_", " ").capitalize())


def _more(detail: dict[str, Any]) -> str | None:
    error = detail.get("error")
    if isinstance(error, dict):
        known = cast("dict[str, Any]", error)
        return f"{translate_sentences(str(known.get('message', ''))).rstrip('.。')} ({known.get('code')})"
    seconds = detail.get("seconds")
    if isinstance(seconds, int | float):
        return f"{seconds:.1f} s" if seconds >= 0.1 else _("instantly")  # noqa: PLR2004 - nobody notices less
    attempt = detail.get("attempt")
    return _("attempt %(attempt)s", attempt=attempt) if isinstance(attempt, int) and attempt > 1 else None
