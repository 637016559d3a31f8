"""Runs the shards of a plan with Daft, on this machine or on a Ray cluster, and counts their results.

A shard is read in one process and written to one Parquet file when all its files are read. If the process is killed,
the shard is read again. Nothing is stored twice, because the key of a result depends only on the number of its shard or
on the content of its file.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import structlog

from octavo.bulk import Engine
from octavo.bulk.file_results import FAILED, open_tools, read_files, row_schema
from octavo.bulk.manifest import (
    Plan,
    PlannedFile,
    extra_module,
    finished_shards,
    make_plan,
    open_place,
    open_source,
    read_plan,
    read_shard,
    shard_key,
    write_parquet,
)
from octavo.core.errors import AlreadyStored, OctavoError
from octavo.core.settings import Settings, load_settings
from octavo.storage import Bucket

log = structlog.get_logger()
# The seconds to wait before each round of a run. Each round starts the shards that did not finish, for example because
# a machine was lost. The pauses allow short outages to end.
ROUND_PAUSES = (0, 1, 3, 7, 15)
SHOWN_ERRORS = 10

Report = Callable[[int, int], None]


class RunFailed(OctavoError):
    """Some shards could not be finished. Run the command again to continue."""

    code = "BULK_RUN_FAILED"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How to run the shards.

    `address` is the address of the Ray cluster; by default, Ray finds or starts one. `processes` is the number of
    processes that read shards at the same time.
    """

    engine: Engine = Engine.LOCAL
    address: str | None = None
    processes: int | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run. `errors` lists the first files that could not be read, each with the reason."""

    source: str
    files: int
    bytes: int
    shards: int
    finished: int
    outcomes: dict[str, int]
    errors: list[dict[str, str]]


async def run_plan(settings: Settings, source: str, out: str, options: RunOptions, report: Report) -> Progress:
    """Read all files that have not been read yet, and write their results. Makes the plan first if there is none."""
    async with aclosing(open_place(out, settings)) as bucket:
        plan, reason = await make_plan(bucket, source, settings), ""
        await asyncio.to_thread(_choose_engine, options.engine, options.address)
        for pause in ROUND_PAUSES:
            waiting = sorted(set(range(len(plan.shards))) - await finished_shards(bucket))
            if not waiting:
                return await read_progress(bucket)
            await asyncio.sleep(pause)
            report(len(plan.shards) - len(waiting), len(plan.shards))
            reason = await asyncio.to_thread(_run_round, plan, waiting, out, options, report)
        if reason:
            raise RunFailed(reason)
        return await read_progress(bucket)


def _run_round(plan: Plan, waiting: Sequence[int], out: str, options: RunOptions, report: Report) -> str:
    """Run the shards once. Returns the reason if some did not finish, and otherwise an empty string.

    The caller runs unfinished shards again.
    """
    done, reason = len(plan.shards) - len(waiting), ""
    try:
        for row in _start(plan, waiting, out, options):
            (failed,) = row.values()
            reason = failed or reason
            done += not failed
            report(done, len(plan.shards))
    except Exception as error:  # noqa: BLE001 - the errors of a lost process or machine depend on the engine
        reason = (str(error).strip() or type(error).__name__).splitlines()[-1][:300]
        log.warning("shards were interrupted", reason=reason)
    return reason


@cache
def _choose_engine(engine: Engine, address: str | None) -> None:
    """Make Daft run on this machine or on a Ray cluster. A process can make this choice only once."""
    daft = extra_module("daft")
    os.environ.setdefault("DAFT_PROGRESS_BAR", "0")
    if engine is Engine.RAY:
        daft.set_runner_ray(address)
    else:
        daft.set_runner_native()


def _start(plan: Plan, waiting: Sequence[int], out: str, options: RunOptions) -> Any:  # noqa: ANN401 - rows of Daft
    daft = extra_module("daft")
    processes = options.processes or max(1, min(len(waiting), os.cpu_count() or 1))
    reader = daft.cls(ShardReader, use_process=True, max_concurrency=processes)(plan.source, out)
    rows = [{"shard": one, "files": json.dumps([asdict(file) for file in plan.shards[one]])} for one in waiting]
    frame = daft.from_pylist(rows)
    if options.engine is Engine.RAY:
        frame = frame.into_partitions(len(rows))
    frame = frame.into_batches(1)
    return frame.select(reader.read(frame["shard"], frame["files"])).iter_rows(results_buffer_size=1)


class ShardReader:
    """Reads shards, in a process that Daft starts. Each machine uses its own settings."""

    def __init__(self, source: str, out: str) -> None:
        self._source = source
        self._out = out

    def read(self, shard: int, files: str) -> str:
        """Read the files of a shard and write their results. Returns an empty string, or the reason for a failure.

        No error is raised for a failure, because an error would also end the other shards.
        """
        planned = [PlannedFile(**file) for file in json.loads(files)]
        try:
            asyncio.run(read_and_write(load_settings(), self._source, self._out, shard, planned))
        except (OctavoError, OSError) as error:
            return f"shard {shard}: {str(error) or type(error).__name__}"
        return ""


async def read_and_write(settings: Settings, source: str, out: str, shard: int, files: Sequence[PlannedFile]) -> None:
    async with (
        aclosing(open_place(out, settings)) as bucket,
        open_tools(settings, open_source(source, settings), bucket) as tools,
    ):
        rows = await read_files(tools, files)
        table = extra_module("pyarrow").Table.from_pylist(rows, row_schema())
        with suppress(AlreadyStored):  # another process finished the same shard
            await bucket.put(shard_key(shard), await asyncio.to_thread(write_parquet, table.schema, [table]))


async def read_progress(out: Bucket) -> Progress:
    """Count the files of the finished shards by their outcome."""
    plan, outcomes, errors = await read_plan(out), Counter[str](), list[dict[str, str]]()
    finished = sorted(await finished_shards(out))
    for shard in finished:
        for row in await read_shard(out, shard, ("key", "outcome", "error_code", "error_message")):
            outcome = row.pop("outcome")
            outcomes[outcome] += 1
            if outcome == FAILED and len(errors) < SHOWN_ERRORS:
                errors.append(row)
    return Progress(plan.source, plan.files, plan.bytes, len(plan.shards), len(finished), dict(outcomes), errors)
