"""Gateways to providers of ours, on a database with owners, documents and jobs that run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from octavo.database import Database
from tests.support.engine import engine_on
from tests.support.fake_ai import FakeAnthropic, FakeGemini, FakeOpenAI
from tests.support.gateway import Bench
from tests.support.postgres import Server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole_bench(newest_server: Server) -> AsyncIterator[Bench]:
    with (
        newest_server.database() as info,
        engine_on(info) as engine,
        FakeGemini() as gemini,
        FakeOpenAI() as openai,
        FakeAnthropic() as anthropic,
    ):
        async with Database(info, connections=12) as database:
            bench = Bench(engine, database, gemini, openai, anthropic)
            yield bench
            await bench.close()


@pytest.fixture
def bench(whole_bench: Bench) -> Iterator[Bench]:
    """As new; and after every test the sums of the ledger are right, whatever it did."""
    whole_bench.clear()
    yield whole_bench
    whole_bench.check_sums()
