"""Loads the results of a bulk run into the database and the storage, one transaction for each shard.

Content that the owner already has is skipped, no matter how it was added, so loading again changes nothing. Files that
need the job queue, or could not be read, become ordinary uploads, whose jobs report the errors.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

import structlog
from psycopg.types.json import Jsonb

from octavo.bulk.file_results import FAILED, READY, FileRow
from octavo.bulk.manifest import finished_shards, open_place, read_plan, read_shard, source_key
from octavo.choreography import Cause, compare_documents
from octavo.core.errors import BadInput, NotFound, OctavoError
from octavo.core.settings import Settings
from octavo.core.types import new_id
from octavo.database import Connection, Database, fetch_rows, load_queries
from octavo.describe.embedding import model_id, vector_text
from octavo.extract.detect import detect
from octavo.extract.extracted import SourceType
from octavo.facts.sheet import NAMES
from octavo.intake import Intake, IntakeLimits, NewUpload
from octavo.intake.upload_rows import Upload, announced_upload, check_quota, intake_limits
from octavo.ops.instance import bucket_of
from octavo.owners.sessions import local_owner
from octavo.pipeline.process_document import JPEG_TYPE, JSON_TYPE, MARKDOWN_TYPE
from octavo.storage import Bucket, ObjectDamaged, Stored

log = structlog.get_logger()
QUERIES = load_queries("bulk")
COPIES_AT_ONCE = 16
# Rows refer only to earlier rows in this order, and the language of a document is known before its chunks are indexed.
BEFORE_FACTS = ("insert_objects", "insert_uploads", "insert_documents", "insert_artifacts", "insert_facts")
AFTER_FACTS = (
    *("insert_pages", "insert_figures", "insert_chunks", "insert_concepts", "insert_vectors"),
    *("insert_tags", "insert_document_tags", "insert_tag_vectors", "insert_jobs"),
)

Report = Callable[[int, int], None]


class NotRead(BadInput):
    """Not all files have been read yet. Run `octavo bulk run` first."""

    code = "NOT_READ"


@dataclass(frozen=True, slots=True)
class Loaded:
    """The result of `load`: the number of files with each outcome.

    - `added`: complete documents
    - `queued`: documents that workers will process
    - `known`: documents that already existed
    - `failed`: files that could not be copied (`octavo bulk status` shows the reasons)
    """

    added: int = 0
    queued: int = 0
    known: int = 0
    failed: int = 0

    def __add__(self, other: Loaded) -> Loaded:
        mine, others = asdict(self), asdict(other)
        return Loaded(**{name: mine[name] + others[name] for name in mine})


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A file that becomes a document, with the objects that were copied to the storage of the installation."""

    row: FileRow
    upload: Upload
    files: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @property
    def is_ready(self) -> bool:
        return self.row["outcome"] == READY

    @property
    def source(self) -> Stored:
        first = self.files[0]
        return Stored(first["key"], first["bytes"], first["sha256"])


async def load_results(settings: Settings, database: Database, out: str, owner: UUID, report: Report) -> Loaded:
    """Load all shards of a run. Raises `NotRead` if some are not finished."""
    async with aclosing(open_place(out, settings)) as results, aclosing(bucket_of(settings)) as bucket:
        shards, finished = len((await read_plan(results)).shards), await finished_shards(results)
        if len(finished) < shards:
            raise NotRead(f"{len(finished):,} of {shards:,} shards are finished.")
        loader = Loader(database, bucket, results, owner, intake_limits(settings, anonymous=False), run_id(out))
        total = Loaded()
        for number in range(shards):
            total += await loader.load(await read_shard(results, number))
            report(number + 1, shards)
        return total


def run_id(out: str) -> UUID:
    """Return the id of a run, which is derived from the location of its results."""
    return uuid5(NAMESPACE_URL, out)


async def find_owner(connection: Connection, named: str | None) -> UUID:
    """Return the id of an owner. `named` is an id or the email address of an account; None means the local owner."""
    if named is None:
        return await local_owner(connection)
    try:
        query, values = QUERIES.owner_with_id, {"id": UUID(named)}
    except ValueError:
        query, values = QUERIES.owner_of_account, {"email": named}
    row = await (await connection.execute(query, values)).fetchone()
    if row is None:
        raise NotFound(f"There is no account {named}.")
    return row[0]


