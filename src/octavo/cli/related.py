"""`octavo related`: lists documents on similar topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from octavo.cli.names import find_ids
from octavo.cli.options import AsJson, Key, Server
from octavo.cli.output import make_table, open_console, print_items, print_on, short_id
from octavo.cli.remote import Target, call

if TYPE_CHECKING:
    from octavo.client import Client
    from octavo.records.search import RelatedDocument

app = typer.Typer()
MOST_RELATED = 100


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
