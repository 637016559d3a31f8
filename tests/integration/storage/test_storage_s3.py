"""What only S3 has: links that the server itself checks, uploads in parts, and servers that refuse or do not answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from octavo.core.errors import StorageFailed
from octavo.storage import Bucket, LinkRefused, open_bucket
from octavo.storage.s3 import PART_BYTES, S3Bucket
from octavo.storage.s3_client import AccessKeys, S3Address
from tests.support.instance import free_port
from tests.support.s3 import S3Server


@pytest.fixture
def bucket(s3_bucket: Bucket) -> Bucket:
    return s3_bucket


async def link_to(bucket: Bucket, key: str, seconds: int = 60, now: datetime | None = None) -> str:
    return await bucket.sign_get(
        key, now=now or datetime.now(UTC), seconds=seconds, filename='Ü "1".pdf', content_type="application/pdf"
    )


async def test_a_signed_link_downloads_under_its_name(bucket: Bucket) -> None:
    await bucket.put("a/b", b"0123456789")
    async with httpx.AsyncClient() as client:
        response = await client.get(await link_to(bucket, "a/b"))
        part = await client.get(await link_to(bucket, "a/b"), headers={"Range": "bytes=2-4"})
    assert (response.status_code, response.content) == (200, b"0123456789")
    assert response.headers["content-type"] == "application/pdf"
    assert response.headers["content-disposition"].startswith("attachment; ")
    assert "filename*=UTF-8''%C3%9C%20%221%22.pdf" in response.headers["content-disposition"]
    assert (part.status_code, part.content) == (206, b"234")


async def test_an_altered_link_is_refused(bucket: Bucket) -> None:
    await bucket.put("a/b", b"x")
    await bucket.put("a/c", b"x")
    url = await link_to(bucket, "a/b")
    altered = [
        url.replace("/a/b?", "/a/c?"),
        url.replace("application%2Fpdf", "text%2Fhtml"),
        url.replace("attachment", "inline"),
        url.replace("X-Amz-Expires=60", "X-Amz-Expires=6000"),
        url[:-1] + ("0" if url[-1] != "0" else "1"),
    ]
    async with httpx.AsyncClient() as client:
        for other in altered:
            assert other != url
            assert (await client.get(other)).status_code == 403
        assert (await client.put(url, content=b"y")).status_code == 403
        assert (await client.delete(url)).status_code == 403


async def test_an_old_link_is_refused(s3_server: S3Server) -> None:
    address = S3Address(s3_server.bucket, "old", s3_server.endpoint, s3_server.region)
    keys = AccessKeys(s3_server.access_key, s3_server.secret_key)
    bucket, then = S3Bucket(address, keys), datetime.now(UTC) - timedelta(seconds=120)
    await bucket.put("a", b"x")
    async with httpx.AsyncClient() as client:
        assert (await client.get(await link_to(bucket, "a", 60, then))).status_code == 403
        assert (await client.get(await link_to(bucket, "a", 180, then))).status_code == 200
    with pytest.raises(LinkRefused):
        await bucket.verify_link("GET", "a", {}, now=then)
    await bucket.delete(["a"])
    await bucket.aclose()


async def test_a_link_to_put_is_for_one_key(bucket: Bucket) -> None:
    url = await bucket.sign_put("incoming/a", seconds=60)
    assert url is not None
    async with httpx.AsyncClient() as client:
        assert (await client.put(url.replace("incoming/a", "incoming/b"), content=b"x")).status_code == 403
        assert (await client.get(url)).status_code == 403
        assert (await client.put(url, content=b"uploaded")).status_code == 200
    assert await bucket.read("incoming/a") == b"uploaded"
    assert [info.key async for info in bucket.list()] == ["incoming/a"]


async def test_an_interrupted_listing_continues_after_its_last_key(bucket: Bucket) -> None:
    for name in ("a/1", "a/2", "b/1", "c"):
        await bucket.put(name, b"x")
    assert [info.key async for info in bucket.list(after="a/2")] == ["b/1", "c"]
    assert [info.key async for info in bucket.list("a", after="a/1")] == ["a/2"]


async def test_keys_that_obstore_finds_itself_sign_too(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3_server.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3_server.secret_key)
    bucket = open_bucket(f"s3://{s3_server.bucket}/ambient", endpoint=s3_server.endpoint)
    await bucket.check()
    await bucket.put("a", b"x")
    url = await link_to(bucket, "a")
    assert "response-content-disposition" not in parse_qs(urlsplit(url).query)
    async with httpx.AsyncClient() as client:
        assert (await client.get(url)).content == b"x"
    await bucket.delete(["a"])
    await bucket.aclose()


async def open_uploads(server: S3Server) -> str:
    async with httpx.AsyncClient() as client:
        response = await client.get(server.signed_url("GET", "", {"uploads": ""}))
    assert response.status_code == 200
    return response.text


async def test_an_upload_cut_off_leaves_no_parts(bucket: Bucket, s3_server: S3Server) -> None:
    """Amazon bills parts of uploads that were never ended, and lists them nowhere else."""
    for parts in range(5):
        waiting = asyncio.Event()

        async def endless(count: int = parts, reached: asyncio.Event = waiting) -> AsyncIterator[bytes]:
            for _ in range(count):
                yield bytes(PART_BYTES)
            reached.set()
            await asyncio.Event().wait()

        put = asyncio.create_task(bucket.put("a", endless()))
        await waiting.wait()
        if parts == 4:
            assert "<Upload>" in await open_uploads(s3_server)  # else this test proves nothing
        put.cancel()
        with pytest.raises(asyncio.CancelledError):
            await put
    assert "<Upload>" not in await open_uploads(s3_server)


async def test_a_claim_left_by_the_dead_is_swept(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("octavo.storage.s3._CLAIM_SECONDS", 0.5)
    assert isinstance(bucket, S3Bucket)
    await bucket.put("a", b"x")
    await bucket._create(".unfinished/claims/b", b"")  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(StorageFailed, match="will be cleaned up later"):
        await bucket.copy("a", "b")
    assert [info.key async for info in bucket.list()] == ["a"]
    assert await bucket.sweep_unfinished(3_600) == 0
    assert await bucket.sweep_unfinished(-60) == 1
    await bucket.copy("a", "b")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"secret_key": "wrong"}, "refused"),
        ({"access_key": "unknown"}, "OCTAVO_S3_ACCESS_KEY"),
        ({"url": "s3://no-such-bucket"}, "has no bucket no-such-bucket"),
    ],
)
async def test_a_wrong_setting_is_explained(s3_server: S3Server, change: dict[str, str], words: str) -> None:
    options = {
        "url": f"s3://{s3_server.bucket}",
        "endpoint": s3_server.endpoint,
        "access_key": s3_server.access_key,
        "secret_key": s3_server.secret_key,
    } | change
    bucket = open_bucket(**options)
    with pytest.raises(StorageFailed, match=words) as caught:
        await bucket.check()
    assert not any(options[name] in str(caught.value) for name in ("access_key", "secret_key"))
    assert caught.value.__cause__ is None
    await bucket.aclose()


async def test_an_address_where_something_else_answers_is_explained() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        bucket = open_bucket("s3://bucket", endpoint=f"http://127.0.0.1:{port}", access_key="a", secret_key="b")
        with pytest.raises(StorageFailed, match=r"returned 404\. Check OCTAVO_S3_ENDPOINT"):
            await bucket.check()
        await bucket.aclose()


async def test_a_server_that_is_not_there_is_noticed_in_seconds() -> None:
    endpoint = f"http://127.0.0.1:{free_port()}"
    bucket = open_bucket("s3://bucket", endpoint=endpoint, access_key="a", secret_key="b")
    start = time.monotonic()
    with pytest.raises(StorageFailed, match=r"does not respond\. Check OCTAVO_S3_ENDPOINT"):
        await bucket.check()
    assert time.monotonic() - start < 10
    await bucket.aclose()
