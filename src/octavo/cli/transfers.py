"""`octavo export` and `octavo import`: export a library to a folder, and import it into another library."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tarfile
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import partial
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Annotated, Any
from uuid import UUID, uuid5

import typer

from octavo.cli.edit import read_filter
from octavo.cli.options import AsJson, Key, Server
from octavo.cli.output import clean, print_json
from octavo.cli.remote import Target, call
from octavo.core.errors import BadInput, OctavoError
from octavo.core.formatting import count_of
from octavo.records.documents import KnownDocuments

if TYPE_CHECKING:
    from octavo.cli.importers import NewDocument
    from octavo.client import Client
    from octavo.client.uploads import ExportOptions

app = typer.Typer()
MANIFEST, COMPLETE, SELECTION = "octavo-export.json", "complete.json", "export-selection.json"
PART = ".part"
AT_ONCE = 4
ATTEMPTS = 5
MOST_LINE = 128 << 20
MOST_SENT, MOST_SENT_BYTES = 500, 8 << 20
NAMESPACE = UUID("5a7b9f0c-6f6e-5d1f-9a53-0c7a4f0ee001")
# Errors that would also occur for every other document.
FATAL = frozenset(
    {"NETWORK", "TOO_MANY_UPLOADS", "UNAUTHENTICATED", "FORBIDDEN", "NOT_ALLOWED", "QUOTA_EXCEEDED", "NOT_OCTAVO"}
)
BINARY = ("source", "unlocked", "page_raw", "transcript_raw", "image_jpeg")
TEXTS = ("markdown", "plain_markdown")


class FolderInUse(BadInput):
    """This folder contains other files, or an export of other documents. Choose an empty folder."""

    code = "FOLDER_IN_USE"


class NotAnExport(BadInput):
    """This is not a complete Octavo export. Run `octavo export` again, or name the format with --from."""

    code = "NOT_AN_EXPORT"


class DamagedExport(BadInput):
    """A file in the export is missing or damaged."""

    code = "DAMAGED_EXPORT"


class Source(StrEnum):
    OCTAVO = "octavo"
    PAPERLESS = "paperless"
    FOLDER = "folder"
    MBOX = "mbox"


class Folders(StrEnum):
    COLLECTIONS = "collections"
    TAGS = "tags"
    NONE = "none"


# Export --------------------------------------------------------------------------------------------------------------


@app.command()
def export(
    folder: Annotated[
        Path, typer.Argument(metavar="PATH", help="A new or empty folder, or the folder of an interrupted export.")
    ],
    collection: Annotated[str | None, typer.Option(help="Export only the documents of this collection.")] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Export only documents that match this filter, such as tag=tax or kind=invoice. Can be repeated. The "
            "filters are those of `octavo ls`.",
        ),
    ] = None,
    figures: Annotated[bool, typer.Option(help="Also export pictures of the figures.")] = True,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Export your library to a folder that can be read without Octavo. To continue an interrupted export, run the
    command again.
    """
    wanted = dict(map(read_filter, where or ())) | ({"collection": collection} if collection else {})
    wanted |= {} if figures else {"figures": "false"}
    read_options(wanted)
    folder.mkdir(parents=True, exist_ok=True)
    done = call(Target(server, key), lambda client: export_to(client, folder, wanted))
    if as_json:
        return print_json({"documents": done, "path": str(folder)})
    return typer.echo(f"Exported {count_of(done, 'document')} to {clean(str(folder))}.")


async def export_to(client: Client, folder: Path, wanted: Mapping[str, str]) -> int:
    """Export to a folder. Returns the number of documents in the folder. An interrupted export is continued."""
    from octavo.client.transport import Unreachable

    begin_folder(folder, wanted)
    attempts = ATTEMPTS
    while not (folder / COMPLETE).exists():
        place = last_batch(folder)
        try:
            await unpack_stream(client.stream_export(read_options({**wanted, "resume": place})), folder)
        except Unreachable:
            attempts -= 1
            if attempts == 0:
                raise
        if last_batch(folder) != place:
            attempts = ATTEMPTS
        elif not (folder / COMPLETE).exists():
            attempts -= 1
            if attempts <= 0:
                raise Unreachable("The server ended the export early.")
    return count_documents(folder)


