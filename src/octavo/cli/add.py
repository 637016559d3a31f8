"""`octavo add` adds files, links and text, several in parallel. `octavo uploads` lists uploads."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, NoReturn
from uuid import UUID

import typer

from octavo.cli.costs import DryRun, plan_addition, print_plan, refuse_links
from octavo.cli.local_files import FileSelection, LocalFile, RefusedFile, find_files, keep_stdin
from octavo.cli.options import AsJson, Cursor, HowToRead, Key, Server, find_ids
from octavo.cli.output import local_time, make_table, open_console, print_items, print_json, print_on
from octavo.cli.progress import describe_refused, open_display
from octavo.cli.remote import CONNECTIONS, Target, call
from octavo.cli.upload_batch import AddedItem, AddOptions, Item, Link, Text, UploadBatch, is_link
from octavo.cli.watch import Watch, follow
from octavo.core.errors import BadInput, OctavoError
from octavo.core.formatting import count_of
from octavo.core.types import Extraction

if TYPE_CHECKING:
    from octavo.client import Client

if TYPE_CHECKING:
    from octavo.client import Client
    from octavo.core.http import Page
    from octavo.records.documents import UploadView

STDIN = "-"
AT_ONCE = 8
MOST_AT_ONCE = 64
INTERRUPTED = 130
SKIPPED = {"hidden": "hidden file", "link": "link", "special": "special file"}

app = typer.Typer()


class Duplicates(StrEnum):
    REUSE = "reuse"
    NEW = "new"
    REJECT = "reject"


@app.command()
def add(  # noqa: PLR0917 - each is an option of the command
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH", help="Files, folders, glob patterns, URLs, or - for standard input."),
    ] = None,
    url: Annotated[list[str] | None, typer.Option(help="A web page or a YouTube video. Can be repeated.")] = None,
    text: Annotated[str | None, typer.Option(help="Text to add, or - to read it from standard input.")] = None,
    source: Annotated[
        str | None, typer.Option(help="Origin of the documents: a description or a URL. Shown with the document.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="File name for standard input, such as notes.md.")] = None,
    duplicates: Annotated[
        Duplicates,
        typer.Option(help="If you already have the file: reuse its document, create a new one, or reject the file."),
    ] = Duplicates.REUSE,
    extraction: HowToRead = Extraction.PLAIN,
    version_of: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Add the file as a new version of this document. Only for a single file."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the document. Only for a single document.")] = None,
    collection: Annotated[str | None, typer.Option(help="Add the documents to this collection.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Tag for the documents. Can be repeated.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the documents are processed.")] = False,
    jobs: Annotated[int, typer.Option(min=1, max=MOST_AT_ONCE, help="Number of parallel uploads.")] = AT_ONCE,
    dry_run: DryRun = False,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Add documents: files, whole folders, glob patterns, URLs, text, or standard input.

    Hidden files and symbolic links in folders are skipped. Exits with code 1 if a document was refused or, with --wait,
    could not be processed.
    """
    target = Target(server, key)
    named = list(paths or ())
    found = find_files(path for path in named if path != STDIN and not is_link(path))
    items: list[Item] = [Link(one) for one in (*filter(is_link, named), *(url or ()))]
    items += [Text(read_text(text, named, target), title)] if text is not None else []
    if not (named or items):
        raise BadInput("Nothing to add. Specify files or URLs, or use --text.")
    with ExitStack() as stack:
        if STDIN in named:
            found.files.append(stack.enter_context(keep_stdin(read_name(name), read_limit(target))))
        items = [*found.files, *items]
        if dry_run:
            refuse_links(sum(isinstance(one, Link) for one in items))
            texts = [(one.shown, one.text) for one in items if isinstance(one, Text)]
            return print_plan(plan_addition(target, found.files, texts), extraction, as_json=as_json)
        if title is not None and len(items) > 1:
            raise BadInput("--title works only with a single document.")
        older = find_older(version_of, items, target) if version_of is not None else None
        options = AddOptions(duplicates.value, extraction, title, collection, tuple(tag or ()), older, source)
        run = Run(found, items, UploadBatch(options, refused=list(found.refused)), Watch() if wait else None, as_json)
        stopped = run.send_all(target, jobs)
        return run.finish(stopped)


def find_older(named: str, items: list[Item], target: Target) -> UUID:
    """Return the id of the document that `--version-of` names. The added file becomes its new version."""
    if len(items) != 1 or not isinstance(items[0], LocalFile):
        raise BadInput("--version-of works only with a single file.")

    async def run(client: Client) -> UUID:
        return (await find_ids(client, [named]))[0]

    return call(target, run)


def read_name(name: str | None) -> str:
    if not name:
        raise BadInput("Standard input needs a file name, for example: --name notes.md")
    return name


def read_text(given: str, named: list[str], target: Target) -> str:
    """Return the text as typed. If it is `-`, read the text from standard input."""
    if given != STDIN:
        return given
    if STDIN in named:
        raise BadInput("Standard input can be read only once: as a file or as text.")
    with keep_stdin("text", read_limit(target)) as kept:
        return kept.path.read_bytes().decode(errors="replace")


