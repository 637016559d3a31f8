"""`octavo connections`: lists a document's connections to other documents, and rebuilds them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from octavo.cli.names import find_ids
from octavo.cli.options import AsJson, Cursor, Key, Server
from octavo.cli.output import clean, print_json, short_id
from octavo.cli.remote import Target, call
from octavo.core.errors import BadInput
from octavo.core.formatting import count_of

if TYPE_CHECKING:
    from octavo.client import Client
    from octavo.records.search import ComparisonStatus, Connection, ConnectionPage, ConnectionSide

app = typer.Typer()
POLL_SECONDS = 0.5
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
        str | None, typer.Argument(metavar="ID", help="Document id, or at least four characters of it.")
    ] = None,
    engine: Annotated[Engine | None, typer.Option(help="Only connections of this type.")] = None,
    dismissed: Annotated[bool, typer.Option("--dismissed", help="List dismissed connections.")] = False,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Compare the document, or all documents, again and wait until it is done.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Maximum number of connections.")] = 20,
    cursor: Cursor = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Show the passages of other documents that agree with, contradict or relate to a document, with both quotes."""
    target = Target(server, key)
    if rebuild:
        return rebuild_connections(target, document, as_json)
    if document is None:
        raise BadInput("Name a document, or use --rebuild to compare all of them.")

    async def run(client: Client) -> ConnectionPage:
        (found,) = await find_ids(client, [document])
        wanted = {"engine": ENGINES[engine] if engine else None, "status": "dismissed" if dismissed else None}
        return await client.list_connections(found, **wanted, cursor=cursor, limit=limit)

    page = call(target, run)
    if as_json:
        return print_json(page)
    show(page.items)
    if not page.items or page.comparison.state != "done":
        typer.echo(describe_comparison(page.comparison))
    if page.next_cursor:
        typer.echo(f"Next page: --cursor {page.next_cursor}")
    return None


def describe_comparison(comparison: ComparisonStatus) -> str:
    """Whether the list is complete and, if not, why not."""
    why = f": {clean(comparison.detail)}" if comparison.detail else ""
    return {
        "done": "No connections.",
        "not_indexed": "Not compared yet: the text is still being indexed.",
        "no_text": "This document has no indexed text to compare.",
        "never": "Not compared yet. Compare it with --rebuild.",
        "waiting": f"Not compared yet{why}.",
        "running": "Being compared now.",
        "paused": f"The comparison is paused{why}.",
        "failed": f"The comparison failed{why}. Compare again with --rebuild.",
        "cancelled": "The comparison was cancelled. Compare again with --rebuild.",
    }[comparison.state]


def show(items: Sequence[Connection]) -> None:
    for one in items:
        status = f", {one.status}" if one.status != "found" else ""
        typer.echo(f"{short_id(one.id)}  {WORDS[one.engine]} {one.strength:.2f}{status}: {clean(one.explanation)}")
        for side in (one.source, one.target):
            typer.echo(f"    {place_of(side)}: “{clean(side.quote)}”")


def place_of(side: ConnectionSide) -> str:
    page = f", p. {side.page}" if side.page is not None else ""
    return f"{clean(side.title)}{page}"


def rebuild_connections(target: Target, document: str | None, as_json: bool) -> None:
    """Rebuild connections and wait. Progress goes to standard error, so that programs can parse standard output."""

    async def run(client: Client) -> dict[str, int]:
        chosen = await find_ids(client, [document]) if document else None
        jobs = await client.rebuild_connections(chosen)
        statuses = [await follow(client, job, number, len(jobs)) for number, job in enumerate(jobs, start=1)]
        return {"documents": len(jobs), "failed": sum(status != "complete" for status in statuses)}

    result = call(target, run)
    if as_json:
        return print_json(result)
    failed = f" {result['failed']} of them failed." if result["failed"] else ""
    return typer.echo(f"Compared {count_of(result['documents'], 'document')} again.{failed}")


async def follow(client: Client, job: UUID, number: int, total: int) -> str:
    while (shown := await client.show_job(job)).status in OPEN:  # noqa: ASYNC110 - on another machine
        await asyncio.sleep(POLL_SECONDS)
    typer.echo(f"{number} of {total}", err=True)
    return shown.status
