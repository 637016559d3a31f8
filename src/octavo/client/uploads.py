"""Adds files, links and text. Files are read and hashed in blocks, so a whole file is never in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from mimetypes import guess_type
from os import fsencode
from pathlib import Path
from typing import Any, BinaryIO, Literal
from urllib.parse import quote, urlencode
from uuid import UUID

from octavo.client.calls import MOST_LISTED, Call, Calls, Stream, as_query, given
from octavo.client.transport import (
    Damaged,
    FileChanged,
    OnProgress,
    Repeat,
    Request,
    Transport,
    read_problem,
    read_record,
)
from octavo.core.errors import StorageFailed
from octavo.core.http import Page
from octavo.core.types import Extraction
from octavo.records.documents import (
    KnownDocuments,
    Outcome,
    PreparedExport,
    PreparedExports,
    ReceivedBytes,
    Restored,
    RestoredDocument,
    Ticket,
    UploadState,
    UploadView,
)

PIECE_BYTES = 256 << 10
# The server may render figures before it sends the next part of an export.
SILENCE_SECONDS = 300.0
# Up to this size a file is sent in one call. A larger file is sent in three calls, which can be retried separately.
ONE_CALL_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class ContentFilters:
    """Selects documents. `q` searches title, file name and author; `sender` is a part of the sender's name.

    `before` (exclusive) and `after` are days, months or years. `size_min` and `size_max` are in bytes.
    """

    q: str | None = None
    tag: str | None = None
    collection: str | None = None
    kind: str | None = None
    sender: str | None = None
    before: str | None = None
    after: str | None = None
    amount_min: float | None = None
    amount_max: float | None = None
    language: str | None = None
    size_min: int | None = None
    size_max: int | None = None


@dataclass(frozen=True, slots=True)
class ExportOptions(ContentFilters):
    """The options of an export. Without filters, it contains all documents.

    `resume` is the last complete batch of an interrupted export. If `figures` is false, the pictures of figures are
    left out.
    """

    resume: str | None = None
    figures: bool = True


Policy = Literal["reuse", "new", "reject"]


@dataclass(frozen=True, slots=True)
class File:
    """A local file, and the name that it gets on the server."""

    path: Path
    name: str
    size: int

    @property
    def content_type(self) -> str:
        """The content type, guessed from the file name. The server checks the content."""
        return guess_type(self.name)[0] or "application/octet-stream"


class FileBody:
    """The content of one request: the first `size` bytes of a file. A retry needs a new `FileBody`.

    `on_progress` is called with the number of bytes sent so far.
    """

    def __init__(self, file: Path, size: int, on_progress: OnProgress | None = None) -> None:
        self._file = file
        self._size = size
        self._on_progress = on_progress
        self._digest = sha256()

    @property
    def sha256(self) -> str:
        """The checksum of the bytes sent so far."""
        return self._digest.hexdigest()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        stream, piece = await asyncio.to_thread(self._open)
        try:
            sent = 0
            while piece:
                sent += len(piece)
                yield piece
                if self._on_progress:
                    self._on_progress(sent)
                # A file that fits into one piece is opened, read and hashed in a single thread call.
                piece = await asyncio.to_thread(self._read, stream, sent) if sent < self._size else b""
        finally:
            stream.close()

    def _open(self) -> tuple[BinaryIO, bytes]:
        stream = self._file.open("rb", buffering=0)
        try:
            return stream, self._read(stream, 0)
        except BaseException:
            stream.close()
            raise

    def _read(self, stream: BinaryIO, sent: int) -> bytes:
        piece = stream.read(min(PIECE_BYTES, self._size - sent))
        if not piece and sent < self._size:
            raise FileChanged(str(self._file))
        self._digest.update(piece)
        return piece


class UploadCalls(Calls):
    """API calls that add documents."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self._import: dict[str, str] = {}

    @Call
    async def join_import(self, import_id: UUID) -> None:
        """Assign all documents that this client adds from now on to an import.

        They are processed after documents that people add themselves.
        """
        self._import = {"import_id": str(import_id)}

    @Call
    async def add_file(
        self,
        path: Path,
        *,
        name: str | None = None,
        duplicates: Policy = "reuse",
        extraction: Extraction = Extraction.PLAIN,
        source: str | None = None,
        version_of: UUID | None = None,
        collection: str | None = None,
        on_progress: OnProgress | None = None,
    ) -> Outcome:
        """Add a file, optionally as a new version of a document. `source` says where the file comes from.

        A new document is put into the `collection` with this name, which is created if necessary.

        `on_progress` is called with the number of bytes sent so far; the number restarts at zero when a transfer is
        retried.
        """
        try:
            size = path.stat().st_size  # noqa: ASYNC240 - quicker than a thread call
            file = File(path, path.name if name is None else name, size)
            more = {
                "source": source,
                "version_of": str(version_of) if version_of else None,
                "collection": collection,
            }
            fields = {name: value for name, value in more.items() if value is not None}
            return await self._add(file, duplicates, extraction, fields, on_progress)
        except OSError as error:  # from reading the file; network errors have other types here
            raise StorageFailed(f"{path}: {error.strerror}.") from error

    async def _add(
        self,
        file: File,
        duplicates: Policy,
        extraction: Extraction,
        more: Mapping[str, str],
        on_progress: OnProgress | None,
    ) -> Outcome:
        if duplicates == "reuse" and extraction is Extraction.PLAIN and file.size <= ONE_CALL_BYTES:
            return await self._add_in_one_call(file, more, on_progress)
        ticket = await self.begin_upload(file, duplicates, extraction, more)
        await self.send_content(ticket.upload_id, file, on_progress)
        return await self.finalize_upload(ticket.upload_id)

    async def _add_in_one_call(self, file: File, more: Mapping[str, str], on_progress: OnProgress | None) -> Outcome:
        """Send a small file.

        If the connection breaks, the request is retried. The server then returns the document that the first attempt
        created.
        """
        headers = {"x-upload-filename": quote(fsencode(file.name))}
        path = self._path("/documents", more)
        body, digest = await self._send_file("POST", path, file, headers, on_progress)
        outcome = read_record(Outcome, body)
        if outcome.sha256 not in {None, digest}:
            raise Damaged(file.name)
        return outcome

    @Call
    async def add_link(
        self,
        url: str,
        *,
        source: str | None = None,
        duplicates: Policy = "reuse",
        extraction: Extraction = Extraction.PLAIN,
        collection: str | None = None,
    ) -> Outcome:
        """Add a web page or a video by its URL; `source` says where the link comes from."""
        return await self._add_fields({"url": url, "source": source, "collection": collection}, duplicates, extraction)

    @Call
    async def add_text(
        self,
        text: str,
        *,
        title: str | None = None,
        source: str | None = None,
        duplicates: Policy = "reuse",
        extraction: Extraction = Extraction.PLAIN,
        collection: str | None = None,
    ) -> Outcome:
        """Add text; `source` says where the text comes from."""
        fields = {"text": text, "title": title, "source": source, "collection": collection}
        return await self._add_fields(fields, duplicates, extraction)

    async def _add_fields(
        self, fields: Mapping[str, str | None], duplicates: Policy, extraction: Extraction
    ) -> Outcome:
        """Add a link or text. Fields that are None are left out.

        A retry never creates a second document. If `duplicates` is `reuse`, the server returns the document that the
        first attempt created. Otherwise, the server recognises the repeated request by its Idempotency-Key.
        """
        body = {**given(**fields), "duplicates": duplicates, **unless_plain(extraction)}
        repeat = Repeat.SAFE if duplicates == "reuse" else Repeat.KEY
        request = Request("POST", self._path("/documents"), repeat, json=body)
        return read_record(Outcome, await self._transport.call(request))

    @Call
    async def begin_upload(
        self,
        file: File,
        duplicates: Policy = "reuse",
        extraction: Extraction = Extraction.PLAIN,
        more: Mapping[str, str] | None = None,
    ) -> Ticket:
        """Register a file for upload. `more` contains additional fields of the request.

        If a retry registers the file twice, the server deletes the unused registration within a day.
        """
        announced = {
            "filename": fsencode(file.name).decode(errors="replace"),
            "content_type": file.content_type,
            "bytes": file.size,
            "duplicates": duplicates,
            **unless_plain(extraction),
            **(more or {}),
        }
        request = Request("POST", self._path("/uploads"), Repeat.SAFE, json=announced)
        return read_record(Ticket, await self._transport.call(request))

    @Call
    async def send_content(self, upload: UUID, file: File, on_progress: OnProgress | None = None) -> ReceivedBytes:
        """Send the content to the server. Signed storage links are not used, because they may point to another host."""
        body, digest = await self._send_file("PUT", f"/uploads/{upload}/content", file, {}, on_progress)
        received = read_record(ReceivedBytes, body)
        if received.sha256 != digest:
            raise Damaged(file.name)
        return received

    @Call
    async def finalize_upload(self, upload: UUID) -> Outcome:
        request = Request("POST", f"/uploads/{upload}/finalize", Repeat.SAFE)
        return read_record(Outcome, await self._transport.call(request))

    @Call
    async def list_uploads(
        self, state: UploadState = "rejected", *, cursor: str | None = None, limit: int = MOST_LISTED
    ) -> Page[UploadView]:
        """List uploads in one state, newest first. Refused uploads have the reason in `error`."""
        return await self._list(UploadView, "/uploads", state=state, cursor=cursor, limit=limit)

    @Call
    async def download_upload(self, upload: UUID, to: Path) -> int:
        """Download the content of an upload that was refused or is not finalised yet. Returns its size."""
        return await self._save(to, f"/uploads/{upload}/content")

    # Exports and imports of a library -------------------------------------------------------------------------------

    @Stream
    async def stream_export(self, wanted: ExportOptions | None = None) -> AsyncGenerator[bytes]:
        """Yield the parts of an export, which is a tar file.

        Raises `Unreachable` if the server ends the stream early.
        """
        request = Request("GET", "/export", query=as_query(asdict(wanted or ExportOptions())))
        async with self._transport.open(request, silence_seconds=SILENCE_SECONDS) as response:
            if not response.is_success:
                await response.aread()
                raise read_problem(response)
            async for part in response.aiter_raw():
                yield part

    @Call
    async def prepare_export(self, filters: ContentFilters | None = None, *, figures: bool = True) -> PreparedExport:
        """Prepare an export as a file that stays on the server for a day. It replaces the previous export."""
        body = {name: value for name, value in asdict(filters or ContentFilters()).items() if value is not None}
        return await self._post(PreparedExport, "/exports", {**body, "figures": figures})

    @Call
    async def prepared_exports(self) -> PreparedExports:
        """Return the prepared export, if there is one."""
        return await self._get(PreparedExports, "/exports")

    @Call
    async def prepared_export(self, export: UUID) -> PreparedExport:
        return await self._get(PreparedExport, f"/exports/{export}")

    @Call
    async def download_prepared_export(self, export: UUID, to: Path, on_progress: OnProgress | None = None) -> int:
        """Download a finished export to a file. A broken download is resumed. Returns its size."""
        return await self._save(to, f"/exports/{export}/content", on_progress)

    @Call
    async def find_known(self, documents: Sequence[Mapping[str, object]]) -> KnownDocuments:
        """Return which documents of an export the account already has, including those in the trash."""
        body = {"documents": [dict(one) for one in documents]}
        return await self._post(KnownDocuments, "/import/known", body, repeat=Repeat.SAFE)

    @Call
    async def import_document(self, import_id: UUID, body: Mapping[str, object]) -> RestoredDocument:
        """Restore one document of an export. Its files must already have been uploaded."""
        path = f"/import/documents?import_id={import_id}"
        return await self._post(RestoredDocument, path, dict(body), repeat=Repeat.SAFE)

    @Call
    async def import_records(self, kind: str, records: Sequence[object]) -> Restored:
        """Restore records of one kind, such as threads."""
        return await self._post(Restored, "/import/records", {kind: list(records)}, repeat=Repeat.SAFE)

    @Call
    async def import_conversion(self, record: Mapping[str, object], upload: UUID | None = None) -> Restored:
        """Restore one conversion of an export. For a conversion without a document, upload its file first."""
        path = f"/import/conversions?upload={upload}" if upload else "/import/conversions"
        return await self._post(Restored, path, dict(record), repeat=Repeat.SAFE)

    def _path(self, path: str, fields: Mapping[str, str] | None = None) -> str:
        query = urlencode({**(fields or {}), **self._import})
        return f"{path}?{query}" if query else path

    async def _send_file(
        self, method: str, path: str, file: File, headers: Mapping[str, str], on_progress: OnProgress | None
    ) -> tuple[Any, str]:
        """Send a file. Returns the response and the SHA-256 of the bytes sent."""
        body = FileBody(file.path, file.size, on_progress)

        def new_body() -> FileBody:
            nonlocal body
            body = FileBody(file.path, file.size, on_progress)
            return body

        about = {"content-type": file.content_type, "content-length": str(file.size)}
        request = Request(method, path, Repeat.SAFE, headers={**about, **headers}, body=new_body)
        return await self._transport.call(request), body.sha256


def unless_plain(extraction: Extraction) -> dict[str, str]:
    """Return the `extraction` field of a request.

    The result is empty for the default extraction, because older servers do not know the field.
    """
    return {} if extraction is Extraction.PLAIN else {"extraction": extraction.value}
