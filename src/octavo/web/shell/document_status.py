"""Texts for the status of a document: its label, the cause and the available actions.

The functions take a document, its processing job and the time, and return texts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from octavo.core.errors import RETRY_RULES, Encrypted, OctavoError, OverBudget, TooLarge
from octavo.core.formatting import count_of, format_date, format_eta, format_number, format_span
from octavo.core.texts import current_catalogue, mark, translate_sentences
from octavo.core.texts import gettext as _
from octavo.core.types import JobStatus, Lane
from octavo.records.documents import Document
from octavo.records.jobs import LINKS, JobView, stage_of

Tone = Literal["", "run", "ok", "warn", "bad"]
STALE_AFTER = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class StatusAction:
    """A button that submits a form, or a link if `method` is `get`.

    If `asks` is true, the user must confirm the action. For a document, `action` is the last part of the path: after
    `/actions/documents/{id}/` for a form, after `/documents/{id}/` for a link. For a conversion, it is the whole path.
    """

    label: str
    action: str
    method: Literal["post", "get"] = "post"
    asks: bool = False


CANCEL = StatusAction(mark("Cancel"), "cancel")
TRY_NOW = StatusAction(mark("Try now"), "try_now")
RESUME = StatusAction(mark("Resume"), "resume")
TRY_AGAIN = StatusAction(mark("Try again"), "retry")
START_AGAIN = StatusAction(mark("Start again"), "retry")
START_OVER = StatusAction(mark("Start over"), "restart")
DISCARD = StatusAction(mark("Discard"), "discard", asks=True)
REPLACE = StatusAction(mark("Replace file"), "replace", "get")
ENTER_PASSWORD = StatusAction(mark("Enter password"), "replace#password", "get")
DOWNLOAD = StatusAction(mark("Download"), "source", "get")
CLASSIFY = StatusAction(mark("Classify again"), "classify")
WRITE_TEXT = StatusAction(mark("Rewrite the text"), "classify")
DESCRIBE = StatusAction(mark("Describe again"), "classify")
INDEX = StatusAction(mark("Index again"), "classify")
READ_REST = StatusAction(mark("Read the rest"), "retry")
READ_AGAIN = StatusAction(mark("Read again"), "retry")
TRY_OCR = StatusAction(mark("Try OCR"), "retry")
RAISE_BUDGET = StatusAction(mark("Raise budget"), "budget", "get")


@dataclass(frozen=True, slots=True)
class StatusText:
    """The status of a document in words.

    `chip` is the status label. It is None while the document is being processed; `line` and the progress are shown
    instead. `missing` names the results that a completed document lacks, such as its title, summary and tags. If
    `moves_up` is true, the document waits as part of an import and can be moved ahead of imports.
    """

    tone: Tone = ""
    glyph: str = ""
    chip: str | None = None
    line: str | None = None
    verbs: tuple[StatusAction, ...] = ()
    done: int = 0
    total: int | None = None
    eta: str | None = None
    missing: str | None = None
    moves_up: bool = False

    @property
    def is_working(self) -> bool:
        return self.chip is None


def describe(document: Document, job: JobView | None, now: datetime) -> StatusText:
    """Describe the status of a document in words. `job` is its processing job."""
    status = _describe(document, job, now)
    return status if current_catalogue().is_english else replace(status, line=translate_sentences(status.line or ""))


def _describe(document: Document, job: JobView | None, now: datetime) -> StatusText:
    if document.deleted_at:
        return StatusText(
            "",
            "trash",
            _("In the trash"),
            _("Since %(date)s", date=format_date(document.deleted_at.date(), now.date())),
        )
    if document.status == "failed":
        return _failed(document, job)
    if document.status == "pending" and job is not None:
        return _unfinished(document, job, now)
    return _finished(document)


def last_progress(job: JobView) -> datetime:
    """Return the time of the job's last progress or, if there was none, of its start or creation."""
    return max(filter(None, (job.progressed_at, job.started_at, job.created_at)))


def is_stale(job: JobView, now: datetime) -> bool:
    return job.status == JobStatus.PROCESSING and now - last_progress(job) > STALE_AFTER


