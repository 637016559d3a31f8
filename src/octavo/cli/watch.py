"""`octavo watch`: follows documents until they are processed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Protocol
from uuid import UUID

import typer

from octavo.cli.options import AsJson, Key, Server, find_ids
from octavo.cli.output import clean, make_table, open_console, print_items, print_on, short_id
from octavo.cli.remote import Target, call

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

    from octavo.client import Client, Document, Job


app = typer.Typer()


@app.command()
def watch(
    documents: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ID", help="Documents to follow. Default: all documents that are still being processed."
        ),
    ] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Follow documents until they are processed. Exits with code 1 if any of them failed."""
    watched = Watch()

    async def run(client: Client) -> None:
        if documents:
            watched.only = await find_ids(client, documents)
        await follow(client, watched, silent=as_json)

    call(Target(server, key), run)
    if as_json:
        print_items(list(watched.ended.values()))
    raise typer.Exit(1 if watched.failed else 0)


POLL_SECONDS = 0.5
# The pause is at least this many times as long as the poll, so polling takes at most a fifth of the time.
REST_FACTOR = 4
KIND = "process_document"
ACTIVE = ("processing", "queued", "paused")
LINES_AROUND = 4


@dataclass(slots=True)
class Watch:
    """The state of `octavo watch`.

    `only` lists the documents to follow; if it is None, all unfinished documents are followed. `ended` contains the
    documents that are processed or have failed.
    """

    only: Sequence[UUID] | None = None
    pending: dict[UUID, Document] = field(default_factory=dict[UUID, "Document"])
    jobs: dict[UUID, Job] = field(default_factory=dict[UUID, "Job"])
    ended: dict[UUID, Document] = field(default_factory=dict[UUID, "Document"])
    _gone: set[UUID] = field(default_factory=set[UUID])

    @property
    def failed(self) -> list[Document]:
        return [one for one in self.ended.values() if one.status == "failed"]

    async def poll(self, client: Client) -> None:
        """Load the unfinished documents, their jobs, and the documents that finished or failed since the last call."""
        from octavo.client import Filters

        before = set(self.pending) if self.only is None else set(self.only) - set(self.ended) - self._gone
        found = {one.id: one async for one in client.walk_documents(Filters(status="pending"))}
        self.pending = found if self.only is None else {one: found[one] for one in found if one in before}
        if self.pending:
            pages = await asyncio.gather(*(client.list_jobs(kind=KIND, status=status) for status in ACTIVE))
            self.jobs = {job.id: job for page in pages for job in page.items}
        await asyncio.gather(*(self._finish(client, one) for one in before - set(self.pending)))

    async def _finish(self, client: Client, document: UUID) -> None:
        from octavo.client import RemoteProblem

        try:
            found = await client.show_document(document)
        except RemoteProblem as error:
            if error.code != "NOT_FOUND":
                raise
            self._gone.add(document)  # deleted in the meantime
            return
        if found.status == "pending":
            self.pending[document] = found
        else:
            self.ended[document] = found

    def job_of(self, document: Document) -> Job | None:
        return self.jobs.get(document.process_id)


class View(Protocol):
    def show(self, watch: Watch) -> None: ...


async def follow(client: Client, watch: Watch, *, silent: bool) -> None:
    """Poll and show the progress until all documents are processed or have failed."""
    console = open_console(stderr=True)
    if silent:
        await poll_until_ended(client, watch, NoView())
    elif console.is_terminal:
        from rich.live import Live

        with Live("Loading…", console=console, auto_refresh=False, transient=True) as live:
            await poll_until_ended(client, watch, TableView(live))
    else:
        await poll_until_ended(client, watch, LineView())
    if not silent:
        print_end(watch)


async def poll_until_ended(client: Client, watch: Watch, view: View) -> None:
    while True:
        began = time.monotonic()
        await watch.poll(client)
        view.show(watch)
        if not watch.pending:
            return
        await asyncio.sleep(max(POLL_SECONDS, REST_FACTOR * (time.monotonic() - began)))


