"""Azure, Vertex, Bedrock and Mistral: the credentials are those that the platforms require, and no others work."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio
from cryptography.hazmat.primitives.asymmetric import rsa

from octavo.ai.calls import InstructionText, ModelRequest, Picture
from octavo.ai.faults import Fault, ProviderFault
from octavo.ai.providers import Azure, Bedrock, HttpClient, Vertex
from octavo.ai.providers.cloud import ServiceAccount
from octavo.ai.providers.provider import read_amazon_events
from octavo.ai.tasks import CLASSIFY_DOCUMENT
from octavo.core.errors import OctavoError
from octavo.core.types import new_id
from octavo.storage.s3_client import AccessKeys, sign_headers
from tests.integration.ai.test_fault_table import DOCUMENT, MODELS
from tests.support.fake_ai.cloud import (
    ACCESS,
    AZURE_VERSION,
    REGION,
    SESSION,
    FakeBedrock,
    FakeVertex,
    as_message,
    is_signed,
    write_account,
)
from tests.support.fake_ai.server import SECRET
from tests.support.gateway import Bench
from tests.support.processes import PATIENCE_SECONDS

pytestmark = pytest.mark.asyncio(loop_scope="module")
CLOUD = ("mistral", "azure", "vertex", "bedrock")


@pytest.mark.parametrize("provider", CLOUD)
async def test_a_question_is_answered_and_paid(bench: Bench, provider: str) -> None:
    answered = await bench.gateway(provider).ask(CLASSIFY_DOCUMENT, DOCUMENT, bench.working())
    assert answered.made_by == f"{provider}:{MODELS[provider]}"
    (asked,) = bench.servers[provider].asked
    assert "The council met on Tuesday." in asked.text
    assert asked.schema
    assert bench.spent() == bench.billed() > 0
    assert bench.states() == [("settled", None)]


WRONG = [
    ("mistral", "mistral_key", "sk-wrong-7711"),
    ("azure", "azure_key", "sk-wrong-7711"),
    ("vertex", "vertex_key", "no JSON"),
    ("vertex", "vertex_key", '{"project_id": "p", "client_email": "a@b", "private_key": "wrong"}'),
    ("bedrock", "bedrock_key", "sk-wrong-7711"),
    ("bedrock", "bedrock_key", f"{ACCESS}:wrong:{SESSION}"),
    ("bedrock", "bedrock_key", f"{ACCESS}:{SECRET}"),  # without the session token
    ("bedrock", "bedrock_key", f"another:{SECRET}:{SESSION}"),
    ("bedrock", "bedrock_region", "us-west-2"),
]


@pytest.mark.parametrize(("provider", "name", "value"), WRONG)
async def test_wrong_credentials_are_refused(bench: Bench, provider: str, name: str, value: str) -> None:
    with pytest.raises(OctavoError) as failed:
        await bench.gateway(provider, **{name: value}).ask(CLASSIFY_DOCUMENT, DOCUMENT, bench.working())
    assert failed.value.code == "AI_BAD_KEY"
    assert bench.servers[provider].asked == []
    assert bench.spent() == 0


async def test_a_statement_signed_with_another_key_gets_no_token(bench: Bench) -> None:
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    wrong = write_account(f"{bench.vertex.url}/token", other)
    with pytest.raises(OctavoError) as failed:
        await bench.gateway("vertex", vertex_key=wrong).ask(CLASSIFY_DOCUMENT, DOCUMENT, bench.working())
    assert failed.value.code == "AI_BAD_KEY"
    assert bench.vertex.tokens == []


async def test_a_token_is_used_until_shortly_before_it_expires(http: HttpClient) -> None:
    began = datetime.now(UTC) - timedelta(minutes=56)
    now = began
    with FakeVertex() as server:
        account = ServiceAccount(http, server.account, clock=lambda: now)
        vertex = Vertex(http, server.base, None, account=account)
        for minutes, tokens in ((0, 1), (54, 1), (56, 2)):
            now = began + timedelta(minutes=minutes)
            await vertex.generate("google/gemini-2.5-flash", ask(), new_id(), PATIENCE_SECONDS)
            assert len(server.tokens) == tokens


async def test_parallel_calls_share_one_token(http: HttpClient) -> None:
    with FakeVertex() as server:
        vertex = Vertex.of(http, server.base, server.account)
        calls = [vertex.generate("google/gemini-2.5-flash", ask(), new_id(), PATIENCE_SECONDS) for _ in range(8)]
        await asyncio.gather(*calls)
        assert len(server.tokens) == 1
        assert len(server.asked) == 8


async def test_bedrock_gets_pictures_and_answers_in_words(http: HttpClient) -> None:
    with FakeBedrock() as server:
        bedrock = Bedrock(http, server.url, server.key, REGION)
        answered = await bedrock.generate("amazon.nova-lite-v1:0", ask(PIXEL), new_id(), PATIENCE_SECONDS)
        (asked,) = server.asked
        assert (answered.text, asked.model, asked.pictures) == ("What is this?", "amazon.nova-lite-v1:0", 1)
        image = asked.body["messages"][0]["content"][1]["image"]
        assert (image["format"], b64decode(image["source"]["bytes"])) == ("png", PIXEL.data)
        # A signature is bound to the content and the address.
        (sent,) = server.requests
        assert is_signed(sent, SECRET)
        assert not is_signed(replace(sent, body=sent.body + b" "), SECRET)
        assert not is_signed(replace(sent, path=sent.path.replace("lite", "pro")), SECRET)


async def test_bedrock_streams_words(http: HttpClient) -> None:
    with FakeBedrock() as server:
        bedrock, texts = Bedrock(http, server.url, server.key, REGION), list[str]()
        server.answer = lambda _asked: "The pier was repaired. " * 9
        answered = await bedrock.generate("amazon.nova-lite-v1:0", ask(), new_id(), PATIENCE_SECONDS, texts.append)
        assert answered.text == texts[-1] == "The pier was repaired. " * 9
        assert len(texts) > 3
        (bill,) = server.bills
        assert (answered.usage.input, answered.usage.output) == (bill.read, bill.written)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("throttlingException", Fault.RATE_LIMITED),
        ("serviceUnavailableException", Fault.OVERLOADED),
        ("modelStreamErrorException", Fault.BROKEN),
    ],
)
async def test_an_error_that_ends_a_stream_of_bedrock(
    http: HttpClient, monkeypatch: pytest.MonkeyPatch, name: str, fault: Fault
) -> None:
    with FakeBedrock() as server:
        whole = server.stream

        def end_with_an_error(said: dict[str, Any]) -> list[dict[str, Any] | str]:
            return [*whole(said)[:2], {name: {"message": "Later."}}]

        monkeypatch.setattr(server, "stream", end_with_an_error)
        with pytest.raises(ProviderFault) as failed:
            await Bedrock(http, server.url, server.key, REGION).generate(
                "amazon.nova-lite-v1:0", ask(), new_id(), PATIENCE_SECONDS, lambda _text: None
            )
        assert (failed.value.fault, failed.value.usage) == (fault, None)


async def test_events_of_amazon_are_read_in_pieces_of_any_size() -> None:
    contents = ['{"a": 1}', "{}", '{"text": "' + "ä" * 500 + '"}']
    stream = b"".join(as_message(f"event{number}", one.encode()) for number, one in enumerate(contents))
    for size in (1, 7, 100, len(stream)):
        found = [one async for one in read_amazon_events(in_pieces(stream, size))]
        assert [(one.name, one.data) for one in found] == [(f"event{n}", one) for n, one in enumerate(contents)]
    assert [one.name async for one in read_amazon_events(in_pieces(stream[:-1], 50))] == ["event0", "event1"]


@pytest.mark.parametrize("place", [0, 2, 6, 9, 14, 20, -20, -1])
async def test_a_damaged_event_is_refused(place: int) -> None:
    damaged = bytearray(as_message("contentBlockDelta", b'{"delta": {"text": "The pier"}}'))
    damaged[place] ^= 0x40
    with pytest.raises(ProviderFault) as failed:
        assert [one async for one in read_amazon_events(in_pieces(bytes(damaged) + bytes(1 << 23), 1 << 20))]
    assert failed.value.fault is Fault.MALFORMED


async def in_pieces(body: bytes, size: int) -> AsyncGenerator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


async def test_the_region_is_read_from_the_address(http: HttpClient) -> None:
    for url, region in (
        ("https://bedrock-runtime.eu-west-3.amazonaws.com", "eu-west-3"),
        ("https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
        ("https://proxy.example.org", REGION),
    ):
        headers = Bedrock(http, url, f"{ACCESS}:{SECRET}", REGION).sign(f"{url}/model/a/converse", b"{}")
        assert f"/{region}/bedrock/aws4_request" in headers["authorization"]
        assert "x-amz-security-token" not in headers


async def test_azure_refuses_another_version_of_its_api(http: HttpClient, bench: Bench) -> None:
    azure = Azure(http, bench.azure.url, SECRET, version="2020-01-01")
    with pytest.raises(ProviderFault) as failed:
        await azure.generate("gpt-5-mini", ask(), new_id(), PATIENCE_SECONDS)
    assert failed.value.fault is Fault.REFUSED
    vectors = await bench.gateway("azure", embedding_model="azure:text-embedding-3-small").embed(
        ["One"], bench.working()
    )
    assert len(vectors.output.vectors) == 1
    assert bench.azure.requests[-1].query == f"api-version={AZURE_VERSION}"


async def test_signatures_are_those_of_amazons_test_suite() -> None:
    """The case `get-vanilla` of the published test suite for Signature Version 4."""
    keys = AccessKeys("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
    at = datetime(2015, 8, 30, 12, 36, tzinfo=UTC)
    url, place = "https://example.amazonaws.com/", {"region": "us-east-1", "service": "service"}
    signed = sign_headers("GET", url, {}, b"", keys, **place, now=at)
    assert signed["authorization"] == (
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
        "SignedHeaders=host;x-amz-date, Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
    )


PIXEL = Picture(b"\x89PNG", "image/png")


def ask(*pictures: Picture) -> ModelRequest:
    return ModelRequest("test", "1", "Answer.", (InstructionText("What is this?"), *pictures), None, 500, 100)


@pytest_asyncio.fixture(loop_scope="module")
async def http() -> AsyncGenerator[HttpClient]:
    client = HttpClient()
    yield client
    await client.aclose()
