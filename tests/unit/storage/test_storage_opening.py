from __future__ import annotations

import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from octavo.core.errors import BadSetting, StorageFailed
from octavo.storage import open_bucket
from octavo.storage.local import LocalBucket
from octavo.storage.s3 import S3Bucket
from octavo.storage.s3_client import S3Address


async def test_a_folder_is_made_for_its_owner_only(tmp_path: Path) -> None:
    root = tmp_path / "with space" / "objects"
    bucket = open_bucket(root.as_uri())
    assert isinstance(bucket, LocalBucket)
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in (root, root.parent)] == [0o700, 0o700]
    await bucket.check()
    await bucket.aclose()


def test_a_folder_that_cannot_be_made_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageFailed, match="a folder is expected"):
        open_bucket((tmp_path / "file" / "objects").as_uri())


async def test_s3_is_opened_without_asking_it() -> None:
    bucket = open_bucket("s3://bucket/some/prefix", endpoint="http://127.0.0.1:9", access_key="a", secret_key="b")
    assert isinstance(bucket, S3Bucket)
    await bucket.aclose()


@pytest.mark.parametrize("url", ["", "objects", "s3:///prefix", "file://host/folder", "http://host"])
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(BadSetting):
        open_bucket(url)


def test_half_a_pair_of_keys_is_refused() -> None:
    with pytest.raises(BadSetting, match="together"):
        open_bucket("s3://bucket", access_key="a")


@pytest.mark.parametrize(
    ("address", "url"),
    [
        (S3Address("b", "", None, "eu-west-1"), "https://b.s3.eu-west-1.amazonaws.com/k/1"),
        (S3Address("b", "p/q", None, "eu-west-1"), "https://b.s3.eu-west-1.amazonaws.com/p/q/k/1"),
        (S3Address("b.dot", "", None, "eu-west-1"), "https://s3.eu-west-1.amazonaws.com/b.dot/k/1"),
        (S3Address("b", "p", "http://host:1/", "x"), "http://host:1/b/p/k/1"),
    ],
)
def test_the_bucket_is_in_the_host_name_only_at_amazon(address: S3Address, url: str) -> None:
    assert address.object_url("k/1") == url


@pytest.mark.parametrize(
    ("bucket", "start"),
    [("b", "https://b.s3.eu-west-1.amazonaws.com/p/k?"), ("b.dot", "https://s3.eu-west-1.amazonaws.com/b.dot/p/k?")],
)
async def test_both_ways_to_sign_agree_about_the_address(
    bucket: str, start: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.setenv(name, "http://elsewhere")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of other keys")
    opened = open_bucket(f"s3://{bucket}/p", region="eu-west-1", access_key="a", secret_key="b")
    get = await opened.sign_get("k", now=datetime.now(UTC), seconds=60, filename="f", content_type="text/plain")
    put = await opened.sign_put("k", seconds=60)
    assert put is not None
    assert get.startswith(start)
    assert put.startswith(start)
    assert "Security-Token" not in put
    await opened.aclose()
