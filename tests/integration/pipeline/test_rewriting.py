"""Texts that a model writes anew, where somebody asked for it: paid once, compared with the plain text, never lost."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from datetime import datetime
from pathlib import Path
from uuid import UUID

import pytest

from octavo.ai.gateway import Gateway
from octavo.ai.gateway_setup import open_gateway
from octavo.core.settings import Settings
from octavo.core.types import Extraction
from octavo.extract.by_model import sections
from octavo.library import changes
from octavo.library.documents import list_chunks
from octavo.library.errors import NotReady
from octavo.pipeline import rewriting
from tests.support.deliveries import SKIP_WAITS
from tests.support.fake_ai import Asked, FakeGemini, FakeOpenAI
from tests.support.fake_ai.server import SECRET, Trouble, good_answer
from tests.support.library import Desk
from tests.support.pdf import Pdf, paragraph
from tests.support.processes import PATIENCE_SECONDS
from tests.support.processing import OpenSandbox
from tests.support.working import add, finished, text_of, working

NOTES = "\n\n".join(
    f"paragraph number {number} tells how the moss of the bog keeps the rain of the year {1900 + number}"
    for number in range(1, 9)
)
PAGES = [
    [f"Page {number} of the report tells of the water", f"in bog number {number}, which fell by {number} metres."]
    for number in range(1, 5)
]
QUOTED = re.compile(r"<markdown-\w+>\n(.*)\n</markdown-\w+>", re.DOTALL)
FAILED_ONCE = "SELECT 1 FROM jobs WHERE status = 'queued' AND failures = 1"
CLEAN = {"extraction": Extraction.CLEAN}


@pytest.fixture
def sandbox() -> OpenSandbox:
    """The texts are the test's own."""
    return OpenSandbox()


@pytest.fixture
def gemini() -> Iterator[FakeGemini]:
    with FakeGemini() as server:
        server.answer = writing
        yield server


@pytest.fixture
async def paid(desk: Desk, gemini: FakeGemini) -> AsyncIterator[Gateway]:
    """A model that costs money writes and describes, and vectors are made here."""
    given = {"providers": "gemini", "gemini_key": SECRET, "gemini_url": gemini.url, "embedding_model": "local"}
    async with aclosing(open_gateway(Settings.model_validate(given), desk.database)) as gateway:
        yield gateway


def writing(asked: Asked) -> str:
    """A model that writes paragraphs with capitals, and pages with the marks that it was asked for."""
    if quoted := QUOTED.search(asked.text):
        return re.sub(r"^[a-z]", lambda one: one.group().upper(), quoted[1], flags=re.MULTILINE)
    if "Their numbers are" in asked.text:
        numbers = list(map(int, re.findall(r"\d+", asked.text.partition("Their numbers are")[2])))
        return "\n\n".join(f"<!-- page {one} -->\n\n{read_page(one)}" for one in range(numbers[0], numbers[-1] + 1))
    return good_answer(asked)


def read_page(number: int) -> str:
    return f"## Bog {number}\n\n{' '.join(PAGES[number - 1])}"


def texts_asked(gemini: FakeGemini | FakeOpenAI) -> list[Asked]:
    return [asked for asked in gemini.asked if asked.schema is None]


async def retry(desk: Desk, owner: UUID, document: UUID, extraction: Extraction = Extraction.PLAIN) -> None:
    async with desk.database.transaction() as connection:
        await changes.retry_document(connection, owner, document, None, extraction)


def report() -> bytes:
    return Pdf([paragraph(lines, 110) for lines in PAGES]).write()


