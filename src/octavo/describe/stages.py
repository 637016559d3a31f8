"""The last stages of processing a document: describe it, describe its chunks, and embed them.

- `classified`: title, author, summary, date, language, type and tags
- `enriched`: themes, concepts, tone, importance and a summary for each chunk
- `embedded`: a vector for each chunk

Each stage is attempted even if another one fails, so a document without a title can still be found by meaning. A
document whose description failed can be read, and its status shows which parts are missing; a retry adds only those.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias
from uuid import UUID

from psycopg.types.json import Jsonb

from octavo.ai.calls import Caller, CallerGone, Picture
from octavo.ai.tasks import CLASSIFY_DOCUMENT, CLASSIFY_IMAGE, ENRICH_CHUNKS, ImageToClassify
from octavo.choreography import Cause, compare_documents
from octavo.core.errors import RETRY_RULES, OctavoError, OverBudget, TokenLimit
from octavo.core.types import JSON
from octavo.database import Connection, fetch_rows, load_queries
from octavo.describe.embedding import EmbeddingTools
from octavo.describe.saving import save_description
from octavo.describe.vectors import StoredChunk, load_chunks, save_chunk_vectors
from octavo.extract.pictures import SHOWN_PIXELS
from octavo.extract.pictures.page_images import shrink_in_sandbox
from octavo.jobs.job_run import LeaseLost, Run
from octavo.language.insights import ChunkText, DocumentSource
from octavo.sandbox import Sandbox
from octavo.storage import Bucket

QUERIES = load_queries("describe")
# The names of all stages and of their parts.
STAGES = ("classified", "describing", "enriched", "indexing", "embedded")
CHUNKS_PER_DESCRIPTION = 50
CHUNKS_PER_EMBEDDING = 100
# A long document is classified by its first chunks and by samples of the rest.
FIRST_CHUNKS, SAMPLED_CHUNKS = 50, 100
PICTURE_TYPE, PICTURE_BYTES = "image/jpeg", 64 << 20

# Calls a model about some chunks and returns a function that stores the answer.
Write: TypeAlias = Callable[[Connection], Awaitable[None]]
Make: TypeAlias = Callable[[Sequence[StoredChunk]], Awaitable[Write]]


class DescribeTools(EmbeddingTools, Protocol):
    """The worker's tools that describing needs."""

    @property
    def bucket(self) -> Bucket: ...
    @property
    def sandbox(self) -> Sandbox: ...


@dataclass(frozen=True, slots=True)
class DocumentText:
    """The revision to describe. `picture` is the storage key of the image if the document is a picture.

    A higher `generation` requests a new description instead of reusing a stored answer.
    """

    document: UUID
    revision: int
    generation: int = 0
    picture: str | None = None


