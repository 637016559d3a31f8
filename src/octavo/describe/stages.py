"""The last stages of processing a document. They generate its title, summary and tags, and embed its chunks.

- `classified`: title, author, summary, date, language, type and tags
- `enriched`: themes, concepts, tone, importance and a summary for each chunk
- `embedded`: a vector for each chunk

If one stage fails, the others still run. For example, a document without a title can still be found by semantic search.
The document stays readable, its status shows which parts are missing, and a retry adds only the missing parts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias
from uuid import UUID

from psycopg.types.json import Jsonb

from octavo.ai.calls import ALSO_IF_AWAY, AS_CONFIGURED, LOCAL, NEVER, Caller, CallerGone, ModelAnswer, Picture
from octavo.ai.faults import AWAY_ERRORS
from octavo.ai.gateway import is_stopgap
from octavo.ai.tasks import CLASSIFY_DOCUMENT, CLASSIFY_IMAGE, ENRICH_CHUNKS, ImageToClassify
from octavo.ai.tasks.task import In, Out, Task
from octavo.ai.vectors import Vectors
from octavo.choreography import Cause, compare_documents
from octavo.core.errors import RETRY_RULES, OctavoError, OverBudget, TokenLimit
from octavo.core.types import JSON, new_id
from octavo.database import Connection, fetch_rows, load_queries
from octavo.describe.embedding import EmbeddingTools, StoredChunk, load_chunks, save_chunk_vectors
from octavo.extract.pictures import SHOWN_PIXELS
from octavo.extract.pictures.page_images import shrink_in_sandbox
from octavo.facts.confidence import MODEL, confidence
from octavo.facts.finding import FOUND, Fact
from octavo.jobs.job_run import LeaseLost, Run, Stage
from octavo.language.description import MADE_BY as OFFLINE
from octavo.language.insights import ChunkText, DocumentInsight, DocumentSource, DocumentType
from octavo.library.collections import clean_label
from octavo.library.facts import DESCRIPTION, save_facts
from octavo.sandbox import Sandbox
from octavo.storage import Bucket

QUERIES = load_queries("describe")
DOCUMENTS = load_queries("documents")
# The names of all stages and of their parts.
STAGES = ("classified", "describing", "enriched", "indexing", "embedded")
IMPROVEMENT_PLANNED, MADE_OFFLINE = "improvement_planned", "made_offline"
CHUNKS_PER_DESCRIPTION = 50
CHUNKS_PER_EMBEDDING = 100
# A long document is classified by its first chunks and samples of the rest.
FIRST_CHUNKS, SAMPLED_CHUNKS = 50, 100
# The number of the owner's most used tags. Tags are chosen from these first.
KNOWN_TAGS = 300
PICTURE_TYPE, PICTURE_BYTES = "image/jpeg", 64 << 20
# The number of attempts with the configured models before a document is described offline, unless `local` is one.
TRIES_BEFORE_OFFLINE = 3

# Calls a model about some chunks and returns a function that stores the answer.
Write: TypeAlias = Callable[[Connection], Awaitable[None]]
Make: TypeAlias = Callable[[Sequence[StoredChunk]], Awaitable[Write]]


class DescribeTools(EmbeddingTools, Protocol):
    """The resources that a worker must provide for generating titles, summaries, tags and vectors."""

    @property
    def bucket(self) -> Bucket: ...
    @property
    def sandbox(self) -> Sandbox: ...


@dataclass(frozen=True, slots=True)
class DocumentText:
    """The revision of a document for which to generate a title, summary and tags.

    `picture` is the storage key of the image if the document is a picture. Increase `generation` to call models again
    instead of reusing their stored answers.
    """

    document: UUID
    revision: int
    generation: int = 0
    picture: str | None = None


@dataclass(frozen=True, slots=True)
class FollowUps:
    """Functions to call after a stage.

    `tagged` runs in the transaction that adds tags. `offline` runs once, after the last stage, if providers were
    unavailable and results were made without a model. If `offline` is None, results are never made without a model.
    """

    tagged: Write
    offline: Write | None


class DocumentDescriber:
    """Generates the title, summary, tags and vectors of one document, stage by stage."""

    def __init__(self, run: Run[Any], tools: DescribeTools, text: DocumentText, follow_ups: FollowUps) -> None:
        job = run.job
        self._run = run
        self._tools = tools
        self._document = text.document
        self._revision = text.revision
        self._picture = text.picture
        self._follow_ups = follow_ups
        self._offline_use = AS_CONFIGURED if follow_ups.offline else NEVER
        self._caller = Caller(job.owner_id, text.document, job.id, job.lease_token, text.generation)
        self._chunks: list[StoredChunk] = []
        # Whether the current stage was done offline because the providers are unavailable.
        self._is_stopgap = False

    async def describe(self, failure: OctavoError | None = None) -> None:
        """Run all stages. `failure` is an error of an earlier stage.

        A temporary `failure` is raised before any model is called. The earlier stage is then retried, which may change
        the text. Model calls that were made before the retry would have to be repeated and paid for again.
        """
        if failure and is_temporary(failure):
            raise failure
        if self._follow_ups.offline and await self._tries() >= TRIES_BEFORE_OFFLINE:
            self._offline_use = ALSO_IF_AWAY
        place = {"document": self._document, "revision": self._revision}
        self._chunks = await load_chunks(self._tools.database, QUERIES.chunks, **place)
        errors = [failure] if failure else []
        if not failure and await self._describe_together():
            return
        for stage in (self._classify, self._enrich, self._embed):
            try:
                await stage()
            except (LeaseLost, CallerGone):
                raise
            except OctavoError as error:
                errors.append(error)
        if errors:
            raise first_temporary(errors)
        if self._follow_ups.offline:
            await self._improve_later(self._follow_ups.offline)

    async def _describe_together(self) -> bool:
        """Describe a short text offline, and store everything in one transaction. Returns whether it succeeded.

        Works only in a first attempt without remote models, because answers that cost time or money must be stored
        immediately.
        """
        is_first = not await self._run.finished_outputs(STAGES)
        is_short = 0 < len(self._chunks) <= min(CHUNKS_PER_DESCRIPTION, CHUNKS_PER_EMBEDDING)
        if self._picture or not (is_first and is_short and self._tools.gateway.is_offline):
            return False
        stages = [
            self._make_stage("classified", "", self._chunks, self._request_classification),
            self._make_stage("enriched", "", self._chunks, self._request_insights),
            self._make_stage("embedded", "", self._chunks, self._request_vectors, self._finish_embedding),
        ]
        try:
            await self._run.stages(stages)
        except (LeaseLost, CallerGone):
            raise
        except OctavoError:  # one stage failed, so all stages must run separately
            return False
        return True

    async def _tries(self) -> int:
        """Return the number of attempts since the last finished stage, including this one."""
        if self._run.job.attempt == 1:
            return 1
        async with self._tools.database.connection() as connection:
            (row,) = await fetch_rows(connection, QUERIES.tries, {"job": self._run.job.id})
        return row["tries"]

    async def _ask(self, task: Task[In, Out], given: In) -> ModelAnswer[Out]:
        answer = await self._tools.gateway.ask(task, given, self._caller, self._offline_use)
        self._is_stopgap = self._is_stopgap or is_stopgap(answer)
        return answer

    async def _improve_later(self, improve: Write) -> None:
        """Queue a job that repeats stages with a model, if any stage was done offline because of an outage.

        Stages of earlier attempts count too. Called at the end, so that the job does not overlap with the stages.
        """
        outputs = await self._run.finished_outputs(STAGES)
        if not any(isinstance(output, dict) and output.get(MADE_OFFLINE) for output in outputs):
            return

        async def work() -> JSON:
            return None

        async def save(connection: Connection, _made: JSON) -> None:
            await improve(connection)

        await self._run.stage(IMPROVEMENT_PLANNED, work, save=save)

    # classified

    async def _classify(self) -> None:
        if self._chunks or self._picture:
            await self._stage("classified", "", self._chunks, self._request_classification)

    async def _request_classification(self, _chunks: Sequence[StoredChunk]) -> Write:
        source = await self._source()
        if self._picture:
            picture = Picture(await self._shrunk_picture(self._picture), PICTURE_TYPE)
            text = "\n\n".join(chunk.content for chunk in source.chunks)
            image = ImageToClassify(picture, source.filename or "", text)
            answer = await self._ask(CLASSIFY_IMAGE, image)
        else:
            answer = await self._ask(CLASSIFY_DOCUMENT, source)

        async def write(connection: Connection) -> None:
            if await save_description(connection, self._document, answer.output, answer.made_by):
                await self._follow_ups.tagged(connection)
            await self._compare_if_late(connection, missing="enriched")

        return write

    async def _shrunk_picture(self, key: str) -> bytes:
        """Read the picture and scale it down to the size that the model accepts."""
        picture = await self._tools.bucket.read(key, limit=PICTURE_BYTES)
        sight = self._tools.gateway.vision_limits(CLASSIFY_IMAGE.name)
        if sight is None or sight.pixels >= SHOWN_PIXELS:
            return picture
        return await shrink_in_sandbox(self._tools.sandbox, picture, sight.pixels)

    async def _source(self) -> DocumentSource:
        async with self._tools.database.connection() as connection:
            (known,) = await fetch_rows(connection, QUERIES.known, {"document": self._document})
            tags = await fetch_rows(connection, QUERIES.known_tags, {"document": self._document, "limit": KNOWN_TAGS})
        return DocumentSource(
            [chunk.as_text() for chunk in sample(self._chunks)],
            kind=known["source_type"],
            filename=known["filename"],
            title=known["title"],
            author=known["author"],
            date=known["document_date"],
            language=known["language"],
            known_tags=[row["name"] for row in tags],
            type=DocumentType(known["kind"]) if known["kind"] in set(DocumentType) else None,
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
        """Request themes, concepts and a summary for each chunk of a batch.

        If the batch is too long for the model, each half is requested separately.
        """
        texts: list[ChunkText] = [chunk.as_text() for chunk in chunks]
        try:
            answer = await self._ask(ENRICH_CHUNKS, texts)
        except TokenLimit:
            half = len(chunks) // 2
            if not half:
                raise
            await self._run.keep_alive()
            return [*await self._insights(chunks[:half]), *await self._insights(chunks[half:])]
        return [
            {"chunk": str(chunk.id), "made_by": answer.made_by, **insight.model_dump(mode="json")}
            for chunk, insight in zip(chunks, answer.output.chunks, strict=True)
        ]

    # embedded

    async def _embed(self) -> None:
        make, finish = self._request_vectors, self._finish_embedding
        await self._in_parts("embedded", "indexing", CHUNKS_PER_EMBEDDING, make, finish)

    async def _finish_embedding(self, connection: Connection) -> None:
        await connection.execute(QUERIES.set_embeddings_ready, {"document": self._document})
        if self._follow_ups.offline:
            await compare_documents(connection, Cause.EMBEDDED, [self._document])

    async def _request_vectors(self, chunks: Sequence[StoredChunk]) -> Write:
        try:
            vectors = await self._vectors(chunks, None)
        except AWAY_ERRORS:
            if not self._may_embed_offline:
                raise
            return await self._embed_all_offline()

        async def write(connection: Connection) -> None:
            await save_chunk_vectors(connection, [chunk.id for chunk in chunks], vectors)

        return write

    @property
    def _may_embed_offline(self) -> bool:
        use = self._offline_use
        return use.if_away or (use.if_configured and self._tools.gateway.has_offline_models)

    async def _embed_all_offline(self) -> Write:
        """Embed all chunks without a provider.

        Vectors of different models cannot be compared, so the chunks of a document must not mix them.
        """
        vectors = await self._vectors(self._chunks, LOCAL)
        self._is_stopgap = True

        async def write(connection: Connection) -> None:
            await save_chunk_vectors(connection, [chunk.id for chunk in self._chunks], vectors)

        return write

    async def _vectors(self, chunks: Sequence[StoredChunk], model: str | None) -> Vectors:
        # The vector of a text never changes, so even a new generation reuses the stored one.
        caller = replace(self._caller, generation=0)
        return (await self._tools.gateway.embed([chunk.content for chunk in chunks], caller, model)).output

    async def _compare_if_late(self, connection: Connection, missing: str) -> None:
        """Queue a new comparison with other documents if the stage named by `missing` has also finished.

        The comparison needs the results of both that stage and this one.
        """
        if self._follow_ups.offline and await self._run.finished_parts(missing):
            await compare_documents(connection, Cause.DESCRIBED_LATE, [self._document], "described")

    # Parts

    async def _in_parts(self, name: str, part_name: str, size: int, make: Make, finish: Write | None = None) -> None:
        """Run a stage.

        A short text is processed in one step, a long text in batches of chunks that are committed one by one. The last
        batch completes the stage.
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
        await self._run.stages([self._make_stage(name, part, chunks, make, finish)])

    def _make_stage(
        self, name: str, part: str, chunks: Sequence[StoredChunk], make: Make, finish: Write | None = None
    ) -> Stage:
        """Create the job stage for one stage of the description, or for one batch of its chunks.

        The results are stored in their own tables. Only the number of chunks is stored in the job's history.
        """
        writes: list[Write] = []

        async def work() -> JSON:
            self._is_stopgap = False
            writes.append(await make(chunks))
            return {"passages": len(chunks), MADE_OFFLINE: True} if self._is_stopgap else len(chunks)

        async def save(connection: Connection, _made: JSON) -> None:
            for write in [*writes, *([finish] if finish else [])]:
                await write(connection)

        return Stage(name, work, save, part)


