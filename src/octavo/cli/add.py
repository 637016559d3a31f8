"""`octavo add`: brings files, links and text in, many at once."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, NoReturn
from uuid import UUID

import typer

from octavo.cli.adding import Added, Adding, Wanted
from octavo.cli.displays import open_display, say_refused
from octavo.cli.items import Item, Link, Text, is_link
from octavo.cli.names import find_ids
from octavo.cli.options import AsJson, HowToRead, Key, Server
from octavo.cli.output import print_json
from octavo.cli.paths import Found, LocalFile, Refused, find_files
from octavo.cli.remote import CONNECTIONS, Target, call
from octavo.cli.stdin import keep_stdin
from octavo.cli.watching import Watch, follow
from octavo.core.errors import BadInput, OctavoError
from octavo.core.formatting import count_of
from octavo.core.types import Extraction

if TYPE_CHECKING:
    from octavo.client import Client

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
        typer.Argument(metavar="PATH", help="Files, folders, patterns, links, or - for standard input."),
    ] = None,
    url: Annotated[list[str] | None, typer.Option(help="A web page or a YouTube video; may be repeated.")] = None,
    text: Annotated[str | None, typer.Option(help="Text itself, or - for standard input.")] = None,
    source: Annotated[str | None, typer.Option(help="Where the text is from, in words or as an address.")] = None,
    name: Annotated[str | None, typer.Option(help="What standard input is called, as notes.md.")] = None,
    duplicates: Annotated[
        Duplicates,
        typer.Option(help="A file that is there already: use that one, make a document of its own, or refuse it."),
    ] = Duplicates.REUSE,
    extraction: HowToRead = Extraction.PLAIN,
    version_of: Annotated[
        str | None, typer.Option(metavar="ID", help="The file is a new version of this document; for one file.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the document; for one.")] = None,
    collection: Annotated[str | None, typer.Option(help="Put them into this collection.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Give them this tag; may be repeated.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Stay until they are processed.")] = False,
    jobs: Annotated[int, typer.Option(min=1, max=MOST_AT_ONCE, help="How many are sent at once.")] = AT_ONCE,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Add documents: files, folders with all that is in them, patterns, links, text, or standard input.

    Hidden files and links in folders are left out. The exit code is 1 when something was refused or, with --wait,
    could not be processed.
    """
    target = Target(server, key)
    named = list(paths or ())
    found = find_files(path for path in named if path != STDIN and not is_link(path))
    items: list[Item] = [Link(one) for one in (*filter(is_link, named), *(url or ()))]
    items += [Text(read_text(text, named, target), title, source)] if text is not None else []
    if not (named or items):
        raise BadInput("There is nothing to add. Name files or links, or give --text.")
    if source is not None and text is None:
        raise BadInput("--source belongs to --text.")
    with ExitStack() as stack:
        if STDIN in named:
            found.files.append(stack.enter_context(keep_stdin(read_name(name), read_limit(target))))
        items = [*found.files, *items]
        if title is not None and len(items) > 1:
            raise BadInput("--title is for one document.")
        older = find_older(version_of, items, target) if version_of is not None else None
        wanted = Wanted(duplicates.value, extraction, title, collection, tuple(tag or ()), older)
        run = Run(found, items, Adding(wanted, refused=list(found.refused)), Watch() if wait else None, as_json)
        stopped = run.send_all(target, jobs)
        run.finish(stopped)


def find_older(named: str, items: list[Item], target: Target) -> UUID:
    """The document that a new version is added to."""
    if len(items) != 1 or not isinstance(items[0], LocalFile):
        raise BadInput("--version-of is for one file.")

    async def run(client: Client) -> UUID:
        return (await find_ids(client, [named]))[0]

    return call(target, run)


def read_name(name: str | None) -> str:
    if not name:
        raise BadInput("Standard input needs a name: --name notes.md")
    return name


def read_text(given: str, named: list[str], target: Target) -> str:
    """The text itself, or standard input."""
    if given != STDIN:
        return given
    if STDIN in named:
        raise BadInput("Standard input can be read once: as a file or as text.")
    with keep_stdin("text", read_limit(target)) as kept:
        return kept.path.read_bytes().decode(errors="replace")


def read_limit(target: Target) -> int:
    async def run(client: Client) -> int:
        return (await client.read_settings()).limits.upload_bytes

    return call(target, run)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the command. Whatever ends it early, what was done so far is told."""

    found: Found
    items: list[Item]
    adding: Adding
    watch: Watch | None
    as_json: bool

    def send_all(self, target: Target, at_once: int) -> bool:
        """True when somebody stopped it."""
        for refused in self.found.refused:
            self._tell(say_refused(refused), err=True)

        async def main(client: Client) -> None:
            with open_display(self.items, silent=self.as_json) as display:
                await self.adding.run(client, self.items, at_once, display)
            self._tell(summarise(self.found, self.adding))
            if self.watch and not self.adding.failure:
                self.watch.only = [one.outcome.document_id for one in self.adding.added]
                await follow(client, self.watch, silent=self.as_json)

        try:
            if self.items:
                call(target, main, connections=max(CONNECTIONS, at_once))
            else:
                self._tell(summarise(self.found, self.adding))
        except KeyboardInterrupt:
            self._tell(f"Stopped. {count_results(self.adding)}", err=True)
            return True
        return False

    def finish(self, stopped: bool) -> NoReturn:
        if self.as_json:
            print_json(as_data(self.found, self.adding, self.watch))
        if self.adding.failure:
            raise self.adding.failure
        good = self.adding.is_whole and not (self.watch and self.watch.failed)
        raise typer.Exit(INTERRUPTED if stopped else int(not good))

    def _tell(self, text: str, *, err: bool = False) -> None:
        if not self.as_json:
            typer.echo(text, err=err)


# Output ------------------------------------------------------------------------------------------------------------


def count_results(adding: Adding) -> str:
    existing = len(adding.existing)
    parts = [f"{len(adding.new):,} added"]
    parts += [f"{existing:,} {'was' if existing == 1 else 'were'} there already"] if existing else []
    parts += [f"{len(adding.refused):,} refused"] if adding.refused else []
    parts += [f"{adding.left:,} not sent"] if adding.left else []
    return ", ".join(parts) + "."


def summarise(found: Found, adding: Adding) -> str:
    """What was done, and what was left out on purpose."""
    nothing = not (adding.added or adding.left or adding.refused)
    lines = ["There was nothing to add." if nothing else count_results(adding)]
    counts = {noun: sum(one.reason == reason for one in found.skipped) for reason, noun in SKIPPED.items()}
    skipped = ", ".join(count_of(count, noun) for noun, count in counts.items() if count)
    if skipped:
        lines.append(f"Left out: {skipped}. What is named itself is added.")
    return "\n".join(lines)


def as_data(found: Found, adding: Adding, watch: Watch | None) -> dict[str, Any]:
    items = [added_as_data(one, watch) for one in adding.added] + [refused_as_data(one) for one in adding.refused]
    return {
        "items": items,
        "skipped": [{"path": one.shown, "reason": one.reason} for one in found.skipped],
        "added": len(adding.new),
        "existing": len(adding.existing),
        "refused": len(adding.refused),
    }


def added_as_data(added: Added, watch: Watch | None) -> dict[str, Any]:
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


def refused_as_data(refused: Refused) -> dict[str, Any]:
    return {"path": refused.shown, "state": "refused", "document_id": None, "error": error_as_data(refused.error)}


def error_as_data(error: OctavoError) -> dict[str, str]:
    return {"code": error.code, "message": error.line}
