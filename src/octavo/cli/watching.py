"""Follows documents until nothing more happens to them by itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

import typer

from octavo.cli.tables import clean, make_table, open_console, print_on, short_id

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

    from octavo.client import Client, Document, Job

LOOK_SECONDS = 0.5
# Looking takes at most a fifth of the time, however many documents there are.
REST_FACTOR = 4
KIND = "process_document"
ACTIVE = ("processing", "queued", "paused")
LINES_AROUND = 4


@dataclass(slots=True)
class Watch:
    """`only`: the documents that are wanted, all unfinished ones when it is None; `ended`: as they are in the end."""

    only: Sequence[UUID] | None = None
    pending: dict[UUID, Document] = field(default_factory=dict[UUID, "Document"])
    jobs: dict[UUID, Job] = field(default_factory=dict[UUID, "Job"])
    ended: dict[UUID, Document] = field(default_factory=dict[UUID, "Document"])
    _gone: set[UUID] = field(default_factory=set[UUID])

    @property
    def failed(self) -> list[Document]:
        return [one for one in self.ended.values() if one.status == "failed"]

    async def look(self, client: Client) -> None:
        """Once: what is unfinished, what is done with it, and what became of the rest."""
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
            self._gone.add(document)  # deleted meanwhile
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
    """Look again and again until all have ended."""
    console = open_console(stderr=True)
    if silent:
        await look_until_ended(client, watch, Nothing())
    elif console.is_terminal:
        from rich.live import Live

        with Live("Looking…", console=console, auto_refresh=False, transient=True) as live:
            await look_until_ended(client, watch, Picture(live))
    else:
        await look_until_ended(client, watch, Lines())
    if not silent:
        print_end(watch)


async def look_until_ended(client: Client, watch: Watch, view: View) -> None:
    while True:
        began = time.monotonic()
        await watch.look(client)
        view.show(watch)
        if not watch.pending:
            return
        await asyncio.sleep(max(LOOK_SECONDS, REST_FACTOR * (time.monotonic() - began)))


# Views -------------------------------------------------------------------------------------------------------------


class Nothing:
    def show(self, watch: Watch) -> None: ...


class Picture:
    """A table that fits the screen: what is being done first, then what waits."""

    def __init__(self, live: Live) -> None:
        self._live = live

    def show(self, watch: Watch) -> None:
        self._live.update(picture(self._live.console, watch), refresh=True)


class Lines:
    """A line whenever a document's state changes. Moving up in the line is no change."""

    def __init__(self) -> None:
        self._said: dict[UUID, str] = {}

    def show(self, watch: Watch) -> None:
        for document in watch.pending.values():
            self._say(document, describe_change(watch.job_of(document)))
        for document in watch.ended.values():
            self._say(document, describe_end(document))

    def _say(self, document: Document, state: str) -> None:
        if state and self._said.get(document.id) != state:
            self._said[document.id] = state
            now = datetime.now().astimezone()
            typer.echo(f"{now:%H:%M:%S}  {short_id(document.id)}  {clean(document.title)}: {state}")


def picture(console: Console, watch: Watch) -> RenderableType:
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
    stage = (job.stage or job.status) if job else document.status
    return [short_id(document.id), document.title, stage, progress_of(job), explain(job)]


def progress_of(job: Job | None) -> str:
    if job is None or job.status != "processing" or job.progress.total is None:
        return ""
    return f"{job.progress.done:,}/{job.progress.total:,} {job.progress.unit or ''}".strip()


def explain(job: Job | None) -> str:
    """Why it waits, or how long it may still take."""
    if job is None:
        return ""
    if job.waiting_because:
        return job.waiting_because.detail
    return f"{job.eta.low_seconds:.0f} to {job.eta.high_seconds:.0f} s left" if job.eta else ""


def describe_change(job: Job | None) -> str:
    if job is None:
        return ""
    if job.waiting_because and job.waiting_because.reason != "behind":
        return f"waits: {job.waiting_because.detail}"
    return f"{job.stage or job.status} {progress_of(job)}".strip()


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
