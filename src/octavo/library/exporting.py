"""Exports a library, or some of its documents, as a stream that can be unpacked with `tar`.

The unpacked folder can be read without Octavo: original files, Markdown with figures, pages with links, and JSON Lines.
Records are read in batches with one query each, and files are streamed in small parts, so memory use does not grow with
the library. A batch ends with a file of checksums. An interrupted export continues after the last complete batch.
"""

from __future__ import annotations

import base64
import html
import json
import re
import tarfile
import unicodedata
from array import array
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from urllib.parse import quote
from uuid import UUID

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import to_json

from octavo import __version__
from octavo.choreography import Cause, job_after
from octavo.core.errors import BadInput, NotFound
from octavo.core.types import JSON
from octavo.database import Connection, Database, Row, fetch_rows, load_queries, read_clock
from octavo.jobs.queue import UNFINISHED, enqueue
from octavo.library.bulk import MOST_SELECTED
from octavo.library.documents import Filters, count_documents, select_documents
from octavo.library.errors import BadPlace, ExportRunning, NotReady
from octavo.records.documents import PreparedExport
from octavo.records.exports import FORMAT, KINDS, TEXT_FILES
from octavo.storage import Bucket, ObjectMissing

QUERIES = load_queries("exports")
BATCH_DOCUMENTS, BATCH_RECORDS, BATCH_LARGE_RECORDS = 100, 500, 10
# Kinds of records that can be several megabytes long.
LARGE = frozenset({"threads", "analyses", "conversions"})
# The layouts of several documents are in memory at the same time only if these have at most this many words in total.
LAYOUT_WORDS = 300_000
MOST_FIGURES = 1000
BLOCK = tarfile.BLOCKSIZE
MANIFEST, COMPLETE, INDEX = "octavo-export.json", "complete.json", "index.html"
_RESUME = re.compile(r"([a-z]+):([0-9]{1,9}):([0-9a-f-]{1,64}):([0-9]{1,9})")
_UNSAFE = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|]')
_NAMES = {"markdown": "text", "plain_markdown": "text-plain", "image_jpeg": "screen", "page_raw": "fetched"}
_ENDINGS = {"markdown": ".md", "plain_markdown": ".md", "image_jpeg": ".jpg", "page_raw": ".html"}

# Returns the PNG of a figure, or None if it cannot be drawn.
DrawFigure = Callable[[UUID, int], Awaitable[bytes | None]]


@dataclass(frozen=True, slots=True)
class Place:
    """A position in an export: its last complete batch, and the number of complete batches of documents."""

    kind: str = KINDS[0]
    number: int = 0
    after: str | None = None
    pages: int = 0

    @classmethod
    def read(cls, text: str) -> Place:
        found = _RESUME.fullmatch(text)
        if not found or found[1] not in KINDS or not _is_key(found[1], found[3]):
            raise BadPlace
        return cls(found[1], int(found[2]), found[3], int(found[4]))

    @property
    def text(self) -> str:
        """The position as text, in the format that `read` accepts."""
        return f"{self.kind}:{self.number}:{self.after}:{self.pages}"


def _is_key(kind: str, key: str) -> bool:
    try:
        return len(bytes.fromhex(key)) == sha256().digest_size if kind == "verdicts" else str(UUID(key)) == key
    except ValueError:
        return False


@dataclass(slots=True)
class Batch:
    """A batch that is being written: its lines, and the checksum of each of its files."""

    kind: str
    number: int
    lines: list[bytes] = field(default_factory=list[bytes])
    sums: list[str] = field(default_factory=list[str])
    documents: list[Row] = field(default_factory=list[Row])

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.number:05d}"


@dataclass(frozen=True, slots=True)
class ExportPart:
    """A part of an export that ends with a complete batch.

    `place` is the position at which the next part continues. It is None for the last part.
    """

    place: Place | None
    body: AsyncGenerator[bytes]


