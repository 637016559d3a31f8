"""`octavo convert` converts business documents to XML, several in parallel. `octavo conversions` manages results."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from difflib import get_close_matches
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias
from uuid import UUID

import typer

from octavo.cli.local_files import FileSelection, LocalFile, find_files
from octavo.cli.options import AsJson, Cursor, Key, Server, find_ids, find_named
from octavo.cli.output import clean, make_table, open_console, print_items, print_json, print_on, short_id, short_time
from octavo.cli.remote import Target, call
from octavo.core.errors import BadInput, OctavoError, StorageFailed
from octavo.core.formatting import count_of

if TYPE_CHECKING:
    from octavo.client import Client
    from octavo.core.http import Page
    from octavo.records.conversions import ConversionView, FoundValue

AT_ONCE = 8
ID = re.compile(r"[0-9a-fA-F-]{4,36}")
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0

app = typer.Typer()


class Form(StrEnum):
    XML = "xml"
    PLAIN = "plain"
    JSON = "json"


@app.command()
def convert(
    files: Annotated[
        list[str],
        typer.Argument(metavar="PDF | ID", help="Files, folders or glob patterns; or ids of documents in the library."),
    ],
    mapping: Annotated[
        str | None,
        typer.Option(help="Name of the mapping; see `octavo mappings ls`. Default: the default mapping of the server."),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the results, created if necessary.")] = Path(),
    form: Annotated[
        Form, typer.Option(help="xml: XML with the positions of values; plain: XML without positions; json: JSON.")
    ] = Form.XML,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Convert PDFs to XML with a mapping. A file that has already been converted is not converted again.

    If an argument is a document id, the stored file of that document is converted, and nothing is uploaded. Exits with
    code 1 if a file could not be converted.
    """
    named = [one for one in files if _is_id(one)]
    found = find_files([one for one in files if one not in named]) if len(named) < len(files) else FileSelection()
    converting = ConversionBatch(mapping, form.value, out)
    for refused in found.refused:
        converting.refused.append((refused.shown, refused.error))

    async def run(client: Client) -> None:
        if mapping:
            await _check_mapping(client, mapping)
        _make_folder(out)
        sources: list[Source] = [*found.files, *await _documents(client, named)]
        converting.names.update(_names(sources, form))
        with _progress(len(sources), silent=as_json) as advance:
            await converting.run(client, sources, advance)

    call(Target(server, key), run, connections=AT_ONCE)
    if as_json:
        print_json([{"path": shown, "result": str(path), "conversion": one} for shown, path, one in converting.done])
    for shown, error in converting.refused:
        typer.echo(f"octavo: {clean(shown)}: {clean(error.line)} ({error.code})", err=True)
    if not as_json:
        typer.echo(_summary(converting))
    raise typer.Exit(int(bool(converting.refused)))


class NotConverted(BadInput):
    """The file could not be converted."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__()
        self.code = code  # pyright: ignore[reportAttributeAccessIssue] - the server's code
        self.title = message
        self.args = (message,)


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A library document to convert.

    `shown` and `name` both contain its file name, so that it can be used like a `LocalFile`.
    """

    id: UUID
    shown: str
    name: str


Source: TypeAlias = LocalFile | StoredDocument


async def _check_mapping(client: Client, name: str) -> None:
    """Raise an error if the mapping does not exist, before any file is sent."""
    known = [one.name for one in await client.conversions.list_mappings()]
    if name not in known:
        near = get_close_matches(name.lower(), known)
        hint = f"Did you mean {' or '.join(near)}?" if near else f"Choose one of {', '.join(known)}."
        raise BadInput(f"There is no mapping {clean(name)!r}. {hint} `octavo mappings ls` lists all mappings.")


def _is_id(typed: str) -> bool:
    """Whether an argument is a full or partial document id. False if a file with this name exists."""
    return ID.fullmatch(typed) is not None and not Path(typed).exists()


async def _documents(client: Client, typed: Sequence[str]) -> list[StoredDocument]:
    found = [await client.show_document(one) for one in await find_ids(client, typed)] if typed else []
    return [StoredDocument(one.id, one.filename, one.filename) for one in found]


