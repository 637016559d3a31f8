"""A filled installation of an earlier version is upgraded, and the jobs that waited in it are done."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from octavo.database.migrator import known_migrations
from tests.support.clusters import new_clusters
from tests.support.instance import Instance
from tests.support.processes import wait_until
from tests.support.tree import ROOT

ARCHIVES = sorted((ROOT / "tests/data").glob("backup-*.tar.xz"))
MOST_BYTES = 1_000_000


def listed(instance: Instance, *arguments: str) -> list[dict[str, Any]]:
    return json.loads(instance.octavo(*arguments, "--json").stdout)["items"]


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.name)
def test_an_earlier_version_is_upgraded_and_its_waiting_jobs_are_done(archive: Path, folder: Path) -> None:
    assert archive.stat().st_size <= MOST_BYTES
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    with new_clusters():  # a backup of an earlier version is restored only into a database without a schema
        instance = Instance(folder)
    restored = instance.octavo("restore", str(folder / "backup"))
    assert restored.returncode == 0, restored.stderr
    instance.start()
    try:
        wait_until(lambda: not waiting(instance), "the jobs of the earlier version are done")
        documents = listed(instance, "ls")
        assert [one["status"] for one in documents] == ["completed"] * 6
        (edited,) = (one for one in documents if one["title"] == "A kept title")
        assert sorted(edited["tags"]) == ["peat", "upgrade"]
        assert "heron" in instance.octavo("search", "heron at the northern pier", "--json").stdout
        assert {one["status"] for one in listed(instance, "jobs", "ls")} == {"complete"}
        checked = instance.octavo("doctor")
        assert checked.returncode == 0, checked.stdout
        assert f"{len(known_migrations())} migrations" in instance.octavo("migrate").stdout
    finally:
        instance.stop()


def waiting(instance: Instance) -> list[dict[str, Any]]:
    return [one for one in listed(instance, "jobs", "ls") if one["status"] in {"queued", "processing"}]
