"""A gateway to providers of ours on a real database, and the books that must always balance."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

from octavo.ai.calls import Caller
from octavo.ai.gateway import Gateway
from octavo.ai.gateway_setup import open_gateway
from octavo.core.settings import Settings
from octavo.database import Database, load_queries
from tests.support.engine import Engine, engine_on
from tests.support.fake_ai import (
    FakeAnthropic,
    FakeAzure,
    FakeBedrock,
    FakeGemini,
    FakeMistral,
    FakeOpenAI,
    FakeProvider,
    FakeVertex,
)
from tests.support.fake_ai.cloud import REGION
from tests.support.fake_ai.server import SECRET, cost_of
from tests.support.postgres import Server
from tests.support.processes import PATIENCE_SECONDS

DOCTOR = load_queries("doctor")
CLEAR = "TRUNCATE ai_calls, ai_reuses, ai_spending, ai_gates, provider_files, budgets"
DOCUMENT = """
    INSERT INTO documents (id, owner_id, process_id, filename, content_type, source_type, sha256, bytes)
    VALUES (%s, %s, %s, 'a.txt', 'text/plain', 'text', sha256(%s::text::bytea), 1)"""


@dataclass(slots=True)
class Bench:
    engine: Engine
    database: Database
    gemini: FakeGemini
    openai: FakeOpenAI
    anthropic: FakeAnthropic
    mistral: FakeMistral
    azure: FakeAzure
    vertex: FakeVertex
    bedrock: FakeBedrock
    _open: list[Gateway] = field(default_factory=list[Gateway])

    @property
    def servers(self) -> dict[str, FakeProvider]:
        return {
            "gemini": self.gemini,
            "openai": self.openai,
            "anthropic": self.anthropic,
            "mistral": self.mistral,
            "azure": self.azure,
            "vertex": self.vertex,
            "bedrock": self.bedrock,
        }

    def clear(self) -> None:
        """Nothing was ever asked, and no time has passed."""
        self.engine.run(CLEAR)
        self.engine.run("UPDATE engine_clock SET shift = '0'")
        for server in self.servers.values():
            server.clear()

    def gateway(self, providers: str = "gemini", **settings: Any) -> Gateway:  # noqa: ANN401
        """With the keys and addresses of all of them."""
        given = {
            "gemini_key": SECRET,
            "gemini_url": self.gemini.url,
            "openai_key": SECRET,
            "openai_url": f"{self.openai.url}/v1",
            "anthropic_key": SECRET,
            "anthropic_url": self.anthropic.url,
            "mistral_key": SECRET,
            "mistral_url": f"{self.mistral.url}/v1",
            "azure_key": SECRET,
            "azure_url": self.azure.url,
            "azure_model": "gpt-5-mini",
            "vertex_key": self.vertex.account,
            "vertex_url": self.vertex.base,
            "bedrock_key": self.bedrock.key,
            "bedrock_url": self.bedrock.url,
            "bedrock_region": REGION,
            "bedrock_model": "global.anthropic.claude-haiku-4-5-20251001-v1:0",
            "compatible_key": SECRET,
            "compatible_url": f"{self.openai.url}/v1",
            "compatible_model": "llama",
        }
        gateway = open_gateway(Settings.model_validate({**given, "providers": providers, **settings}), self.database)
        self._open.append(gateway)
        return gateway

    async def close(self) -> None:
        for gateway in self._open:
            await gateway.aclose()

    async def until(self, happened: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not happened():  # noqa: ASYNC110 - it happens in another thread
                await asyncio.sleep(0.01)

    # Who asks -----------------------------------------------------------------------------------------------------

    def caller(self, owner: UUID | None = None, *, kind: str = "user") -> Caller:
        """Somebody with a document, outside of any job."""
        owner_id, document = owner or uuid4(), uuid4()
        self.engine.run("INSERT INTO owners (id, kind) VALUES (%s, %s) ON CONFLICT DO NOTHING", owner_id, kind)
        self.engine.run(DOCUMENT, document, owner_id, uuid4(), str(document))
        return Caller(owner_id, document)

    def working(self, owner: UUID | None = None, lease: float = 60) -> Caller:
        """A job that a worker has just begun."""
        one = self.caller(owner)
        (wanted,) = self.engine.put(one.owner_id, document_id=one.document_id)
        # Jobs of other tests may be queued too.
        (job,) = (job for job in self.engine.claim(slots=100, lease=lease) if job.id == wanted)
        return Caller(one.owner_id, one.document_id, job.id, job.lease_token)

    # What was written down ------------------------------------------------------------------------------------------

    def calls(self) -> list[dict[str, Any]]:
        return self.engine.rows("SELECT * FROM ai_calls ORDER BY created_at, id")

    def states(self) -> list[tuple[str, str | None]]:
        return [(row["state"], row["fault"]) for row in self.calls()]

    def spent(self, key: str = "month") -> Decimal:
        return self.engine.one("SELECT coalesce(sum(spent_usd), 0) FROM ai_spending WHERE starts_with(key, %s)", key)

    def billed(self) -> Decimal:
        """What the providers will want for what they did."""
        costs = (cost_of(bill, name) for name, server in self.servers.items() for bill in server.bills)
        return sum(costs, start=Decimal(0))

    def check_sums(self) -> None:
        """As the doctor looks at them."""
        assert self.engine.connection.execute(DOCTOR.wrong_spending).fetchall() == []


@asynccontextmanager
async def open_bench(server: Server) -> AsyncGenerator[Bench]:
    """On a database of its own."""
    with (
        server.database() as info,
        engine_on(info) as engine,
        FakeGemini() as gemini,
        FakeOpenAI() as openai,
        FakeAnthropic() as anthropic,
        FakeMistral() as mistral,
        FakeAzure() as azure,
        FakeVertex() as vertex,
        FakeBedrock() as bedrock,
    ):
        async with Database(info, connections=15) as database:
            bench = Bench(engine, database, gemini, openai, anthropic, mistral, azure, vertex, bedrock)
            yield bench
            await bench.close()