def _unfinished(document: Document, job: JobView, now: datetime) -> StatusText:
    stage = stage_of(job, document.source_type)
    if job.status == JobStatus.PROCESSING:
        if is_stale(job, now):
            line = _("No progress for %(time)s at “%(stage)s”", time=format_span(now - last_progress(job)), stage=stage)
            return StatusText("warn", "clock", _("Stale"), line, (RESUME,))
        progress = job.progress
        counted = (
            _(
                "%(stage)s, %(done)s of %(total)s",
                stage=stage,
                done=format_number(progress.done),
                total=format_number(progress.total),
            )
            if progress.total
            else stage
        )
        return StatusText("run", "", None, counted, (CANCEL,), progress.done, progress.total, format_eta(job.eta))
    why = job.waiting_because
    if why and why.reason == "paused" and why.facts.get("code") == "OVER_BUDGET":
        told = str(why.facts.get("message") or why.detail).removeprefix(OverBudget().title).strip()
        return StatusText("warn", "pause", _("Over budget"), told or _sentence(why.detail), (RAISE_BUDGET,))
    line = _sentence(why.detail) if why else None
    verbs = (TRY_NOW, CANCEL) if why and why.is_retry else (CANCEL,)
    return StatusText("", "clock", _("Waiting"), line, verbs, moves_up=job.lane is Lane.BULK)


def _failed(document: Document, job: JobView | None) -> StatusText:
    error = document.error
    if error is None or error.code == "CANCELLED":
        return StatusText("", "close", _("Cancelled"), _("Stopped by you"), (START_AGAIN,))
    cause = f"{translate_sentences(error.message).rstrip('.')} ({error.code})"
    if job is not None and job.status == JobStatus.DEAD_LETTER:
        line = f"{count_of(job.max_attempts, 'attempt')}: {cause}"
        stage = stage_of(job, document.source_type)
        verbs = (StatusAction(_("Resume from %(stage)s", stage=stage), "retry"), START_OVER, DISCARD)
        return StatusText("bad", "error", _("Failed for good"), line, verbs)
    return StatusText("bad", "error", _("Failed"), cause, (_remedy(document, error.code),))


def _remedy(document: Document, code: str) -> StatusAction:
    if code == Encrypted.code and document.source_type == "pdf":
        return ENTER_PASSWORD
    return TRY_AGAIN if is_retried(code) or document.source_type in LINKS else REPLACE


def _finished(document: Document) -> StatusText:
    status = _read(document)
    if document.missing == ["connections"]:
        later = _("will be retried automatically") if document.will_be_resumed else _("the comparison failed")
        status = replace(
            status, line=" · ".join(filter(None, (status.line, _("No connections yet; %(later)s", later=later))))
        )
    if not document.will_be_improved or document.needs_classification:
        return status
    line = " · ".join(filter(None, (status.line, _("Summary made without a model; will be improved"))))
    return replace(status, line=line, verbs=(*status.verbs, TRY_NOW))


def _read(document: Document) -> StatusText:
    if document.needs_classification:
        return _incomplete(document)
    if document.duplicate_of and document.quality is None:
        return StatusText("", "twins", _("Already here"), _("Same file as another document"))
    if document.quality == "partial":
        return StatusText("", "image", _("Picture")) if is_photo(document) else _partial(document)
    if document.quality == "empty":
        return _picture(document) if document.source_type == "image" else _empty(document)
    if document.quality == "stored_only" and document.quality_reason:
        return replace(QUALITIES["stored_only"], line=_("Stored unchanged. %(why)s", why=document.quality_reason))
    return replace(QUALITIES[document.quality or "full"], **_reason(document))


def is_photo(document: Document) -> bool:
    """Whether the file is a photo. Unreadable words in a photo are not reported as a problem."""
    return document.source_type == "image" and document.kind == "photo"


def _partial(document: Document) -> StatusText:
    """Describe the status of a document whose text is incomplete or uncertain.

    If all pages have text, the user can have the file read again. Otherwise, the user can have the remaining pages
    read.
    """
    all_pages = document.metadata.get("pages_with_text") in {None, str(document.page_count)}
    line = document.quality_reason or _readable_pages(document)
    action = READ_AGAIN if document.quality_reason and all_pages else READ_REST
    return StatusText("", "warning", _("Partial text"), line, (action,))


