"""`octavo analyse` runs prompts on a whole document and shows the progress. `octavo analyses` manages analyses."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol
from uuid import UUID

import typer

from octavo.cli.costs import (
    DryRun,
    PlannedDocument,
    local_file,
    plan_documents,
    plan_files,
    print_analysis_plan,
)
from octavo.cli.options import AsJson, Cursor, Key, Server, find_ids, find_named
from octavo.cli.output import clean, make_table, open_console, print_items, print_json, print_on, short_id
from octavo.cli.prompts import choose_prompt
from octavo.cli.remote import Target, call
from octavo.cli.watch import POLL_SECONDS
from octavo.core.errors import BadInput, StorageFailed

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

    from octavo.client import Client
    from octavo.core.http import Page
    from octavo.records.analyses import Analysis, ItemView, ResultView

app = typer.Typer()
# One character per status, readable without colour.
SIGNS = {
    "planned": "·",
    "running": "▶",
    "retrying": "↻",
    "paused": "‖",
    "done": "✓",
    "split": "÷",
    "failed": "!",
}
TITLE_CHARACTERS = 14
LINES_AROUND = 5


class Mode(StrEnum):
    PARALLEL = "parallel"
    SEQUENTIAL = "sequential"


@app.command()
def analyse(  # noqa: PLR0917 - each is an option of the command
    document: Annotated[str, typer.Argument(metavar="FILE|ID", help="A file, or a document id (or part of it).")],
    prompt: Annotated[
        list[str] | None,
        typer.Option(
            "--prompt",
            "-p",
            help="Title or id of a prompt, or a question. Can be repeated. Default: all active prompts.",
        ),
    ] = None,
    mode: Annotated[
        Mode, typer.Option(help="Run segments in parallel, or in order with the previous answer as context.")
    ] = Mode.PARALLEL,
    at_once: Annotated[int | None, typer.Option(min=1, max=10, help="Number of parallel requests.")] = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Follow the analysis and print the answers.")] = False,
    dry_run: DryRun = False,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Run prompts on a document of any length. Each prompt gets one answer with page citations."""
    if dry_run:
        return show_plan(Target(server, key), document, prompt, as_json=as_json)

    async def run(client: Client) -> tuple[Analysis, Sequence[ResultView]]:
        wanted = await find_document(client, document)
        prompts = await find_prompts(client, prompt) if prompt else None
        started = await client.analyses.start(wanted, prompts, mode=mode.value, at_once=at_once)
        if not watch:
            return started, ()
        ended = await follow(client, started, silent=as_json)
        return ended, await client.analyses.list_results(ended.id)

    analysis, results = call(Target(server, key), run)
    if as_json:
        print_json({"analysis": analysis, "results": results} if watch else analysis)
    elif watch:
        print_results(analysis, results)
    else:
        typer.echo(f"Analysis {short_id(analysis.id)} of {clean(analysis.title)} is queued.")
    raise typer.Exit(1 if analysis.status == "error" else 0)


def show_plan(target: Target, named: str, typed: Sequence[str] | None, *, as_json: bool) -> None:
    """Print the estimated cost of the analysis. A local file is read on this machine but not added."""

    async def run(client: Client) -> tuple[PlannedDocument, int]:
        active = [one for one in await client.analyses.list_prompts() if one.active]
        prompts = len(typed) if typed else max(1, len(active))
        if file := local_file(named):
            return (await plan_files(client, [file], prompts))[0], prompts
        return (await plan_documents(client, await find_ids(client, [named]), prompts))[0], prompts

    print_analysis_plan(*call(target, run), as_json=as_json)


async def find_document(client: Client, named: str) -> UUID:
    """Return the id of the document. If `named` is a local file, add it first and wait until its text is ready."""
    path = Path(named)
    if not path.exists():  # noqa: ASYNC240 - quicker than a thread call
        return (await find_ids(client, [named]))[0]
    document = (await client.add_file(path)).document_id
    while not (shown := await client.show_document(document)).text_ready:
        if shown.status == "failed":
            problem = shown.error
            raise BadInput(
                f"{named} cannot be read: {problem.message} ({problem.code})" if problem else f"{named} has no text."
            )
        if shown.status == "completed":
            raise BadInput(f"{named} has no text to analyse.")
        await asyncio.sleep(POLL_SECONDS)
    return document


