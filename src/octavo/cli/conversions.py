"""`octavo conversions`: lists, shows, corrects and deletes conversions, and exports corrections."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from octavo.cli.names import find_named
from octavo.cli.options import AsJson, Cursor, Key, Server
from octavo.cli.output import clean, make_table, open_console, print_items, print_json, print_on, short_id, short_time
from octavo.cli.remote import Target, call
from octavo.core.errors import BadInput, StorageFailed
from octavo.core.formatting import count_of

if TYPE_CHECKING:
    from octavo.client import Client
    from octavo.core.pagination import Page
    from octavo.records.conversions import ConversionView, FoundValue

app = typer.Typer(help="List, correct and delete conversions (start one with `octavo convert`).", no_args_is_help=True)
MOST_LISTED = 500
Which = Annotated[str, typer.Argument(metavar="CONVERSION", help="Id of the conversion, or part of it.")]


class Status(StrEnum):
    QUEUED = "queued"
    PROCESSING = "processing"
    COMPLETE = "complete"
    NEEDS_REVIEW = "needs_review"
    FAILED = "failed"
    DEAD_LETTER = "dead_letter"


@app.command("ls")
def list_all(
    status: Annotated[Status | None, typer.Option(help="Only conversions with this status.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=MOST_LISTED, help="Maximum number of conversions.")] = 50,
    cursor: Cursor = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """List conversions, newest first."""

    async def run(client: Client) -> Page[ConversionView]:
        wanted = status.value if status else None
        return await client.conversions.list(status=wanted, cursor=cursor, limit=limit)

    page = call(Target(server, key), run)
    if as_json:
        return print_items(page.items, page.next_cursor)
    console = open_console()
    now = datetime.now(UTC)
    rows = [
        [short_id(one.id), clean(one.filename), one.mapping, one.status, short_time(one.created_at, now)]
        for one in page.items
    ]
    print_on(console, make_table(console, ["ID", "FILE", "MAPPING", "STATUS", "CREATED"], rows, flexible=(1,)))
    if page.next_cursor:
        typer.echo(f"Next page: --cursor {page.next_cursor}", err=True)
    return None


@app.command()
def show(conversion: Which, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Show a conversion with its values and checks."""

    async def run(client: Client) -> ConversionView:
        return await client.conversions.show(await _find(client, conversion))

    found = call(Target(server, key), run)
    return print_json(found) if as_json else _print(found)


@app.command()
def correct(
    conversion: Which,
    values: Annotated[
        list[str],
        typer.Option("--set", metavar="NAME=VALUE", help="The correct value. An empty value clears the field."),
    ],
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Correct values of a conversion. To name a cell of a table, write for example `lines[2].amount`."""
    wanted: dict[str, str | None] = {}
    for one in values:
        name, equals, value = one.partition("=")
        if not equals or not name.strip():
            raise BadInput(f"{clean(one)}: write NAME=VALUE.")
        wanted[name.strip()] = value.strip() or None

    async def run(client: Client) -> ConversionView:
        return await client.conversions.correct(await _find(client, conversion), wanted)

    found = call(Target(server, key), run)
    return print_json(found) if as_json else _print(found)


@app.command()
def rm(conversion: Which, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Delete a conversion with its values and corrections. If the file is a document in the library, the document is
    kept.
    """

    async def run(client: Client) -> UUID:
        found = await _find(client, conversion)
        await client.conversions.delete(found)
        return found

    deleted = call(Target(server, key), run)
    return print_json({"deleted": deleted}) if as_json else typer.echo(f"Deleted {deleted}.")


@app.command()
def samples(
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write to a file instead of the terminal.")] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Export all corrections as JSON Lines: the values before and after, who corrected them, and when."""

    async def run(client: Client) -> bytes:
        return await client.conversions.samples()

    body = call(Target(server, key), run)
    if as_json and out is None:
        return print_items([json.loads(line) for line in body.splitlines()])
    if out is None:
        sys.stdout.write(body.decode())
        return None
    try:
        out.write_bytes(body)
    except OSError as error:
        raise StorageFailed(error.strerror) from None
    return typer.echo(f"{count_of(len(body.splitlines()), 'sample')} written to {clean(str(out))}.")


async def _find(client: Client, typed: str) -> UUID:
    """Find a conversion by its id or part of it."""

    async def look_up(part: str) -> dict[UUID, str]:
        found = await client.conversions.list(id_part=part, limit=MOST_LISTED)
        return {one.id: one.filename for one in found.items}

    return (await find_named([typed], look_up, "conversion", "octavo conversions ls"))[0]


def _print(found: ConversionView) -> None:
    console = open_console()
    typer.echo(f"{clean(found.filename)}  {found.mapping}  {found.status}  revision {found.revision}")
    if found.error:
        typer.echo(f"{clean(found.error['message'])} ({found.error['code']})")
    rows = [
        [one.name, clean(one.value), f"{one.page or ''}", one.status.replace("_", " "), _certainty(one)]
        for one in found.values
    ]
    if rows:
        print_on(console, make_table(console, ["FIELD", "VALUE", "PAGE", "STATUS", ""], rows, flexible=(1,)))
    for check in found.checks:
        if check.holds is not None:
            words = "passed" if check.holds else "failed, accepted" if check.accepted else "FAILED"
            typer.echo(f"{words}: {check.check}")
    if found.missing:
        typer.echo(f"missing: {', '.join(found.missing)}")
    if found.result_expires_at:
        typer.echo(f"kept until {found.result_expires_at:%Y-%m-%d}")


def _certainty(one: FoundValue) -> str:
    """Describe how certain a value is: the person who confirmed it, a measured percentage, or a word such as `sure`."""
    if one.confirmed_by:
        return clean(one.confirmed_by)
    if one.calibrated:
        return f"{one.confidence:.0%}"
    return "" if one.status == "confirmed" else "check this" if one.status == "needs_review" else "sure"
