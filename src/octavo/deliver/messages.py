"""The public event types, and the messages about events for people. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args
from uuid import UUID

EventType = Literal[
    "document.created",
    "document.queued",
    "document.processing",
    "document.stage",
    "document.progress",
    "document.retry",
    "document.paused",
    "document.completed",
    "document.failed",
    "document.cancelled",
    "document.rejected",
    "document.deduplicated",
    "document.downloaded",
    "document.edited",
    "document.deleted",
    "document.restored",
    "document.purged",
    "job.created",
    "job.queued",
    "job.processing",
    "job.stage",
    "job.progress",
    "job.retry",
    "job.paused",
    "job.completed",
    "job.failed",
    "job.cancelled",
    "job.discarded",
    "job.dead_letter",
    "analysis.created",
    "analysis.queued",
    "analysis.analyzing",
    "analysis.initializing",
    "analysis.uploading",
    "analysis.processing",
    "analysis.consolidating",
    "analysis.item",
    "analysis.result",
    "analysis.completed",
    "analysis.failed",
    "analysis.abandoned",
    "analysis.stopped",
]
EVENT_TYPES: tuple[EventType, ...] = get_args(EventType)
NEWS: tuple[EventType, ...] = ("document.completed", "analysis.completed")
ERRORS: tuple[EventType, ...] = (
    "document.failed",
    "job.failed",
    "job.dead_letter",
    "analysis.failed",
    "analysis.abandoned",
)
DEFAULT_EVENTS: tuple[EventType, ...] = (*NEWS, *ERRORS)
TEST = "webhook.test"

TITLE_CHARACTERS = 120
_NOT_SHOWN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]+")
# If a model fails, the document can still be read but has no description.
_MODELS, _UNDESCRIBED = "AI_", "undescribed"
_INCOMPLETE = "incomplete"
_SENTENCES: Mapping[str, str] = {
    _UNDESCRIBED: "{thing} can be read, but its description failed{code}.",
    "document.completed": "{thing} is ready.",
    "document.failed": "{thing} could not be processed{code}.",
    "document.rejected": "A file was rejected{code}.",
    "job.completed": "A job is complete.",
    "job.failed": "A job failed{code}.",
    "job.dead_letter": "{thing} failed for good after several attempts{code}.",
    "analysis.completed": "The analysis of {thing} is complete.",
    _INCOMPLETE: "The analysis of {thing} is complete, but some parts of the document have no answer.",
    "analysis.failed": "The analysis of {thing} failed{code}.",
    "analysis.abandoned": "The analysis of {thing} was abandoned after two days without progress{code}.",
    TEST: "This is a test. Deliveries to this address work.",
}


@dataclass(frozen=True, slots=True)
class Message:
    """`title` is the subject of a mail, `sentence` the text. `link` is None if the public URL is not set."""

    title: str
    sentence: str
    link: str | None


def describe(
    event_type: str,
    *,
    title: str | None = None,
    error_code: str | None = None,
    document_id: UUID | None = None,
    public_url: str | None = None,
) -> Message:
    """The message for an event. A document without a title is called “A document”."""
    named = plain(title) if title else ""
    thing = f"“{named}”" if named else "A document" if document_id else "A job"
    if error_code and error_code.startswith(_MODELS) and document_id and not event_type.startswith("analysis."):
        event_type = _UNDESCRIBED
    if event_type == "analysis.completed" and error_code:
        event_type = _INCOMPLETE
    pattern = _SENTENCES.get(event_type, f"{{thing}}: {event_type.partition('.')[2]}.")
    sentence = pattern.format(thing=thing, code=f" ({error_code})" if error_code else "")
    return Message(f"Octavo: {sentence.rstrip('.')}", sentence, link_to(document_id, public_url))


def link_to(document_id: UUID | None, public_url: str | None) -> str | None:
    if not public_url:
        return None
    base = public_url.rstrip("/")
    return f"{base}/documents/{document_id}" if document_id else f"{base}/"


def plain(text: str) -> str:
    """The text as one short line, without control characters, which could break or reverse the text around them."""
    line = " ".join(_NOT_SHOWN.sub(" ", text).split())
    return line if len(line) <= TITLE_CHARACTERS else line[: TITLE_CHARACTERS - 1].rstrip() + "…"