async def find_prompts(client: Client, typed: Sequence[str]) -> list[UUID]:
    """Find saved prompts by title, id or text. A question that matches no prompt is saved as an inactive prompt."""
    known = await client.analyses.list_prompts()
    by_words = {words.casefold(): one.id for one in known for words in (one.content, one.title)}
    found: list[UUID] = []
    for one in map(str.strip, typed):
        if one.casefold() in by_words:
            found.append(by_words[one.casefold()])
        elif " " in one:
            found.append((await client.analyses.add_prompt(one[:60], one, active=False)).id)
        else:
            found.append(choose_prompt(one, known))
    return found


async def follow(client: Client, analysis: Analysis, *, silent: bool) -> Analysis:
    """Poll until the analysis has ended, and show its progress."""
    with open_view(silent=silent) as view:
        while not analysis.is_over:
            view.show(analysis, [] if silent else await client.analyses.list_items(analysis.id))
            await asyncio.sleep(POLL_SECONDS)
            analysis = await client.analyses.show(analysis.id)
    return analysis


def print_results(analysis: Analysis, results: Sequence[ResultView]) -> None:
    for result in results:
        typer.secho(clean(result.title), bold=True)
        if result.content is None:
            typer.echo(f"  no answer: {result.error.message if result.error else analysis.health.message}")
        for line in (result.content or "").splitlines():
            typer.echo(f"  {clean(line)}")
        if result.answered_by:
            typer.echo(f"  Answered by {', '.join(map(clean, result.answered_by))}.")
        unsure = [one for one in result.citations if not one.verified]
        if unsure:
            pages = ", ".join(str(one.page) for one in unsure)
            typer.echo(f"  Citations not found on their page: {len(unsure)} of {len(result.citations)} ({pages}).")
        typer.echo()
    if analysis.error:
        typer.echo(f"{analysis.error.message} ({analysis.error.code})", err=True)


class View(Protocol):
    def show(self, analysis: Analysis, items: Sequence[ItemView]) -> None: ...


@contextmanager
def open_view(*, silent: bool) -> Generator[View]:
    console = open_console(stderr=True)
    if silent:
        yield NoView()
    elif console.is_terminal:
        from rich.live import Live

        with Live("Loading…", console=console, auto_refresh=False, transient=True) as live:
            yield GridView(live)
    else:
        yield LineView()


class NoView:
    def show(self, analysis: Analysis, items: Sequence[ItemView]) -> None: ...


class LineView:
    """Prints a line whenever the progress changes, for output that is not a terminal."""

    def __init__(self) -> None:
        self._last = ""

    def show(self, analysis: Analysis, items: Sequence[ItemView]) -> None:
        del items
        if (line := summarise(analysis)) != self._last:
            self._last = line
            typer.echo(line, err=True)


class GridView:
    def __init__(self, live: Live) -> None:
        self._live = live

    def show(self, analysis: Analysis, items: Sequence[ItemView]) -> None:
        self._live.update(draw(self._live.console, analysis, items), refresh=True)


def draw(console: Console, analysis: Analysis, items: Sequence[ItemView]) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    head, rows = lay_out(analysis, items)
    shown = rows[: max(1, console.height - LINES_AROUND)]
    more = [Text(f"and {len(rows) - len(shown):,} more")] if len(rows) > len(shown) else []
    table = [make_table(console, head, shown, flexible=(0,))] if rows else []
    signs = "  ".join(f"{sign} {name}" for name, sign in SIGNS.items())
    return Group(Text(summarise(analysis)), *table, *more, Text(signs, style="dim"))