async def test_a_pasted_text_is_put_in_order_and_the_plain_one_is_kept(
    desk: Desk, owner: UUID, sandbox: OpenSandbox, folder: Path, paid: Gateway, gemini: FakeGemini
) -> None:
    document = await add(desk, owner, "notes.txt", NOTES.encode(), source_type="paste", given=CLEAN)
    async with working(desk, sandbox, folder, gateway=paid):
        shown = await finished(desk, owner, document)
        assert (shown.status, shown.needs_classification, shown.revision) == ("completed", False, 1)
        assert shown.metadata["text_by"] == "gemini:gemini-2.5-flash"
        assert "kept_plain" not in shown.metadata
        assert (await text_of(desk, owner, document)).startswith("Paragraph number 1")
        assert await text_of(desk, owner, document, "plain_markdown") == NOTES
        assert len(texts_asked(gemini)) == 1
        # Described anew, it is still the model's text; processed again, it is the plain one.
        async with desk.database.transaction() as connection:
            await changes.retry_document(connection, owner, document, "classified")
        described = await finished(desk, owner, document)
        assert (described.revision, described.metadata["text_by"]) == (2, shown.metadata["text_by"])
        assert await text_of(desk, owner, document, "plain_markdown") == NOTES
        await retry(desk, owner, document)
        plain = await finished(desk, owner, document)
        assert (plain.revision, "text_by" in plain.metadata) == (3, False)
        assert await text_of(desk, owner, document) == NOTES
        with pytest.raises(NotReady):
            await text_of(desk, owner, document, "plain_markdown")
        # The same question of the same owner is paid for once.
        await retry(desk, owner, document, Extraction.CLEAN)
        assert (await finished(desk, owner, document)).metadata["text_by"]
        assert len(texts_asked(gemini)) == 1
        # Asked for although it is there, it is written anew.
        await retry(desk, owner, document, Extraction.CLEAN)
        await finished(desk, owner, document)
        assert len(texts_asked(gemini)) == 2
    await desk.check_books()


async def test_sections_with_invented_or_missing_words_stay_unchanged(
    desk: Desk,
    owner: UUID,
    sandbox: OpenSandbox,
    folder: Path,
    paid: Gateway,
    gemini: FakeGemini,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sections, "MOST_CHARACTERS", 200)
    gemini.answer = lambda asked: (
        "The moss is a plant. Everything else that was said here is of no importance to anybody, and left out."
        if "number 3 " in asked.text and asked.schema is None
        else writing(asked)
    )
    document = await add(desk, owner, "notes.txt", NOTES.encode(), given=CLEAN)
    async with working(desk, sandbox, folder, gateway=paid):
        shown = await finished(desk, owner, document)
    assert shown.metadata["kept_plain"] == "1 of 4 parts"
    written = await text_of(desk, owner, document)
    assert written.lower() == NOTES.lower()
    assert [line[0] for line in written.split("\n\n")] == list("PPppPPPP")


async def test_a_fault_leaves_the_plain_text_amber_and_one_retry_makes_it_whole(
    desk: Desk, owner: UUID, sandbox: OpenSandbox, folder: Path, paid: Gateway, gemini: FakeGemini
) -> None:
    gemini.script.extend([Trouble.BLOCKED] * 2)
    document = await add(desk, owner, "notes.txt", NOTES.encode(), given=CLEAN)
    async with working(desk, sandbox, folder, gateway=paid):
        amber = await finished(desk, owner, document)
        assert (amber.status, amber.needs_classification, amber.text_ready) == ("completed", True, True)
        assert amber.error
        assert amber.error.code == "AI_CONTENT_BLOCKED"
        assert amber.missing == ["text_by_model", "description"]
        assert await text_of(desk, owner, document) == NOTES
        async with desk.database.connection() as connection:
            (chunk,) = (await list_chunks(connection, owner, document)).items
        assert chunk.content == NOTES
        await retry(desk, owner, document)
        whole = await finished(desk, owner, document)
        async with desk.database.connection() as connection:
            (chunk,) = (await list_chunks(connection, owner, document)).items
    assert (whole.needs_classification, whole.error, whole.revision) == (False, None, 1)
    assert chunk.content == await text_of(desk, owner, document) != NOTES
    assert chunk.made_by == whole.metadata["text_by"]
    assert await text_of(desk, owner, document, "plain_markdown") == NOTES
    await desk.check_books()


async def test_pages_are_shown_to_a_model_as_a_pdf_and_joined_page_by_page(
    desk: Desk, owner: UUID, sandbox: OpenSandbox, folder: Path, paid: Gateway, gemini: FakeGemini
) -> None:
    document = await add(desk, owner, "report.pdf", report(), given={"extraction": "pages"})
    async with working(desk, sandbox, folder, gateway=paid):
        shown = await finished(desk, owner, document)
    assert (shown.status, shown.quality, shown.page_count) == ("completed", "full", 4)
    assert await text_of(desk, owner, document) == "\n\n".join(map(read_page, range(1, 5)))
    (asked,) = texts_asked(gemini)
    assert len(asked.files) == 1
    assert next(iter(gemini.files.values())).startswith(b"%PDF")
    async with desk.database.connection() as connection:
        chunks = (await list_chunks(connection, owner, document)).items
    assert (chunks[0].page_from, chunks[-1].page_to) == (1, 4)
    assert {box.page for chunk in chunks for box in chunk.boxes} == {1, 2, 3, 4}
    await desk.check_books()