def read_limit(target: Target) -> int:
    async def run(client: Client) -> int:
        return (await client.read_settings()).limits.upload_bytes

    return call(target, run)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of `octavo add`. If it ends early, the results so far are still reported."""

    found: FileSelection
    items: list[Item]
    batch: UploadBatch
    watch: Watch | None
    as_json: bool

    def send_all(self, target: Target, at_once: int) -> bool:
        """Send all files, links and texts, up to `at_once` in parallel.

        Returns True if the user interrupted the command.
        """
        for refused in self.found.refused:
            self._print(describe_refused(refused), err=True)

        async def main(client: Client) -> None:
            with open_display(self.items, silent=self.as_json) as display:
                await self.batch.run(client, self.items, at_once, display)
            self._print(summarise(self.found, self.batch))
            if self.watch and not self.batch.failure:
                self.watch.only = [one.outcome.document_id for one in self.batch.added]
                await follow(client, self.watch, silent=self.as_json)

        try:
            if self.items:
                call(target, main, connections=max(CONNECTIONS, at_once))
            else:
                self._print(summarise(self.found, self.batch))
        except KeyboardInterrupt:
            self._print(f"Stopped. {count_results(self.batch)}", err=True)
            return True
        return False

    def finish(self, stopped: bool) -> NoReturn:
        if self.as_json:
            print_json(as_data(self.found, self.batch, self.watch))
        if self.batch.failure:
            raise self.batch.failure
        good = self.batch.is_whole and not (self.watch and self.watch.failed)
        raise typer.Exit(INTERRUPTED if stopped else int(not good))

    def _print(self, text: str, *, err: bool = False) -> None:
        if not self.as_json:
            typer.echo(text, err=err)


# Output ------------------------------------------------------------------------------------------------------------


def count_results(batch: UploadBatch) -> str:
    existing = len(batch.existing)
    parts = [f"{len(batch.new):,} added"]
    parts += [f"{existing:,} already there"] if existing else []
    parts += [f"{len(batch.refused):,} refused"] if batch.refused else []
    parts += [f"{batch.left:,} not sent"] if batch.left else []
    return ", ".join(parts) + "."


def summarise(found: FileSelection, batch: UploadBatch) -> str:
    """Return a summary: how many items were added or refused, and which files were skipped."""
    nothing = not (batch.added or batch.left or batch.refused)
    lines = ["Nothing to add." if nothing else count_results(batch)]
    counts = {noun: sum(one.reason == reason for one in found.skipped) for reason, noun in SKIPPED.items()}
    skipped = ", ".join(count_of(count, noun) for noun, count in counts.items() if count)
    if skipped:
        lines.append(f"Skipped {skipped} (name a file explicitly to add it).")
    return "\n".join(lines)


def as_data(found: FileSelection, batch: UploadBatch, watch: Watch | None) -> dict[str, Any]:
    items = [added_as_data(one, watch) for one in batch.added] + [refused_as_data(one) for one in batch.refused]
    return {
        "items": items,
        "skipped": [{"path": one.shown, "reason": one.reason} for one in found.skipped],
        "added": len(batch.new),
        "existing": len(batch.existing),
        "refused": len(batch.refused),
    }


def added_as_data(added: AddedItem, watch: Watch | None) -> dict[str, Any]:
    outcome = added.outcome
    ended = watch.ended.get(outcome.document_id) if watch else None
    return {
        "path": added.file.shown,
        "state": outcome.state,
        "document_id": outcome.document_id,
        "process_id": outcome.process_id,
        "duplicate_of": outcome.duplicate_of,
        "error": error_as_data(added.error) if added.error else None,
        **({"status": ended.status if ended else None} if watch else {}),
    }


def refused_as_data(refused: RefusedFile) -> dict[str, Any]:
    return {"path": refused.shown, "state": "refused", "document_id": None, "error": error_as_data(refused.error)}


def error_as_data(error: OctavoError) -> dict[str, str]:
    return {"code": error.code, "message": error.line}


uploads = typer.Typer(help="List uploads, including refused ones.", no_args_is_help=True)


class State(StrEnum):
    PENDING = "pending"
    UPLOADED = "uploaded"
    DEDUPLICATED = "deduplicated"
    REJECTED = "rejected"
    FAILED = "failed"
    DELETED = "deleted"


@uploads.command("ls")
def list_all(
    state: Annotated[State, typer.Option(help="List uploads in this state.")] = State.REJECTED,
    cursor: Cursor = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Maximum number of uploads.")] = 50,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """List refused uploads and the reasons, newest first. Use --state to list uploads in another state."""

    async def run(client: Client) -> Page[UploadView]:
        return await client.list_uploads(state.value, cursor=cursor, limit=limit)

    page = call(Target(server, key), run)
    if as_json:
        return print_items(page.items, page.next_cursor)
    if not page.items:
        return typer.echo(f"No {state.value} uploads.")
    console = open_console()
    print_on(console, make_table(console, ["AT", "FILE", "REASON"], [row_of(one) for one in page.items], (1, 2)))
    return typer.echo(f"More: --cursor {page.next_cursor}") if page.next_cursor else None


def row_of(upload: UploadView) -> list[str]:
    reason = f"{upload.error.message} ({upload.error.code})" if upload.error else str(upload.document_id or "")
    return [local_time(upload.created_at), upload.filename, reason]
