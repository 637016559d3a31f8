"""Texts for the status of a conversion: its label, the cause and the available actions."""

from __future__ import annotations

from datetime import datetime

from octavo.convert.conversions import ConfidenceSummary, StoredConversion
from octavo.core.formatting import count_of, format_date, format_eta
from octavo.core.types import JobStatus
from octavo.records.jobs import JobView
from octavo.web.shell.document_status import StatusAction, StatusText, is_retried

CHOOSE = StatusAction("Choose another", "/conversions#file", "get")


def describe_conversion(
    found: StoredConversion, job: JobView | None, sure: ConfidenceSummary | None, now: datetime
) -> StatusText:
    """Return the status texts of a conversion.

    `sure` summarises the confidence in the extracted values; it is None while there are no values.
    """
    if found.archived_at:
        return StatusText(
            "",
            "box",
            "Archived",
            f"Result expired and was deleted on {format_date(found.archived_at.date(), now.date())}",
        )
    if found.status == JobStatus.COMPLETE:
        return _complete(found, sure)
    if found.status in {JobStatus.FAILED, JobStatus.DEAD_LETTER, JobStatus.CANCELLED}:
        return _ended(found, job)
    cancel = StatusAction("Cancel", f"/actions/jobs/{found.id}/cancel")
    if found.status == JobStatus.PROCESSING:
        return StatusText("run", "play", "Converting", None, (cancel,), eta=format_eta(job.eta) if job else None)
    why = job.waiting_because if job else None
    try_now = StatusAction("Try now", f"/actions/jobs/{found.id}/retry")
    verbs = (try_now, cancel) if why and why.is_retry else (cancel,)
    return StatusText("", "clock", "Waiting", why.detail[:1].upper() + why.detail[1:] if why else None, verbs)


def _complete(found: StoredConversion, sure: ConfidenceSummary | None) -> StatusText:
    address = f"/conversions/{found.id}"
    if sure and (line := _doubt(sure)):
        return StatusText("warn", "warning", "Needs review", line, (StatusAction("Review", address, "get"),))
    return StatusText("ok", "check", "Complete", None, (StatusAction("Open", address, "get"),))


def _doubt(sure: ConfidenceSummary) -> str | None:
    if sure.unverified:
        return f"{sure.unverified:,} of {count_of(sure.found, 'value')} to check"
    if sure.missing:
        return f"{count_of(sure.missing, 'required value')} missing"
    if sure.broken:
        return f"{count_of(sure.broken, 'check')} failed"
    return None


def _ended(found: StoredConversion, job: JobView | None) -> StatusText:
    again = f"/actions/jobs/{found.id}/retry"
    if found.status == JobStatus.CANCELLED or found.error_code in {None, "CANCELLED"}:
        return StatusText("", "close", "Cancelled", "Stopped by you", (StatusAction("Start again", again),))
    cause = f"{(found.error_message or '').rstrip('.')} ({found.error_code})"
    if found.status == JobStatus.DEAD_LETTER:
        tries = f"{count_of(job.max_attempts, 'attempt')}: " if job else ""
        return StatusText("bad", "error", "Failed for good", tries + cause, (StatusAction("Try again", again),))
    # A refused file was not stored, so it cannot be retried.
    retried = found.sha256 is not None and is_retried(found.error_code or "")
    return StatusText("bad", "error", "Failed", cause, (StatusAction("Try again", again) if retried else CHOOSE,))