@dataclass(frozen=True, slots=True)
class Loader:
    """Loads shards into one account. `run` is the id of the run. All documents of a run belong to the same import."""

    database: Database
    bucket: Bucket
    results: Bucket
    owner: UUID
    limits: IntakeLimits
    run: UUID

    async def load(self, rows: Sequence[FileRow]) -> Loaded:
        by_content = {row["sha256"]: row for row in reversed(rows) if row["sha256"]}
        new = await self._without_known(by_content)
        failed = sum(row["outcome"] == FAILED and not row["sha256"] for row in rows)
        staged = [StagedFile(row, self._upload(row)) for row in new]
        await self._copy_all(staged)
        added = await self._save(staged) if staged else []
        queued = sum(not one.is_ready for one in added)
        return Loaded(len(added) - queued, queued, len(rows) - len(added) - failed, failed)

    async def _without_known(self, by_content: Mapping[str, FileRow]) -> list[FileRow]:
        async with self.database.connection() as connection:
            known = await self._known(connection, list(by_content))
        return [row for content, row in by_content.items() if content not in known]

    async def _known(self, connection: Connection, contents: Sequence[str]) -> set[str]:
        values = {"owner": self.owner, "contents": list(contents)}
        return {row["sha256"] for row in await fetch_rows(connection, QUERIES.known_contents, values)}

    # Objects

    async def _copy_all(self, staged: Sequence[StagedFile]) -> None:
        """Copy the objects of new documents to the storage of the installation."""
        slots = asyncio.Semaphore(COPIES_AT_ONCE)

        async def copy(one: StagedFile) -> None:
            async with slots:
                await self._copy(one)

        async with self._removed_on_failure(staged), asyncio.TaskGroup() as copying:
            for one in staged:
                copying.create_task(copy(one))

    @asynccontextmanager
    async def _removed_on_failure(self, staged: Sequence[StagedFile]) -> AsyncGenerator[None]:
        """Remove the copies if the `with` block fails.

        Open the transaction outside this block. If its COMMIT fails, the documents may nevertheless have been saved, so
        the copies must be kept. The daily clean-up removes copies that do not belong to documents.
        """
        try:
            yield
        except BaseException:
            await self._remove(staged)
            raise

    def _upload(self, row: FileRow) -> Upload:
        given = {"import": str(self.run)}
        new = NewUpload(row["filename"], row["content_type"], row["bytes"], row["sha256"], given={**given})
        return announced_upload(self.owner, new)

    async def _copy(self, one: StagedFile) -> None:
        upload, row = one.upload, one.row
        stream = await self.results.stream(source_key(row["sha256"]))
        stored = await self.bucket.put(f"sources/{upload.id}/{new_id()}", stream)
        one.files.append(asdict(stored) | {"kind": "source", "content_type": row["content_type"]})
        if stored.sha256 != row["sha256"]:
            raise ObjectDamaged(source_key(row["sha256"]))
        if not one.is_ready:
            return
        made = (("markdown", "document.md", MARKDOWN_TYPE, row["markdown"].encode()),
                ("extracted", "extracted.json", JSON_TYPE, row["extracted"]),
                ("image_jpeg", "picture.jpg", JPEG_TYPE, row["picture"]))  # fmt: skip
        for kind, name, content_type, body in made:
            if body is not None:
                stored = await self.bucket.put(f"derived/{upload.process_id}/1/{name}", body)
                one.files.append(asdict(stored) | {"kind": kind, "content_type": content_type})

    async def _remove(self, staged: Sequence[StagedFile]) -> None:
        """Remove the copies. If that fails, the daily clean-up removes them."""
        try:
            await self.bucket.delete([file["key"] for one in staged for file in one.files])
        except (OctavoError, OSError) as error:
            log.warning("copies not removed", reason=str(error))

    # Rows

    async def _save(self, staged: Sequence[StagedFile]) -> list[StagedFile]:
        """Insert the documents whose content was not added in the meantime. Returns these documents."""
        contents = [one.source.sha256 for one in staged]
        async with self.database.transaction() as connection, self._removed_on_failure(staged):
            await connection.execute(QUERIES.lock_owner, {"owner": self.owner})
            await connection.execute(QUERIES.lock_contents, {"owner": self.owner, "contents": contents})
            known = await self._known(connection, contents)
            new = [one for one in staged if one.source.sha256 not in known]
            ready = [one for one in new if one.is_ready]
            if ready:
                await self._insert(connection, ready)
            for one in new:
                if not one.is_ready:
                    await self._enqueue(connection, one)
            await check_quota(connection, self.owner, self.limits.stored_bytes)
        await self._remove([one for one in staged if one.source.sha256 in known])
        return new

    async def _insert(self, connection: Connection, ready: Sequence[StagedFile]) -> None:
        values = {"owner": self.owner, "key": self.run, "id": new_id()}
        (row,) = await fetch_rows(connection, QUERIES.begin_import, values)
        await self._stage(connection, ready)
        place = {"owner": self.owner, "import_id": row["id"], "names": list(NAMES)}
        for name in (*BEFORE_FACTS, "follow_facts", *AFTER_FACTS):
            await connection.execute(getattr(QUERIES, name), place)
        await self._compare(connection, [one.upload.document_id for one in ready])

    async def _compare(self, connection: Connection, documents: Sequence[UUID]) -> None:
        """Queue jobs that compare the documents with all others.

        Only a few run in parallel, because each uses a full core, and the workers must also process users' jobs.
        """
        cap_key = f"bulk:{self.owner}"
        await connection.execute(QUERIES.limit_comparisons, {"key": cap_key})
        await compare_documents(connection, Cause.EMBEDDED, documents, cap_key=cap_key)

    async def _stage(self, connection: Connection, ready: Sequence[StagedFile]) -> None:
        documents, vectors, tags = list[tuple[Any, ...]](), list[tuple[Any, ...]](), list[tuple[Any, ...]]()
        models = await _models(connection, ready)
        for one in ready:
            row, document = one.row, one.upload.document_id
            chunks = [{**chunk, "id": str(new_id())} for chunk in json.loads(row["chunks"])]
            documents.append(_document(one, chunks))
            model = models.get(row["vector_model"])
            pairs = zip(chunks, row["vectors"] or (), strict=True)
            vectors += [(model, document, chunk["id"], vector_text(vector)) for chunk, vector in pairs]
            named = zip(row["tags"] or (), row["tag_vectors"] or (), strict=True)
            tags += [(model, document, name, vector_text(vector)) for name, vector in named]
        for make, query, rows in (
            (QUERIES.make_staging, QUERIES.copy_documents, documents),
            (QUERIES.make_vector_staging, QUERIES.copy_vectors, vectors),
            (QUERIES.make_tag_staging, QUERIES.copy_tags, tags),
        ):
            await connection.execute(make)
            async with connection.cursor() as cursor, cursor.copy(query) as copy:
                for row in rows:
                    await copy.write_row(row)

    async def _enqueue(self, connection: Connection, one: StagedFile) -> None:
        source = one.source
        received = replace(one.upload, object_key=source.key, bytes=source.bytes, sha256=source.sha256)
        intake = Intake(self.database, self.bucket, detect)
        await intake.place(connection, received, one.row["source_type"] or SourceType.OTHER, self.limits, fresh=True)


async def _models(connection: Connection, ready: Sequence[StagedFile]) -> dict[str, int]:
    lengths = {one.row["vector_model"]: len(one.row["vectors"][0]) for one in ready if one.row["vectors"]}
    return {name: await model_id(connection, name, length) for name, length in lengths.items()}


def _document(one: StagedFile, chunks: Sequence[dict[str, Any]]) -> tuple[Any, ...]:
    row, upload = one.row, one.upload
    names = ("filename", "content_type", "source_type", "sha256", "bytes", "quality", "page_count", "word_count")
    return (
        *(upload.document_id, upload.id, upload.process_id),
        *(row[name] for name in (*names, "summary", "made_by", "metadata")),
        bool(row["vectors"]),
        *(row["pages"], row["figures"], Jsonb(chunks), row["facts"], Jsonb(one.files)),
    )
