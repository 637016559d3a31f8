"""A worker killed before and after every checkpoint of a document costs the stage in flight, and nothing else."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import Generator
from contextlib import aclosing
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from octavo.extract.detect import detect
from octavo.intake import Intake, NewUpload
from octavo.jobs.job_run import POINTS
from octavo.library.changes import retry_document
from octavo.library.highlights import NewHighlight, add_highlight
from octavo.ops.instance import bucket_of
from tests.support.engine import Engine, engine_on, wait_for_end
from tests.support.library import LIMITS, open_desk, sweep_objects
from tests.support.office import archive
from tests.support.processes import PATIENCE_SECONDS
from tests.support.site import Site, site_in

STAGES = ("extracted", "markdown_saved", "chunked", "facts_found", "classified", "enriched", "embedded")
TEXT = "# Alpha\n\nThe quick brown fox.\n\n## Beta\n\n" + "Some words for the body of it. " * 150
OUTLINE = TEXT.replace("## ", "** ").replace("# ", "* ")
# How many stages are finished after each commit: of a short text, and of a file in another format.
COMMITS = {"a.md": (4, 7), "a.org": (1, 2, 3, 4, 7)}


def deaths(name: str) -> list[tuple[str, int]]:
    """One life with a death at every point: a worker for each, and how many stages are finished when it dies.

    Before the work of a stage everything is as after the commit of the one before.
    """
    commits = COMMITS[name]
    around = [
        (point, after if point.endswith("commit.after") else before)
        for before, after in pairwise((0, *commits))
        for point in POINTS
        if "stage.commit" in point
    ]
    ends = [("complete.before", len(STAGES)), ("complete.after", len(STAGES))]
    return [("claim.after", 0), ("stage.work.before", 0), *around, *ends]


BLANK = " \n\n \t "
LATER = ("fail.before", "fail.after")


@pytest.fixture
def site(folder: Path, database_info: str) -> Generator[Site]:
    with site_in(folder, database_info, lease_seconds=30) as one:
        yield one


@pytest.fixture
def engine(database_info: str) -> Generator[Engine]:
    with engine_on(database_info) as one:
        yield one


def add(site: Site, engine: Engine, content: bytes, name: str = "a.md") -> UUID:
    owner = engine.add_owner()

    async def take() -> UUID:
        async with aclosing(bucket_of(site.settings)) as bucket, open_desk(engine.info, bucket) as desk:
            intake = Intake(desk.database, bucket, detect)
            return (await intake.take(owner, NewUpload(name), content, LIMITS)).document_id

    return asyncio.run(take())


def sweep(site: Site, engine: Engine) -> None:
    async def run() -> None:
        async with aclosing(bucket_of(site.settings)) as bucket, open_desk(engine.info, bucket) as desk:
            await sweep_objects(desk.database, bucket, 0)
            await desk.check_books()

    asyncio.run(run())


def die(site: Site, engine: Engine, point: str, time: int = 1) -> None:
    """The next worker goes on with it and dies when it comes to this point for the first time, alone."""
    worker = site.start_worker(faults=f"{point}@{time}=kill", worker_slots=1)
    assert worker.wait(PATIENCE_SECONDS) == -signal.SIGKILL
    engine.bury(worker)


def made(engine: Engine, document: UUID) -> dict[str, list[Any]]:
    """By which stage, and under which names: what is done again gets others."""
    files = engine.rows("SELECT kind, key FROM artifacts WHERE document_id = %s AND revision > 0 ORDER BY 1", document)
    chunks = engine.rows("SELECT id FROM chunks WHERE document_id = %s ORDER BY index", document)
    concepts = "SELECT xmin::text FROM chunk_concepts WHERE chunk_id = ANY (%s)"
    facts = "SELECT name, xmin::text FROM facts WHERE document_id = %s AND made_by = 'processing' ORDER BY 1, 2"
    vectors = "SELECT xmin::text FROM chunk_embeddings WHERE document_id = %s"
    by_kind = {file["kind"]: file["key"] for file in files}
    return {
        "extracted": [by_kind.get("extracted")],
        "markdown_saved": [by_kind.get("markdown")],
        "chunked": [chunk["id"] for chunk in chunks],
        "facts_found": engine.rows(facts, document),
        "classified": engine.rows("SELECT summary FROM documents WHERE id = %s", document),
        "enriched": engine.rows(concepts, [chunk["id"] for chunk in chunks]),
        "embedded": engine.rows(vectors, document),
    }


def live_and_die(site: Site, engine: Engine, name: str, content: str) -> None:
    document = add(site, engine, content.encode(), name)
    engine.run("UPDATE documents SET edited = '{tags}' WHERE id = %s", document)  # their vectors are a job of its own
    (job,) = (row["id"] for row in engine.rows("SELECT id FROM jobs WHERE document_id = %s", document))
    kept: dict[str, list[Any]] = {}
    for point, finished in deaths(name):
        die(site, engine, point)
        assert [stage for stage, _ in engine.stages(job)] == list(STAGES[:finished]), point
        now = made(engine, document)
        for stage in STAGES[:finished]:
            assert now[stage] == kept.setdefault(stage, now[stage]), f"{stage} was done again after {point}"
    row = engine.job(job)
    assert (row["status"], row["output"]) == ("complete", {"chunks": len(kept["chunked"])})
    told = Counter(event["detail"]["stage"] for event in engine.events(job) if event["kind"] == "stage")
    assert told == dict.fromkeys(STAGES, 1)
    assert [event["kind"] for event in engine.events(job)].count("complete") == 1
    chunks = engine.rows("SELECT index, content FROM chunks WHERE document_id = %s ORDER BY index", document)
    assert [chunk["index"] for chunk in chunks] == list(range(len(chunks)))
    assert "".join("".join(chunk["content"].split()) for chunk in chunks) == "".join(TEXT.split())


def fail_and_die(site: Site, engine: Engine) -> None:
    document = add(site, engine, BLANK.encode())
    (job,) = (row["id"] for row in engine.rows("SELECT id FROM jobs WHERE document_id = %s", document))
    for point in LATER:
        die(site, engine, point)
    row = engine.job(job)
    assert (row["status"], row["error_code"]) == ("failed", "EMPTY")
    assert [event["kind"] for event in engine.events(job)].count("failed") == 1


@pytest.mark.parametrize("times", [1, pytest.param(20, marks=pytest.mark.long)])
@pytest.mark.parametrize(("name", "content"), [("a.md", TEXT), ("a.org", OUTLINE)])
def test_a_document_outlives_a_death_at_every_point(
    site: Site, engine: Engine, times: int, name: str, content: str
) -> None:
    for _ in range(times):
        live_and_die(site, engine, name, content)
        sweep(site, engine)
    doctor = site.octavo("doctor")
    assert doctor.returncode == 0, doctor.stdout


def test_an_unreadable_document_is_reported_once_no_matter_which_process_dies(site: Site, engine: Engine) -> None:
    fail_and_die(site, engine)
    sweep(site, engine)


def test_a_worker_killed_between_the_files_of_an_archive_adds_none_twice(site: Site, engine: Engine) -> None:
    files = {f"{number}.md": f"# File {number}\n\nWords of file number {number}." for number in range(3)}
    document = add(site, engine, archive(files), "all.zip")
    # The fifth commit is the first file: before it, after it, and before the second one.
    for point, time in (("stage.commit.before", 5), ("stage.commit.after", 1), ("stage.commit.before", 1)):
        die(site, engine, point, time)
    assert engine.one("SELECT count(*) FROM document_parts") == 1
    worker = site.start_worker()
    wait_for_end(engine)
    worker.terminate()
    parts = engine.rows(
        "SELECT number, name, document_id FROM document_parts WHERE parent_id = %s ORDER BY 1", document
    )
    assert [(part["number"], part["name"]) for part in parts] == list(enumerate(files))
    assert len({part["document_id"] for part in parts}) == engine.one("SELECT count(*) FROM documents") - 1 == 3
    assert engine.one("SELECT count(*) FROM uploads") == 4
    sweep(site, engine)


def test_a_highlight_survives_workers_that_are_killed_while_its_document_is_processed_again(
    site: Site, engine: Engine
) -> None:
    document = add(site, engine, TEXT.encode())
    worker = site.start_worker()
    wait_for_end(engine)
    worker.terminate()
    owner = engine.one("SELECT owner_id FROM documents WHERE id = %s", document)

    async def mark_and_retry() -> None:
        async with (
            aclosing(bucket_of(site.settings)) as bucket,
            open_desk(engine.info, bucket) as desk,
            desk.database.transaction() as connection,
        ):
            new = NewHighlight("The quick brown fox.", note="ask Tomas")
            await add_highlight(connection, owner, document, None, new)
            await retry_document(connection, owner, document, "extracted")

    asyncio.run(mark_and_retry())
    placed = """
        SELECT h.quote, h.note, h.lost, c.revision,
               h.char_start = c.char_start + position(h.quote IN c.content) - 1 AS placed
        FROM highlights h JOIN documents d ON d.id = h.document_id
        JOIN chunks c ON c.document_id = d.id AND c.revision = d.revision AND strpos(c.content, h.quote) > 0"""
    kept = {"quote": "The quick brown fox.", "note": "ask Tomas", "lost": False, "placed": True}
    # The first commit writes the new chunks and finds the highlights in them.
    for point, revision in (("stage.commit.before", 1), ("stage.commit.after", 2)):
        die(site, engine, point)
        assert engine.rows(placed) == [kept | {"revision": revision}], point
    worker = site.start_worker()
    wait_for_end(engine)
    worker.terminate()
    assert engine.rows(placed) == [kept | {"revision": 2}]
    sweep(site, engine)


def test_no_point_of_a_worker_is_forgotten() -> None:
    """A heartbeat writes nothing of a document; it is the jobs' own test that dies there."""
    assert {point for point, _ in deaths("a.md")} | set(LATER) == set(POINTS) - {"heartbeat.before"}