def read_options(wanted: Mapping[str, Any]) -> ExportOptions:
    """Return the options of an export. Raises `BadInput` for an unknown filter."""
    from octavo.client.uploads import ExportOptions

    filters = [one.name for one in fields(ExportOptions) if one.name not in {"resume", "figures"}]
    if unknown := sorted(wanted.keys() - {*filters, "resume", "figures"}):
        raise BadInput(f"--where {unknown[0]}: unknown filter. Filters: {', '.join(filters)}.")
    return ExportOptions(**wanted)


def count_documents(folder: Path) -> int:
    return sum(1 for batch in folder.glob("documents/*.jsonl") for _ in read_lines(batch))


def begin_folder(folder: Path, wanted: Mapping[str, str]) -> None:
    """Store the options of the export in the folder.

    An interrupted export can be continued only with the same options.
    """
    chosen = folder / SELECTION
    if chosen.exists():
        if json.loads(chosen.read_text()) != dict(wanted):
            raise FolderInUse(f"The export in this folder was started with the options {chosen.read_text()}.")
    elif any(folder.iterdir()):
        raise FolderInUse
    else:
        chosen.write_text(json.dumps(dict(wanted)))


def last_batch(folder: Path) -> str | None:
    """Return the last complete batch, and remove files that were written after it.

    Returns None if no batch is complete.
    """
    from octavo.records.exports import KINDS

    complete = {kind: sorted(folder.glob(f"{kind}/*.sha256")) for kind in KINDS}
    for kind in reversed(KINDS):
        if complete[kind]:
            last = complete[kind][-1]
            shutil.rmtree(folder / kind / f"{int(last.stem) + 1:05d}", ignore_errors=True)
            *_, line = read_lines(last.with_suffix(".jsonl"))
            return f"{kind}:{int(last.stem)}:{json.loads(line)['id']}:{len(complete['documents'])}"
    return None


async def unpack_stream(parts: AsyncGenerator[bytes], folder: Path) -> None:
    """Unpack a tar file while it is being received."""
    reading, writing = os.pipe()
    unpacked = asyncio.create_task(asyncio.to_thread(unpack, os.fdopen(reading, "rb"), folder))
    with os.fdopen(writing, "wb", buffering=0) as pipe:
        try:
            async with aclosing(parts):
                async for part in parts:
                    await asyncio.to_thread(write_all, pipe, part)
        except BrokenPipeError:  # the error of the thread says why
            pass
        except BaseException:
            pipe.close()
            await asyncio.gather(unpacked, return_exceptions=True)
            raise
    try:
        await unpacked
    except tarfile.TarError:  # the stream ended early; what is complete was kept
        return


def write_all(pipe: IO[bytes], part: bytes) -> None:
    rest = memoryview(part)
    while rest:
        rest = rest[pipe.write(rest) :]


