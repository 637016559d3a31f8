"""Both buckets, each test in a folder or prefix of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from octavo.storage import Bucket, open_bucket
from octavo.storage.s3 import S3Bucket
from tests.support.s3 import S3Server, running_s3_server


def open_s3(server: S3Server, prefix: str) -> Bucket:
    return open_bucket(
        f"s3://{server.bucket}/{prefix}",
        endpoint=server.endpoint,
        region=server.region,
        access_key=server.access_key,
        secret_key=server.secret_key,
    )


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    with running_s3_server() as server:
        yield server


@pytest.fixture
async def local_bucket(tmp_path: Path) -> AsyncIterator[Bucket]:
    bucket = open_bucket((tmp_path / "objects").as_uri())
    yield bucket
    await bucket.aclose()


@pytest.fixture
async def s3_bucket(s3_server: S3Server) -> AsyncIterator[Bucket]:
    bucket = open_s3(s3_server, f"test-{uuid4().hex}")
    assert isinstance(bucket, S3Bucket)
    yield bucket
    await bucket.aclose()


@pytest.fixture(params=["local_bucket", "s3_bucket"], ids=["local", "s3"])
def bucket(request: pytest.FixtureRequest) -> Bucket:
    return request.getfixturevalue(request.param)
