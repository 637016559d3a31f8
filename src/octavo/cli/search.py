"""`octavo search` finds passages in documents, `octavo ask` answers a question from them and prints the sources.

`octavo highlights` lists the passages that people highlighted.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from octavo.cli.names import find_ids
from octavo.cli.options import AsJson, Cursor, Key, Server
from octavo.cli.output import clean, open_console, print_json, short_id
from octavo.cli.remote import Target, call
from octavo.core.errors import BadInput

if TYPE_CHECKING:
    from rich.text import Text

    from octavo.client import Client
    from octavo.core.pagination import Page
    from octavo.records.documents import Highlight
    from octavo.records.search import AnswerSources, Citation, SearchHit, SearchPage, Statement

MOST_HITS, MOST_HIGHLIGHTS = 100, 500
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
UNVERIFIED = "(not verified)"


class Mode(StrEnum):
    HYBRID = "hybrid"
    TEXT = "text"
    SEMANTIC = "semantic"


@app.command()
def search(  # noqa: PLR0917 - each is an option of the command
    query: Annotated[
        list[str],
        typer.Argument(
            help="Words or a question. Put exact phrases in quotation marks. To exclude a word, write -word after --."
        ),
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
    """Return the snippet with matched words highlighted, and without control characters."""
    from rich.text import Text

    text = Text()
    end = 0
    for start, stop in hit.marks:
        text.append(clean_inside(hit.snippet[end:start]))
        text.append(clean_inside(hit.snippet[start:stop]), style="bold yellow")
        end = stop
    return text.append(clean_inside(hit.snippet[end:]))


def clean_inside(text: str) -> str:
    """Put a text on one line, like `clean`, but keep the spaces at both ends."""
    return clean(f"|{text}|")[1:-1]


@app.command()
def ask(
    question: Annotated[str, typer.Argument(help="The question, in your own words.")],
    among: Annotated[
        list[str] | None,
        typer.Option("--in", metavar="ID", help="Use only this document (id or part of it). Can be repeated."),
    ] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Ask your documents a question. The answer cites them. Quotes that are not in the cited text are marked.

    Exits with code 1 if the documents do not answer the question.
    """
    from octavo.records.search import Statement

    if not question.strip():
        raise BadInput("The question is empty.")

    async def run(client: Client) -> tuple[list[Statement], AnswerSources | None]:
        statements: list[Statement] = []
        sources: AnswerSources | None = None
        async for one in client.ask(question, await find_ids(client, among or ())):
            if isinstance(one, Statement):
                statements.append(one)
                if not as_json:
                    print_statement(one)
            else:
                sources = one
        return statements, sources

    statements, sources = call(Target(server, key), run)
    if as_json:
        print_json({"statements": statements, "sources": sources})
    elif sources:
        print_sources(sources)
    raise typer.Exit(0 if sources and sources.found else 1)


def print_statement(one: Statement) -> None:
    mark = f" {UNVERIFIED}" if one.citations and not one.verified else ""
    open_console().print(f"{clean(one.text)}{mark}", soft_wrap=True)


def print_sources(sources: AnswerSources) -> None:
    console = open_console()
    if sources.note:
        console.print(sources.note, style="dim", soft_wrap=True)
    for one in sources.citations:
        console.print(f"\n[{one.number}] {describe_place(one)}", style="bold", soft_wrap=True)
        console.print(f"    “{clean(one.quote)}”", soft_wrap=True)
    cost = f", {sources.cost_usd:.4f} USD" if sources.cost_usd else ""
    if sources.citations:
        who = "Quotes found offline" if sources.made_by == "local" else f"By {sources.made_by}"
        typer.echo(f"\n{who}{cost}.")


def describe_place(one: Citation) -> str:
    page = f", page {one.page}" if one.page else ""
    mark = "" if one.verified else f" {UNVERIFIED}"
    return f"{clean(one.title)}{page}, {short_id(one.document_id)}{mark}"


@app.command()
def highlights(
    document: Annotated[
        str | None,
        typer.Argument(metavar="ID", help="Document id, or at least four characters of it. Default: all documents."),
    ] = None,
    q: Annotated[
        str | None, typer.Option("--q", help="Only highlights with these words in the quote or the note.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=MOST_HIGHLIGHTS, help="Maximum number of highlights.")] = 50,
    cursor: Cursor = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """List highlighted passages and notes: of one document in the order of its text, or of all, newest first."""
    if document and q:
        raise BadInput("Use either a document id or --q.")

    async def run(client: Client) -> Page[Highlight]:
        if document is None:
            return await client.find_highlights(q, cursor=cursor, limit=limit)
        (found,) = await find_ids(client, [document])
        return await client.list_highlights(found, cursor=cursor, limit=limit)

    page = call(Target(server, key), run)
    if as_json:
        return print_json(page)
    print_highlights(page.items)
    if page.next_cursor:
        typer.echo(f"Next page: --cursor {page.next_cursor}", err=True)
    return None


def print_highlights(items: Sequence[Highlight]) -> None:
    if not items:
        typer.echo("No highlights.")
    console = open_console()
    for one in items:
        page = f"p. {one.page}" if one.page is not None else ""
        lost = "lost: the current text does not contain this passage" if one.lost else ""
        place = " · ".join(part for part in (page, one.colour, lost, short_id(one.document_id)) if part)
        console.print(f"{clean(one.title)} · {place}", style="bold", soft_wrap=True)
        console.print(f"    “{clean(one.quote)}”", soft_wrap=True)
        if one.note:
            console.print(f"    Note: {clean(one.note)}", soft_wrap=True)