# Views -------------------------------------------------------------------------------------------------------------


class NoView:
    def show(self, watch: Watch) -> None: ...


class TableView:
    """Shows the documents in a table that fits the terminal: running documents first, then waiting ones."""

    def __init__(self, live: Live) -> None:
        self._live = live

    def show(self, watch: Watch) -> None:
        self._live.update(draw(self._live.console, watch), refresh=True)


class LineView:
    """Prints a line whenever a document's state changes, but not when only its position in the queue changes."""

    def __init__(self) -> None:
        self._last: dict[UUID, str] = {}

    def show(self, watch: Watch) -> None:
        for document in watch.pending.values():
            self._print(document, describe_change(document, watch.job_of(document)))
        for document in watch.ended.values():
            self._print(document, describe_end(document))

    def _print(self, document: Document, state: str) -> None:
        if state and self._last.get(document.id) != state:
            self._last[document.id] = state
            now = datetime.now().astimezone()
            typer.echo(f"{now:%H:%M:%S}  {short_id(document.id)}  {clean(document.title)}: {state}")


def draw(console: Console, watch: Watch) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    rows = sorted(watch.pending.values(), key=lambda one: (rank(watch.job_of(one)), one.created_at, one.id))
    shown = rows[: max(1, console.height - LINES_AROUND)]
    head = ["ID", "TITLE", "STAGE", "PROGRESS", ""]
    table = make_table(console, head, [row_of(one, watch.job_of(one)) for one in shown], flexible=(1, 4))
    more = [Text(f"and {len(rows) - len(shown):,} more")] if len(rows) > len(shown) else []
    return Group(table, *more, Text(f"{len(rows):,} unfinished, {summarise(watch)} Ctrl-C stops watching."))


def rank(job: Job | None) -> int:
    return ACTIVE.index(job.status) if job and job.status in ACTIVE else len(ACTIVE)


def row_of(document: Document, job: Job | None) -> list[str]:
    stage = activity_of(job, document.source_type) if job else document.status
    return [short_id(document.id), document.title, stage, progress_of(job), explain(job)]


def activity_of(job: Job, source_type: str) -> str:
    """Describe the current stage of an unfinished document in the same words as the web pages.

    For a job that has not started, returns its status.
    """
    from octavo.records.jobs import stage_of

    return stage_of(job, source_type) if job.stage or job.status == "processing" else job.status


def progress_of(job: Job | None) -> str:
    if job is None or job.status != "processing" or job.progress.total is None:
        return ""
    return f"{job.progress.done:,}/{job.progress.total:,} {job.progress.unit or ''}".strip()


def explain(job: Job | None) -> str:
    """Return the reason why a document is waiting, or the time left."""
    if job is None:
        return ""
    if job.waiting_because:
        return job.waiting_because.detail
    return f"{job.eta.low_seconds:.0f} to {job.eta.high_seconds:.0f} s left" if job.eta else ""


def describe_change(document: Document, job: Job | None) -> str:
    if job is None:
        return ""
    if job.waiting_because and job.waiting_because.reason != "behind":
        return f"waiting: {job.waiting_because.detail}"
    return f"{activity_of(job, document.source_type)} {progress_of(job)}".strip()


def describe_end(document: Document) -> str:
    if document.status != "failed" or document.error is None:
        return document.status
    return f"failed: {clean(document.error.message)} ({document.error.code})"


def summarise(watch: Watch) -> str:
    completed = len(watch.ended) - len(watch.failed)
    return f"{completed:,} completed, {len(watch.failed):,} failed." if watch.failed else f"{completed:,} completed."


def print_end(watch: Watch) -> None:
    console = open_console()
    if watch.failed:
        rows = [[short_id(one.id), one.title, describe_end(one)] for one in watch.failed]
        print_on(console, make_table(console, ["ID", "TITLE", ""], rows, flexible=(1, 2)))
    typer.echo(summarise(watch) if watch.ended else "Nothing is being processed.")
