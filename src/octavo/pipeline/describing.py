"""What is made of a text that can be read: a description of the document, of its passages, and their vectors.

- `classified`: title, author, summary, date, language, type and tags
- `enriched`: themes, concepts, tone, importance and a summary for each passage
- `embedded`: a vector for each passage

Each of the three is tried also when another one fails, so that a document without a title can still be found by its
meaning. What cannot be made at all leaves a document that can be read and says what it lacks; asked again, the job
makes only what is missing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias
from uuid import UUID

from psycopg.types.json import Jsonb

from octavo.ai.contract import Caller, CallerGone
from octavo.ai.requests import Picture
from octavo.ai.tasks import CLASSIFY_DOCUMENT, CLASSIFY_IMAGE, ENRICH_CHUNKS, ImageToClassify
from octavo.core.errors import RETRY_RULES, OctavoError, OverBudget, TokenLimit
from octavo.core.json import JSON
from octavo.database import Connection, fetch_rows, load_queries
from octavo.extract.pictures import SHOWN_PIXELS
from octavo.extract.pictures.steps import shrink_in_sandbox
from octavo.jobs.queue import NewJob, enqueue
from octavo.jobs.run import LeaseLost, Run
from octavo.language.inputs import Passage, Source
from octavo.library.descriptions import describe_document
from octavo.pipeline.embed_tags import KIND as TAGS
from octavo.pipeline.embedding import VECTORS_AT_ONCE, Piece, load_pieces, save_chunk_vectors
from octavo.pipeline.tools import Tools

QUERIES = load_queries("enriching")
# All that is made here, in parts and as a whole.
STAGES = ("classified", "describing", "enriched", "indexing", "embedded")
PASSAGES_AT_ONCE = 50
# A long document is known by its beginning and by samples of the rest.
OPENING_PASSAGES, SAMPLED_PASSAGES = 50, 100
PICTURE_TYPE, PICTURE_BYTES = "image/jpeg", 64 << 20

# Asks somebody about pieces, and answers how to write down what they said.
Write: TypeAlias = Callable[[Connection], Awaitable[None]]
Make: TypeAlias = Callable[[Sequence[Piece]], Awaitable[Write]]


class Describing:
    """`picture` is where the copy of a picture is, if the document is one that can be opened."""

    def __init__(self, run: Run[Tools], document: UUID, revision: int, generation: int, picture: str | None) -> None:
        job = run.job
        self._run = run
        self._tools = run.tools
        self._document = document
        self._revision = revision
        self._picture = picture
        self._caller = Caller(job.owner_id, document, job.id, job.lease_token, generation)
        self._pieces: list[Piece] = []

    async def describe(self, failure: OctavoError | None = None) -> None:
        """`failure` is what went wrong before; while it may pass, no money is spent on a text that may not stay."""
        if failure and is_passing(failure):
            raise failure
        place = {"document": self._document, "revision": self._revision}
        self._pieces = await load_pieces(self._tools.database, QUERIES.passages, **place)
        failed = [failure] if failure else []
        for make in (self._classify, self._enrich, self._embed):
            try:
                await make()
            except (LeaseLost, CallerGone):
                raise
            except OctavoError as error:
                failed.append(error)
        if failed:
            raise most_hopeful(failed)

    # classified

    async def _classify(self) -> None:
        if self._pieces or self._picture:
            await self._stage("classified", "", self._pieces, self._ask_what_it_is)

    async def _ask_what_it_is(self, _pieces: Sequence[Piece]) -> Write:
        gateway, source = self._tools.gateway, await self._source()
        if self._picture:
            picture = Picture(await self._fitting_picture(self._picture), PICTURE_TYPE)
            text = "\n\n".join(passage.content for passage in source.passages)
            image = ImageToClassify(picture, source.filename or "", text)
            answered = await gateway.ask(CLASSIFY_IMAGE, image, self._caller)
        else:
            answered = await gateway.ask(CLASSIFY_DOCUMENT, source, self._caller)

        async def write(connection: Connection) -> None:
            if await describe_document(connection, self._document, answered.output, answered.made_by):
                job = self._run.job
                key = f"tags:{job.id}:{job.lease_token}"
                await enqueue(connection, [NewJob(TAGS.name, job.owner_id, key=key, document_id=self._document)])

        return write

    async def _fitting_picture(self, key: str) -> bytes:
        """No larger than what whoever looks at it takes."""
        picture = await self._tools.bucket.read(key, limit=PICTURE_BYTES)
        sight = self._tools.gateway.sight(CLASSIFY_IMAGE.name)
        if sight is None or sight.pixels >= SHOWN_PIXELS:
            return picture
        return await shrink_in_sandbox(self._tools.sandbox, picture, sight.pixels)

    async def _source(self) -> Source:
        async with self._tools.database.connection() as connection:
            (known,) = await fetch_rows(connection, QUERIES.known, {"document": self._document})
        date = known["document_date"]
        return Source(
            [piece.as_passage() for piece in sample(self._pieces)],
            kind=known["source_type"],
            filename=known["filename"],
            title=known["title"],
            author=known["author"],
            date=date.isoformat() if date else None,
            language=known["language"],
        )

    # enriched

    async def _enrich(self) -> None:
        await self._in_parts("enriched", "describing", PASSAGES_AT_ONCE, self._ask_about)

    async def _ask_about(self, pieces: Sequence[Piece]) -> Write:
        insights = await self._insights(pieces)

        async def write(connection: Connection) -> None:
            await connection.execute(QUERIES.forget_concepts, {"chunks": [piece.id for piece in pieces]})
            await connection.execute(QUERIES.describe_chunks, {"insights": Jsonb(insights)})

        return write

    async def _insights(self, pieces: Sequence[Piece]) -> list[dict[str, Any]]:
        """Those who cannot take so many passages at once are asked about fewer."""
        passages: list[Passage] = [piece.as_passage() for piece in pieces]
        try:
            answered = await self._tools.gateway.ask(ENRICH_CHUNKS, passages, self._caller)
        except TokenLimit:
            half = len(pieces) // 2
            if not half:
                raise
            return [*await self._insights(pieces[:half]), *await self._insights(pieces[half:])]
        return [
            {"chunk": str(piece.id), "made_by": answered.made_by, **insight.model_dump(mode="json")}
            for piece, insight in zip(pieces, answered.output.chunks, strict=True)
        ]

    # embedded

    async def _embed(self) -> None:
        async def finish(connection: Connection) -> None:
            await connection.execute(QUERIES.set_embeddings_ready, {"document": self._document})

        await self._in_parts("embedded", "indexing", VECTORS_AT_ONCE, self._ask_for_vectors, finish)

    async def _ask_for_vectors(self, pieces: Sequence[Piece]) -> Write:
        # The same words have the same vector, however often their meaning is asked for.
        caller = replace(self._caller, generation=0)
        answered = await self._tools.gateway.embed([piece.content for piece in pieces], caller)

        async def write(connection: Connection) -> None:
            await save_chunk_vectors(connection, [piece.id for piece in pieces], answered.output)

        return write

    # Parts

    async def _in_parts(self, name: str, going: str, at_once: int, make: Make, finish: Write | None = None) -> None:
        """What is short is one stage. A long text is done part by part, each of them once; then the stage is over."""
        pieces = self._pieces
        parts = [pieces[start : start + at_once] for start in range(0, len(pieces), at_once)]
        for number, part in enumerate(parts[:-1]):
            await self._stage(going, str(number), part, make)
            await self._run.progress(number * at_once + len(part), len(pieces), "passages", going)
        if parts:
            await self._stage(name, "", parts[-1], make, finish)

    async def _stage(
        self, name: str, part: str, pieces: Sequence[Piece], make: Make, finish: Write | None = None
    ) -> None:
        """What was said goes to its own tables and not into the stage, which belongs to the history of the job."""
        writes: list[Write] = []

        async def work() -> JSON:
            writes.append(await make(pieces))
            return len(pieces)

        async def save(connection: Connection, _made: JSON) -> None:
            for write in [*writes, *([finish] if finish else [])]:
                await write(connection)

        await self._run.stage(name, work, part=part, save=save)


def sample(pieces: Sequence[Piece]) -> Sequence[Piece]:
    """The beginning, and some of the rest at equal distances."""
    rest = pieces[OPENING_PASSAGES:]
    step = -(-len(rest) // SAMPLED_PASSAGES) or 1
    return [*pieces[:OPENING_PASSAGES], *rest[step - 1 :: step]]


def most_hopeful(errors: Sequence[OctavoError]) -> OctavoError:
    """What passes by itself is waited for first; then it is clear what does not."""
    return next(filter(is_passing, errors), errors[0])


def is_passing(error: OctavoError) -> bool:
    return isinstance(error, OverBudget) or RETRY_RULES[error.error_class] is not None
