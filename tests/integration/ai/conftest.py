"""Gateways to providers of ours, on a database with owners, documents and jobs that run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from tests.support.gateway import Bench, open_bench
from tests.support.postgres import Server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole_bench(newest_server: Server) -> AsyncIterator[Bench]:
    async with open_bench(newest_server) as bench:
        yield bench


@pytest.fixture
def bench(whole_bench: Bench) -> Iterator[Bench]:
    """As new; and after every test the sums of the ledger are right, whatever it did."""
    whole_bench.clear()
    yield whole_bench
    whole_bench.check_sums()
