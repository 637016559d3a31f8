"""Rewrites a document's text with a model, on request. The result of each call is stored, so it is paid for only once.

The model either cleans the extracted text, a few pages at a time, or reads the pages of the original file. If the model
refuses some pages or returns no usable answer for them, these pages keep the extracted text.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from octavo.ai.calls import Caller, FileReference, ModelAnswer, Picture
from octavo.ai.providers import VisionLimits
from octavo.ai.tasks import CLEAN_MARKDOWN, EXTRACT_PAGES, MarkdownText, PagesToRead
from octavo.core.errors import AnswerUnusable, ContentBlocked, NoModel, OctavoError, TokenLimit
from octavo.extract.by_model import Answer, CallLimits, PageRange, estimate_tokens, read_pages
from octavo.extract.by_model.rewriting import rewrite_in_sandbox
from octavo.extract.by_model.sections import (
    PAGE_TOKENS,
    Section,
    group_into_calls,
    sections_of,
    split_answer,
    write_sections,
)
from octavo.extract.extracted import Extracted, SourceType
from octavo.extract.pdf.pdf_file import PdfInSandbox
from octavo.extract.pictures.page_images import show_in_sandbox
from octavo.jobs.job_run import Run
from octavo.jobs.worker_state import cancel_tasks
from octavo.pipeline.revision_files import PageParts, RevisionFiles
from octavo.pipeline.tools import Tools

STAGE = "rewriting"
RENEW_SECONDS = 120
# The maximum size of a file in one request, for providers that do not store files.
MOST_FILE_BYTES = 20 << 20
PDF_TYPE, JPEG_TYPE = "application/pdf", "image/jpeg"
# After these errors a retry would not help, so the extracted text is kept.
REFUSED = (ContentBlocked, AnswerUnusable)
Ask = Callable[[], Awaitable[ModelAnswer[MarkdownText]]]


@dataclass(slots=True)
class Rewriting:
    """Rewrites the text of one revision with a model.

    `_made_by` is the model that gave the last answer. Usually, the same model gave all answers.
    """

    run: Run[Tools]
    files: RevisionFiles
    plain: Extracted
    generation: int = 0
    caller: Caller = field(init=False)
    _texts: dict[int, str] = field(default_factory=dict[int, str])
    _made_by: str | None = None
    _refusal: OctavoError | None = None

    def __post_init__(self) -> None:
        job = self.run.job
        self.caller = Caller(job.owner_id, job.document_id, job.id, job.lease_token, self.generation)

    async def clean(self) -> Extracted | None:
        """Let a model clean up the extracted text. Returns None if there is no text."""
        sections = sections_of(self.plain)
        runs = group_into_calls(sections)
        # In sequence, so that a killed job repeats at most one call.
        for done, places in enumerate(runs):
            await self.run.progress(done, len(runs), "parts", STAGE)
            await self._clean(sections, places)
        return await self._finish()

    async def _clean(self, sections: Sequence[Section], places: Sequence[int]) -> None:
        """Let a model clean up a batch of sections.

        If it is too long for the model, each half is cleaned separately.
        """
        shown = write_sections(self.plain.markdown, (sections[place] for place in places))
        ask = partial(self.run.tools.gateway.ask, CLEAN_MARKDOWN, shown, self.caller)
        answer = await self._ask(f"{places[0]}-{places[-1]}", ask)
        if answer is None:
            return
        if answer.whole:
            self._texts |= split_answer(answer.markdown, {place: sections[place] for place in places})
        elif half := len(places) // 2:
            await self._clean(sections, places[:half])
            await self._clean(sections, places[half:])
        else:
            self._refusal = TokenLimit()

    async def read(self, path: Path) -> Extracted | None:
        """Let a model read the pages of the file."""
        sight = self.run.tools.gateway.vision_limits(EXTRACT_PAGES.name)
        if sight is None:
            raise NoModel
        pages = [self.plain.markdown[page.start : page.end] for page in self.plain.pages]
        tokens = [estimate_tokens(text) if text else PAGE_TOKENS for text in pages]
        await self.run.progress(0, len(pages), "pages", STAGE)
        default = CallLimits()
        limits = CallLimits(min(default.single_pages, sight.pages), min(default.batch_pages, sight.pages))
        reading = await read_pages(_Reader(self, path, sight, await _digest(path)), tokens, limits)
        self._texts = split_answer(reading.markdown, dict(enumerate(sections_of(self.plain))))
        return await self._finish()

    async def answer(self, pages: PageRange, ask: Ask) -> Answer:
        """Return the model's text for the given pages.

        The text is empty if the model refused, or if there is only one page and it is too long.
        """
        answer = await self._ask(f"{pages.first}-{pages.last}", ask)
        if answer and not answer.whole and pages.first == pages.last:
            answer, self._refusal = None, TokenLimit(f"Affected: page {pages.first}.")
        await self.run.progress(pages.last, len(self.plain.pages), "pages", STAGE)
        return answer or Answer("")

    async def _ask(self, part: str, ask: Ask) -> Answer | None:
        """Return the model's answer, which may be from an earlier attempt. Returns None if the model refused."""

        async def work() -> bytes:
            try:
                async with self._kept_alive():
                    answered = await ask()
            except TokenLimit:
                return json.dumps({"whole": False}).encode()
            return json.dumps({"markdown": answered.output.markdown, "made_by": answered.made_by}).encode()

        try:
            made: dict[str, Any] = json.loads(await PageParts(self.run, self.files).make(STAGE, part, work))
        except REFUSED as error:
            self._refusal = error
            return None
        if "markdown" not in made:
            return Answer("", whole=False)
        self._made_by = made["made_by"]
        return Answer(made["markdown"])

    @asynccontextmanager
    async def _kept_alive(self) -> AsyncGenerator[None]:
        """Keep extending the time limit of the stage while a model call is running.

        A call may take longer than the limit if several models are tried.
        """

        async def renew() -> None:
            while True:
                await asyncio.sleep(RENEW_SECONDS)
                await self.run.keep_alive()

        task = asyncio.create_task(renew())
        try:
            yield
        finally:
            await cancel_tasks([task])

    async def _finish(self) -> Extracted | None:
        if self._made_by is None:
            if self._refusal:
                raise self._refusal
            return None
        return await rewrite_in_sandbox(self.run.tools.sandbox, self.plain, self._texts, self._made_by)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Sends pages of the file to a model."""

    work: Rewriting
    path: Path
    sight: VisionLimits
    digest: str

    async def read(self, pages: PageRange) -> Answer:
        async def ask() -> ModelAnswer[MarkdownText]:
            given = PagesToRead(await self._show(pages), pages.first)
            return await self.work.run.tools.gateway.ask(EXTRACT_PAGES, given, self.work.caller)

        return await self.work.answer(pages, ask)

    async def _show(self, pages: PageRange) -> FileReference | tuple[Picture, ...]:
        """Return the pages as a PDF or as pictures.

        Raises `TokenLimit` if a PDF of several pages is too large to send.
        """
        source_type, count = self.work.plain.source_type, pages.last - pages.first + 1
        if source_type is SourceType.PDF and self.sight.pdfs:
            sandbox = self.work.run.tools.sandbox
            body = await PdfInSandbox(sandbox, self.path, limits=sandbox.limits).copy(*pages)
            if len(body) <= MOST_FILE_BYTES:
                # Hash the file and the page numbers, because extracting the pages again may give different bytes.
                named = f"{self.digest}:{pages.first}-{pages.last}"
                return FileReference(hashlib.sha256(named.encode()).hexdigest(), PDF_TYPE, count, _reader_of(body))
            if count > 1:
                raise TokenLimit
        return tuple([await self._picture(number) for number in range(pages.first, pages.last + 1)])

    async def _picture(self, number: int) -> Picture:
        source_type, sandbox = self.work.plain.source_type, self.work.run.tools.sandbox
        return Picture(await show_in_sandbox(sandbox, self.path, source_type, number, self.sight.pixels), JPEG_TYPE)


def _reader_of(body: bytes) -> Callable[[], Awaitable[bytes]]:
    async def read() -> bytes:
        return body

    return read


async def _digest(path: Path) -> str:
    def read() -> str:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    return await asyncio.to_thread(read)