def _reason(document: Document) -> dict[str, str]:
    return {"line": document.quality_reason} if document.quality_reason else {}


def _empty(document: Document) -> StatusText:
    """Describe a document without text. OCR is offered only if there are pages that it has not read."""
    if document.metadata.get("pages_for_ocr"):
        return StatusText("warn", "warning", _("No text"), _("Nothing readable was found"), (TRY_OCR,))
    return StatusText("", "box", _("No text"), _("Nothing readable was found"))


def _picture(document: Document) -> StatusText:
    """Describe the status of a picture without text. A retry is offered only if the picture could not be decoded."""
    why = document.metadata.get("unreadable")
    if not why:
        return StatusText("", "image", _("Picture"))
    if document.metadata.get("unreadable_code") == TooLarge.code:
        return StatusText("", "image", _("Picture"), _("Stored unchanged. %(why)s", why=why), (DOWNLOAD,))
    return StatusText("warn", "warning", _("Not opened"), _("Stored unchanged. %(why)s", why=why), (TRY_AGAIN,))


def needs_person(document: Document) -> bool:
    """Whether the document is listed on the “Needs you” tab. The database query for this tab must use the same rule."""
    if document.quality == "empty":
        return document.needs_classification or _read(document).tone == "warn"
    return document.needs_classification or (document.quality == "partial" and not is_photo(document))


@dataclass(frozen=True, slots=True)
class MissingPart:
    """A result that a completed document lacks, such as its title, summary and tags, or its embeddings.

    The first missing result determines the status label and the action.
    """

    chip: str
    verb: StatusAction
    what: str


# The first missing part determines the label. Each action adds all missing parts.
MISSING_PARTS = {
    "description": MissingPart(mark("Needs classification"), CLASSIFY, mark("title, summary and tags")),
    "text_by_model": MissingPart(mark("Text not rewritten"), WRITE_TEXT, mark("the text written by a model")),
    "chunk_descriptions": MissingPart(
        mark("Passages not described"), DESCRIBE, mark("themes and concepts of its passages")
    ),
    "vectors": MissingPart(mark("Not indexed"), INDEX, mark("search by meaning and connections")),
}


def _incomplete(document: Document) -> StatusText:
    parts = [part for name, part in MISSING_PARTS.items() if name in document.missing]
    first = parts[0] if parts else MISSING_PARTS["description"]
    cause = translate_sentences(document.error.message) if document.error else _("Some processing steps failed.")
    missing = _("Missing: %(parts)s.", parts="; ".join(_(part.what) for part in parts)) if parts else None
    if document.will_be_resumed:
        cause = _("%(cause)s. It will be retried automatically.", cause=cause.rstrip("."))
    return StatusText(
        "warn", "warning", first.chip, _("Readable now. %(cause)s", cause=cause), (first.verb,), missing=missing
    )


QUALITIES = {
    "full": StatusText("ok", "check", mark("Full text")),
    "ocr": StatusText("", "check", mark("OCR text")),
    "stored_only": StatusText(
        "",
        "box",
        mark("Stored only"),
        mark("Stored unchanged. Text cannot be extracted from this file type."),
        (DOWNLOAD,),
    ),
}


def _readable_pages(document: Document) -> str:
    readable, pages = document.metadata.get("pages_with_text"), document.page_count
    return (
        _("%(readable)s of %(pages)s pages have text", readable=format_number(readable), pages=format_number(pages))
        if readable is not None and pages
        else _("Some pages have no text")
    )


def is_retried(code: str) -> bool:
    """Whether a retry with the same file may succeed after an error with this code."""
    return code in _retried_codes(OctavoError)


def _retried_codes(kind: type[OctavoError]) -> set[str]:
    own = {kind.code} if RETRY_RULES[kind.error_class] else set[str]()
    return own.union(*map(_retried_codes, kind.__subclasses__()))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
