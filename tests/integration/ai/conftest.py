"""A database with an owner, a document and a job that runs; and gateways to providers of ours."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack

import pytest

from octavo.database import Database
from tests.support.engine import Engine, engine_on
from tests.support.fake_ai import FakeAnthropic, FakeGemini, FakeOpenAI
from tests.support.gateway import Bench
from tests.support.postgres import Server


@pytest.fixture(scope="module")
def ai_database(newest_server: Server) -> Iterator[str]:
    with newest_server.database() as info:
        yield info


@pytest.fixture
def engine(ai_database: str) -> Iterator[Engine]:
    with engine_on(ai_database) as one:
        one.clear()
        one.add_kind("demo")
        yield one
        one.check_invariants()


@pytest.fixture
def gemini() -> Iterator[FakeGemini]:
    with FakeGemini() as server:
        yield server


@pytest.fixture
def openai() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as server:
        yield server


@pytest.fixture
def anthropic() -> Iterator[FakeAnthropic]:
    with FakeAnthropic() as server:
        yield server


@pytest.fixture
async def bench(engine: Engine, gemini: FakeGemini, openai: FakeOpenAI, anthropic: FakeAnthropic) -> AsyncIterator[Bench]:
    """After every test the sums of the ledger are right, whatever it did."""
    async with Database(engine.info, connections=12) as database:
        bench = Bench(engine, database, gemini, openai, anthropic)
        try:
            yield bench
        finally:
            await bench.close()
        bench.check_sums()
