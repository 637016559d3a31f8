"""A book whose every page says something of its own, a model that reads it, and analyses of it from start to end."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from octavo.ai.gateway import Gateway
from octavo.analyse import analyses, details, prompts
from octavo.analyse.prompts import PromptFields
from octavo.analyse.segments import check_coverage
from octavo.core.errors import StorageFailed
from octavo.core.settings import Settings
from octavo.core.types import new_id
from octavo.jobs.job_run import ClaimedJob, FaultPlan, Run
from octavo.pipeline import Tools
from octavo.records.analyses import Analysis, ItemView, ResultView
from octavo.sandbox import Sandbox
from octavo.storage import open_bucket
from tests.support.engine import FROM_THE_BEGINNING, Engine
from tests.support.engine import QUERIES as JOBS
from tests.support.fake_ai import Asked
from tests.support.library import Desk, open_desk
from tests.support.pdf import Pdf, Words
from tests.support.processes import PATIENCE_SECONDS
from tests.support.processing import OpenSandbox, attempt
from tests.support.working import working

_ASKED = re.compile(r"Answer for \w+ (\d+) to (\d+)")
_PART = re.compile(r"<part-(\d+)-")
OPEN = ("created", "queued", "analyzing")


def sentence(page: int) -> str:
    return f"The harbour fee of pier {page} is {page * 7} crowns."


def write_book(pages: int) -> bytes:
    return Pdf(
        [[Words(sentence(page)), Words("Gulls cry over the water.", top=140)] for page in range(1, pages + 1)]
    ).write()


def read_pages(asked: Asked) -> tuple[int, int] | None:
    """Which pages a question is about; nothing for what is no question about pages."""
    found = _ASKED.search(asked.text)
    return (int(found[1]), int(found[2])) if found else None


def answer_well(asked: Asked) -> str:
    """The first and the last page that are asked about, quoted; put together, the first page of each part."""
    if pages := read_pages(asked):
        cited = [{"page": page, "quote": sentence(page), "relevance": 1.0} for page in sorted(set(pages))]
        said = {"found": True, "answer": f"Pages {pages}.", "summary": f"Read up to {pages[1]}.", "citations": cited}
        return json.dumps(said)
    firsts = sorted(int(first) for first in _PART.findall(asked.text))
    cited = [{"page": page, "quote": sentence(page), "relevance": 1.0} for page in sorted(set(firsts))[:20]]
    return json.dumps({"answer": f"{len(firsts)} parts.", "citations": cited})


@dataclass(frozen=True, slots=True)
class Study:
    """One owner with a document, and a worker that is there when a test wants it."""

    desk: Desk
    owner: UUID
    document: UUID
    folder: Path
    sandbox: Sandbox
    gateway: Gateway | None = None

    def work(self, **more: Any) -> Any:  # noqa: ANN401 - a context manager
        return working(self.desk, self.sandbox, self.folder, gateway=more.pop("gateway", self.gateway), **more)

    async def prompt(self, content: str = "What is the harbour fee?", order: int = 1) -> UUID:
        async with self.desk.database.transaction() as connection:
            words = PromptFields(title=content[:40], content=content, execution_order=order)
            return (await prompts.add_prompt(connection, self.owner, words)).id

    async def start(self, asked: Sequence[UUID], **more: Any) -> UUID:  # noqa: ANN401
        async with self.desk.database.transaction() as connection:
            return await analyses.start_analysis(connection, self.owner, self.document, asked, **more)

    async def show(self, analysis: UUID) -> Analysis:
        async with self.desk.database.connection() as connection:
            return await details.show_analysis(connection, self.owner, analysis)

    async def results(self, analysis: UUID) -> list[ResultView]:
        async with self.desk.database.connection() as connection:
            return await details.list_results(connection, self.owner, analysis)

    async def items(self, analysis: UUID) -> list[ItemView]:
        async with self.desk.database.connection() as connection:
            return (await details.list_items(connection, self.owner, analysis, limit=500)).items

    async def ended(self, analysis: UUID) -> Analysis:
        """The worker is in the same process, so polling has to be cheap."""
        await self.wait("SELECT 1 FROM analyses WHERE id = %s AND status <> ALL (%s)", analysis, list(OPEN))
        return await self.show(analysis)

    async def prepare(self) -> None:
        """The analysis is planned and in line, and nothing was asked yet."""
        await self._attempt(await self._claim(["analyse_document"]))

    async def break_off(self, point: str) -> None:
        """An attempt at what is next ends at a fault point as with a kill: its lease runs out, and nobody says why."""
        job = await self._claim(["analyse_document", "answer_segment", "consolidate_answers"])
        if not point.startswith("claim."):
            with pytest.raises(StorageFailed):
                await self._attempt(job, f"{point}=raise")
        await self.run("UPDATE jobs SET lease_expires_at = engine_now() - interval '1 s' WHERE status = 'processing'")

    async def begin_attempt(self, tools: Tools) -> Run[Tools]:
        """The next analysis, as its handler gets it."""
        job = await self._claim(["analyse_document"])
        return Run(job, tools, self.desk.database, FaultPlan(""), lambda: None)

    async def _claim(self, kinds: list[str]) -> ClaimedJob:
        values = {"worker": new_id(), "kinds": kinds, "held": [], "tokens": [], "outputs": Jsonb([]), "slots": 1}
        async with (
            self.desk.database.connection() as connection,
            connection.cursor(row_factory=class_row(ClaimedJob)) as cursor,
        ):
            await cursor.execute(JOBS.exchange, values | {"lease": 60, **FROM_THE_BEGINNING})
            job = await cursor.fetchone()
        assert job
        return job

    async def _attempt(self, job: ClaimedJob, faults: str = "") -> None:
        tools = Tools(Settings(data_dir=self.folder), self.desk.database, self.desk.bucket, self.sandbox)
        await attempt(job, replace(tools, gateway=self.gateway) if self.gateway else tools, faults)
        async with self.desk.database.connection() as connection:
            values = {"worker": new_id(), "kinds": [], "held": [job.id], "tokens": [job.lease_token]}
            more = {"outputs": Jsonb([None]), "slots": 0, "lease": 60, **FROM_THE_BEGINNING}
            await connection.execute(JOBS.exchange, values | more)

    async def wait(self, statement: str, *values: object) -> None:
        """Until a row answers the statement."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not await self.desk.rows(statement, *values):  # noqa: ASYNC110 - somebody else makes it true
                await asyncio.sleep(0.02)

    async def run(self, statement: str, *values: object) -> None:
        await self.desk.rows(statement, *values)