@dataclass(slots=True)
class Export:
    """Writes an export of one account. `documents` are the documents to export; None means all."""

    database: Database
    bucket: Bucket
    owner: UUID
    documents: Sequence[UUID] | None
    draw: DrawFigure | None
    place: Place = field(default_factory=Place)

    async def stream(self) -> AsyncGenerator[bytes]:
        """Yield the bytes of a tar file."""
        async for part in self.parts():
            async for body in part.body:
                yield body

    async def parts(self) -> AsyncGenerator[ExportPart]:
        """Yield the parts of a tar file. The caller must read each part to its end before requesting the next."""
        head = await self._manifest() if self.place.after is None else b""
        pages = self.place.pages
        for kind in KINDS[KINDS.index(self.place.kind) :]:
            async for batch, rows in self._batches(kind):
                pages = max(pages, batch.number if kind == "documents" else 0)
                body = self._batch(head, batch, [row["record"] for row in rows])
                yield ExportPart(Place(kind, batch.number, rows[-1]["key"], pages), body)
                head = b""
        yield ExportPart(None, self._end(head, pages))

    async def _manifest(self) -> bytes:
        async with self.database.connection() as connection:
            at = await read_clock(connection)
        about = {"format": FORMAT, "version": __version__, "exported_at": at, "documents": self._chosen}
        return _entry(MANIFEST, to_json(about, indent=1))

    async def _end(self, head: bytes, pages: int) -> AsyncGenerator[bytes]:
        yield head
        yield _entry(INDEX, _index(pages).encode())
        yield _entry(COMPLETE, to_json({"format": FORMAT, "document_batches": pages}))
        yield bytes(2 * BLOCK)

    @property
    def _chosen(self) -> str | int:
        return "all" if self.documents is None else len(self.documents)

    async def _batches(self, kind: str) -> AsyncGenerator[tuple[Batch, list[Row]]]:
        resumed = kind == self.place.kind
        after, number = (self.place.after, self.place.number) if resumed else (None, 0)
        most = BATCH_LARGE_RECORDS if kind in LARGE else BATCH_RECORDS
        most = BATCH_DOCUMENTS if kind == "documents" else most
        while True:
            values = {"owner": self.owner, "after": after, "most": most, "documents": self._ids}
            async with self.database.connection() as connection:
                rows = await fetch_rows(connection, getattr(QUERIES, kind), values)
            if not rows:
                return
            after, number = rows[-1]["key"], number + 1
            yield Batch(kind, number), rows
            if len(rows) < most:
                return

    @property
    def _ids(self) -> list[UUID] | None:
        return None if self.documents is None else list(self.documents)

    async def _batch(self, head: bytes, batch: Batch, records: list[Row]) -> AsyncGenerator[bytes]:
        yield head
        async for part in (
            self._documents(batch, records) if batch.kind == "documents" else self._records(batch, records)
        ):
            yield part
        yield self._add(batch, f"{batch.name}.jsonl", b"\n".join([*batch.lines, b""]))
        if batch.documents:
            yield self._add(batch, f"{batch.name}.html", _page(batch).encode())
        yield _entry(f"{batch.name}.sha256", "".join(batch.sums).encode())

    async def _records(self, batch: Batch, records: list[Row]) -> AsyncGenerator[bytes]:
        for record in records:
            for file in record.get("files", ()):
                ending = ".xml" if file["kind"] == "result_xml" else ".pdf"
                async for part in self._file(batch, file, f"{batch.name}/{record['id']}{ending}"):
                    yield part
            _forget_keys(record)
            batch.lines.append(_line(record))

    async def _documents(self, batch: Batch, records: list[Row]) -> AsyncGenerator[bytes]:
        for group in _groups(records):
            readable = [record["id"] for record in group if record["text_ready"]]
            async with self.database.connection() as connection:
                layouts = await fetch_rows(connection, QUERIES.layouts, {"documents": readable})
            by_id = {str(one["id"]): one for one in layouts}
            for record in group:
                async for part in self._document(batch, record, by_id.get(record["id"])):
                    yield part

    async def _document(self, batch: Batch, record: Row, layout: Row | None) -> AsyncGenerator[bytes]:
        record["path"] = folder = f"{batch.name}/{_folder(record)}"
        for file in record["files"]:
            async for part in self._file(batch, file, f"{folder}/{_file_name(record, file)}"):
                yield part
        if layout:
            yield self._add(batch, f"{folder}/layout.json", _line(_as_layout(layout)) + b"\n")
            draw = self.draw
            for figure in layout["figures"][:MOST_FIGURES] if draw else ():
                if draw and (drawn := await draw(UUID(record["id"]), figure["number"])):
                    yield self._add(batch, f"{folder}/figures/{figure['number']}.png", drawn)
        _forget_keys(record)
        batch.documents.append(record)
        batch.lines.append(_line(record))

    async def _file(self, batch: Batch, file: Row, path: str) -> AsyncGenerator[bytes]:
        """Yield a stored file as a part of the tar file, and add its `path` to the record `file`.

        A file that is missing from the storage is skipped, and no path is added.
        """
        try:
            stream = await self.bucket.stream(file["key"])
        except ObjectMissing:
            return
        file["path"] = path
        digest = sha256()
        yield _header(path, stream.info.bytes)
        async for part in stream:  # if the file is deleted now, the export ends early, and can be resumed
            digest.update(part)
            yield part
        yield _padding(stream.info.bytes)
        batch.sums.append(_sum(digest.hexdigest(), path))

    @staticmethod
    def _add(batch: Batch, path: str, body: bytes) -> bytes:
        batch.sums.append(_sum(sha256(body).hexdigest(), path))
        return _entry(path, body)