@dataclass(slots=True)
class ConversionBatch:
    """One run of `octavo convert`: sends files in parallel, waits for each result and writes it."""

    mapping: str | None
    form: str
    folder: Path
    names: dict[Source, str] = field(default_factory=dict["Source", str])
    done: list[tuple[str, Path, ConversionView]] = field(default_factory=list["tuple[str, Path, ConversionView]"])
    refused: list[tuple[str, OctavoError]] = field(default_factory=list[tuple[str, OctavoError]])

    async def run(self, client: Client, files: Sequence[Source], advance: Callable[[], None]) -> None:
        waiting = iter(files)
        async with asyncio.TaskGroup() as group:
            for _ in range(min(AT_ONCE, len(files))):
                group.create_task(self._work(client, waiting, advance))

    async def _work(self, client: Client, waiting: Iterator[Source], advance: Callable[[], None]) -> None:
        for file in waiting:  # shared by all workers; each takes the next file
            try:
                self.done.append((file.shown, *await self._convert(client, file)))
            except OctavoError as error:
                self.refused.append((file.shown, error))
            except OSError as error:
                self.refused.append((file.shown, StorageFailed(error.strerror)))
            advance()

    async def _convert(self, client: Client, file: Source) -> tuple[Path, ConversionView]:
        calls = client.conversions
        if isinstance(file, LocalFile):
            conversion = await calls.convert(file.path, file.name, self.mapping)
        else:
            conversion = await calls.convert_document(file.id, self.mapping)
        pause = FIRST_PAUSE
        while not conversion.is_over:
            await asyncio.sleep(pause)
            pause = min(1.5 * pause, LONGEST_PAUSE)
            conversion = await calls.show(conversion.id)
        if conversion.error or conversion.status not in {"complete", "needs_review"}:
            problem = conversion.error or {"code": "CANCELLED", "message": "Stopped."}
            raise NotConverted(problem["code"], problem["message"])
        path = self.folder / self.names[file]
        body = await calls.download(conversion.id, self.form)  # pyright: ignore[reportArgumentType] - one of Form
        await asyncio.to_thread(path.write_bytes, body)
        return path, conversion


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{clean(str(out))} cannot be written: {error.strerror}.") from None


def _names(files: Sequence[Source], form: Form) -> dict[Source, str]:
    """Choose a unique file name for each result. Files with the same name from different folders get a number."""
    ending = "json" if form is Form.JSON else "xml"
    stems = {file: Path(file.name).stem or "result" for file in files}
    own = {stem.casefold() for stem in stems.values()}
    taken: set[str] = set()
    names: dict[Source, str] = {}
    for file, stem in stems.items():
        numbered = (f"{stem}-{number}" for number in count(2))
        free = (one for one in numbered if one.casefold() not in own and one.casefold() not in taken)
        chosen = stem if stem.casefold() not in taken else next(free)
        taken.add(chosen.casefold())
        names[file] = f"{chosen}.{ending}"
    return names


def _summary(converting: ConversionBatch) -> str:
    unsure = sum(one.status == "needs_review" for *_, one in converting.done)
    parts = [f"{count_of(len(converting.done), 'file')} converted to {clean(str(converting.folder))}"]
    if unsure:
        parts.append(f"{unsure:,} of them need review")
    if converting.refused:
        parts.append(f"{count_of(len(converting.refused), 'file')} refused")
    return ", ".join(parts) + "."


class _progress:  # noqa: N801 - used as a statement
    """Shows a progress bar on a terminal, and nothing elsewhere."""

    def __init__(self, files: int, *, silent: bool) -> None:
        from rich.progress import Progress

        console = open_console(stderr=True)
        self._bars = Progress(console=console, transient=True, disable=silent or not console.is_terminal)
        self._task = self._bars.add_task("Converting", total=files)

    def __enter__(self) -> Callable[[], None]:
        self._bars.start()
        return lambda: self._bars.advance(self._task)

    def __exit__(self, *_: object) -> None:
        self._bars.stop()


# Earlier conversions ------------------------------------------------------------------------------------------------

conversions_app = typer.Typer(
    help="List, correct and delete conversions (start one with `octavo convert`).", no_args_is_help=True
)
MOST_LISTED = 500
Which = Annotated[str, typer.Argument(metavar="CONVERSION", help="Id of the conversion, or part of it.")]


class Status(StrEnum):
    QUEUED = "queued"
    PROCESSING = "processing"
    COMPLETE = "complete"
    NEEDS_REVIEW = "needs_review"
    FAILED = "failed"
    DEAD_LETTER = "dead_letter"


