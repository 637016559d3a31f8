"""Job kind that turns a document's source into text that can be read, cited and searched. Its stages produce:

- `fetched`: the downloaded target of a link (only for links)
- `pictured`: a screen-size copy of a picture (only for pictures)
- `extracted`: the text with its pages, blocks and outline, extracted in the sandbox
- `markdown_saved`: the text as Markdown. From this stage on, a new document can be read.
- `rewritten`: the text rewritten by a model, on request. If this fails, the extracted text is used.
- `chunked`: the chunks. A new revision replaces the previous one in one transaction. Highlights are found again.
- `facts_found`: the document's facts, such as kind, title, sender, date and amount
- `parts_added`: a document for each file in an archive, and for each attachment of an email
- `analysis_asked`: an analysis, if the document is long and the settings request it
- `classified`, `enriched`, `embedded`: title, summary, tags, chunk summaries and vectors (see octavo.describe). If they
  fail, the document can still be read.
- `improvement_planned`: a job that later generates title, summary and tags again with a model, if the providers were
  unavailable
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from psycopg.rows import class_row
from psycopg.types.json import Jsonb
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from octavo.ai.calls import CallerGone
from octavo.core.errors import BadInput, Cancelled, OctavoError
from octavo.core.types import JSON, Extraction, new_id
from octavo.database import Connection, load_queries
from octavo.describe.stages import IMPROVEMENT_PLANNED, STAGES, DocumentDescriber, DocumentText, FollowUps
from octavo.extract import file_reader
from octavo.extract.chunks.chunking import Chunk, chunk_in_sandbox
from octavo.extract.detect import READABLE, STORED_ONLY
from octavo.extract.document_facts import add_language, find_in_sandbox
from octavo.extract.extracted import (
    Extracted,
    Quality,
    SourceType,
    from_json,
    to_json,
)
from octavo.extract.file_reader import ShortText, extract_in_sandbox
from octavo.extract.paged_file import bookmarks_by_page
from octavo.facts.finding import Fact
from octavo.intake.errors import NotCanonical
from octavo.intake.links import LINK_TYPE
from octavo.jobs.job_run import LeaseLost, Run, Save, Stage
from octavo.jobs.kinds import JobKind
from octavo.language.languages import detect_document_language
from octavo.library.changes import CHUNKED, FETCHED
from octavo.library.changes import KIND as NAME
from octavo.library.errors import SourceGone
from octavo.library.facts import save_facts
from octavo.library.files import PICTURED
from octavo.library.highlights import place_highlights
from octavo.library.rules import has_enabled_rules, run_enabled_rules
from octavo.pipeline.analyse_document import analyse_long_document
from octavo.pipeline.document_parts import PartsOf, add_parts
from octavo.pipeline.improve_document import enqueue_improvement
from octavo.pipeline.revision_files import (
    UNREADABLE,
    UNREADABLE_CODE,
    RevisionFiles,
    SourceFile,
    as_source_file,
    fetch_source,
    fit_picture,
    read_pdf,
    read_picture,
    unreadable_picture,
)
from octavo.pipeline.rewriting import Rewriting
from octavo.pipeline.rule_actions import start_actions
from octavo.pipeline.tools import Tools
from octavo.pipeline.vector_jobs import enqueue_embed_tags
from octavo.sandbox import ENDED
from octavo.storage import read_checked

QUERIES = load_queries("processing")
EXTRACTED_BYTES = 1 << 30
# The time limit without a finished stage or progress.
STAGE_SECONDS = 600
STARTS_PER_SECOND = 20.0
MOST_DETAILS = 20
LANGUAGE_SAMPLE = 20_000
MOST_FIGURES = 100_000
EXTRACTED, MARKDOWN_SAVED, FACTS_FOUND, RULES_RUN = "extracted", "markdown_saved", "facts_found", "rules_run"
REWRITTEN, PLAIN_KIND = "rewritten", {"kind": "plain_markdown"}
# Metadata of a rewritten text. These names are never taken from a file.
WRITTEN_BY = ("text_by", "kept_plain")
JSON_TYPE, MARKDOWN_TYPE, JPEG_TYPE = "application/json", "text/markdown; charset=utf-8", "image/jpeg"


class ProcessInput(BaseModel):
    """The input of the job.

    If `generation` is increased, models are called again instead of reusing their stored answers.
    """

    model_config = ConfigDict(extra="forbid")

    revision: int = Field(ge=1)
    generation: int = Field(default=0, ge=0)
    extraction: Extraction = Extraction.PLAIN


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a document, such as its file or URL, as read from the database."""

    id: UUID
    filename: str
    content_type: str
    source_type: str
    source_url: str | None
    deleted: bool
    source_key: str | None
    source_bytes: int | None
    source_sha256: str | None
    canonical: bool

    @property
    def link(self) -> str | None:
        """The URL of a document that was added as a link. It is None for files and pasted text."""
        return self.source_url if self.content_type == LINK_TYPE else None

    @property
    def is_short_text(self) -> bool:
        """Whether the file is a short text.

        A short text is read, split into chunks and searched for facts in one child process.
        """
        return self.source_type in file_reader.TYPES and (self.source_bytes or 0) <= file_reader.MOST_BYTES

    def as_file(self) -> SourceFile:
        known = SourceType.PASTE if self.source_type == SourceType.PASTE else None
        return SourceFile(self.source_key or "", self.filename, self.content_type, known, self.source_url or "")


