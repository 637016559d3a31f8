"""The public event types, and the messages that describe events to people. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args
from uuid import UUID

from octavo.core.texts import Texts
from octavo.core.texts import gettext as _
from octavo.records.deliveries import EventType

# Shown in the application only: a failed delivery never causes another one.
FAILING = "webhook.failing"
EVENT_TYPES: tuple[EventType, ...] = get_args(EventType)
# The notifications inside the application. Documents that are ready have none: an import has one for all its documents.
NEWS: tuple[EventType, ...] = (
    "analysis.completed",
    "conversion.completed",
    "conversion.needs_review",
    "conversion.batch",
)
ERRORS: tuple[EventType, ...] = (
    "document.failed",
    "job.failed",
    "job.dead_letter",
    "analysis.failed",
    "analysis.stalled",
    "analysis.abandoned",
    "conversion.failed",
)
# The mail to the person who requested an analysis.
REQUESTED: tuple[EventType, ...] = ("analysis.completed", "analysis.failed", "analysis.stalled", "analysis.abandoned")
DEFAULT_EVENTS: tuple[EventType, ...] = ("document.completed", "import.completed", *NEWS, *ERRORS)
TEST = "webhook.test"

TITLE_CHARACTERS = 120
# The pages of events, by the beginning of the type. The id is that of the process.
_PATHS = (
    ("analysis.", "/analyses/{id}"),
    ("import.", "/library?import_id={id}"),
    ("conversion.batch", "/conversions?batch={id}"),
    ("conversion.", "/conversions/{id}"),
    (FAILING, "/settings/webhooks/{id}"),
    ("document.rejected", "/uploads"),
)
_NOT_SHOWN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]+")
# If a model fails, the document can still be read but has no description.
_MODELS, _UNDESCRIBED = "AI_", "undescribed"
_INCOMPLETE = "incomplete"
_SENTENCES: Mapping[str, str] = Texts(
    {
        _UNDESCRIBED: "{subject} can be read, but its description failed{code}.",
        "document.completed": "{subject} is ready.",
        "document.matched": "{subject} matches a rule{reason}.",
        "document.failed": "{subject} could not be processed{code}.",
        "document.rejected": "A file was rejected{code}.",
        "job.completed": "A job is complete.",
        "job.failed": "A job failed{code}.",
        "job.dead_letter": "{subject} failed for good after several attempts{code}.",
        "analysis.completed": "The analysis of {subject} is complete.",
        _INCOMPLETE: "The analysis of {subject} is complete, but some parts of the document have no answer.",
        "analysis.failed": "The analysis of {subject} failed{code}.",
        "analysis.stalled": "The analysis of {subject} has made no progress for several minutes{reason}.",
        "analysis.abandoned": "The analysis of {subject} was abandoned after two days without progress{code}.",
        "conversion.completed": "{subject} was converted.",
        "conversion.needs_review": "{subject} was converted and needs review{reason}.",
        "conversion.failed": "{subject} could not be converted{reason}{code}.",
        "conversion.batch": "A batch of conversions is done{reason}.",
        "conversion.deleted": "A conversion was deleted.",
        "conversion.downloaded": "The result of {subject} was downloaded.",
        "conversion.expired": "{subject}: files of its conversion expired and were deleted.",
        "document.expired": "{subject} expired and was deleted.",
        "document.abandoned": "An upload was never finished.",
        "import.progress": "Import{reason}.",
        "import.completed": "Import finished{reason}.",
        FAILING: (
            "Deliveries to {subject} have failed for more than a week. Check that the address is correct and reachable."
        ),
        TEST: "This is a test. Deliveries to this address work.",
    }
)


@dataclass(frozen=True, slots=True)
class Message:
    """A message that tells a person about an event.

    `title` is the subject of a mail, and `sentence` is its text. `link` is None if the public URL is not set.
    """

    title: str
    sentence: str
    link: str | None


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of an event, such as a document or a conversion.

    `title` is the document's title, or the name of the converted file if the conversion has no document. Only messages
    to administrators name the `owner` and the `job_kind`.
    """

    type: str
    process_id: UUID | None = None
    document_id: UUID | None = None
    title: str | None = None
    error_code: str | None = None
    reason: str | None = None
    converts: bool = False
    owner: str | None = None
    job_kind: str | None = None

    @property
    def is_conversion(self) -> bool:
        return self.converts or self.type.startswith("conversion.")

    @property
    def is_undescribed(self) -> bool:
        """Whether the document is readable, and only the generation of its title, summary and tags failed."""
        failed_model = (self.error_code or "").startswith(_MODELS) and self.document_id is not None
        return failed_model and not self.is_conversion and not self.type.startswith("analysis.")


def describe(about: Subject, *, public_url: str | None = None, for_administrator: bool = False) -> Message:
    """Write the message for an event, in the current language. A document without a title is called “A document”."""
    event_type = _UNDESCRIBED if about.is_undescribed else about.type
    if event_type == "analysis.completed" and about.error_code:
        event_type = _INCOMPLETE
    pattern = _SENTENCES.get(event_type, f"{{subject}}: {event_type.partition('.')[2]}.")
    code = f" ({about.error_code})" if about.error_code else ""
    reason = f": {about.reason.rstrip('.')}" if about.reason else ""
    sentence = pattern.format(subject=_name(about), code=code, reason=reason)
    title = f"Octavo: {sentence.rstrip('.。')}"
    if for_administrator:
        sentence = " ".join((sentence, *_names(about)))
    path = operations_path(about) if for_administrator else path_of(about)
    link = f"{public_url.rstrip('/')}{path or '/'}" if public_url else None
    return Message(title, sentence, link)


def _names(about: Subject) -> list[str]:
    """Return sentences that identify the owner, the document and the job for an administrator.

    They do not contain titles, because titles are private.
    """
    job = " ".join(filter(None, (about.job_kind, str(about.process_id) if about.process_id else None)))
    named = {"Owner": about.owner, "Document": about.document_id, "Job": job}
    return [f"{name}: {value}." for name, value in named.items() if value]


def _name(about: Subject) -> str:
    if about.title and (named := plain(about.title)):
        return f"“{named}”"
    if about.is_conversion:
        return _("A file")
    return _("A document") if about.document_id else _("A job")


def path_of(about: Subject) -> str | None:
    """Return the path of the page that an event links to. Returns None if there is no such page."""
    path = next((path for kind, path in _PATHS if about.type.startswith(kind)), None)
    if about.process_id and path is None and about.is_conversion:
        path = "/conversions/{id}"
    if path and (about.process_id or "{id}" not in path):
        return path.format(id=about.process_id)
    return f"/documents/{about.document_id}" if about.document_id else None


def operations_path(about: Subject) -> str | None:
    """Return the path of the page that a message to an administrator links to. Returns None if the event has no job.

    This is the job's page or, for an import, the list of failed jobs. It is not the document's page, because
    administrators cannot open the documents of other accounts.
    """
    if about.type == "import.completed":
        return "/operations/jobs?status=failed"
    return f"/operations/jobs/{about.process_id}" if about.process_id else None


def plain(text: str) -> str:
    """Shorten a text to one line, without control characters, which could break or reverse the surrounding text."""
    line = " ".join(_NOT_SHOWN.sub(" ", text).split())
    return line if len(line) <= TITLE_CHARACTERS else line[: TITLE_CHARACTERS - 1].rstrip() + "…"
