"""`octavo convert`: converts invoices and other business documents to XML, several in parallel."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias
from uuid import UUID

import typer

from octavo.cli.local_files import FileSelection, LocalFile, find_files
from octavo.cli.names import find_ids
from octavo.cli.options import AsJson, Key, Server
from octavo.cli.output import clean, open_console, print_json
from octavo.cli.remote import Target, call
from octavo.core.errors import BadInput, OctavoError, StorageFailed
from octavo.core.formatting import count_of

if TYPE_CHECKING:
    from octavo.client import Client
    from octavo.records.conversions import ConversionView

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
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the results; created if missing.")] = Path(),
    form: Annotated[
        Form, typer.Option(help="xml: XML with the positions of values; plain: XML without positions; json: JSON.")
    ] = Form.XML,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Convert PDFs to XML with a mapping. A file that has already been converted is not converted again.

    If an argument is a document id, the stored file of that document is converted; nothing is sent. Exits with code 1
    if a file could not be converted.
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
    """A document in the library that is to be converted.

    `shown` and `name` are both its file name; `LocalFile` has the same two fields.
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
    """Whether an argument is a document id, or part of one, and not an existing file."""
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
    """Show a progress bar on a terminal, and nothing elsewhere."""

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
