"""A provider that is away for an hour: documents are described offline meanwhile, and improved when it is back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pytest

from octavo.ai.gateway import Gateway
from octavo.ai.gateway_setup import open_gateway
from octavo.core.settings import Settings
from octavo.database import load_queries
from octavo.jobs.queue import retry_jobs
from octavo.library.documents import show_document
from octavo.records.documents import Document
from octavo.search.chunk_search import find
from tests.support.fake_ai import FakeGemini
from tests.support.fake_ai.server import SECRET, Trouble, cost_of
from tests.support.library import Desk
from tests.support.processes import PATIENCE_SECONDS
from tests.support.processing import OpenSandbox
from tests.support.working import add, finished, working

DOCTOR = load_queries("doctor")
HOUR, STEP = 3600, 600
# Jobs that only wait for the start rate of their kind are busy, too.
BUSY = """
    SELECT count(*) FROM jobs WHERE status = 'processing'
    OR status = 'queued' AND (admitted OR run_after < engine_now() + interval '2 seconds')"""
SHIFT = "UPDATE engine_clock SET shift = shift + make_interval(secs => %s)"
PENDING = "SELECT count(*) FROM documents WHERE status <> 'completed'"
IMPROVING = "SELECT count(*) FROM jobs WHERE kind = 'improve_document' AND status <> 'complete'"
NOT_IMPROVED = """
    SELECT d.id FROM documents d JOIN chunks c ON c.document_id = d.id
    LEFT JOIN chunk_embeddings e ON e.chunk_id = c.id
        AND e.model_id = (SELECT id FROM embedding_models WHERE name = 'gemini:gemini-embedding-001')
    WHERE NOT starts_with(d.described_by, 'gemini:') OR c.made_by <> d.described_by OR e.chunk_id IS NULL"""


@pytest.fixture
def gemini() -> Iterator[FakeGemini]:
    with FakeGemini() as server:
        yield server


@pytest.fixture
async def gateway(request: pytest.FixtureRequest, desk: Desk, gemini: FakeGemini) -> AsyncIterator[Gateway]:
    """Gemini describes and embeds."""
    given = {"providers": request.param, "gemini_key": SECRET, "gemini_url": gemini.url}
    async with aclosing(open_gateway(Settings.model_validate(given), desk.database)) as gateway:
        yield gateway


def word_of(number: int) -> str:
    """A word that no other document has."""
    return f"{'bcdfghjklm'[number // 10]}ary{'npqrstvwxz'[number % 10]}ol"


def text_of(number: int) -> str:
    return f"# {word_of(number).title()}\n\nThe moss keeps its water near {word_of(number)}."


async def at_rest(desk: Desk) -> None:
    async with asyncio.timeout(200):
        while await desk.one(BUSY):  # noqa: ASYNC110 - the worker makes it true
            await asyncio.sleep(0.02)


async def pass_time(desk: Desk, gateway: Gateway, seconds: float) -> None:
    """The time passes when nothing runs. The notification makes a quiet worker check the clock."""
    await at_rest(desk)
    await desk.rows(SHIFT, seconds)
    await gateway.maintain(desk.database)
    await desk.rows("NOTIFY octavo_jobs")
    await at_rest(desk)


async def show(desk: Desk, owner: UUID, document: UUID) -> Document:
    async with desk.database.connection() as connection:
        return await show_document(connection, owner, document)


def billed(gemini: FakeGemini) -> Decimal:
    return sum(map(cost_of, gemini.bills), start=Decimal(0))


@pytest.mark.parametrize(
    ("gateway", "count"),
    [
        ("gemini,local", 4),
        ("gemini", 3),
        *(
            pytest.param(*size, marks=pytest.mark.long)
            for size in (("gemini", 10), ("gemini,local", 12), ("gemini,local", 100))
        ),
    ],
    indirect=["gateway"],
)
async def test_documents_of_an_outage_are_usable_immediately_and_improved_when_the_provider_is_back(
    desk: Desk, owner: UUID, folder: Path, gateway: Gateway, gemini: FakeGemini, count: int
) -> None:
    gemini.outage = Trouble.OVERLOADED
    documents = [await add(desk, owner, f"bog{number}.md", text_of(number).encode()) for number in range(count)]
    async with working(desk, OpenSandbox(), folder, gateway=gateway):
        await at_rest(desk)
        # All of them can be read and found, whatever the provider does.
        assert await desk.one("SELECT count(*) FROM documents WHERE text_ready") == count
        for number in (0, count // 2, count - 1):
            hits = await find(desk.database, gateway, owner, word_of(number), mode="text")
            assert [hit.document_id for hit in hits.items] == [documents[number]]
        for _ in range(HOUR // STEP):
            await pass_time(desk, gateway, STEP)
        # Complete, with vectors, and marked. The provider was not overrun meanwhile.
        assert await desk.one(PENDING) == 0
        shown = await show(desk, owner, documents[0])
        assert (shown.described_by, shown.embeddings_ready, shown.needs_classification) == ("local", True, False)
        assert shown.will_be_improved
        assert len(gemini.requests) < min(8 * count, 100)
        assert gemini.bills == []
        # It is back.
        gemini.outage = None
        for _ in range(3):
            await pass_time(desk, gateway, STEP)
        assert await desk.one(IMPROVING) == 0
        assert await desk.rows(NOT_IMPROVED) == []
        better = await show(desk, owner, documents[0])
        assert (better.will_be_improved, better.revision, better.status) == (False, 1, "completed")
    assert await desk.one("SELECT sum(cost_usd) FROM ai_calls") == billed(gemini)
    assert await desk.rows(DOCTOR.wrong_spending.decode()) == []


@pytest.mark.parametrize("gateway", ["gemini,local"], indirect=True)
async def test_a_person_can_try_now_instead_of_waiting_for_the_circuit(
    desk: Desk, owner: UUID, folder: Path, gateway: Gateway, gemini: FakeGemini
) -> None:
    gemini.outage = Trouble.OVERLOADED
    document = await add(desk, owner, "bog.md", text_of(1).encode())
    async with working(desk, OpenSandbox(), folder, gateway=gateway):
        await finished(desk, owner, document)
        for _ in range(3):
            await pass_time(desk, gateway, STEP)
        gemini.outage = None
        (job,) = [one.id for one in (await show(desk, owner, document)).jobs if one.kind == "improve_document"]
        async with desk.database.transaction() as connection:
            assert await retry_jobs(connection, owner, [job]) == 1
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (await show(desk, owner, document)).will_be_improved:  # noqa: ASYNC110 - the worker makes it true
                await asyncio.sleep(0.02)
    assert await desk.rows(NOT_IMPROVED) == []
