"""What people are told: a sentence, a title that cannot do anything, and a link."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from octavo.deliver.channels import chat_text
from octavo.deliver.messages import (
    DEFAULT_EVENTS,
    ERRORS,
    EVENT_TYPES,
    NEWS,
    TEST,
    TITLE_CHARACTERS,
    Subject,
    describe,
    plain,
)

DOCUMENT = UUID("00000000-0000-7000-8000-000000000001")
PROCESS = UUID("00000000-0000-7000-8000-000000000002")


@pytest.mark.parametrize(
    ("event_type", "more", "sentence"),
    [
        ("document.completed", {"title": "Annual report"}, "“Annual report” is ready."),
        ("document.completed", {"document_id": DOCUMENT}, "A document is ready."),
        ("document.failed", {"title": "Scan", "error_code": "NOT_PDF"}, "“Scan” could not be processed (NOT_PDF)."),
        ("job.failed", {"error_code": "TIMEOUT"}, "A job failed (TIMEOUT)."),
        ("job.dead_letter", {}, "A job failed for good after several attempts."),
        ("document.downloaded", {"title": "Scan"}, "“Scan”: downloaded."),
        ("conversion.completed", {"title": "in.pdf"}, "“in.pdf” was converted."),
        (
            "conversion.needs_review",
            {"title": "in.pdf", "reason": "2 of 9 values unverified"},
            "“in.pdf” was converted and needs review: 2 of 9 values unverified.",
        ),
        (
            "conversion.failed",
            {"title": "in.pdf", "reason": "This is not a PDF.", "error_code": "NOT_PDF"},
            "“in.pdf” could not be converted: This is not a PDF (NOT_PDF).",
        ),
        (TEST, {}, "This is a test. Deliveries to this address work."),
    ],
)
def test_an_event_is_described_in_a_sentence(event_type: str, more: dict[str, object], sentence: str) -> None:
    message = describe(Subject(event_type, **more))  # pyright: ignore[reportArgumentType]
    assert message.sentence == sentence
    assert message.title == f"Octavo: {sentence.rstrip('.')}"


@pytest.mark.parametrize(
    ("event_type", "document", "path"),
    [
        ("document.completed", DOCUMENT, f"/documents/{DOCUMENT}"),
        ("analysis.completed", DOCUMENT, f"/analyses/{PROCESS}"),
        ("conversion.needs_review", None, f"/conversions/{PROCESS}"),
        ("conversion.failed", DOCUMENT, f"/conversions/{PROCESS}"),
        ("document.rejected", None, "/uploads"),
        ("webhook.failing", None, f"/settings/webhooks/{PROCESS}"),
        ("job.failed", None, "/"),
    ],
)
def test_a_link_leads_to_the_thing_where_the_address_of_the_installation_is_known(
    event_type: str, document: UUID | None, path: str
) -> None:
    about = Subject(event_type, PROCESS, document)
    assert describe(about, public_url="https://docs.example.org/").link == f"https://docs.example.org{path}"
    assert describe(about).link is None


def test_an_administrator_is_led_to_the_job_because_the_document_is_somebody_elses() -> None:
    about = Subject("job.dead_letter", PROCESS, DOCUMENT)
    about = replace(about, owner="ada@example.org", job_kind="process_document")
    told = describe(about, public_url="https://docs.example.org", for_administrator=True)
    names = f"Owner: ada@example.org. Document: {DOCUMENT}. Job: process_document {PROCESS}."
    assert told.sentence.endswith(names)
    assert describe(about).sentence.find("ada") == -1
    assert told.link == f"https://docs.example.org/operations/jobs/{PROCESS}"


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("two\r\nBcc: all@example.org", "two Bcc: all@example.org"),
        ("tab\tnull\x00bell\x07", "tab null bell"),
        ("line\u2028paragraph\u2029", "line paragraph"),
        ("turned \u202eexe.fdp", "turned exe.fdp"),
        ("  wide   spaces ", "wide spaces"),
        ("lone \udc80 surrogate", "lone surrogate"),
    ],
    ids=["newline", "controls", "separators", "direction", "spaces", "surrogate"],
)
def test_a_title_is_one_plain_line(title: str, shown: str) -> None:
    assert plain(title) == shown
    assert shown in describe(Subject("document.completed", title=title)).sentence


def test_a_long_title_is_cut() -> None:
    cut = plain("word " * 100)
    assert len(cut) <= TITLE_CHARACTERS
    assert cut.endswith("…")


def test_a_title_of_nothing_is_no_title() -> None:
    assert describe(Subject("document.completed", title=" \n", document_id=DOCUMENT)).sentence == "A document is ready."


def test_braces_in_a_title_are_only_braces() -> None:
    assert describe(Subject("document.completed", title="{thing} {0}")).sentence == "“{thing} {0}” is ready."


def test_a_title_calls_nobody_in_a_chat() -> None:
    message = describe(Subject("document.completed", title="<!channel> <https://evil.example|here> & more"))
    assert chat_text(message) == "“&lt;!channel&gt; &lt;https://evil.example|here&gt; &amp; more” is ready."


def test_default_event_types_are_valid_event_types() -> None:
    assert set(DEFAULT_EVENTS) == {"document.completed", "import.completed"} | set(NEWS) | set(ERRORS)
    assert set(DEFAULT_EVENTS) <= set(EVENT_TYPES)
    assert len(set(EVENT_TYPES)) == len(EVENT_TYPES)