# Prepared exports -----------------------------------------------------------------------------------------------------

# The key prefix of the parts of prepared exports.
EXPORTS = "exports"


class ExportOptions(BaseModel):
    """The input of an export job: the filters of the documents to export, and whether to draw figures."""

    model_config = ConfigDict(extra="forbid")

    filters: Filters | None = None
    figures: bool = True


def read_options(given: dict[str, JSON]) -> ExportOptions:
    try:
        return ExportOptions.model_validate(given)
    except ValidationError:
        raise BadInput("Invalid export options.") from None


class SelectedDocuments(BaseModel):
    """The documents to export and their number. `documents` is None if all documents are exported."""

    documents: list[UUID] | None
    total: int


async def select_exported(connection: Connection, owner: UUID, options: ExportOptions) -> SelectedDocuments:
    if options.filters is None:
        every = await count_documents(connection, owner, Filters(versions=True))
        return SelectedDocuments(documents=None, total=every)
    found = await select_documents(connection, owner, options.filters, MOST_SELECTED)
    return SelectedDocuments(documents=found, total=len(found))


class StoredPart(BaseModel):
    """A stored part of a prepared export.

    `place` is the position at which the next part continues. It is None for the last part.
    """

    number: int
    key: str
    bytes: int
    sha256: str
    place: str | None = None


class StoredExport(BaseModel):
    """The output of an export job: the parts of the prepared export."""

    parts: list[StoredPart]

    @property
    def bytes(self) -> int:
        return sum(one.bytes for one in self.parts)

    @property
    def etag(self) -> str:
        return f'"{sha256("".join(one.sha256 for one in self.parts).encode()).hexdigest()}"'

    def cut(self, start: int, end: int) -> Iterator[tuple[str, int, int]]:
        """Yield the key of each part that contains bytes from `start` to `end`, and the byte range within the part."""
        before = 0
        for one in self.parts:
            first, last = max(start - before, 0), min(end - before, one.bytes)
            if first < last:
                yield one.key, first, last
            before += one.bytes


async def begin_export(connection: Connection, owner: UUID, options: ExportOptions) -> tuple[UUID, list[str]]:
    """Queue an export. Returns its id, and the keys of the previous export's objects, to be deleted after the commit.

    An account has only one prepared export. Raises `ExportRunning` if the previous export is not finished.
    """
    await connection.execute(QUERIES.lock_exports, {"owner": owner})
    before = await _newest(connection, owner)
    if before and before["status"] in UNFINISHED:
        raise ExportRunning
    job = job_after(Cause.EXPORT_REQUESTED, owner, options.model_dump(mode="json", exclude_defaults=True))
    await enqueue(connection, [job])
    unused = StoredExport.model_validate(before["output"]).parts if before and before["output"] else []
    return job.id, [one.key for one in unused]