async def process_document(run: Run[Tools]) -> JSON:
    source, wanted = await load_source(run), read_input(run.input)
    work = Processing(run, source, wanted.revision)

    async def stage(name: str, make: Callable[[], Awaitable[JSON]], save: Save) -> JSON:
        async def save_again(connection: Connection, made: JSON) -> None:
            work.files.begin_saving()
            await save(connection, made)

        made = await run.stage(name, make, save=save_again)
        await work.files.remove_unused()
        return made

    if source.link:
        work.use_fetched(await stage(FETCHED, work.fetch, work.save_fetched))
    if work.is_picture:
        work.use_fitted(await stage("pictured", work.fit, work.save_fitted))
    failure: OctavoError | None = None
    short = work.stages_of_short_text() if source.is_short_text and wanted.extraction is Extraction.PLAIN else []
    if short and not await run.finished_outputs([one.name for one in short]):
        *_, chunks, _ = await run.stages(short)
        await work.files.remove_unused()
    else:
        if await stage(EXTRACTED, work.extract, work.save_extracted) is None:
            await run_rules(run, source.id, wanted.revision)
            return {"quality": "stored_only", "reason": work.reason_not_read}
        await stage(MARKDOWN_SAVED, work.write_markdown, work.save_markdown)
        if wanted.extraction is not Extraction.PLAIN:
            try:
                await stage(REWRITTEN, partial(work.rewrite, wanted), work.save_rewritten)
            except (LeaseLost, CallerGone):
                raise
            except OctavoError as error:  # the extracted text can be read and found in the meantime
                failure = error
        chunks = await stage(CHUNKED, work.chunk, work.save_chunks)
        await stage(FACTS_FOUND, work.find_facts, work.save_facts)
    await add_parts(run, work.files, PartsOf(source.id, work.file, work.source_type))
    await analyse_long_document(run, source.id)
    text = DocumentText(source.id, wanted.revision, wanted.generation, work.picture)
    follow_ups = FollowUps(
        tagged=partial(enqueue_embed_tags, run=run), offline=partial(enqueue_improvement, run=run, text=text)
    )
    await DocumentDescriber(run, run.tools, text, follow_ups).describe(failure)
    await run_rules(run, source.id, wanted.revision)
    return {"chunks": chunks}


async def run_rules(run: Run[Tools], document: UUID, revision: int) -> None:
    """Run the enabled rules on a new document. They run last, because they use the facts and add tags."""
    async with run.tools.database.connection() as connection:
        if revision > 1 or not await has_enabled_rules(connection, await run.current_owner(connection)):
            return

    async def work() -> JSON:
        return None

    async def save(connection: Connection, made: JSON) -> None:
        del made
        owner = await run.current_owner(connection)
        await run_enabled_rules(connection, owner, document, partial(start_actions, connection, owner, document))

    await run.stage(RULES_RUN, work, save=save)


def read_input(given: dict[str, JSON]) -> ProcessInput:
    try:
        return ProcessInput.model_validate(given)
    except ValidationError:
        raise BadInput("revision: must be a positive integer.") from None


async def load_source(run: Run[Tools]) -> Source:
    """Load the source of the job's document. Raises an error if the document must not be processed."""
    async with (
        run.tools.database.connection() as connection,
        connection.cursor(row_factory=class_row(Source)) as cursor,
    ):
        await cursor.execute(QUERIES.document, {"document": run.job.document_id})
        source = await cursor.fetchone()
    if source is None or source.deleted:
        raise Cancelled
    if not source.canonical:
        raise NotCanonical
    if source.source_key is None:
        raise SourceGone
    return source


