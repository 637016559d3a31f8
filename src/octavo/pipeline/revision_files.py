"""Stores the files that a job creates for one revision of a document, and downloads the target of a link.

A stage of the job first writes a file to the storage bucket. The transaction at the end of the stage inserts the
database row of the file.

Also extracts PDFs and pictures page by page. The text of each batch of pages is stored, so a killed job resumes after
the last finished batch.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit
from uuid import UUID

from psycopg import AsyncCursor
from psycopg.rows import TupleRow

from octavo.core.errors import BadInput
from octavo.core.types import JSON, new_id
from octavo.database import Connection, load_queries
from octavo.extract.detect import HEAD_BYTES, READABLE, detect
from octavo.extract.extracted import Extracted, Metadata, Quality, SourceType
from octavo.extract.paged_file import PagesInSandbox, PictureInSandbox, read_batches, run_parallel, unread_sheets
from octavo.extract.pdf.page_batches import PdfFacts, batch_ranges
from octavo.extract.pdf.pdf_file import PdfInSandbox
from octavo.extract.transcript import write_raw_transcript
from octavo.fetch import FetchLimits
from octavo.intake.errors import PageNotText
from octavo.intake.links import fetch_page, fetch_transcript, video_id
from octavo.jobs.job_run import Run
from octavo.library.errors import SourceGone
from octavo.pipeline.tools import Tools
from octavo.storage import ObjectMissing, copy_to_file

QUERIES = load_queries("processing")


class RevisionFiles:
    """Stores the large outputs of a job's stages as files in the storage bucket.

    The database stores only the storage key of such a file as the output of the stage.
    """

    def __init__(self, run: Run[Tools], document: UUID, revision: int) -> None:
        self._run = run
        self._tools = run.tools
        self._document = document
        self._revision = revision
        self._unused: list[str] = []

    async def put(self, name: str, body: bytes) -> dict[str, JSON]:
        """Write a file and return its storage key and other properties.

        The key contains the lease token, so each attempt of a job writes separate files.
        """
        job = self._run.job
        stored = await self._tools.bucket.put(f"derived/{job.id}/{job.lease_token}/{name}", body)
        return {"key": stored.key, "bytes": stored.bytes, "sha256": stored.sha256}

    async def keep(self, connection: Connection, kind: str, made: JSON, content_type: str) -> None:
        """Insert the database row of a file in the stage's transaction.

        The file replaces an earlier file of the same kind.
        """
        if not isinstance(made, dict):
            raise TypeError("this stage returns what it stored")
        place = {"document": self._document, "revision": self._revision, "kind": kind}
        await self.forget(connection, await connection.execute(QUERIES.delete_artifact, place))
        stored = {name: made[name] for name in ("key", "bytes", "sha256")}
        values = {"id": new_id(), "job": self._run.job.id, "content_type": content_type}
        await connection.execute(QUERIES.insert_artifact, place | stored | values)

    async def forget(self, connection: Connection, cursor: AsyncCursor[TupleRow]) -> None:
        """Delete the database rows of stored files that are no longer used.

        The files themselves are deleted later. The rows of `cursor` are the storage keys of files that may have become
        unused.
        """
        if keys := [row[0] for row in await cursor.fetchall()]:
            unused = await (await connection.execute(QUERIES.delete_unused_objects, {"keys": keys})).fetchall()
            self._unused += [row[0] for row in unused]

    def begin_saving(self) -> None:
        """Clear the list of unused files at the start of a transaction.

        If the previous transaction was rolled back, the files in the list are still in use.
        """
        self._unused = []

    async def remove_unused(self) -> None:
        """Delete unused files after the commit.

        If the process is killed before this step, the daily clean-up deletes the files.
        """
        unused, self._unused = self._unused, []
        await self._tools.bucket.delete(unused)

    async def read(self, kind: str, limit: int) -> bytes:
        """Read a file that an earlier attempt stored."""
        async with self._tools.database.connection() as connection:
            values = {"document": self._document, "revision": self._revision, "kind": kind}
            row = await (await connection.execute(QUERIES.artifact_key, values)).fetchone()
        if row is None:
            raise SourceGone
        return await self._tools.bucket.read(row[0], limit=limit)

    @asynccontextmanager
    async def local_copy(self, key: str) -> AsyncGenerator[Path]:
        """Copy an object to a temporary local file. Raises `ObjectDamaged` if its bytes were changed."""
        async with self._tools.database.connection() as connection:
            row = await (await connection.execute(QUERIES.object_checksum, {"key": key})).fetchone()
        with tempfile.TemporaryDirectory(prefix="octavo-") as folder:
            path = Path(folder) / "source"
            await copy_to_file(self._tools.bucket, key, path, row[0] if row else None)
            yield path


@dataclass(frozen=True, slots=True)
class SourceFile:
    """The file to extract. `source_type` is None if it must be detected from the content."""

    key: str
    filename: str
    content_type: str
    source_type: SourceType | None = None
    url: str = ""


@dataclass(frozen=True, slots=True)
class DownloadedSource:
    """The downloaded target of a link. `kind` is the kind of the stored artifact."""

    kind: str
    body: bytes
    content_type: str
    source_type: SourceType
    url: str
    filename: str = ""

    def about(self) -> dict[str, JSON]:
        """Return the properties of the file that later stages need, without its content."""
        names = ("kind", "content_type", "source_type", "url", "filename")
        return {name: str(getattr(self, name)) for name in names}


async def fetch_source(tools: Tools, url: str) -> DownloadedSource:
    settings = tools.settings
    limits = FetchLimits(settings.fetch_bytes, settings.fetch_seconds)
    if video := video_id(url):
        transcript = await fetch_transcript(tools.fetch, video, limits, base=settings.youtube_url)
        body = write_raw_transcript(transcript)
        return DownloadedSource("transcript_raw", body, "application/json", SourceType.YOUTUBE, url)
    page = await fetch_page(tools.fetch, url, limits)
    filename = unquote(PurePosixPath(urlsplit(page.url).path).name)
    found = await asyncio.to_thread(detect, page.body[:HEAD_BYTES], filename, page.content_type)
    if found not in READABLE:
        raise PageNotText
    source_type = SourceType.WEB if found is SourceType.HTML else found
    return DownloadedSource("page_raw", page.body, page.content_type, source_type, page.url, filename)


def as_source_file(fetched: dict[str, JSON]) -> SourceFile:
    """Create a `SourceFile` from the stored output of the stage `fetched`, so that later stages can extract it."""
    fields = {name: str(fetched[name]) for name in ("key", "filename", "content_type", "url")}
    return SourceFile(**fields, source_type=SourceType(str(fetched["source_type"])))


# The artifact kind of batches. All artifacts of this kind are deleted when the text is assembled.
BATCH_KIND, BATCH_TYPE, BATCH_BYTES = "pages", "application/json", 256 << 20
READING, RECOGNISING = "reading", "recognising"
UNREADABLE, UNREADABLE_CODE = "unreadable", "unreadable_code"


class PageParts:
    """Stores batches of pages in the storage bucket until the document is complete."""

    def __init__(self, run: Run[Tools], files: RevisionFiles) -> None:
        self._run = run
        self._files = files

    async def make(self, stage: str, part: str, read: Callable[[], Awaitable[bytes]]) -> bytes:
        async def work() -> JSON:
            return {**await self._files.put(f"{stage}-{part}.json", await read())}

        async def save(connection: Connection, made: JSON) -> None:
            await self._files.keep(connection, f"{BATCH_KIND}:{stage}:{part}", made, BATCH_TYPE)

        made = await self._run.stage(stage, work, part=part, save=save)
        if not isinstance(made, dict):
            raise TypeError("this stage returns what it stored")
        try:
            return await self._run.tools.bucket.read(str(made["key"]), limit=BATCH_BYTES)
        except ObjectMissing:  # a later revision inherited the stage, but the batches of the earlier one are deleted
            return await read()


# PDFs ---------------------------------------------------------------------------------------------------------------


async def read_pdf(run: Run[Tools], files: RevisionFiles, path: Path) -> Extracted:
    sandbox = run.tools.sandbox
    pdf = PdfInSandbox(sandbox, path, limits=sandbox.limits, recognition=run.tools.recognition)
    facts = await pdf.open()
    parts = PageParts(run, files)
    return await _recognise_pages(run, parts, pdf, facts, await _read_batches(run, parts, pdf, facts))


async def _read_batches(run: Run[Tools], parts: PageParts, pdf: PdfInSandbox, facts: PdfFacts) -> list[bytes]:
    """Read the pages in batches, some of them in parallel.

    If there is only one batch, it is not stored, because reading it again is as fast as storing it.
    """
    ranges = list(batch_ranges(facts.page_count))
    if len(ranges) == 1:
        return [await pdf.read(*ranges[0])]

    async def read(first: int, last: int) -> bytes:
        return await parts.make(READING, f"{first}-{last}", partial(pdf.read, first, last))

    async def report(pages: int) -> None:
        await run.progress(pages, facts.page_count, "pages")

    return await read_batches(ranges, read, report)


# Pictures -----------------------------------------------------------------------------------------------------------


async def fit_picture(run: Run[Tools], files: RevisionFiles, path: Path) -> dict[str, JSON]:
    """Store a copy of the picture that is small enough for a screen.

    Returns the storage key, or the reason why the picture cannot be decoded.
    """
    try:
        body = await _picture(run, path).fit()
    except BadInput as error:
        return {UNREADABLE: error.detail or error.title, UNREADABLE_CODE: error.code}
    return await files.put("picture.jpg", body)


async def read_picture(run: Run[Tools], files: RevisionFiles, path: Path) -> Extracted:
    picture = _picture(run, path)
    try:
        facts = await picture.open()
    except BadInput as error:
        return unreadable_picture(error.detail or error.title, error.code)
    return await _recognise_pages(run, PageParts(run, files), picture, facts, [unread_sheets(facts)])


def unreadable_picture(reason: str, code: str) -> Extracted:
    """Return an empty document for a picture that cannot be decoded.

    The reason and its error code are in the metadata.
    """
    about = Metadata(extra={UNREADABLE: reason, UNREADABLE_CODE: code})
    return Extracted(SourceType.IMAGE, "", 0, Quality.EMPTY, metadata=about)


def _picture(run: Run[Tools], path: Path) -> PictureInSandbox:
    sandbox = run.tools.sandbox
    return PictureInSandbox(sandbox, path, limits=sandbox.limits, recognition=run.tools.recognition)


# Text recognition ---------------------------------------------------------------------------------------------------


async def _recognise_pages(
    run: Run[Tools], parts: PageParts, source: PagesInSandbox, facts: PdfFacts, batches: Sequence[bytes]
) -> Extracted:
    """Assemble the batches into a document. Pages without text are read with OCR, each page only once.

    During OCR, the job does not count towards the worker's limit of parallel jobs, so that long scans do not delay
    other documents.
    """
    extracted, unread = await source.assemble(facts, batches)
    if not unread:
        return extracted
    recognised: list[bytes] = []
    await run.progress(0, len(unread), "pages", RECOGNISING)

    async def recognise_next(numbers: Iterator[int]) -> None:
        for number in numbers:
            recognised.append(await parts.make(RECOGNISING, str(number), partial(source.recognise, number)))
            await run.progress(len(recognised), len(unread), "pages", RECOGNISING)

    numbers, recognition = iter(unread), run.tools.recognition
    with run.aside():
        await run_parallel([recognise_next(numbers) for _ in range(recognition.parallel)])
    return (await source.assemble(facts, [*batches, *recognised])).extracted
