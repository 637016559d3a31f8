"""Every state of a document has its chip, its line and its verb, and no other."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from octavo.core.errors import OverBudget
from octavo.core.types import JobStatus
from octavo.jobs.views import waiting_because
from octavo.records.documents import Document
from octavo.records.jobs import Eta, JobError, JobView, Progress
from octavo.web.shell.document_status import StatusText, describe

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)

DOCUMENT = Document(
    id=UUID(int=1),
    title="field-notes.pdf",
    filename="field-notes.pdf",
    status="completed",
    quality="full",
    text_ready=True,
    embeddings_ready=False,
    needs_classification=False,
    source_type="pdf",
    source_url=None,
    content_type="application/pdf",
    page_count=312,
    word_count=90_000,
    author=None,
    language=None,
    document_date=None,
    summary=None,
    described_by=None,
    tags=[],
    collection=None,
    sha256="0" * 64,
    bytes=1000,
    cost_usd=0.0,
    error=None,
    duplicate_of=None,
    version=1,
    superseded=False,
    revision=1,
    metadata={},
    download_count=0,
    first_downloaded_at=None,
    created_at=NOW,
    updated_at=NOW,
    deleted_at=None,
    process_id=UUID(int=2),
    jobs=[],
)

JOB = JobView(
    id=UUID(int=2),
    kind="process_document",
    document_id=DOCUMENT.id,
    status=JobStatus.PROCESSING,
    stage=None,
    attempt=1,
    failures=0,
    max_attempts=3,
    progress=Progress(0, None, None),
    eta=None,
    waiting_because=None,
    error=None,
    stages=[],
    created_at=NOW,
    queued_at=NOW,
    started_at=NOW,
    progressed_at=NOW,
    completed_at=None,
    failed_at=None,
)


def words(document: dict[str, Any] | None = None, job: dict[str, Any] | None = None) -> StatusText:
    return describe(replace(DOCUMENT, **document or {}), replace(JOB, **job) if job is not None else None, NOW)


def said(given: StatusText) -> tuple[str, str | None, str | None, list[str]]:
    return given.tone, given.chip, given.line, [verb.label for verb in given.verbs]


def waiting(reason: str, **facts: object) -> dict[str, Any]:
    return {"status": JobStatus.QUEUED, "waiting_because": waiting_because(reason, dict(facts))}


FINISHED: dict[str, tuple[dict[str, Any], tuple[str, str, str | None, list[str]]]] = {
    "full": ({}, ("ok", "Full text", None, [])),
    "ocr": ({"quality": "ocr"}, ("", "OCR text", None, [])),
    "partial": (
        {"quality": "partial", "page_count": 4, "metadata": {"pages_with_text": 3}},
        ("", "Partial text", "3 of 4 pages have text", ["Read the rest"]),
    ),
    "empty": (
        {"quality": "empty", "metadata": {"pages_for_ocr": "1-3"}},
        ("warn", "No text", "Nothing readable was found", ["Try OCR"]),
    ),
    "empty after OCR": ({"quality": "empty"}, ("", "No text", "Nothing readable was found", [])),
    "photo": (
        {"quality": "partial", "source_type": "image", "kind": "photo", "quality_reason": "Page 1: low confidence."},
        ("", "Picture", None, []),
    ),
    "picture": ({"quality": "empty", "source_type": "image"}, ("", "Picture", None, [])),
    "picture over the limit": (
        {
            "quality": "empty",
            "source_type": "image",
            "metadata": {"unreadable": "It is too large.", "unreadable_code": "TOO_LARGE"},
        },
        ("", "Picture", "Stored unchanged. It is too large.", ["Download"]),
    ),
    "described offline": (
        {"will_be_improved": True},
        ("ok", "Full text", "Summary made without a model; will be improved", ["Try now"]),
    ),
    "not decoded": (
        {
            "quality": "empty",
            "source_type": "image",
            "metadata": {"unreadable": "The picture is damaged: it cannot be decoded."},
        },
        ("warn", "Not opened", "Stored unchanged. The picture is damaged: it cannot be decoded.", ["Try again"]),
    ),
    "stored only": (
        {"quality": "stored_only"},
        ("", "Stored only", "Stored unchanged. Text cannot be extracted from this file type.", ["Download"]),
    ),
    "needs classification": (
        {"needs_classification": True, "error": JobError("TIMEOUT", "The model did not answer in 90 s.")},
        ("warn", "Needs classification", "Readable now. The model did not answer in 90 s.", ["Classify again"]),
    ),
}


INCOMPLETE: dict[str, tuple[list[str], str, str, str]] = {
    "a description": (["description"], "Needs classification", "Missing: title, summary and tags.", "Classify again"),
    "vectors": (["vectors"], "Not indexed", "Missing: search by meaning and connections.", "Index again"),
    "insights": (
        ["chunk_descriptions"],
        "Passages not described",
        "Missing: themes and concepts of its passages.",
        "Describe again",
    ),
    "what a model should have written": (
        ["text_by_model"],
        "Text not rewritten",
        "Missing: the text written by a model.",
        "Rewrite the text",
    ),
    "several parts": (
        ["chunk_descriptions", "vectors"],
        "Passages not described",
        "Missing: themes and concepts of its passages; search by meaning and connections.",
        "Describe again",
    ),
}


@pytest.mark.parametrize("name", INCOMPLETE)
def test_an_amber_document_shows_its_cause_the_missing_parts_and_one_action(name: str) -> None:
    missing, chip, sentence, verb = INCOMPLETE[name]
    error = JobError("AI_UNAVAILABLE", "The model provider is not available.")
    found = words({"needs_classification": True, "missing": missing, "error": error})
    assert said(found) == ("warn", chip, "Readable now. The model provider is not available.", [verb])
    assert found.missing == sentence


def test_an_automatic_retry_is_announced() -> None:
    error = JobError("TIMED_OUT", "Timed out.")
    given = {"needs_classification": True, "missing": ["vectors"], "error": error, "will_be_resumed": True}
    assert words(given).line == "Readable now. Timed out. It will be retried automatically."


def test_a_document_that_was_not_compared_says_so() -> None:
    given = {"missing": ["connections"], "will_be_resumed": True}
    assert said(words(given)) == ("ok", "Full text", "No connections yet; will be retried automatically", [])


@pytest.mark.parametrize("name", FINISHED)
def test_a_finished_document_says_how_good_its_text_is(name: str) -> None:
    given, wanted = FINISHED[name]
    assert said(words(given)) == wanted


FAILED: dict[str, tuple[str, JobStatus, tuple[str, str, str, list[str]]]] = {
    "what may work next time": (
        "NETWORK",
        JobStatus.FAILED,
        ("bad", "Failed", "It broke (NETWORK)", ["Try again"]),
    ),
    "what needs a password": (
        "ENCRYPTED",
        JobStatus.FAILED,
        ("bad", "Failed", "It broke (ENCRYPTED)", ["Enter password"]),
    ),
    "what never will": ("EMPTY", JobStatus.FAILED, ("bad", "Failed", "It broke (EMPTY)", ["Replace file"])),
    "given up": (
        "CRASHED",
        JobStatus.DEAD_LETTER,
        (
            "bad",
            "Failed for good",
            "3 attempts: It broke (CRASHED)",
            ["Resume from Reading pages", "Start over", "Discard"],
        ),
    ),
    "cancelled": ("CANCELLED", JobStatus.CANCELLED, ("", "Cancelled", "Stopped by you", ["Start again"])),
}


@pytest.mark.parametrize("name", FAILED)
def test_a_failed_document_says_its_cause_its_code_and_what_to_do(name: str) -> None:
    code, status, wanted = FAILED[name]
    document = {"status": "failed", "quality": None, "error": JobError(code, "It broke.")}
    assert said(words(document, {"status": status})) == wanted


@pytest.mark.parametrize("code", ["ENCRYPTED", "NOT_SUPPORTED", "EMPTY", "TOO_LARGE"])
def test_trying_again_is_never_offered_for_a_file_that_cannot_change(code: str) -> None:
    document = {"status": "failed", "error": JobError(code, "It broke.")}
    assert "Try again" not in [verb.label for verb in words(document, {"status": JobStatus.FAILED}).verbs]


def test_only_the_password_of_a_pdf_can_be_entered() -> None:
    document = {"status": "failed", "source_type": "docx", "error": JobError("ENCRYPTED", "It broke.")}
    assert [verb.label for verb in words(document, {"status": JobStatus.FAILED}).verbs] == ["Replace file"]


def test_a_link_that_failed_is_tried_again_because_there_is_no_file_to_replace() -> None:
    document = {"status": "failed", "source_type": "web", "error": JobError("EMPTY", "It broke.")}
    assert [verb.label for verb in words(document, {"status": JobStatus.FAILED}).verbs] == ["Try again"]


def test_a_running_job_shows_its_stage_its_progress_and_the_time_left() -> None:
    found = words({"status": "pending"}, {"progress": Progress(148, 312, "pages"), "eta": Eta(20, 35)})
    assert found.is_working
    assert (found.line, found.done, found.total, found.eta) == ("Reading pages, 148 of 312", 148, 312, "20\u201335 s")
    assert [verb.label for verb in found.verbs] == ["Cancel"]


def test_work_of_unknown_length_shows_no_bar() -> None:
    found = words({"status": "pending"}, {"stage": "extracted"})
    assert (found.line, found.total, found.eta) == ("Saving text", None, None)


def test_ten_minutes_without_progress_are_stale() -> None:
    late = NOW - timedelta(minutes=14)
    begun = {"stage": "enriched", "created_at": late, "started_at": late}
    found = words({"status": "pending"}, begun | {"progressed_at": late})
    assert said(found) == ("warn", "Stale", "No progress for 14 min at “Indexing”", ["Resume"])
    assert words({"status": "pending"}, begun | {"progressed_at": NOW - timedelta(minutes=9)}).is_working


WAITING: dict[str, tuple[dict[str, Any], str]] = {
    "in line": (waiting("behind", position=3), "3rd in the queue"),
    "nobody works": (waiting("no_worker", live_workers=0), "No worker is running"),
    "a cap": (waiting("cap", cap_key="analysis:1", taken=5), "5 of this analysis already running"),
}


@pytest.mark.parametrize("name", WAITING)
def test_a_waiting_document_says_why(name: str) -> None:
    job, line = WAITING[name]
    assert said(words({"status": "pending"}, job)) == ("", "Waiting", line, ["Cancel"])


def test_over_budget_names_the_money() -> None:
    """And not first what the chip says already."""
    told = OverBudget("$0.60 of $0.60 spent").line
    job = waiting("paused", code="OVER_BUDGET", message=told) | {"status": JobStatus.PAUSED}
    assert said(words({"status": "pending"}, job)) == ("warn", "Over budget", "$0.60 of $0.60 spent", ["Raise budget"])


def test_a_document_in_the_trash_shows_its_deletion_time() -> None:
    assert said(words({"deleted_at": NOW - timedelta(days=3)})) == ("", "In the trash", "Since 12 Nov", [])
