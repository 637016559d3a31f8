"""`octavo search` finds passages in documents. `octavo ask` answers a question from them and prints the sources.

`octavo threads` lists the threads that can be continued, and `octavo highlights` lists highlighted passages.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from octavo.cli.options import AsJson, Cursor, Key, Server, find_ids, find_named
from octavo.cli.output import clean, local_time, open_console, print_json, short_id
from octavo.cli.remote import Target, call
from octavo.core.errors import BadInput

if TYPE_CHECKING:
    from rich.text import Text

    from octavo.client import Client
    from octavo.client.search import AnswerPart
    from octavo.core.http import Page
    from octavo.records.documents import Highlight
    from octavo.records.search import AnswerSources, Citation, SearchHit, SearchPage, Statement, ThreadSummary

MOST_HITS, MOST_HIGHLIGHTS, MOST_THREADS = 100, 500, 500
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
            help="Words or a question. Put exact phrases in quotation marks. To exclude words, write them "
            "with a minus at the end, after --, as in: ferry -- -island."
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
    own_field: Annotated[
        str | None,
        typer.Option(
            "--field", metavar="NAME[:VALUE]", help="Only documents with this custom field, such as Project:Coast."
        ),
    ] = None,
    versions: Annotated[bool, typer.Option("--versions", help="Include older versions.")] = False,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Search documents. Shows matching passages with their page and document."""
    from octavo.client import SearchFilters

    days = [day.date() if day else None for day in (since, until)]
    filters = SearchFilters((), tag or (), collection, kind or (), language, *days, versions=versions, field=own_field)

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
    """Replace line breaks and control characters with spaces, like `clean`, but keep leading and trailing spaces."""
    return clean(f"|{text}|")[1:-1]


@app.command()
def ask(  # noqa: PLR0917 - each is an option of the command
    question: Annotated[str, typer.Argument(help="The question, in your own words.")],
    among: Annotated[
        list[str] | None,
        typer.Option("--in", metavar="ID", help="Use only this document (id or part of it). Can be repeated."),
    ] = None,
    collection: Annotated[str | None, typer.Option(help="Use only documents in this collection.")] = None,
    query: Annotated[
        str | None, typer.Option(help="Use only documents that match this search, such as `type:invoice after:2024`.")
    ] = None,
    thread: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Continue this thread (id or part of it) with a follow-up question."),
    ] = None,
    go_on: Annotated[bool, typer.Option("--continue", "-c", help="Continue the most recent thread.")] = False,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Ask your documents a question. The answer cites them. Quotes that are not in the cited text are marked.

    Exits with code 1 if the documents do not answer the question.
    """
    if not question.strip():
        raise BadInput("The question is empty.")
    if sum(map(bool, (among, collection, query))) > 1:
        raise BadInput("Use only one of --in, --collection and --query.")
    if thread and go_on:
        raise BadInput("Use only one of --thread and --continue.")

    async def run(client: Client) -> AskResult:
        from octavo.records.search import AskScope

        chosen = AskScope(collection, query, await find_ids(client, among or ()) or None)
        asked = await find_thread(client, thread) if thread or go_on else None
        scope = chosen if among or collection or query else None
        return await read_answer(client.ask(question, thread=asked, scope=scope), quiet=as_json)

    result = call(Target(server, key), run)
    if as_json:
        print_json(result)
    elif result.sources:
        print_sources(result.sources)
        print_thread(result)
    raise typer.Exit(0 if result.sources and result.sources.found else 1)


@dataclass(slots=True)
class AskResult:
    """An answer as it is printed with `--json`."""

    thread_id: UUID | None = None
    understood_as: str | None = None
    statements: list[Statement] = field(default_factory=list["Statement"])
    sources: AnswerSources | None = None


async def read_answer(parts: AsyncGenerator[AnswerPart], *, quiet: bool) -> AskResult:
    """Collect the parts of an answer. Unless `quiet`, statements are printed as they arrive."""
    from octavo.records.search import FoundPassages, Statement, ThreadReference

    result = AskResult()
    async for one in parts:
        if isinstance(one, ThreadReference):
            result.thread_id = one.thread_id
        elif isinstance(one, FoundPassages):
            result.understood_as = one.understood_as
            if one.understood_as and not quiet:
                open_console().print(f"Understood as: {clean(one.understood_as)}", style="dim", soft_wrap=True)
        elif isinstance(one, Statement):
            result.statements.append(one)
            if not quiet:
                print_statement(one)
        else:
            result.sources = one
    return result


async def find_thread(client: Client, part: str | None) -> UUID:
    """Return the id of the thread that the user named. If `part` is None, return the most recently used thread."""

    async def look_up(typed: str) -> dict[UUID, str]:
        found = (await client.list_threads(limit=MOST_THREADS)).items
        return {one.id: one.title for one in found if typed in str(one.id)}

    if part:
        return (await find_named([part], look_up, "thread", "octavo threads"))[0]
    found = (await client.list_threads(limit=1)).items
    if not found:
        raise BadInput("There is no thread yet. Ask a question without --continue.")
    return found[0].id


@app.command()
def threads(
    limit: Annotated[int, typer.Option(min=1, max=MOST_THREADS, help="Maximum number of threads.")] = 20,
    cursor: Annotated[
        str | None, typer.Option(help="To get the next page, pass the cursor printed with the previous page.")
    ] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """List your question threads, most recent first. Continue one with `octavo ask --thread ID`."""

    async def run(client: Client) -> Page[ThreadSummary]:
        return await client.list_threads(cursor=cursor, limit=limit)

    page = call(Target(server, key), run)
    if as_json:
        return print_json(page)
    console = open_console()
    for one in page.items:
        count = f"{one.turns} question{'' if one.turns == 1 else 's'}"
        console.print(f"{short_id(one.id)}  {local_time(one.updated_at)}  {clean(one.title)} ({count})", soft_wrap=True)
    if not page.items:
        typer.echo("No threads yet. Ask a question with `octavo ask`.")
    if page.next_cursor:
        typer.echo(f"Next page: --cursor {page.next_cursor}", err=True)
    return None


def print_thread(result: AskResult) -> None:
    if result.thread_id:
        typer.echo(f"Follow-up question: octavo ask --thread {short_id(result.thread_id)} …", err=True)


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
    """List highlighted passages and notes: those of one document in text order, or those of all documents, newest
    first.
    """
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
