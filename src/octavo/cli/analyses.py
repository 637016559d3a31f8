"""`octavo analyses`: lists, stops, resumes, repeats, exports and deletes analyses."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from octavo.cli.names import find_named
from octavo.cli.options import AsJson, Cursor, Key, Server
from octavo.cli.output import clean, make_table, open_console, print_items, print_json, print_on, short_id
from octavo.cli.remote import Target, call
from octavo.core.errors import StorageFailed

if TYPE_CHECKING:
    from octavo.client import Client
    from octavo.core.pagination import Page
    from octavo.records.analyses import Analysis

app = typer.Typer(
    help="List, stop, resume and export analyses (start one with `octavo analyse`).", no_args_is_help=True
)
MOST_LISTED = 500
Which = Annotated[str, typer.Argument(metavar="ANALYSIS", help="Id of the analysis, or part of it.")]


class Format(StrEnum):
    MARKDOWN = "markdown"
    JSON = "json"
    CSV = "csv"


@app.command("ls")
def list_all(
    limit: Annotated[int, typer.Option(min=1, max=MOST_LISTED, help="Maximum number of analyses.")] = 50,
    cursor: Cursor = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """List analyses, newest first."""

    async def run(client: Client) -> Page[Analysis]:
        return await client.analyses.list(cursor=cursor, limit=limit)

    page = call(Target(server, key), run)
    if as_json:
        return print_items(page.items, page.next_cursor)
    if not page.items:
        return typer.echo("No analyses. Start one with `octavo analyse`.")
    console = open_console()
    rows = [
        [short_id(one.id), clean(one.title), one.status, f"{one.items.done} of {one.items.total}", one.health.message]
        for one in page.items
    ]
    head = ["ID", "DOCUMENT", "STATUS", "ANSWERED", "STATE"]
    print_on(console, make_table(console, head, rows, flexible=(1, 4)))
    if page.next_cursor:
        typer.echo(f"Next page: --cursor {page.next_cursor}", err=True)
    return None


@app.command()
def stop(analysis: Which, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Stop an analysis. Its answers are kept."""
    target = Target(server, key)
    _change(target, analysis, lambda client, one: client.analyses.stop(one), "is stopped", as_json=as_json)


@app.command()
def resume(analysis: Which, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Resume an analysis that was stopped or failed, or that has missing answers."""
    target = Target(server, key)
    _change(target, analysis, lambda client, one: client.analyses.retry(one), "is resumed", as_json=as_json)


@app.command()
def rerun(analysis: Which, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Discard all answers of an analysis and run it again."""
    target = Target(server, key)
    _change(target, analysis, lambda client, one: client.analyses.rerun(one), "runs again", as_json=as_json)


@app.command()
def rm(analysis: Which, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Delete an analysis with its answers. The document is kept."""

    async def run(client: Client) -> UUID:
        found = await find_analysis(client, analysis)
        await client.analyses.delete(found)
        return found

    deleted = call(Target(server, key), run)
    if as_json:
        return print_json({"deleted": deleted})
    return typer.echo(f"Analysis {short_id(deleted)} is deleted.")


@app.command()
def export(
    analysis: Which,
    form: Annotated[Format, typer.Option("--format", "-f", help="Format of the file.")] = Format.MARKDOWN,
    out: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Write to this file instead of standard output.")
    ] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Export the answers of an analysis as Markdown, JSON or CSV. `--json` is the same as `--format json`."""
    wanted = Format.JSON if as_json else form

    async def run(client: Client) -> bytes:
        return await client.analyses.export(await find_analysis(client, analysis), wanted.value)

    content = call(Target(server, key), run)
    if out is None:
        sys.stdout.buffer.write(content)
        return
    try:
        out.write_bytes(content)
    except OSError as error:
        raise StorageFailed(f"{out} cannot be written: {error.strerror}.") from None


async def find_analysis(client: Client, typed: str) -> UUID:
    """Find an analysis by its id or part of it."""

    async def look_up(part: str) -> dict[UUID, str]:
        return {one.id: one.title for one in (await client.analyses.list(id_part=part)).items}

    return (await find_named([typed], look_up, "analysis", "octavo analyses ls"))[0]


def _change(
    target: Target, typed: str, change: Callable[[Client, UUID], Awaitable[Analysis]], done: str, *, as_json: bool
) -> None:
    async def run(client: Client) -> Analysis:
        return await change(client, await find_analysis(client, typed))

    changed = call(target, run)
    if as_json:
        return print_json(changed)
    return typer.echo(f"Analysis {short_id(changed.id)} of {clean(changed.title)} {done}.")
