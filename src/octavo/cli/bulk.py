"""`octavo bulk`: add very many files without the job queue, on this machine or on a cluster."""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from octavo.bulk import Engine
from octavo.cli.options import AsJson
from octavo.cli.output import make_facts, open_console, print_json, print_on
from octavo.cli.remote import show_progress
from octavo.core.formatting import count_of, format_bytes
from octavo.core.settings import load_settings

if TYPE_CHECKING:
    from octavo.bulk.loading import Loaded
    from octavo.bulk.manifest import Plan
    from octavo.bulk.shards import Progress

app = typer.Typer(
    help="Add very many files without the job queue: plan, read and load them in shards. Needs `make bulk`.",
    no_args_is_help=True,
)

Source = Annotated[str, typer.Argument(help="Folder, or s3://bucket/prefix, with the files.")]
Out = Annotated[
    str, typer.Argument(help="Folder, or s3://bucket/prefix, for the results. Finished results are never overwritten.")
]


@app.command()
def plan(
    source: Source,
    out: Annotated[
        str | None, typer.Argument(help="Folder or bucket for the manifest. Default: only count the files.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Count the files, and list them in a Parquet manifest. `octavo bulk run` does this if there is no manifest."""
    from octavo.bulk.manifest import as_url, list_plan, make_plan, open_results, require_packages

    require_packages()
    settings, url = load_settings(), as_url(source)

    async def make() -> Plan:
        if out is None:
            return list_plan(url, settings)
        async with open_results(out, settings) as bucket:
            return await make_plan(bucket, url, settings)

    made = asyncio.run(make())
    if as_json:
        return print_json({"files": made.files, "bytes": made.bytes, "shards": len(made.shards)})
    return typer.echo(
        f"{count_of(made.files, 'file')} ({format_bytes(made.bytes)}) in {count_of(len(made.shards), 'shard')}."
    )


@app.command()
def run(
    source: Source,
    out: Out,
    engine: Annotated[Engine, typer.Option(help="Run on this machine, or on a Ray cluster.")] = Engine.LOCAL,
    address: Annotated[
        str | None, typer.Option(help="Address of the Ray cluster, such as 10.0.0.1:6379. Default: detected by Ray.")
    ] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Number of shards read in parallel. Default: one per CPU.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Read the files and produce their text, chunks, facts, summaries, tags and vectors. Finished shards are skipped.

    No database is needed. Files that cannot be read are recorded with the reason.
    """
    from octavo.bulk.manifest import as_url, require_packages

    require_packages()
    from octavo.bulk.shards import RunOptions, run_plan

    began, options = time.monotonic(), RunOptions(engine, address, processes)
    with show_progress(silent=as_json) as report:
        made = asyncio.run(
            run_plan(
                load_settings(),
                as_url(source),
                as_url(out),
                options,
                lambda done, of: report("Reading shards", done, of),
            )
        )
    _print_run(made, began, as_json)


@app.command()
def load(
    out: Out,
    owner: Annotated[
        str | None, typer.Option(help="Email address or id of the account. Default: the local owner.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Load the results of a run into the database, one transaction per shard.

    Content that the account already has is skipped. Archives, emails and unreadable files are queued for the workers.
    You do not need to stop Octavo.
    """
    from octavo.bulk.manifest import as_url, require_packages

    require_packages()
    from octavo.bulk.loading import find_owner, load_results
    from octavo.database import require_current
    from octavo.ops.instance import open_database

    settings, began = load_settings(), time.monotonic()

    async def load_all() -> Loaded:
        async with open_database(settings, supervised=True) as database:
            async with database.transaction() as connection:
                await require_current(connection)
                account = await find_owner(connection, owner)
            return await load_results(
                settings, database, as_url(out), account, lambda done, of: report("Loading shards", done, of)
            )

    with show_progress(silent=as_json) as report:
        loaded = asyncio.run(load_all())
    _print_load(loaded, began, as_json)


@app.command()
def status(out: Out, as_json: AsJson = False) -> None:
    """Show how many files of a run have been read, and why other files could not be read."""
    from octavo.bulk.manifest import open_results, require_packages

    require_packages()
    from octavo.bulk.shards import read_progress

    async def read() -> Progress:
        async with open_results(out, load_settings()) as bucket:
            return await read_progress(bucket)

    _print_run(asyncio.run(read()), None, as_json)


def _print_run(progress: Progress, began: float | None, as_json: bool) -> None:
    seconds = None if began is None else round(time.monotonic() - began, 1)
    if as_json:
        return print_json({**asdict(progress), **({} if seconds is None else {"seconds": seconds})})
    outcomes = ", ".join(f"{count:,} {name}" for name, count in sorted(progress.outcomes.items()))
    facts = {
        "Source": progress.source,
        "Files": f"{progress.files:,} ({format_bytes(progress.bytes)})",
        "Shards": f"{progress.finished:,} of {progress.shards:,} finished",
        "Results": outcomes,
        "Seconds": None if seconds is None else str(seconds),
    }
    print_on(open_console(), make_facts(facts))
    for one in progress.errors:
        typer.echo(f"  {one['key']}: {one['error_message']}")
    return None


def _print_load(loaded: Loaded, began: float, as_json: bool) -> None:
    seconds = round(time.monotonic() - began, 1)
    if as_json:
        return print_json({**asdict(loaded), "seconds": seconds})
    rest = {
        "queued for the workers": loaded.queued,
        "already known": loaded.known,
        "without content": loaded.failed,
    }
    also = "".join(f", {count:,} {name}" for name, count in rest.items() if count)
    return typer.echo(f"Added {count_of(loaded.added, 'document')} in {seconds} s{also}.")