async def newest_export(connection: Connection, owner: UUID) -> PreparedExport | None:
    """Return the prepared export of an account. Returns None if there is none, or if it has expired."""
    row = await _newest(connection, owner)
    return _as_prepared(row) if row and not row["expired"] else None


async def find_export(connection: Connection, owner: UUID, export: UUID) -> PreparedExport:
    return _as_prepared(await _find(connection, owner, export))


async def find_stored_export(connection: Connection, owner: UUID, export: UUID) -> tuple[PreparedExport, StoredExport]:
    """Find a finished export. Raises `NotReady` while it is being prepared."""
    row = await _find(connection, owner, export)
    if row["output"] is None:
        raise NotReady
    return _as_prepared(row), StoredExport.model_validate(row["output"])


async def _newest(connection: Connection, owner: UUID, export: UUID | None = None) -> Row | None:
    rows = await fetch_rows(connection, QUERIES.newest_export, {"owner": owner, "id": export})
    return rows[0] if rows else None


async def _find(connection: Connection, owner: UUID, export: UUID) -> Row:
    row = await _newest(connection, owner, export)
    if row is None or row["expired"]:
        raise NotFound
    return row


def _as_prepared(row: Row) -> PreparedExport:
    stored = StoredExport.model_validate(row["output"]) if row["output"] else None
    return PreparedExport(
        id=row["id"],
        status=row["status"],
        collection=row["collection"],
        documents=min(row["done"], row["total"] or 0),  # the queue also counts stored parts
        total=row["total"],
        bytes=stored.bytes if stored else None,
        error=row["error"],
        created_at=row["created_at"],
        expires_at=row["expires_at"],
    )


# Tar -----------------------------------------------------------------------------------------------------------------


def _header(path: str, size: int) -> bytes:
    about = tarfile.TarInfo(path)
    about.size, about.mode = size, 0o644
    return about.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict")


def _padding(size: int) -> bytes:
    return bytes(-size % BLOCK)


def _entry(path: str, body: bytes) -> bytes:
    return _header(path, len(body)) + body + _padding(len(body))


def _sum(digest: str, path: str) -> str:
    """Return a checksum line in the format of `sha256sum --check`."""
    return f"{digest}  {path}\n"


# Records -------------------------------------------------------------------------------------------------------------


def _line(record: object) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"), default=str).encode()


def _forget_keys(record: Row) -> None:
    """Remove data that is useless in other installations from an exported record.

    These are storage keys, and the entries of files that are missing from the storage.
    """
    if "files" in record:
        record["files"] = [
            {name: one[name] for name in one if name != "key"} for one in record["files"] if "path" in one
        ]


def _groups(records: Iterable[Row]) -> Iterator[list[Row]]:
    """Divide documents into groups whose layouts fit into memory together."""
    group: list[Row] = []
    words = 0
    for record in records:
        words += record["word_count"] or 0
        if group and words > LAYOUT_WORDS:
            yield group
            group, words = [], record["word_count"] or 0
        group.append(record)
    if group:
        yield group


def _as_layout(row: Row) -> dict[str, Any]:
    layout = {name: row[name] for name in ("pages", "figures", "chunks")}
    vectors: list[str] = row["vectors"] or []
    if not vectors or len(vectors) != len(row["chunks"]):
        return layout
    numbers = array("f", (float(one) for vector in vectors for one in vector[1:-1].split(",")))
    data = base64.b64encode(numbers.tobytes()).decode()
    return {**layout, "vectors": {"model": row["model"], "dimensions": row["dimensions"], "data": data}}


# Names ---------------------------------------------------------------------------------------------------------------