@conversions_app.command("ls")
def list_all(
    status: Annotated[Status | None, typer.Option(help="Only conversions with this status.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=MOST_LISTED, help="Maximum number of conversions.")] = 50,
    cursor: Cursor = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """List conversions, newest first."""

    async def run(client: Client) -> Page[ConversionView]:
        wanted = status.value if status else None
        return await client.conversions.list(status=wanted, cursor=cursor, limit=limit)

    page = call(Target(server, key), run)
    if as_json:
        return print_items(page.items, page.next_cursor)
    console = open_console()
    now = datetime.now(UTC)
    rows = [
        [short_id(one.id), clean(one.filename), one.mapping, one.status, short_time(one.created_at, now)]
        for one in page.items
    ]
    print_on(console, make_table(console, ["ID", "FILE", "MAPPING", "STATUS", "CREATED"], rows, flexible=(1,)))
    if page.next_cursor:
        typer.echo(f"Next page: --cursor {page.next_cursor}", err=True)
    return None


@conversions_app.command()
def show(conversion: Which, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Show a conversion with its values and checks."""

    async def run(client: Client) -> ConversionView:
        return await client.conversions.show(await _find(client, conversion))

    found = call(Target(server, key), run)
    return print_json(found) if as_json else _print(found)


@conversions_app.command()
def correct(
    conversion: Which,
    values: Annotated[
        list[str],
        typer.Option("--set", metavar="NAME=VALUE", help="The correct value. An empty value clears the field."),
    ],
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Correct values of a conversion. The name of a table cell has the form `lines[2].amount`."""
    wanted: dict[str, str | None] = {}
    for one in values:
        name, equals, value = one.partition("=")
        if not equals or not name.strip():
            raise BadInput(f"{clean(one)}: write NAME=VALUE.")
        wanted[name.strip()] = value.strip() or None

    async def run(client: Client) -> ConversionView:
        return await client.conversions.correct(await _find(client, conversion), wanted)

    found = call(Target(server, key), run)
    return print_json(found) if as_json else _print(found)


@conversions_app.command()
def rm(conversion: Which, server: Server = None, key: Key = None, as_json: AsJson = False) -> None:
    """Delete a conversion with its values and corrections. If the file is a document in the library, the document is
    kept.
    """

    async def run(client: Client) -> UUID:
        found = await _find(client, conversion)
        await client.conversions.delete(found)
        return found

    deleted = call(Target(server, key), run)
    return print_json({"deleted": deleted}) if as_json else typer.echo(f"Deleted {deleted}.")


@conversions_app.command()
def samples(
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write to a file instead of the terminal.")] = None,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Export all corrections as JSON Lines: the values before and after, who corrected them, and when."""

    async def run(client: Client) -> bytes:
        return await client.conversions.samples()

    body = call(Target(server, key), run)
    if as_json and out is None:
        return print_items([json.loads(line) for line in body.splitlines()])
    if out is None:
        sys.stdout.write(body.decode())
        return None
    try:
        out.write_bytes(body)
    except OSError as error:
        raise StorageFailed(error.strerror) from None
    return typer.echo(f"{count_of(len(body.splitlines()), 'sample')} written to {clean(str(out))}.")


async def _find(client: Client, typed: str) -> UUID:
    """Find a conversion by its id or part of its id."""

    async def look_up(part: str) -> dict[UUID, str]:
        found = await client.conversions.list(id_part=part, limit=MOST_LISTED)
        return {one.id: one.filename for one in found.items}

    return (await find_named([typed], look_up, "conversion", "octavo conversions ls"))[0]


def _print(found: ConversionView) -> None:
    console = open_console()
    typer.echo(f"{clean(found.filename)}  {found.mapping}  {found.status}  revision {found.revision}")
    if found.error:
        typer.echo(f"{clean(found.error['message'])} ({found.error['code']})")
    rows = [
        [one.name, clean(one.value), f"{one.page or ''}", one.status.replace("_", " "), _certainty(one)]
        for one in found.values
    ]
    if rows:
        print_on(console, make_table(console, ["FIELD", "VALUE", "PAGE", "STATUS", ""], rows, flexible=(1,)))
    for check in found.checks:
        if check.holds is not None:
            words = "passed" if check.holds else "failed, accepted" if check.accepted else "FAILED"
            typer.echo(f"{words}: {check.check}")
    if found.missing:
        typer.echo(f"missing: {', '.join(found.missing)}")
    if found.result_expires_at:
        typer.echo(f"kept until {found.result_expires_at:%Y-%m-%d}")


def _certainty(one: FoundValue) -> str:
    """Describe how certain a value is: the person who confirmed it, a measured percentage, or a word such as `sure`."""
    if one.confirmed_by:
        return clean(one.confirmed_by)
    if one.calibrated:
        return f"{one.confidence:.0%}"
    return "" if one.status == "confirmed" else "check this" if one.status == "needs_review" else "sure"
