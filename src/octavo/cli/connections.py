"""`octavo connections`, `verdict`, `weights` and `related`: show and rate the connections between documents."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from octavo.cli.options import AsJson, Cursor, Key, Server, find_ids, find_named
from octavo.cli.output import clean, make_facts, make_table, open_console, print_items, print_json, print_on, short_id
from octavo.cli.remote import Target, call
from octavo.core.errors import BadInput
from octavo.core.formatting import count_of

if TYPE_CHECKING:
    from octavo.client import Client
    from octavo.records.search import ComparisonStatus, Connection, ConnectionPage, ConnectionSide, RelatedDocument

app = typer.Typer()
LISTED_BY = "octavo connections"
MOST = 100
MOST_RELATED = 100
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
NAMES = {Engine.SIMILAR: "Similar", Engine.CONTRADICTION: "Contradictions", Engine.BRIDGE: "Bridges"}
WORDS = {name: engine.value.capitalize() for engine, name in ENGINES.items()}


@app.command()
def connections(  # noqa: PLR0917 - each is an option of the command
    document: Annotated[
        str | None, typer.Argument(metavar="ID", help="Document id, or at least four characters of it.")
    ] = None,
    engine: Annotated[Engine | None, typer.Option(help="Only connections of this type.")] = None,
    dismissed: Annotated[bool, typer.Option("--dismissed", help="List dismissed connections.")] = False,
    rebuild: Annotated[
        bool,
        typer.Option("--rebuild", help="Compare the document (or all documents) again, and wait for the result."),
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Maximum number of connections.")] = 20,
    cursor: Cursor = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """List connections of a document: its passages, and similar or contradicting passages of other documents."""
    target = Target(server, key)
    if rebuild:
        return rebuild_connections(target, document, as_json)
    if document is None:
        raise BadInput("Specify a document, or use --rebuild to compare all documents.")

    async def run(client: Client) -> ConnectionPage:
        (found,) = await find_ids(client, [document])
        kind, status = ENGINES[engine] if engine else None, "dismissed" if dismissed else None
        return await client.list_connections(found, engine=kind, status=status, cursor=cursor, limit=limit)

    page = call(target, run)
    if as_json:
        return print_json(page)
    show(page.items)
    if not page.items or page.comparison.state != "done":
        typer.echo(describe_comparison(page.comparison))
    if page.comparison.state == "done" and not page.coverage.contradictions:
        typer.echo("Contradictions are found in English documents only, unless a model is configured.")
    if page.next_cursor:
        typer.echo(f"Next page: --cursor {page.next_cursor}")
    return None


def describe_comparison(comparison: ComparisonStatus) -> str:
    """Return a message that explains why the list of connections is empty or incomplete."""
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
    """Compare documents again, and wait for the result.

    Progress goes to standard error, so that programs can parse standard output.
    """

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


class Decision(StrEnum):
    CONFIRM = "confirm"
    DISMISS = "dismiss"
    UNDO = "undo"


@app.command()
def verdict(
    decision: Annotated[Decision, typer.Argument(help="Your decision. undo removes an earlier decision.")],
    connections: Annotated[
        list[str],
        typer.Argument(metavar="ID", help="Ids from `octavo connections`, or at least four characters of each."),
    ],
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Confirm or dismiss connections.

    The decision applies to the two quotes, so it is kept when documents are compared again.
    """

    async def run(client: Client) -> list[Connection]:
        ids = await find_connections(client, connections)
        return [await client.judge_connection(one, decision.value) for one in ids]

    judged = call(Target(server, key), run)
    if as_json:
        return print_items(judged)
    return show(judged)


async def find_connections(client: Client, typed: Sequence[str]) -> list[UUID]:
    """Return the ids of the connections that the user named, without duplicates."""

    async def look_up(part: str) -> dict[UUID, str]:
        return {one.id: one.explanation for one in await client.find_connections(part)}

    return await find_named(typed, look_up, "connection", LISTED_BY)


@app.command()
def weights(
    similar: Annotated[int | None, typer.Option(min=0, max=MOST, help="Weight of similar passages.")] = None,
    contradiction: Annotated[int | None, typer.Option(min=0, max=MOST, help="Weight of contradictions.")] = None,
    bridge: Annotated[int | None, typer.Option(min=0, max=MOST, help="Weight of bridges.")] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Show the weight of each type of connection, or set weights. Lists are sorted by strength times weight."""
    given = {Engine.SIMILAR: similar, Engine.CONTRADICTION: contradiction, Engine.BRIDGE: bridge}
    changed = {ENGINES[engine]: value for engine, value in given.items() if value is not None}

    async def run(client: Client) -> dict[str, int]:
        current = await client.read_weights()
        return await client.set_weights({**current, **changed}) if changed else current

    found = call(Target(server, key), run)
    if as_json:
        return print_json(found)
    facts: dict[str, str | None] = {name: str(found[ENGINES[engine]]) for engine, name in NAMES.items()}
    return print_on(open_console(), make_facts(facts))


@app.command()
def related(
    document: Annotated[str, typer.Argument(metavar="ID", help="Document id, or at least four characters of it.")],
    limit: Annotated[int, typer.Option(min=1, max=MOST_RELATED, help="Maximum number of documents.")] = 10,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """List documents on similar topics, most similar first."""

    async def run(client: Client) -> list[RelatedDocument]:
        (found,) = await find_ids(client, [document])
        return await client.related_documents(found, limit=limit)

    found = call(Target(server, key), run)
    if as_json:
        return print_items(found)
    if not found:
        return typer.echo("No related documents.")
    console = open_console()
    ids = [str(one.document_id) if not console.is_terminal else short_id(one.document_id) for one in found]
    rows = [[ident, one.title, f"{one.score:.2f}"] for ident, one in zip(ids, found, strict=True)]
    return print_on(console, make_table(console, ["ID", "TITLE", "SIMILARITY"], rows))
