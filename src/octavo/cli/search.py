"""`octavo search`: finds passages in documents."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from octavo.cli.options import AsJson, Key, Server
from octavo.cli.output import clean, open_console, print_json, short_id
from octavo.cli.remote import Target, call

if TYPE_CHECKING:
    from rich.text import Text

    from octavo.client import Client
    from octavo.records.search import SearchHit, SearchPage

MOST_HITS = 100
INDENT = 4
REASONS = {
    "words": "words",
    "meaning": "meaning",
    "both": "words and meaning",
    "title": "title",
    "tag": "tag",
    "filename": "file name",
}

app = typer.Typer()

Since = Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d"], help="Only documents from this date on.")]
Until = Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d"], help="Only documents up to this date.")]


class Mode(StrEnum):
    HYBRID = "hybrid"
    TEXT = "text"
    SEMANTIC = "semantic"


@app.command()
def search(  # noqa: PLR0917 - each is an option of the command
    query: Annotated[
        list[str],
        typer.Argument(help='Words or a question. "Quoted phrases" must occur. After --, -word excludes a word.'),
    ],
    mode: Annotated[
        Mode, typer.Option(help="Search by words (text), by meaning (semantic), or both (hybrid).")
    ] = Mode.HYBRID,
    limit: Annotated[int, typer.Option(min=1, max=MOST_HITS, help="Maximum number of hits.")] = 10,
    cursor: Annotated[
        str | None, typer.Option(help="To get the next page, pass the cursor printed with the previous page.")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Only documents with this tag. Can be repeated.")] = None,
    collection: Annotated[str | None, typer.Option(help="Only documents in this collection.")] = None,
    kind: Annotated[
        list[str] | None, typer.Option(help="Only documents of this type, such as pdf. Can be repeated.")
    ] = None,
    language: Annotated[str | None, typer.Option(help="Only documents in this language, such as en.")] = None,
    since: Since = None,
    until: Until = None,
    versions: Annotated[bool, typer.Option("--versions", help="Include older versions.")] = False,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Search documents. Shows matching passages with their page and document."""
    from octavo.client import SearchFilters

    days = [day.date() if day else None for day in (since, until)]
    filters = SearchFilters((), tag or (), collection, kind or (), language, *days, versions=versions)

    async def run(client: Client) -> SearchPage:
        return await client.search(" ".join(query), mode=mode.value, limit=limit, cursor=cursor, filters=filters)

    found = call(Target(server, key), run)
    if as_json:
        return print_json(found)
    return print_found(found)


def print_found(found: SearchPage) -> None:
    from rich.padding import Padding
    from rich.text import Text

    if found.degraded:
        typer.echo(f"Searched by words only: {found.degraded.message}", err=True)
    if found.suggestion:
        typer.echo(f"Did you mean: {clean(found.suggestion)}", err=True)
    if not found.items:
        typer.echo("No matches. Try other words, or list your documents with `octavo ls`.")
        return
    console = open_console()
    for hit in found.items:
        console.print(Text.assemble((clean(hit.title), "bold"), *((f" · {part}", "dim") for part in place_of(hit))))
        console.print(Padding(marked(hit), (0, 0, 0, INDENT), expand=console.is_terminal))
    if found.next_cursor:
        typer.echo(f"Next page: --cursor {found.next_cursor}", err=True)


def place_of(hit: SearchHit) -> list[str]:
    page = f"p. {hit.page}" if hit.page is not None else ""
    heading = clean(hit.heading_path[-1]) if hit.heading_path and hit.heading_path[-1] != hit.title else ""
    field = f" {clean(hit.matched)}" if hit.matched and hit.why in {"tag", "filename"} else ""
    why = REASONS[hit.why] + field
    return [part for part in (page, heading, why, short_id(hit.document_id)) if part]


def marked(hit: SearchHit) -> Text:
    """The snippet with matched words highlighted, and without control characters."""
    from rich.text import Text

    text = Text()
    end = 0
    for start, stop in hit.marks:
        text.append(clean_inside(hit.snippet[end:start]))
        text.append(clean_inside(hit.snippet[start:stop]), style="bold yellow")
        end = stop
    return text.append(clean_inside(hit.snippet[end:]))


def clean_inside(text: str) -> str:
    """Like `clean`, but keeps spaces at both ends."""
    return clean(f"|{text}|")[1:-1]
