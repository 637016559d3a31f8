"""`octavo connections`: what a document agrees with, contradicts and is bridged to; and comparing anew."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from octavo.cli.names import find_ids
from octavo.cli.options import AsJson, Cursor, Key, Server
from octavo.cli.output import print_json
from octavo.cli.remote import Target, call
from octavo.cli.tables import clean
from octavo.core.errors import BadInput
from octavo.core.formatting import count_of

if TYPE_CHECKING:
    from octavo.client import Client
    from octavo.core.pagination import Page
    from octavo.records.search import Connection, ConnectionSide

app = typer.Typer()
LOOK_SECONDS = 0.5
OPEN = frozenset({"queued", "processing"})


class Engine(StrEnum):
    SIMILAR = "similar"
    CONTRADICTION = "contradiction"
    BRIDGE = "bridge"


ENGINES = {
    Engine.SIMILAR: "semantic_similarity",
    Engine.CONTRADICTION: "contradiction_detection",
    Engine.BRIDGE: "thematic_bridge",
}
WORDS = {name: engine.value.capitalize() for engine, name in ENGINES.items()}


@app.command()
def connections(  # noqa: PLR0917 - each is an option of the command
    document: Annotated[
        str | None, typer.Argument(metavar="ID", help="A document, by four or more characters of its id.")
    ] = None,
    engine: Annotated[Engine | None, typer.Option(help="Only those of one kind.")] = None,
    dismissed: Annotated[bool, typer.Option("--dismissed", help="Those that were dismissed.")] = False,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Compare the document anew, or all of them, and wait for it.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=500, help="How many at most.")] = 20,
    cursor: Cursor = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Show what a document agrees with, contradicts and is bridged to, with both quotes."""
    target = Target(server, key)
    if rebuild:
        return compare_anew(target, document, as_json)
    if document is None:
        raise BadInput("Name a document, or compare all of them with --rebuild.")

    async def run(client: Client) -> Page[Connection]:
        (found,) = await find_ids(client, [document])
        wanted = {"engine": ENGINES[engine] if engine else None, "status": "dismissed" if dismissed else None}
        return await client.list_connections(found, **wanted, cursor=cursor, limit=limit)

    page = call(target, run)
    if as_json:
        return print_json(page)
    show(page.items)
    if not page.items:
        typer.echo("No connections.")
    if page.next_cursor:
        typer.echo(f"There are more: --cursor {page.next_cursor}")
    return None


def show(items: Sequence[Connection]) -> None:
    for one in items:
        status = f", {one.status}" if one.status != "found" else ""
        typer.echo(f"{WORDS[one.engine]} {one.strength:.2f}{status}: {clean(one.explanation)}")
        for side in (one.source, one.target):
            typer.echo(f"  {place_of(side)}: “{clean(side.quote)}”")


def place_of(side: ConnectionSide) -> str:
    page = f", p. {side.page}" if side.page is not None else ""
    return f"{clean(side.title)}{page}"


def compare_anew(target: Target, document: str | None, as_json: bool) -> None:
    """With its progress on the side, so that what is printed stays for programs."""

    async def run(client: Client) -> dict[str, int]:
        chosen = await find_ids(client, [document]) if document else None
        jobs = await client.rebuild_connections(chosen)
        statuses = [await follow(client, job, number, len(jobs)) for number, job in enumerate(jobs, start=1)]
        return {"documents": len(jobs), "failed": sum(status != "complete" for status in statuses)}

    told = call(target, run)
    if as_json:
        return print_json(told)
    failed = f" {told['failed']} of them failed." if told["failed"] else ""
    return typer.echo(f"Compared {count_of(told['documents'], 'document')} anew.{failed}")


async def follow(client: Client, job: UUID, number: int, total: int) -> str:
    while (shown := await client.show_job(job)).status in OPEN:  # noqa: ASYNC110 - on another machine
        await asyncio.sleep(LOOK_SECONDS)
    typer.echo(f"{number} of {total}", err=True)
    return shown.status
