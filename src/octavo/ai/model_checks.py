"""Checks models before they are used: makes test calls, finds local model servers, and refuses private URLs."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import aclosing
from typing import Any
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel, ValidationError

from octavo.ai.billing import BilledCall, Billing, CallResult
from octavo.ai.calls import Caller, InstructionText, ModelRequest
from octavo.ai.faults import ProviderFault, TokenUsage
from octavo.ai.gateway_setup import make_provider, parse_rate_limits
from octavo.ai.ledger import MAX_WAIT_SECONDS, Budgets, Ledger
from octavo.ai.models import Model, Prices
from octavo.ai.providers import HttpClient
from octavo.core.errors import BadInput
from octavo.core.settings import PROVIDERS, Settings
from octavo.database import Database
from octavo.fetch import AddressRefused, SystemResolver, parse_url, refuse_private, refuse_private_addresses
from octavo.records.account import ModelServer, ModelTest, RemoteProvider

TEST = "test"
TEST_SECONDS = 30.0
# Models that reason first need more tokens than the one word of the answer.
TEST_TOKENS, EXPECTED_TOKENS = 500, 20
TEST_REQUEST = ModelRequest(
    purpose=TEST,
    version="1",
    instructions="This is a test of the connection. Answer with the single word OK.",
    parts=(InstructionText("Is the connection working?"),),
    schema=None,
    output_tokens=TEST_TOKENS,
    expected_tokens=EXPECTED_TOKENS,
)
# Default ports of servers with an OpenAI-compatible API.
LOCAL_SERVERS: dict[int, str] = {
    11434: "Ollama",
    1234: "LM Studio",
    8000: "vLLM",
    8080: "llama.cpp",
    1337: "Jan",
    4891: "GPT4All",
    5001: "KoboldCpp",
}
LOOPBACK = "127.0.0.1"
LOOPBACK_NAMES = frozenset({LOOPBACK, "localhost", "::1"})
SEARCH_SECONDS = 1.5
MOST_ANSWER_BYTES = 1_000_000
MOST_MODELS = 100


class IncompleteProvider(BadInput):
    """The provider's settings are incomplete."""

    code = "INCOMPLETE_PROVIDER"


class _Listed(BaseModel):
    id: str
    max_model_len: int | None = None


class _ModelList(BaseModel):
    data: list[_Listed]


def require_complete(settings: Settings, name: RemoteProvider) -> None:
    """Raise `IncompleteProvider` if a required value of the provider is missing, e.g. its API key."""
    missing = [need.partition("_")[2] for need in PROVIDERS[name] if not getattr(settings, need)]
    if missing:
        raise IncompleteProvider(f"Required for {name}: {', '.join(missing)}.")


async def test_model(settings: Settings, database: Database, caller: Caller, name: RemoteProvider) -> ModelTest:
    """Call the provider's model once, and return how long it took and what it cost.

    The cost is recorded and counts towards the budgets. Raises an `OctavoError` that says why the call failed.
    """
    require_complete(settings, name)
    model = Model(name, getattr(settings, f"{name}_model") or "")
    ledger = Ledger(database, Budgets.of(settings), parse_rate_limits(settings.provider_limits), allow_anonymous=False)
    call = BilledCall(
        purpose=TEST,
        digest=os.urandom(32),  # matches no stored answer
        caller=caller,
        expected=TokenUsage(TEST_REQUEST.input_tokens, EXPECTED_TOKENS),
        seconds=TEST_SECONDS,
        deadline=time.monotonic() + MAX_WAIT_SECONDS + TEST_SECONDS,
        restore=str,
    )
    async with aclosing(HttpClient()) as http:
        provider = make_provider(name, settings, http, database)

        async def send(seconds: float) -> CallResult[str]:
            reply = await provider.generate(model.name, TEST_REQUEST, caller.owner_id, seconds)
            return CallResult(reply.text, reply.text, reply.usage)

        started = time.monotonic()
        try:
            answer = await Billing(ledger, Prices.of(settings)).call(call, model, send)
        except ProviderFault as fault:
            raise fault.as_error(str(model)) from None
    return ModelTest(str(model), round(time.monotonic() - started, 2), float(answer.cost_usd))


async def check_address(url: str, settings: Settings) -> None:
    """Raise `AddressRefused` if a URL points to a private address.

    Two kinds of private addresses are allowed: the usual ports of model servers on this machine, and the servers listed
    in OCTAVO_FETCH_ALLOW.
    """
    target, allow = parse_url(url), frozenset(settings.fetch_allow)
    if target.host in LOOPBACK_NAMES and target.port in LOCAL_SERVERS:
        return
    try:
        refuse_private(target, allow)
        await refuse_private_addresses(target, allow, SystemResolver())
    except AddressRefused:
        raise AddressRefused(f"Host and port: {urlsplit(url).hostname}:{target.port}.") from None


async def find_servers() -> list[ModelServer]:
    """Return the model servers that respond on well-known ports of this machine."""
    async with httpx.AsyncClient(timeout=SEARCH_SECONDS, trust_env=False, follow_redirects=False) as client:
        found = await asyncio.gather(*(_ask_server(client, port, name) for port, name in LOCAL_SERVERS.items()))
    return [one for one in found if one]


async def _ask_server(client: httpx.AsyncClient, port: int, name: str) -> ModelServer | None:
    url = f"http://{LOOPBACK}:{port}/v1"
    try:
        async with asyncio.timeout(SEARCH_SECONDS), client.stream("GET", f"{url}/models") as response:
            if not response.is_success:
                return None
            listed = _ModelList.model_validate_json(await _read(response)).data
    except (TimeoutError, httpx.HTTPError, ValidationError):
        return None
    lengths: list[Any] = [one.max_model_len for one in listed if one.max_model_len]
    return ModelServer(name, url, [one.id for one in listed[:MOST_MODELS]], min(lengths, default=None))


async def _read(response: httpx.Response) -> bytes:
    read = b""
    async for part in response.aiter_bytes():
        read += part
        if len(read) > MOST_ANSWER_BYTES:
            break
    return read