class DocumentDescriber:
    """Runs the stages for one document. `on_tagged` runs in the transaction that adds its tags."""

    def __init__(self, run: Run[Any], tools: DescribeTools, text: DocumentText, on_tagged: Write) -> None:
        job = run.job
        self._run = run
        self._tools = tools
        self._document = text.document
        self._revision = text.revision
        self._picture = text.picture
        self._on_tagged = on_tagged
        self._caller = Caller(job.owner_id, text.document, job.id, job.lease_token, text.generation)
        self._chunks: list[StoredChunk] = []

    async def describe(self, failure: OctavoError | None = None) -> None:
        """Run all stages. `failure` is an error of an earlier stage.

        A temporary `failure` is raised before any model is called, because the retry may change the text, and the calls
        would have to be paid for again.
        """
        if failure and is_temporary(failure):
            raise failure
        place = {"document": self._document, "revision": self._revision}
        self._chunks = await load_chunks(self._tools.database, QUERIES.chunks, **place)
        errors = [failure] if failure else []
        for stage in (self._classify, self._enrich, self._embed):
            try:
                await stage()
            except (LeaseLost, CallerGone):
                raise
            except OctavoError as error:
                errors.append(error)
        if errors:
            raise first_temporary(errors)

    # classified

    async def _classify(self) -> None:
        if self._chunks or self._picture:
            await self._stage("classified", "", self._chunks, self._request_classification)

    async def _request_classification(self, _chunks: Sequence[StoredChunk]) -> Write:
        gateway, source = self._tools.gateway, await self._source()
        if self._picture:
            picture = Picture(await self._shrunk_picture(self._picture), PICTURE_TYPE)
            text = "\n\n".join(chunk.content for chunk in source.chunks)
            image = ImageToClassify(picture, source.filename or "", text)
            answer = await gateway.ask(CLASSIFY_IMAGE, image, self._caller)
        else:
            answer = await gateway.ask(CLASSIFY_DOCUMENT, source, self._caller)

        async def write(connection: Connection) -> None:
            if await save_description(connection, self._document, answer.output, answer.made_by):
                await self._on_tagged(connection)
            await self._compare_if_late(connection, missing="enriched")

        return write

    async def _shrunk_picture(self, key: str) -> bytes:
        """Read the picture, shrunk to the size that the model accepts."""
        picture = await self._tools.bucket.read(key, limit=PICTURE_BYTES)
        sight = self._tools.gateway.vision_limits(CLASSIFY_IMAGE.name)
        if sight is None or sight.pixels >= SHOWN_PIXELS:
            return picture
        return await shrink_in_sandbox(self._tools.sandbox, picture, sight.pixels)

    async def _source(self) -> DocumentSource:
        async with self._tools.database.connection() as connection:
            (known,) = await fetch_rows(connection, QUERIES.known, {"document": self._document})
        date = known["document_date"]
        return DocumentSource(
            [chunk.as_text() for chunk in sample(self._chunks)],
            kind=known["source_type"],
            filename=known["filename"],
            title=known["title"],
            author=known["author"],
            date=date.isoformat() if date else None,
            language=known["language"],
        )

    # enriched

    async def _enrich(self) -> None:
        async def finish(connection: Connection) -> None:
            await self._compare_if_late(connection, missing="classified")

        await self._in_parts("enriched", "describing", CHUNKS_PER_DESCRIPTION, self._request_insights, finish)

    async def _request_insights(self, chunks: Sequence[StoredChunk]) -> Write:
        insights = await self._insights(chunks)

        async def write(connection: Connection) -> None:
            await connection.execute(QUERIES.forget_concepts, {"chunks": [chunk.id for chunk in chunks]})
            await connection.execute(QUERIES.describe_chunks, {"insights": Jsonb(insights)})

        return write

    async def _insights(self, chunks: Sequence[StoredChunk]) -> list[dict[str, Any]]:
        """Request the insights of a batch. If it is too long for the model, request each half separately."""
        texts: list[ChunkText] = [chunk.as_text() for chunk in chunks]
        try:
            answer = await self._tools.gateway.ask(ENRICH_CHUNKS, texts, self._caller)
        except TokenLimit:
            half = len(chunks) // 2
            if not half:
                raise
            return [*await self._insights(chunks[:half]), *await self._insights(chunks[half:])]
        return [
            {"chunk": str(chunk.id), "made_by": answer.made_by, **insight.model_dump(mode="json")}
            for chunk, insight in zip(chunks, answer.output.chunks, strict=True)
        ]

    # embedded

    async def _embed(self) -> None:
        async def finish(connection: Connection) -> None:
            await connection.execute(QUERIES.set_embeddings_ready, {"document": self._document})
            await compare_documents(connection, Cause.EMBEDDED, [self._document])

        await self._in_parts("embedded", "indexing", CHUNKS_PER_EMBEDDING, self._request_vectors, finish)

    async def _request_vectors(self, chunks: Sequence[StoredChunk]) -> Write:
        # The vector of a text never changes, so even a new generation reuses the stored one.
        caller = replace(self._caller, generation=0)
        answer = await self._tools.gateway.embed([chunk.content for chunk in chunks], caller)

        async def write(connection: Connection) -> None:
            await save_chunk_vectors(connection, [chunk.id for chunk in chunks], answer.output)

        return write

    async def _compare_if_late(self, connection: Connection, missing: str) -> None:
        """Compare the document again if the stage `missing` has also finished: the description is then complete."""
        if await self._run.finished_parts(missing):
            await compare_documents(connection, Cause.DESCRIBED_LATE, [self._document], "described")

    # Parts

    async def _in_parts(self, name: str, part_name: str, size: int, make: Make, finish: Write | None = None) -> None:
        """Run a stage. A short text is processed in one step, a long text in parts that are committed one by one.

        The last part completes the stage.
        """
        chunks = self._chunks
        parts = [chunks[start : start + size] for start in range(0, len(chunks), size)]
        for number, part in enumerate(parts[:-1]):
            await self._stage(part_name, str(number), part, make)
            await self._run.progress(number * size + len(part), len(chunks), "passages", part_name)
        if parts:
            await self._stage(name, "", parts[-1], make, finish)

    async def _stage(
        self, name: str, part: str, chunks: Sequence[StoredChunk], make: Make, finish: Write | None = None
    ) -> None:
        """Run one stage or part.

        Results are stored in separate tables; the job's history gets only the number of chunks.
        """
        writes: list[Write] = []

        async def work() -> JSON:
            writes.append(await make(chunks))
            return len(chunks)

        async def save(connection: Connection, _made: JSON) -> None:
            for write in [*writes, *([finish] if finish else [])]:
                await write(connection)

        await self._run.stage(name, work, part=part, save=save)


def sample(chunks: Sequence[StoredChunk]) -> Sequence[StoredChunk]:
    """Select the first chunks, and some of the others at equal distances."""
    rest = chunks[FIRST_CHUNKS:]
    step = -(-len(rest) // SAMPLED_CHUNKS) or 1
    return [*chunks[:FIRST_CHUNKS], *rest[step - 1 :: step]]


def first_temporary(errors: Sequence[OctavoError]) -> OctavoError:
    """The first error that a retry may solve or, if there is none, the first error.

    Permanent errors are reported after the retry.
    """
    return next(filter(is_temporary, errors), errors[0])


def is_temporary(error: OctavoError) -> bool:
    return isinstance(error, OverBudget) or RETRY_RULES[error.error_class] is not None