def sample(chunks: Sequence[StoredChunk]) -> Sequence[StoredChunk]:
    """Select chunks that represent a document: the first ones, and evenly spaced ones from the rest."""
    rest = chunks[FIRST_CHUNKS:]
    step = -(-len(rest) // SAMPLED_CHUNKS) or 1
    return [*chunks[:FIRST_CHUNKS], *rest[step - 1 :: step]]


def first_temporary(errors: Sequence[OctavoError]) -> OctavoError:
    """Choose the error to raise: the first temporary error or, if there is none, the first error.

    A temporary error leads to a retry. If a permanent error remains, the retry reports it.
    """
    return next(filter(is_temporary, errors), errors[0])


def is_temporary(error: OctavoError) -> bool:
    return isinstance(error, OverBudget) or RETRY_RULES[error.error_class] is not None


# Saving the description ---------------------------------------------------------------------------------------------


async def save_description(connection: Connection, document: UUID, insight: DocumentInsight, made_by: str) -> bool:
    """Save the summary and tags of a description in the caller's transaction. Returns whether tags were added.

    The other values that a model found, such as the title, are saved as facts. A description made without a model adds
    no facts, because the same rules have already found the facts of the document.
    """
    values: dict[str, Any] = {
        "document": document,
        "summary": insight.summary,
        "details": Jsonb({"document_type": insight.type}),
        "made_by": made_by,
    }
    row = await (await connection.execute(DOCUMENTS.describe, values)).fetchone()
    if row is None:
        return False
    owner, has_free_tags, revision = row
    facts = [] if made_by == OFFLINE else model_facts(insight)
    await save_facts(connection, document, revision, facts, DESCRIPTION)
    return has_free_tags and await _add_tags(connection, owner, document, insight.tags, made_by)


def model_facts(insight: DocumentInsight) -> list[Fact]:
    """Convert the values that a model found to facts of the document.

    Their confidence is an assumption, not a measurement.
    """
    kind = None if insight.type is DocumentType.OTHER else str(insight.type)
    said = {
        "kind": kind,
        "title": insight.title,
        "author": insight.author,
        "date": insight.date,
        "language": insight.language,
    }
    evidence = frozenset({MODEL})
    return [Fact(name, value, "", confidence(name, evidence), "model", FOUND) for name, value in said.items() if value]


async def _add_tags(connection: Connection, owner: UUID, document: UUID, names: list[str], made_by: str) -> bool:
    """Replace the tags that were added automatically.

    Returns whether tags were added. An existing tag of the account is reused, even if its capitalisation differs.
    """
    await connection.execute(DOCUMENTS.forget_described_tags, {"document": document})
    if not names:
        return False
    labels = [clean_label(name, "tag") for name in names]
    values = {"owner": owner, "ids": [new_id() for _ in labels], "names": labels}
    tags = [row[0] for row in await (await connection.execute(DOCUMENTS.ensure_tags, values)).fetchall()]
    await connection.execute(DOCUMENTS.add_described_tags, {"document": document, "tags": tags, "made_by": made_by})
    return True
