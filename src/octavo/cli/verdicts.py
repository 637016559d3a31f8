"""`octavo verdict`: confirms or dismisses connections."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from octavo.cli.connections import show
from octavo.cli.names import match_parts, read_part
from octavo.cli.options import AsJson, Key, Server
from octavo.cli.output import print_items
from octavo.cli.remote import Target, call

if TYPE_CHECKING:
    from octavo.client import Client
    from octavo.records.search import Connection

app = typer.Typer()
LISTED_BY = "octavo connections"


class Decision(StrEnum):
    CONFIRM = "confirm"
    DISMISS = "dismiss"
    UNDO = "undo"


@app.command()
def verdict(
    decision: Annotated[Decision, typer.Argument(help="What you decide; undo takes an earlier verdict back.")],
    connections: Annotated[
        list[str],
        typer.Argument(metavar="ID", help="Ids from `octavo connections`, or at least four characters of each."),
    ],
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Confirm or dismiss connections. A verdict belongs to the two quotes, so it survives new comparisons."""

    async def run(client: Client) -> list[Connection]:
        ids = await find_connections(client, connections)
        return [await client.judge_connection(one, decision.value) for one in ids]

    judged = call(Target(server, key), run)
    if as_json:
        return print_items(judged)
    return show(judged)


async def find_connections(client: Client, typed: Sequence[str]) -> list[UUID]:
    """The ids of the named connections, each once. Full ids are not looked up."""
    wanted = [read_part(one, LISTED_BY) for one in typed]
    parts = [one for one in wanted if isinstance(one, str)]
    known = [one.id for part in set(parts) for one in await client.find_connections(part)]
    found = match_parts(parts, known, "connection")
    return list(dict.fromkeys(found[one] if isinstance(one, str) else one for one in wanted))
