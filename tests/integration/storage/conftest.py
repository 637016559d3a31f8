"""Both buckets, each test in a folder or prefix of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest

from octavo.storage import Bucket, open_bucket
from octavo.storage.s3 import S3Bucket
from tests.support.s3 import S3Server, open_s3


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