async def test_who_takes_no_pdfs_is_shown_pictures_a_few_at_a_time_and_a_resume_pays_nothing_twice(
    desk: Desk, owner: UUID, sandbox: OpenSandbox, folder: Path
) -> None:
    pages = [*PAGES, *[[f"Page {number} has no bog."] for number in (5, 6, 7)]]
    with FakeOpenAI() as openai:
        openai.answer = lambda asked: (
            good_answer(asked)
            if asked.schema
            else "\n\n".join(
                f"<!-- page {number} -->\n\n{' '.join(pages[number - 1])}"
                for number in (range(1, 6) if "1 to 5" in asked.text else range(5, 8))
            )
        )
        openai.script.extend([None, Trouble.BROKEN])  # the second call fails, and is all that is asked again
        given = {
            "providers": "compatible",
            "compatible_key": SECRET,
            "compatible_url": f"{openai.url}/v1",
            "compatible_model": "llava",
            "embedding_model": "local",
            "prices": "llava=1/1",
        }
        settings = Settings.model_validate(given)
        body = Pdf([paragraph(lines, 110) for lines in pages]).write()
        document = await add(desk, owner, "report.pdf", body, given={"extraction": "pages"})
        async with aclosing(open_gateway(settings, desk.database)) as home:
            async with working(desk, sandbox, folder, gateway=home), asyncio.timeout(PATIENCE_SECONDS):
                while not await desk.rows(FAILED_ONCE):  # noqa: ASYNC110 - another task makes it true
                    await asyncio.sleep(0.02)
            # Waiting for the model, the plain text can be read and found.
            waiting = await desk.rows("SELECT content FROM chunks WHERE document_id = %s", document)
            assert "Page 7 has no bog." in waiting[-1]["content"]
            await desk.rows(SKIP_WAITS)
            async with working(desk, sandbox, folder, gateway=home):
                shown = await finished(desk, owner, document)
    assert (shown.status, shown.metadata["text_by"]) == ("completed", "compatible:llava")
    assert [asked.pictures for asked in texts_asked(openai)] == [5, 3, 3]
    assert await text_of(desk, owner, document) == "\n\n".join(" ".join(lines) for lines in pages)


async def test_without_a_model_nothing_but_the_plain_text_is_made(
    desk: Desk, owner: UUID, sandbox: OpenSandbox, folder: Path
) -> None:
    document = await add(desk, owner, "notes.txt", NOTES.encode(), given=CLEAN)
    async with working(desk, sandbox, folder):
        shown = await finished(desk, owner, document)
    assert (shown.status, shown.needs_classification, shown.described_by) == ("completed", True, "local")
    assert shown.error
    assert shown.error.code == "AI_NO_MODEL"
    assert shown.missing == ["text_by_model"]
    assert await text_of(desk, owner, document) == NOTES


async def test_a_long_call_does_not_use_up_the_ten_minutes_of_its_stage(
    desk: Desk,
    owner: UUID,
    sandbox: OpenSandbox,
    folder: Path,
    paid: Gateway,
    gemini: FakeGemini,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rewriting, "RENEW_SECONDS", 0.05)
    may_answer = threading.Event()
    gemini.answer = lambda asked: writing(asked) if may_answer.wait(30) else ""
    document = await add(desk, owner, "notes.txt", NOTES.encode(), source_type="paste", given=CLEAN)
    limits: set[datetime] = set()
    async with working(desk, sandbox, folder, gateway=paid):
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(limits) < 3 or not gemini.asked:
                running = "SELECT deadline_at FROM jobs WHERE document_id = %s AND deadline_at IS NOT NULL"
                limits |= {row["deadline_at"] for row in await desk.rows(running, document) if gemini.asked}
                await asyncio.sleep(0.02)
        may_answer.set()
        assert (await finished(desk, owner, document)).metadata["text_by"] == "gemini:gemini-2.5-flash"