def lay_out(analysis: Analysis, items: Sequence[ItemView]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of a table with the status of each prompt on each range of pages.

    Rows are in page order, columns in the order in which the prompts run.
    """
    prompts = {one.prompt_id: clean(one.prompt_title)[:TITLE_CHARACTERS] for one in items}
    segments = {one.segment_id: (one.first, -one.last) for one in items}
    cells = {(one.segment_id, one.prompt_id): SIGNS.get(one.status, "?") for one in items}
    rows = [
        [f"{place[0]} to {-place[1]}", *(cells.get((segment, prompt), "") for prompt in prompts)]
        for segment, place in sorted(segments.items(), key=lambda item: item[1])
    ]
    return [(analysis.unit or "pages").upper(), *prompts.values()], rows


def summarise(analysis: Analysis) -> str:
    eta = f", {analysis.eta.low_seconds:.0f} to {analysis.eta.high_seconds:.0f} s left" if analysis.eta else ""
    cost = f", {analysis.cost_usd:.4f} USD" if analysis.cost_usd else ""
    failed = f", {analysis.items.failed} failed" if analysis.items.failed else ""
    return (
        f"{clean(analysis.title)}: {analysis.phase}, {analysis.items.done} of {analysis.items.total} done{failed}, "
        f"{analysis.percent.overall} %{eta}{cost}. {analysis.health.message}"
    )


# Earlier analyses ---------------------------------------------------------------------------------------------------

analyses_app = typer.Typer(
    help="List, stop, resume and export analyses (start one with `octavo analyse`).", no_args_is_help=True
)
MOST_LISTED = 500
Which = Annotated[str, typer.Argument(metavar="ANALYSIS", help="Id of the analysis, or part of it.")]


class Format(StrEnum):
    MARKDOWN = "markdown"
    JSON = "json"
    CSV = "csv"


@analyses_app.command("ls")
def list_all(
    limit: Annotated[int, typer.Option(min=1, max=MOST_LISTED, help="Maximum number of analyses.")] = 50,
    cursor: Cursor = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """List analyses, newest first."""

    async def run(client: Client) -> Page[Analysis]:
        return await client.analyses.list(cursor=cursor, limit=limit)

    page = call(Target(server, key), run)
    if as_json:
        return print_items(page.items, page.next_cursor)
    if not page.items:
        return typer.echo("No analyses. Start one with `octavo analyse`.")
    console = open_console()
    rows = [
        [short_id(one.id), clean(one.title), one.status, f"{one.items.done} of {one.items.total}", one.health.message]
        for one in page.items
    ]
    head = ["ID", "DOCUMENT", "STATUS", "ANSWERED", "STATE"]
    print_on(console, make_table(console, head, rows, flexible=(1, 4)))
    if page.next_cursor:
        typer.echo(f"Next page: --cursor {page.next_cursor}", err=True)
    return None


@analyses_app.command()
def stop(analysis: Which, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Stop an analysis. Its answers are kept."""
    target = Target(server, key)
    _change(target, analysis, lambda client, one: client.analyses.stop(one), "is stopped", as_json=as_json)


@analyses_app.command()
def resume(analysis: Which, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Resume an analysis that was stopped or failed, or that has missing answers."""
    target = Target(server, key)
    _change(target, analysis, lambda client, one: client.analyses.retry(one), "is resumed", as_json=as_json)


@analyses_app.command()
def rerun(analysis: Which, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Discard all answers of an analysis and run it again."""
    target = Target(server, key)
    _change(target, analysis, lambda client, one: client.analyses.rerun(one), "runs again", as_json=as_json)


@analyses_app.command()
def rm(analysis: Which, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Delete an analysis with its answers. The document is kept."""

    async def run(client: Client) -> UUID:
        found = await find_analysis(client, analysis)
        await client.analyses.delete(found)
        return found

    deleted = call(Target(server, key), run)
    if as_json:
        return print_json({"deleted": deleted})
    return typer.echo(f"Analysis {short_id(deleted)} is deleted.")


@analyses_app.command()
def export(
    analysis: Which,
    form: Annotated[Format, typer.Option("--format", "-f", help="Format of the file.")] = Format.MARKDOWN,
    out: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Write to this file instead of standard output.")
    ] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Export the answers of an analysis as Markdown, JSON or CSV. `--json` is the same as `--format json`."""
    wanted = Format.JSON if as_json else form

    async def run(client: Client) -> bytes:
        return await client.analyses.export(await find_analysis(client, analysis), wanted.value)

    content = call(Target(server, key), run)
    if out is None:
        sys.stdout.buffer.write(content)
        return
    try:
        out.write_bytes(content)
    except OSError as error:
        raise StorageFailed(f"{out} cannot be written: {error.strerror}.") from None


async def find_analysis(client: Client, typed: str) -> UUID:
    """Find an analysis by its id or part of its id."""

    async def look_up(part: str) -> dict[UUID, str]:
        return {one.id: one.title for one in (await client.analyses.list(id_part=part)).items}

    return (await find_named([typed], look_up, "analysis", "octavo analyses ls"))[0]


def _change(
    target: Target, typed: str, change: Callable[[Client, UUID], Awaitable[Analysis]], done: str, *, as_json: bool
) -> None:
    async def run(client: Client) -> Analysis:
        return await change(client, await find_analysis(client, typed))

    changed = call(target, run)
    if as_json:
        return print_json(changed)
    return typer.echo(f"Analysis {short_id(changed.id)} of {clean(changed.title)} {done}.")