class Processing:
    """Runs the stages that process one revision of a document."""

    def __init__(self, run: Run[Tools], source: Source, revision: int) -> None:
        self._run = run
        self._tools = run.tools
        self._source = source
        self._revision = revision
        self.file = source.as_file()
        self.source_type = source.source_type
        self._extracted: Extracted | None = None
        # The chunks and facts of a short text, which are read together with it.
        self._short: ShortText | None = None
        self._chunks: list[Chunk] = []
        self._facts: list[Fact] = []
        self.picture: str | None = None
        self.files = RevisionFiles(run, source.id, revision)

    def stages_of_short_text(self) -> list[Stage]:
        """Return the stages of a short text, up to finding its facts. They are committed together."""

        async def save_extracted(connection: Connection, made: JSON) -> None:
            self.files.begin_saving()
            await self.save_extracted(connection, made)

        async def save_rest(connection: Connection, made: JSON) -> None:
            # Facts first: the language is a fact, and chunks are indexed by the rules of their language.
            await self.save_facts(connection, made)
            await self.save_chunks(connection, made)

        return [
            Stage(EXTRACTED, self.extract, save_extracted),
            Stage(MARKDOWN_SAVED, self.write_markdown, self.save_markdown),
            Stage(CHUNKED, self.chunk),
            Stage(FACTS_FOUND, self.find_facts, save_rest),
        ]

    # fetched

    async def fetch(self) -> JSON:
        raw = await fetch_source(self._tools, self._source.link or "")
        return {**await self.files.put(raw.kind, raw.body), **raw.about()}

    async def save_fetched(self, connection: Connection, made: JSON) -> None:
        if not isinstance(made, dict):
            raise TypeError("this stage returns what it stored")
        await self.files.keep(connection, str(made["kind"]), made, str(made["content_type"]))
        values = {"document": self._source.id, "source_type": made["source_type"]}
        await connection.execute(QUERIES.set_source_type, values)

    def use_fetched(self, made: JSON) -> None:
        """Use the downloaded file as the source in later stages."""
        if not isinstance(made, dict):
            raise TypeError("this stage returns what it stored")
        self.file = as_source_file(made)
        self.source_type = str(made["source_type"])

    # pictured

    @property
    def is_picture(self) -> bool:
        return self.source_type == SourceType.IMAGE

    async def fit(self) -> JSON:
        async with self.files.local_copy(self.file.key) as path:
            return await fit_picture(self._run, self.files, path)

    async def save_fitted(self, connection: Connection, made: JSON) -> None:
        if isinstance(made, dict) and UNREADABLE not in made:
            await self.files.keep(connection, "image_jpeg", made, JPEG_TYPE)

    def use_fitted(self, made: JSON) -> None:
        """Use the stored JPEG copy of the picture in later stages.

        If the picture could not be decoded, the document has no text, and later stages do not decode the picture again.
        """
        if not isinstance(made, dict):
            raise TypeError("this stage returns what it stored")
        if UNREADABLE in made:
            self._extracted = unreadable_picture(str(made[UNREADABLE]), str(made.get(UNREADABLE_CODE, "")))
        else:
            self.picture = str(made["key"])

    # extracted

    async def extract(self) -> JSON:
        """Extract the text. Returns None if files of this type have no text."""
        if self.source_type not in READABLE:
            return None
        if self._extracted is None:
            await self._read_short_text()
        if self._extracted is None:
            async with self.files.local_copy(self.file.key) as path:
                self._extracted = await self._extract(path)
        extracted = self._extracted = without_rewrite_metadata(self._extracted)
        stored = await self.files.put("extracted.json", await asyncio.to_thread(to_json, extracted))
        return {**stored, "quality": extracted.quality}

    @property
    def reason_not_read(self) -> str:
        """The reason why files of this type are stored but not read."""
        kinds = {str(kind): reason for kind, reason in STORED_ONLY.items()}
        return kinds.get(self.source_type, STORED_ONLY[SourceType.OTHER])

    async def _read_short_text(self) -> None:
        """Extract a short text, its chunks and its facts in one child process. If this fails, separate stages do it."""
        file, source = self.file, self._source
        if not source.is_short_text:
            return
        content = await read_checked(
            self._tools.bucket, file.key, limit=file_reader.MOST_BYTES, checksum=source.source_sha256
        )
        with suppress(*ENDED):
            self._short = await file_reader.read_in_sandbox(
                self._tools.sandbox,
                content,
                file.filename,
                file.content_type,
                source_type=file.source_type,
                url=file.url,
            )
            self._extracted = self._short.extracted

    async def _extract(self, path: Path) -> Extracted:
        file = self.file
        if self.source_type == SourceType.PDF:
            return await read_pdf(self._run, self.files, path)
        if self.is_picture:
            return await read_picture(self._run, self.files, path)
        return await extract_in_sandbox(
            self._tools.sandbox,
            path,
            file.filename,
            file.content_type,
            source_type=file.source_type,
            url=file.url,
        )

    async def save_extracted(self, connection: Connection, made: JSON) -> None:
        values: dict[str, Any] = {"document": self._source.id, "source_type": self.source_type, "reason": None}
        if not isinstance(made, dict):
            unread = {"quality": "stored_only", "reason": self.reason_not_read}
            await connection.execute(QUERIES.set_extracted, values | unread)
            return
        await self.files.keep(connection, "extracted", made, JSON_TYPE)
        place = {"document": self._source.id, "revision": self._revision}
        await self.files.forget(connection, await connection.execute(QUERIES.delete_batches, place))
        await connection.execute(QUERIES.set_extracted, values | {"quality": made["quality"]})

    # markdown_saved

    async def write_markdown(self) -> JSON:
        extracted = await self._read_extracted()
        return {**await self.files.put("document.md", extracted.markdown.encode())}

    async def save_markdown(self, connection: Connection, made: JSON) -> None:
        await self.files.keep(connection, "markdown", made, MARKDOWN_TYPE)
        values = {"document": self._source.id, "revision": self._revision}
        await self._save_pages(connection)
        await connection.execute(QUERIES.make_readable, values)
        await connection.execute(QUERIES.set_found, self._found(await self._read_extracted()))

    def _found(self, extracted: Extracted) -> dict[str, Any]:
        return {
            "document": self._source.id,
            "word_count": extracted.word_count,
            "page_count": len(extracted.pages) or None,
            "quality": extracted.quality,
            "metadata": Jsonb(file_details(extracted)),
        }

    # rewritten

    async def rewrite(self, wanted: ProcessInput) -> JSON:
        """Rewrite the text with a model. Returns None if there is no text."""
        rewriting = Rewriting(self._run, self.files, await self._read_extracted(), wanted.generation)
        if wanted.extraction is Extraction.PAGES and self.source_type in PICTURED:
            async with self.files.local_copy(self.file.key) as path:
                made = await rewriting.read(path)
        else:
            made = await rewriting.clean()
        if made is None:
            return None
        self._extracted, self._short = made, None
        return {
            "extracted": await self.files.put("rewritten.json", await asyncio.to_thread(to_json, made)),
            "markdown": await self.files.put("rewritten.md", made.markdown.encode()),
        }

    async def save_rewritten(self, connection: Connection, made: JSON) -> None:
        """Save the rewritten text and keep the extracted text as well.

        Later stages then create new chunks, summaries and tags.
        """
        if not isinstance(made, dict):
            return
        place = {"document": self._source.id, "revision": self._revision}
        await self.files.forget(connection, await connection.execute(QUERIES.delete_artifact, place | PLAIN_KIND))
        await connection.execute(QUERIES.keep_plain, place)
        await self.files.keep(connection, "markdown", made["markdown"], MARKDOWN_TYPE)
        await self.files.keep(connection, "extracted", made["extracted"], JSON_TYPE)
        await self.files.forget(connection, await connection.execute(QUERIES.delete_batches, place))
        await self._save_pages(connection)
        await connection.execute(QUERIES.set_found, self._found(await self._read_extracted()))
        await self._run.forget_stages(connection, [CHUNKED, FACTS_FOUND, *STAGES, IMPROVEMENT_PLANNED])

    # chunked

    async def chunk(self) -> JSON:
        if self._short:
            self._chunks = self._short.chunks
            return len(self._chunks)
        extracted = await self._read_extracted()
        document = await asyncio.to_thread(to_json, extracted)
        self._chunks = await chunk_in_sandbox(self._tools.sandbox, document, extracted.markdown)
        return len(self._chunks)

    async def save_chunks(self, connection: Connection, made: JSON) -> None:
        del made
        place: dict[str, Any] = {"document": self._source.id, "revision": self._revision}
        if not self._short:  # a revision that starts with this stage inherits only files
            await self._save_pages(connection)
        await connection.execute(QUERIES.delete_chunks, place)
        await connection.execute(QUERIES.insert_chunks, place | {"chunks": Jsonb(chunk_rows(self._chunks))})
        written = await self._read_extracted()
        about = {name: written.metadata.extra[name] for name in WRITTEN_BY if name in written.metadata.extra}
        values = place | {"written": Jsonb(about)}
        await self.files.forget(connection, await connection.execute(QUERIES.switch_revision, values))
        await place_highlights(connection, self._source.id)

    # facts_found

    async def find_facts(self) -> JSON:
        """Find the facts. If this fails, processing continues without facts."""
        extracted = await self._read_extracted()
        texts = [one.content for one in self._chunks] or [extracted.markdown[:LANGUAGE_SAMPLE]]
        language = await asyncio.to_thread(detect_document_language, texts, extracted.metadata.language)
        if self._short:
            self._facts = add_language(self._short.facts, extracted, language)
            return len(self._facts)
        find = partial(find_in_sandbox, self._tools.sandbox, extracted)
        name = self.file.filename
        try:
            if self.source_type == SourceType.PDF:
                async with self.files.local_copy(self.file.key) as path:
                    self._facts = await find(path, name, language)
            else:
                self._facts = await find(None, name, language)
        except ENDED as error:
            return {"facts": 0, "error": error.code}
        return len(self._facts)

    async def save_facts(self, connection: Connection, made: JSON) -> None:
        del made
        await save_facts(connection, self._source.id, self._revision, self._facts)

    async def _save_pages(self, connection: Connection) -> None:
        extracted = await self._read_extracted()
        place = {"document": self._source.id, "revision": self._revision}
        await connection.execute(QUERIES.delete_pages, place)
        if pages := page_rows(extracted):
            await connection.execute(QUERIES.insert_pages, place | {"pages": Jsonb(pages)})
        if figures := figure_rows(extracted):
            await connection.execute(QUERIES.insert_figures, place | {"figures": Jsonb(figures)})

    async def _read_extracted(self) -> Extracted:
        """Return the extracted text, from memory or from the file that an earlier attempt stored."""
        if self._extracted is None:
            body = await self.files.read("extracted", EXTRACTED_BYTES)
            self._extracted = await asyncio.to_thread(from_json, body)
        return self._extracted