def unpack(stream: IO[bytes], folder: Path) -> None:
    """Unpack the files of a tar file. A file gets its final name when it is complete."""
    with stream, tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            path = safe_path(folder, member.name)
            source = archive.extractfile(member) if member.isfile() else None
            if source is None:
                raise DamagedExport(f"{member.name} is not a file.")
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_name(path.name + PART)
            with unfinished.open("wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
            unfinished.replace(path)
        stream.read()


def safe_path(folder: Path, name: str) -> Path:
    """Return the path of a file in an export. Raises an error if the name points outside the folder."""
    path = PurePosixPath(name)
    unsafe = path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name or not path.parts
    if unsafe or any(part.endswith(":") for part in path.parts):
        raise DamagedExport(f"{clean(name)[:200]} is not a path inside the export.")
    found = folder.joinpath(*path.parts)
    if any(one.is_symlink() for one in (found, *found.parents) if one != folder and folder in one.parents):
        raise DamagedExport(f"{clean(name)[:200]} is a symbolic link.")
    return found


def read_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file. Raises `DamagedExport` if a line is too long or incomplete."""
    with path.open("rb") as lines:
        while line := lines.readline(MOST_LINE):
            if not line.endswith(b"\n"):
                raise DamagedExport(f"{path.name} has a line that is too long or incomplete.")
            yield line


# Import --------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Imported:
    """The results of an import so far. `failed` contains a line for each document or batch that was refused."""

    counts: Counter[str] = field(default_factory=Counter[str])
    failed: list[str] = field(default_factory=list[str])

    def as_json(self) -> dict[str, object]:
        return {**self.counts, "failed": self.failed}


@app.command("import")
def import_(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="Export folder, folder of files, or mbox file.")],
    source: Annotated[
        Source | None,
        typer.Option(
            "--from", help="Format of the source. Default: detected. For a folder of files, this option is required."
        ),
    ] = None,
    folders: Annotated[
        Folders, typer.Option(help="With --from folder: how sub-folders are imported.")
    ] = Folders.COLLECTIONS,
    server: Server = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Import an export from Octavo or paperless-ngx, a folder of files, or an mbox file.

    To continue an interrupted import, run the command again.
    """
    kind = source or detect(path)
    if kind is Source.OCTAVO:
        run = partial(import_export, folder=path)
    else:
        from octavo.cli.importers import read_source

        run = partial(import_documents, documents=read_source(kind.value, path, folders.value), path=path)
    done = call(Target(server, key), run)
    if as_json:
        print_json(done.as_json())
    else:
        show_imported(done)
    if done.failed:
        raise typer.Exit(1)


def show_imported(done: Imported) -> None:
    counts = done.counts
    new = counts["restored"] + counts["added"]
    more = "".join(
        f", {text}"
        for text in (
            f"{counts['exists']:,} existed already" if counts["exists"] else "",
            f"{count_of(counts['records'], 'other record')}" if counts["records"] else "",
        )
        if text
    )
    typer.echo(f"Imported {count_of(new, 'document')}{more}.")
    if trashed := counts["trashed"]:
        are, them = ("is", "it") if trashed == 1 else ("are", "them")
        typer.echo(
            f"{count_of(trashed, 'existing document')} {are} in the trash. "
            f"Restore {them} with octavo restore, or delete {them} for good and import again."
        )
    for line in done.failed:
        typer.echo(f"Not imported: {clean(line)}", err=True)


def detect(path: Path) -> Source:
    if (path / MANIFEST).is_file():
        return Source.OCTAVO
    if (path / "manifest.json").is_file():
        return Source.PAPERLESS
    if path.is_file() and path.suffix.lower() in {".mbox", ".mbx"}:
        return Source.MBOX
    raise NotAnExport(f"{clean(str(path))}")


async def import_export(client: Client, folder: Path) -> Imported:
    """Import an export. Existing records are not changed, so an interrupted import can be run again."""
    from octavo.records.exports import FORMAT, KINDS

    about = (folder / MANIFEST).read_bytes()
    if not (folder / COMPLETE).is_file() or json.loads(about).get("format") != FORMAT:
        raise NotAnExport
    import_id, done = uuid5(NAMESPACE, sha256(about).hexdigest()), Imported()
    for kind in KINDS:
        for number, batch in enumerate(sorted((folder / kind).glob("[0-9]*.jsonl")), 1):
            if int(batch.stem) != number:
                raise DamagedExport(f"{kind}/{number:05d}.jsonl is missing.")
            check_batch(folder, batch)
            if kind == "documents":
                await import_batch(client, folder, batch, import_id, done)
            else:
                await import_records(client, folder, kind, batch, done)
        if kind == "documents":
            for batch in sorted((folder / kind).glob("[0-9]*.jsonl")):
                await import_copies(client, folder, batch, import_id, done)
    return done


def check_batch(folder: Path, batch: Path) -> None:
    """Verify the checksum of a batch of records. Other files are verified when they are sent."""
    name = batch.relative_to(folder).as_posix()
    sums = batch.with_suffix(".sha256")
    wanted = (
        next((line[:64] for line in sums.read_text().splitlines() if line[66:] == name), None)
        if sums.is_file()
        else None
    )
    digest = sha256()
    with batch.open("rb") as lines:
        while part := lines.read(1 << 20):
            digest.update(part)
    if digest.hexdigest() != wanted:
        raise DamagedExport(f"The checksum of {name} differs.")


async def import_batch(client: Client, folder: Path, batch: Path, import_id: UUID, done: Imported) -> None:
    records = [one for one in map(json.loads, read_lines(batch)) if not one.get("duplicate_of")]
    new = await find_new(client, records, done)
    # Versions of a document are sent one after the other, because their order matters.
    ordered = [one for one in new if one.get("version", 1) > 1]
    alone = [one for one in new if one not in ordered]
    for group in (alone[at : at + AT_ONCE] for at in range(0, len(alone), AT_ONCE)):
        await asyncio.gather(*(send_record(client, folder, one, import_id, done) for one in group))
    for one in ordered:
        await send_record(client, folder, one, import_id, done)


async def import_copies(client: Client, folder: Path, batch: Path, import_id: UUID, done: Imported) -> None:
    """Import the duplicates in a batch. The originals have already been imported."""
    copies = [one for one in map(json.loads, read_lines(batch)) if one.get("duplicate_of")]
    for one in await find_new(client, copies, done):
        await send_record(client, folder, one, import_id, done)


async def find_new(client: Client, records: Sequence[dict[str, Any]], done: Imported) -> list[dict[str, Any]]:
    known = await find_known(client, records, done)
    return [record for record in records if UUID(record["id"]) not in known]


async def find_known(client: Client, records: Sequence[Mapping[str, Any]], done: Imported) -> set[UUID]:
    """Return the ids of the documents that already exist, including those in the trash. Adds their number to the
    results.
    """
    known = await client.find_known([as_origin(record) for record in records]) if records else KnownDocuments({})
    done.counts["exists"] += len(known.items)
    done.counts["trashed"] += len(known.trashed)
    return set(known.items)


def as_origin(record: Mapping[str, Any]) -> dict[str, object]:
    copy = {"copy_of": record["duplicate_of"]} if record.get("duplicate_of") else {}
    return {"id": record["id"], "sha256": record["sha256"], **copy}


async def send_record(client: Client, folder: Path, record: dict[str, Any], import_id: UUID, done: Imported) -> None:
    title = str(record.get("title") or record.get("filename"))
    try:
        files = [one for one in record["files"] if one["kind"] in (*BINARY, *TEXTS)]
        texts = {
            f"{one['kind']}-{one['revision']}": read_text(folder, one["path"]) for one in files if one["kind"] in TEXTS
        }
        layout_path = safe_path(folder, f"{record['path']}/layout.json")
        layout: object = json.loads(layout_path.read_bytes()) if layout_path.is_file() else {}
        sources = {one["kind"]: (safe_path(folder, one["path"]), one) for one in files if one["kind"] in BINARY}
        await send_document(client, record, layout, texts, sources, import_id, done)
    except (KeyError, TypeError, ValueError) as error:
        done.failed.append(f"{title}: the record is damaged ({error})")
    except OSError as error:
        done.failed.append(f"{title}: {error.strerror}")
    except OctavoError as error:
        check_fatal(error)
        done.failed.append(f"{title}: {error.line}")


def check_fatal(error: OctavoError) -> None:
    """Raise the error if it would also affect every other document."""
    if error.code in FATAL:
        raise error


async def send_document(
    client: Client,
    record: Mapping[str, Any],
    layout: object,
    texts: Mapping[str, str],
    sources: Mapping[str, tuple[Path, Mapping[str, Any]]],
    import_id: UUID,
    done: Imported,
) -> None:
    uploads = {kind: str(await send_file(client, path, about)) for kind, (path, about) in sources.items()}
    body = {"record": record, "layout": layout, "texts": texts, "uploads": uploads}
    restored = await client.import_document(import_id, body)
    done.counts[restored.state] += 1


async def send_file(client: Client, path: Path, about: Mapping[str, Any]) -> UUID:
    """Upload a file. Raises `DamagedExport` if its checksum differs from the checksum in the record."""
    from octavo.client.uploads import File

    size = path.stat().st_size  # noqa: ASYNC240 - quicker than a thread call
    file = File(path, path.name, size)
    ticket = await client.begin_upload(file, "new", more={"sha256": about["sha256"]})
    received = await client.send_content(ticket.upload_id, file)
    if received.sha256 != about["sha256"]:
        raise DamagedExport(f"The checksum of {path.name} differs.")
    return ticket.upload_id


def read_text(folder: Path, name: str) -> str:
    path = safe_path(folder, name)
    if path.stat().st_size > MOST_LINE:
        raise DamagedExport(f"{path.name} is too long.")
    return path.read_bytes().decode()


async def import_records(client: Client, folder: Path, kind: str, batch: Path, done: Imported) -> None:
    for records in in_groups(read_lines(batch), 1 if kind in {"conversions", "mappings"} else MOST_SENT):
        try:
            if kind == "mappings":
                await client.conversions.add_mapping(records[0]["file"], records[0]["text"])
            elif kind == "conversions":
                done.counts["records"] += await import_conversion(client, folder, records[0])
            else:
                done.counts["records"] += (await client.import_records(kind, records)).added
        except (KeyError, TypeError) as error:
            done.failed.append(f"{kind}: the record is damaged ({error})")
        except OSError as error:
            done.failed.append(f"{kind}: {error.strerror}")
        except OctavoError as error:
            check_fatal(error)
            done.failed.append(f"{kind}: {error.line}")


async def import_conversion(client: Client, folder: Path, record: Mapping[str, Any]) -> int:
    """Import a conversion. Returns the number of new records.

    If the conversion has a separate source file, which belongs to no document, this file is sent first.
    """
    source = next((one for one in record.get("files", ()) if one["kind"] == "source"), None)
    upload = await send_file(client, safe_path(folder, source["path"]), source) if source else None
    return (await client.import_conversion(record, upload)).added


def in_groups(lines: Iterator[bytes], most: int) -> Iterator[list[Any]]:
    """Divide records into groups. Each group is sent in one request."""
    group: list[Any] = []
    size = 0
    for line in lines:
        if group and (len(group) >= most or size + len(line) > MOST_SENT_BYTES):
            yield group
            group, size = [], 0
        group.append(json.loads(line))
        size += len(line)
    if group:
        yield group


# Other sources -------------------------------------------------------------------------------------------------------


def import_id_of(path: Path) -> UUID:
    return uuid5(NAMESPACE, str(path.absolute()))


async def import_documents(client: Client, documents: AsyncIterator[NewDocument], path: Path) -> Imported:
    """Import documents from another program. They are processed like other new documents."""
    done, import_id = Imported(), import_id_of(path)
    group: list[NewDocument] = []
    async for one in documents:
        group.append(one)
        if len(group) == AT_ONCE:
            await send_group(client, group, import_id, done)
            group = []
    await send_group(client, group, import_id, done)
    return done


async def send_group(client: Client, group: Sequence[NewDocument], import_id: UUID, done: Imported) -> None:
    known = await find_known(client, [one.record for one in group], done)
    for one in group:
        with one:
            if UUID(one.record["id"]) in known:
                continue
            try:
                sources = {"source": (one.path, one.record["files"][0])}
                await send_document(client, one.record, {}, {}, sources, import_id, done)
            except OctavoError as error:
                check_fatal(error)
                done.failed.append(f"{one.record['filename']}: {error.line}")
