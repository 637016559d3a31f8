"""`octavo watch`: what is being done with documents, as it happens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from octavo.cli.names import find_ids
from octavo.cli.options import AsJson, Key, Server
from octavo.cli.output import print_items
from octavo.cli.remote import Target, call
from octavo.cli.watching import Watch, follow

if TYPE_CHECKING:
    from octavo.client import Client

app = typer.Typer()


@app.command()
def watch(
    documents: Annotated[
        list[str] | None, typer.Argument(metavar="ID", help="Only these; without, all that are unfinished.")
    ] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Follow documents until they are processed. The exit code is 1 when one failed."""
    watched = Watch()

    async def run(client: Client) -> None:
        if documents:
            watched.only = await find_ids(client, documents)
        await follow(client, watched, silent=as_json)

    call(Target(server, key), run)
    if as_json:
        print_items(list(watched.ended.values()))
    raise typer.Exit(1 if watched.failed else 0)
