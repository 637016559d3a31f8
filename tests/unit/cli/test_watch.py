"""What is shown of documents on their way: what is being done first, why the others wait, and it fits the screen."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest
from rich.cells import cell_len
from rich.console import Console

from octavo.cli.watch import LineView, Watch, activity_of, draw, summarise
from octavo.client import Document, Job
from octavo.core.types import JobStatus
from octavo.records.jobs import Eta, JobError, Progress, WaitingBecause

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)


def make_document(title: str, status: str = "pending", error: JobError | None = None) -> Document:
    return Document(
        id=uuid4(),
        title=title,
        filename=title,
        status=status,
        quality=None,
        text_ready=False,
        embeddings_ready=False,
        needs_classification=False,
        source_type="pdf",
        source_url=None,
        content_type="application/pdf",
        page_count=None,
        word_count=None,
        author=None,
        language=None,
        document_date=None,
        summary=None,
        described_by=None,
        tags=[],
        collection=None,
        sha256="",
        bytes=1,
        cost_usd=0,
        error=error,
        duplicate_of=None,
        version=1,
        superseded=False,
        revision=0,
        metadata={},
        download_count=0,
        first_downloaded_at=None,
        created_at=NOW,
        updated_at=NOW,
        deleted_at=None,
        process_id=uuid4(),
        jobs=[],
    )


def make_job(document: Document, status: str, stage: str | None = None, waiting: WaitingBecause | None = None) -> Job:
    running = status == "processing"
    return Job(
        id=document.process_id,
        kind="process_document",
        document_id=document.id,
        status=JobStatus(status),
        stage=stage,
        attempt=1,
        failures=0,
        max_attempts=5,
        progress=Progress(3, 10, "pages") if running else Progress(0, None, None),
        eta=Eta(4, 9) if running else None,
        waiting_because=waiting,
        error=None,
        stages=[],
        created_at=NOW,
        queued_at=NOW,
        started_at=None,
        progressed_at=None,
        completed_at=None,
        failed_at=None,
    )


def watching(*pairs: tuple[Document, Job | None]) -> Watch:
    pending = {document.id: document for document, _ in pairs}
    jobs: dict[UUID, Job] = {job.id: job for _, job in pairs if job}
    return Watch(pending=pending, jobs=jobs)


def drawn(watch: Watch, width: int, height: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height, markup=False, highlight=False)
    console.print(draw(console, watch))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


@pytest.mark.parametrize("width", [60, 80, 160])
def test_the_picture_fits_and_what_runs_comes_first(width: int) -> None:
    waits = make_document("A document with quite a long title that waits for something")
    runs = make_document("A document with quite a long title that is being read")
    unknown = make_document("Nobody knows")
    because = WaitingBecause("backing_off", "next try 12:30 UTC (attempt 2 of 5) after NETWORK", {})
    pairs = ((unknown, None), (waits, make_job(waits, "queued", None, because)), (runs, make_job(runs, "processing")))
    lines = drawn(watching(*pairs), width, 24)
    assert [line[:8] for line in lines[1:4]] == [str(one.id)[-8:] for one in (runs, waits, unknown)]
    assert max(map(cell_len, lines)) <= width
    assert "3/10 pages" in lines[1]
    assert "next try" in lines[2]
    assert lines[4] == "3 unfinished, 0 completed. Ctrl-C stops watching."


def test_a_screen_that_is_too_low_counts_the_rest() -> None:
    lines = drawn(watching(*((make_document(f"{number}"), None) for number in range(50))), 80, 10)
    assert len(lines) <= 10
    assert lines[-2] == "and 44 more"


def test_lines_are_printed_on_change_and_moving_up_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    document = make_document("Notes\x1b[2J")
    lines = LineView()

    def said(job: Job | None) -> str:
        lines.show(watching((document, job)))
        return capsys.readouterr().out.partition("  ")[2].strip()

    name = f"{str(document.id)[-8:]}  Notes [2J: "
    assert said(None) == ""
    assert said(make_job(document, "queued", None, WaitingBecause("behind", "9th in the queue", {}))) == f"{name}queued"
    assert said(make_job(document, "queued", None, WaitingBecause("behind", "8th in the queue", {}))) == ""
    paused = make_job(document, "paused", None, WaitingBecause("paused", "the budget is used up", {}))
    assert said(paused) == f"{name}waiting: the budget is used up"
    running = make_job(document, "processing", "extracted")
    assert said(running) == f"{name}Saving text 3/10 pages"
    assert said(running) == ""


@pytest.mark.parametrize(
    ("status", "stage", "source", "shown"),
    [
        ("queued", None, "pdf", "queued"),
        ("processing", None, "pdf", "Reading pages"),
        ("processing", None, "web", "Fetching"),
        ("processing", "classified", "pdf", "Describing"),
        ("paused", "enriched", "pdf", "Indexing"),
    ],
)
def test_a_stage_is_named_as_on_the_pages(status: str, stage: str | None, source: str, shown: str) -> None:
    assert activity_of(make_job(make_document("Notes"), status, stage), source) == shown


def test_the_end_of_an_analysis_is_reported_with_its_error(capsys: pytest.CaptureFixture[str]) -> None:
    error = JobError("ENCRYPTED", "Password-protected.")
    good, bad = make_document("good", "completed"), make_document("bad", "failed", error)
    watch = Watch(ended={good.id: good, bad.id: bad})
    LineView().show(watch)
    said = capsys.readouterr().out
    assert "good: completed" in said
    assert "bad: failed: Password-protected. (ENCRYPTED)" in said
    assert summarise(watch) == "1 completed, 1 failed."