async def put_book(desk: Desk, owner: UUID, pages: int) -> UUID:
    """A book as it is when it was read, without the time that reading takes."""
    document, texts = new_id(), [f"{sentence(page)}\n\nGulls cry over the water.\n" for page in range(1, pages + 1)]
    ends = list(accumulate(map(len, texts)))
    body, markdown = write_book(pages), "".join(texts).encode()
    values = (document, owner, new_id(), sha256(body).digest(), len(body), pages)
    await desk.rows(DOCUMENT, *values)
    for kind, content, revision in (("source", body, 0), ("markdown", markdown, 1)):
        stored = await desk.bucket.put(f"tests/{document}/{kind}", content)
        await desk.rows(OBJECT, stored.key, stored.bytes, stored.sha256)
        await desk.rows(ARTIFACT, new_id(), document, kind, revision, stored.key)
    numbers = list(range(1, pages + 1))
    await desk.rows(PAGES, document, numbers, [end - len(text) for end, text in zip(ends, texts, strict=True)], ends)
    return document


async def begin(info: str, data: Path, pages: int, prompts: int, at_once: int) -> UUID:
    """A book that was read, and its analysis in line, in an installation with this database and data folder."""
    folder = data / "objects"
    async with aclosing(open_bucket(folder.as_uri())) as bucket, open_desk(info, bucket) as desk:
        owner = await desk.new_owner()
        study = Study(desk, owner, await put_book(desk, owner, pages), data, OpenSandbox())
        asked = [await study.prompt(f"Question {number}?", number) for number in range(prompts)]
        return await study.start(asked, at_once=at_once)


def check_answers(engine: Engine, pages: int, prompts: int) -> None:
    """Every page is answered for once to every prompt, and what is cited stands there."""
    rows = engine.rows(ANSWERS)
    asked = {row["prompt_id"] for row in rows}
    assert len(asked) == prompts
    for prompt in asked:
        assert check_coverage(
            [(row["first"], row["last"]) for row in rows if row["prompt_id"] == prompt], pages
        ).is_complete
    assert all(row["count"] == 1 for row in rows)
    results = engine.rows("SELECT status, citations FROM analysis_results")
    assert [row["status"] for row in results] == ["completed"] * prompts
    cited = [one for row in results for one in row["citations"]]
    assert all(one["verified"] and one["quote"] == sentence(one["page"]) for one in cited)
    assert {one["page"] for one in cited} == set(range(1, pages + 1, 100))


ANSWERS = """
    SELECT i.prompt_id, s.first, s.last, count(*) FROM analysis_items i JOIN segments s ON s.id = i.segment_id
    WHERE i.status = 'done' GROUP BY 1, 2, 3"""
DOCUMENT = """
    INSERT INTO documents (id, owner_id, process_id, status, filename, content_type, source_type, sha256, bytes,
                           quality, revision, last_revision, text_ready, page_count)
    VALUES (%s, %s, %s, 'completed', 'book.pdf', 'application/pdf', 'pdf', %s, %s, 'full', 1, 1, true, %s)"""
OBJECT = "INSERT INTO objects (key, bytes, sha256) VALUES (%s, %s, decode(%s, 'hex'))"
ARTIFACT = """
    INSERT INTO artifacts (id, document_id, kind, revision, key, content_type)
    VALUES (%s, %s, %s, %s, %s, 'application/octet-stream')"""
PAGES = """
    INSERT INTO pages (document_id, revision, number, char_start, char_end)
    SELECT %s, 1, number, first, last
    FROM unnest(%s::integer[], %s::integer[], %s::integer[]) AS p (number, first, last)"""
