"""`octavo weights`: shows and sets the weight of each type of connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from octavo.cli.connections import ENGINES, Engine
from octavo.cli.options import AsJson, Key, Server
from octavo.cli.output import make_facts, open_console, print_json, print_on
from octavo.cli.remote import Target, call

if TYPE_CHECKING:
    from octavo.client import Client

app = typer.Typer()
MOST = 100
NAMES = {Engine.SIMILAR: "Similar", Engine.CONTRADICTION: "Contradictions", Engine.BRIDGE: "Bridges"}


@app.command()
def weights(
    similar: Annotated[int | None, typer.Option(min=0, max=MOST, help="Weight of similar passages.")] = None,
    contradiction: Annotated[int | None, typer.Option(min=0, max=MOST, help="Weight of contradictions.")] = None,
    bridge: Annotated[int | None, typer.Option(min=0, max=MOST, help="Weight of bridges.")] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Show the weight of each type of connection, or set some. Lists are sorted by strength times weight."""
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
