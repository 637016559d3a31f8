"""What only a folder has: durability, permissions, links, full disks, and processes that die in the middle."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from octavo.core.errors import StorageFailed
from octavo.storage import Bucket, LinkRefused, ObjectMissing
from octavo.storage.local import LocalBucket
from tests.integration.storage.children.writer import content_of

CHILDREN = Path(__file__).parent / "children"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "objects"


def below(root: Path) -> list[Path]:
    return sorted(root.rglob("*"))


def path_of(descriptor: int) -> Path:
    return Path(f"/proc/self/fd/{descriptor}").readlink()


@pytest.fixture
def bucket(local_bucket: Bucket) -> Bucket:
    return local_bucket


async def test_only_the_owner_may_look(bucket: Bucket, root: Path) -> None:
    await bucket.put("a/b", b"x")
    await bucket.sign_get("a/b", now=NOW, seconds=1, filename="f", content_type="t")
    for path in [root, *below(root)]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


async def test_a_file_is_durable_before_its_name_and_its_name_before_the_answer(
    bucket: Bucket, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    fsync, link = os.fsync, os.link

    def recorded_fsync(descriptor: int) -> None:
        path = path_of(descriptor)
        is_unfinished = path.parent.name == ".unfinished"
        calls.append("sync content" if is_unfinished else f"sync {path.relative_to(root)}")
        fsync(descriptor)

    def recorded_link(*args: str, **options: int | bool) -> None:
        calls.append("link")
        link(*args, **options)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(os, "fsync", recorded_fsync)
    monkeypatch.setattr(os, "link", recorded_link)
    await bucket.put("a/b/c", b"x")
    assert calls == ["sync .", "sync content", "sync .", "sync a", "link", "sync a/b"]


async def test_a_name_that_cannot_be_made_durable_is_taken_back(
    bucket: Bucket, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync = os.fsync

    def failing(descriptor: int) -> None:
        if path_of(descriptor).name == "a":
            raise OSError(5, "Input/output error")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(StorageFailed, match="reported an error"):
        await bucket.put("a/b", b"x")
    assert [path for path in below(root) if path.is_file()] == []


async def test_a_cancel_while_the_temporary_file_is_removed_leaves_nothing(
    bucket: Bucket, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The object has its name by then, but its sender is not told so."""
    removing, go_on, unlink = threading.Event(), threading.Event(), os.unlink

    def slow_unlink(name: str, *, dir_fd: int) -> None:
        if path_of(dir_fd).name == ".unfinished":
            removing.set()
            go_on.wait()
        unlink(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", slow_unlink)
    put = asyncio.create_task(bucket.put("a", b"x"))
    await asyncio.to_thread(removing.wait)
    put.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await put
    assert [path for path in below(root) if path.is_file()] == []


async def test_links_are_no_way_out(bucket: Bucket, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    (root / "folder").symlink_to(outside)
    (root / "file").symlink_to(outside / "secret")
    with pytest.raises(ObjectMissing):
        await bucket.read("folder/secret")
    with pytest.raises(StorageFailed, match="a symbolic link where"):
        await bucket.read("file")
    with pytest.raises(StorageFailed):
        await bucket.put("folder/new", b"x")
    await bucket.delete(["folder/secret"])
    assert [info async for info in bucket.list()] == []
    assert [path.name for path in outside.iterdir()] == ["secret"]


async def test_deleting_leaves_no_empty_folders(bucket: Bucket, root: Path) -> None:
    await bucket.put("a/b/c", b"x")
    await bucket.put("a/d", b"x")
    await bucket.delete(["a/b/c"])
    assert [path.name for path in below(root)] == [".unfinished", "a", "d"]
    await bucket.delete(["a/d"])
    assert [path.name for path in below(root)] == [".unfinished"]


async def test_writing_and_deleting_in_one_folder_in_parallel(bucket: Bucket) -> None:
    async def churn(lane: int) -> None:
        for number in range(40):
            await bucket.put(f"busy/{lane}-{number}", b"x")
            await bucket.delete([f"busy/{lane}-{number}"])

    await asyncio.gather(*(churn(lane) for lane in range(8)))
    assert [info async for info in bucket.list()] == []


async def test_a_copy_counts_as_young(bucket: Bucket, root: Path) -> None:
    await bucket.put("old", b"x")
    os.utime(root / "old", (0, 0))
    await bucket.copy("old", "new")
    info = await bucket.stat("new")
    assert info is not None
    assert time.time() - info.last_modified.timestamp() < 60


async def test_a_folder_that_disappears_is_not_made_again(bucket: Bucket, root: Path) -> None:
    shutil.rmtree(root)
    calls: list[Callable[[], object]] = [lambda: bucket.put("a", b"x"), lambda: bucket.read("a"), bucket.check]
    for call in calls:
        with pytest.raises(StorageFailed, match="removed or is not mounted"):
            await call()  # pyright: ignore[reportGeneralTypeIssues] - each is a coroutine
    assert below(root.parent) == []


async def test_only_old_unfinished_files_are_swept(bucket: Bucket, root: Path) -> None:
    await bucket.put("a", b"x")
    for name, age in {"old": 3_700, "young": 3_500}.items():
        (root / ".unfinished" / name).touch()
        then = time.time() - age
        os.utime(root / ".unfinished" / name, times=(then, then))
    assert await bucket.sweep_unfinished(3_600) == 1
    assert [path.name for path in below(root / ".unfinished")] == ["young"]


async def test_links_are_good_in_every_process_and_for_their_time(root: Path, bucket: Bucket) -> None:
    others = [LocalBucket(root) for _ in range(8)]
    urls = await asyncio.gather(
        *(one.sign_get("a/b", now=NOW, seconds=60, filename="ü.pdf", content_type="application/pdf") for one in others)
    )
    assert len(set(urls)) == 1  # all of them came to the same key, although none was there
    query = dict(parse_qsl(urlsplit(urls[0]).query))
    assert urlsplit(urls[0]).path == "/objects/a/b"
    assert (await others[0].verify_link("GET", "a/b", query, now=NOW)).filename == "ü.pdf"
    for method, key in [("PUT", "a/b"), ("GET", "a/c")]:
        with pytest.raises(LinkRefused):
            await others[1].verify_link(method, key, query, now=NOW)
    with pytest.raises(LinkRefused):
        await others[0].verify_link("GET", "a/b", query, now=NOW + timedelta(seconds=60))
    assert await bucket.sign_put("a/b", seconds=60) is None
    for one in others:
        await one.aclose()


def killed_writer(url: str, name: str, seconds: float) -> list[str]:
    """Run a writer for a moment after its first object, kill it, and give what it was told is stored."""
    command = [sys.executable, CHILDREN / "writer.py", url, name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        first = child.stdout.readline()
        time.sleep(seconds)
        child.kill()
        return [line.strip() for line in [first, *child.stdout] if line.endswith("\n")]


@pytest.mark.parametrize("kills", [3, pytest.param(100, marks=pytest.mark.long)])
async def test_killed_writers_leave_whole_objects_only(bucket: Bucket, root: Path, kills: int) -> None:
    moment = random.Random(kills)
    acknowledged: set[str] = set()
    for number in range(kills):
        run = asyncio.to_thread(killed_writer, root.as_uri(), f"run{number}", moment.uniform(0, 0.05))
        acknowledged.update(await run)
    stored = {info.key async for info in bucket.list()}
    assert acknowledged <= stored
    for key in stored:
        assert await bucket.read(key) == content_of(key), key
    assert await bucket.sweep_unfinished(-60) > 0
    assert below(root / ".unfinished") == []


def in_own_mount_namespace(*command: str | Path) -> subprocess.CompletedProcess[str]:
    as_root = ["unshare", "--mount"]
    prefix = as_root if os.geteuid() == 0 else [*as_root, "--user", "--map-current-user", "--keep-caps"]
    return subprocess.run([*prefix, *command], capture_output=True, text=True, check=False, timeout=60)


def test_a_full_and_a_read_only_disk(tmp_path: Path) -> None:
    if in_own_mount_namespace("mount", "-t", "tmpfs", "tmpfs", tmp_path).returncode:
        pytest.skip("this machine allows no mount namespaces")
    child = in_own_mount_namespace(sys.executable, CHILDREN / "small_disk.py", tmp_path)
    assert child.stdout.startswith("passed"), child.stderr