def _folder(record: Row) -> str:
    plain = unicodedata.normalize("NFKD", record["title"] or record["filename"]).encode("ascii", "ignore").decode()
    slug = re.sub(r"[^a-z0-9]+", "-", plain.lower())[:40].strip("-")
    return "-".join(filter(None, (slug, record["id"][-12:])))


def _file_name(record: Row, file: Row) -> str:
    kind = file["kind"]
    if kind in {"source", "unlocked"}:
        name = safe_name(record["filename"])
        return f"unlocked-{name}" if kind == "unlocked" else f"source-{name}" if _is_reserved(name) else name
    earlier = f"-{file['revision']}" if kind in TEXT_FILES and file["revision"] != record["revision"] else ""
    return f"{_NAMES.get(kind, kind)}{earlier}{_ENDINGS.get(kind, '.txt')}"


def _is_reserved(name: str) -> bool:
    return name.lower().startswith(
        ("text", "screen", "fetched", "transcript_raw", "layout.json", "figures", "unlocked-")
    )


def safe_name(filename: str) -> str:
    """Return a file name that every file system accepts: at most 80 bytes long, and with its extension."""
    name = _UNSAFE.sub("_", filename).strip(" .") or "file"
    stem, dot, ending = name.rpartition(".")
    if not dot or len(ending) > 10:  # noqa: PLR2004 - longer than the ending of a file
        stem, ending = name, ""
    kept = stem.encode()[: 78 - len(ending.encode())].decode(errors="ignore").rstrip(" .")
    return f"{kept}.{ending}" if ending else kept or "file"


# Pages ---------------------------------------------------------------------------------------------------------------

_HEAD = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    "<title>{title}</title><style>body{{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;"
    "padding:0 1rem;color-scheme:light dark}}table{{border-collapse:collapse;width:100%}}td,th{{text-align:left;"
    "vertical-align:top;padding:.3rem .6rem;border-bottom:1px solid #8884}}</style><h1>{title}</h1>"
)


def _index(pages: int) -> str:
    links = "".join(
        f'<li><a href="documents/{n:05d}.html">Documents {(n - 1) * BATCH_DOCUMENTS + 1:,} and following</a></li>'
        for n in range(1, pages + 1)
    )
    return (
        _HEAD.format(title="Export of a library")
        + f"<ul>{links or '<li>No documents</li>'}</ul>"
        + "<p>Each document has a folder with its original file, its text (<code>text.md</code>) and its figures. The "
        "folders <code>collections</code> to <code>conversions</code> contain one JSON record per line. To check all "
        "files, run <code>sha256sum --check documents/*.sha256</code>. To add everything to another Octavo, run "
        "<code>octavo import</code> with this folder.</p>"
    )


def _page(batch: Batch) -> str:
    rows = "".join(_row(record) for record in batch.documents)
    before = f'<a href="{batch.number - 1:05d}.html">Previous page</a> ' if batch.number > 1 else ""
    after = f'<a href="{batch.number + 1:05d}.html">Next page</a>' if len(batch.documents) == BATCH_DOCUMENTS else ""
    return (
        _HEAD.format(title=f"Documents, page {batch.number}")
        + f'<p><a href="../index.html">Overview</a> {before}{after}</p>'
        f"<table><tr><th>Title<th>Files<th>Date<th>Collection<th>Tags</tr>{rows}</table>"
    )


def _row(record: Row) -> str:
    files = " ".join(_link(one) for one in record["files"] if one["revision"] in {0, record["revision"]})
    tags = html.escape(", ".join(one["name"] for one in record["tags"]))
    title, about = record["title"] or record["filename"], (record["document_date"] or "", record["collection"] or "")
    return f"<tr><td>{html.escape(title)}<td>{files}<td>{'<td>'.join(map(html.escape, about))}<td>{tags}</tr>"


def _link(file: Row) -> str:
    folder, name = file["path"].split("/", 1)[1].rsplit("/", 1)
    return f'<a href="{quote(f"{folder}/{name}")}">{html.escape(name)}</a>'
