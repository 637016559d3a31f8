"""A bulk run is made of shards: each is written once, and a run continues where it stopped."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from octavo.bulk import manifest
from octavo.bulk.manifest import finished_shards, make_plan, read_shard, shard_key
from octavo.bulk.shards import Progress, RunOptions, ShardReader, read_and_write, read_progress, run_plan
from octavo.cli.app import app
from octavo.core.errors import BadInput, NotPossibleHere
from octavo.core.settings import Settings
from octavo.storage import Bucket, open_bucket

NOTE = "# Note {0}\n\nThe boat {0} left the berth at dawn.\n"


@pytest.fixture
async def out(folder: Path) -> AsyncIterator[Bucket]:
    async with aclosing(open_bucket((folder / "out").as_uri())) as bucket:
        yield bucket


@pytest.fixture
def settings(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("OCTAVO_DATA_DIR", str(folder))
    monkeypatch.setattr(manifest, "SHARD_FILES", 3)
    return Settings(data_dir=folder)


def source(folder: Path, files: int) -> str:
    (folder / "in").mkdir()
    for number in range(files):
        (folder / "in" / f"note-{number}.md").write_text(NOTE.format(number))
    return (folder / "in").as_uri()


async def read_all(out: Bucket) -> list[object]:
    return [await read_shard(out, number) for number in sorted(await finished_shards(out))]


@pytest.mark.long  # `make test-long` installs Daft
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Daft leaves a pipe to its process open
async def test_a_run_reads_every_file_once_and_continues_where_it_stopped(
    settings: Settings, folder: Path, out: Bucket
) -> None:
    files, results, reported = source(folder, 7), (folder / "out").as_uri(), list[tuple[int, int]]()

    def report(done: int, total: int) -> None:
        reported.append((done, total))

    async def run() -> Progress:
        return await run_plan(settings, files, results, RunOptions(processes=1), report)

    made = await run()
    assert (made.files, made.shards, made.finished, made.outcomes) == (7, 3, 3, {"ready": 7})
    assert reported[-1] == (3, 3)
    before = await read_all(out)
    kept = (folder / "out" / shard_key(0)).stat()
    await out.delete([shard_key(1)])
    assert (await read_progress(out)).finished == 2
    await run()
    assert await read_all(out) == before
    assert (folder / "out" / shard_key(0)).stat() == kept


@pytest.mark.long  # `make test-long` installs Daft
async def test_a_shard_that_two_processes_read_is_written_once(settings: Settings, folder: Path, out: Bucket) -> None:
    plan = await make_plan(out, source(folder, 2), settings)
    for _ in range(2):
        await read_and_write(settings, plan.source, (folder / "out").as_uri(), 0, plan.shards[0])
    assert await finished_shards(out) == {0}


@pytest.mark.long  # `make test-long` installs Daft
async def test_results_of_one_source_are_not_mixed_with_those_of_another(
    settings: Settings, folder: Path, out: Bucket
) -> None:
    await make_plan(out, source(folder, 2), settings)
    with pytest.raises(BadInput, match="belong to"):
        await make_plan(out, folder.as_uri(), settings)


def test_a_shard_that_cannot_be_read_now_does_not_end_the_others(settings: Settings, folder: Path) -> None:
    del settings  # its environment is used
    reader = ShardReader((folder / "not mounted").as_uri(), (folder / "out").as_uri())
    assert "shard 7: " in reader.read(7, "[]")


def test_without_the_extra_packages_one_line_says_how_to_install_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_nothing(_name: str) -> None:
        return None

    monkeypatch.setattr(manifest, "find_spec", find_nothing)
    result = CliRunner().invoke(app, ["bulk", "status", "/nowhere"])
    assert isinstance(result.exception, NotPossibleHere)
    assert "make bulk" in result.exception.line
    assert CliRunner().invoke(app, ["bulk", "--help"]).exit_code == 0


def test_the_command_line_starts_without_the_extra_packages() -> None:
    code = "import sys, octavo.cli.app; sys.exit(bool({'daft', 'pyarrow', 'ray'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