# Rows of the database, also written by bulk runs (octavo.bulk).


def chunk_rows(chunks: Sequence[Chunk]) -> list[dict[str, Any]]:
    return [{"id": str(new_id()), **{name: getattr(one, name) for name in one.__slots__}} for one in chunks]


def page_rows(extracted: Extracted) -> list[dict[str, Any]]:
    bookmarks = bookmarks_by_page(extracted)
    regions = _regions_by_page(extracted)
    return [
        {
            **{name: getattr(page, name) for name in page.__slots__},
            "bookmarks": bookmarks.get(page.number, []),
            "regions": regions.get(page.number, []),
        }
        for page in extracted.pages
    ]


def figure_rows(extracted: Extracted) -> list[dict[str, Any]]:
    figures = [one for one in extracted.figures if 0 < one.number <= MOST_FIGURES]
    return [{name: getattr(one, name) for name in one.__slots__} for one in figures]


def _regions_by_page(extracted: Extracted) -> dict[int, list[dict[str, JSON]]]:
    found: dict[int, list[dict[str, JSON]]] = {}
    for one in extracted.regions:
        values: dict[str, JSON] = {name: getattr(one, name) for name in one.__slots__ if name != "page"}
        found.setdefault(one.page, []).append(values)
    return found


def without_rewrite_metadata(extracted: Extracted) -> Extracted:
    """Remove the part of the file's metadata that claims that Octavo rewrote the text.

    Only Octavo may set such metadata.
    """
    about = extracted.metadata
    if not about.extra.keys() & set(WRITTEN_BY):
        return extracted
    extra = {name: text for name, text in about.extra.items() if name not in WRITTEN_BY}
    return replace(extracted, metadata=replace(about, extra=extra))


def file_details(extracted: Extracted) -> dict[str, JSON]:
    """Return additional metadata to show to users.

    It is shortened, because a file can contain any amount of metadata.
    """
    extra = {name: text for name, text in extracted.metadata.extra.items() if name not in WRITTEN_BY}
    said: dict[str, JSON] = {name[:60]: text[:500] for name, text in list(extra.items())[:MOST_DETAILS]}
    if extracted.quality == Quality.PARTIAL:
        said["pages_with_text"] = extracted.pages_with_text
    if extracted.moments:
        said["seconds"] = round(extracted.moments[-1].seconds)
    return said


KIND = JobKind(
    NAME,
    process_document,
    time_limit_seconds=STAGE_SECONDS,
    limit_renewed_by_stage=True,
    starts_per_second=STARTS_PER_SECOND,
    check_input=read_input,
)
