"""Invoices converted by workers that are killed again and again: each becomes one XML, and what it would be without."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from hashlib import sha256
from pathlib import Path

import pytest

from octavo.convert.mappings.shipped_mappings import load_shipped
from octavo.convert.rules.engine import convert as convert_words
from octavo.convert.values import conversion_to_json
from octavo.extract.pdf.placed_words import pages_as_json, read_words
from octavo.facts.words import sheets_from_json
from octavo.storage import open_bucket
from tests.support.conversions import convert
from tests.support.engine import Engine, Workers, engine_on, wait_for_end, workers_in
from tests.support.invoices import make_invoice
from tests.support.library import open_desk
from tests.support.processes import PATIENCE_SECONDS

AT_ONCE, EVERY_SECONDS = 5, 5.0
KILLS = (
    "stage.work.before@7=kill",
    "stage.commit.before@5=kill",
    "stage.commit.after@4=kill",
)
DONE = "SELECT count(*) FROM jobs WHERE status = 'complete'"
LEFT = "SELECT count(*) FROM jobs WHERE status IN ('queued', 'processing')"
MADE = """
    SELECT encode(c.sha256, 'hex') AS source, r.record, o.key, o.bytes, encode(o.sha256, 'hex') AS sha256
    FROM conversions c JOIN jobs j USING (id) JOIN revisions r ON r.conversion_id = c.id
    JOIN conversion_files f ON f.conversion_id = c.id AND f.kind = 'result_xml' JOIN objects o ON o.key = f.key
    WHERE j.status = 'complete' AND c.revision = 1"""
# What was told of a conversion that ended twice, or whose only stage was done twice.
TWICE = """
    SELECT process_id FROM events WHERE kind IN ('complete', 'stage') GROUP BY process_id, kind HAVING count(*) > 1"""
TAKEN_OVER = "SELECT count(*) FROM events WHERE detail ->> 'reason' = 'lease_expired'"


async def put_in_line(info: str, data: Path, bodies: Sequence[bytes]) -> None:
    async with aclosing(open_bucket((data / "objects").as_uri())) as bucket, open_desk(info, bucket) as desk:
        owner = await desk.new_owner()
        for body in bodies:
            assert (await convert(desk, owner, body)).created


def work_off(engine: Engine, workers: Workers, count: int) -> int:
    """Two workers; one is killed every five seconds if something was done since, and another takes its place."""
    chance = random.Random(count)
    alive = [workers.start() for _ in range(2)]
    killed, done_before, due = 0, 0, time.monotonic() + EVERY_SECONDS
    deadline = time.monotonic() + 3000  # only limits a test that fails
    while engine.one(LEFT):
        assert time.monotonic() < deadline
        done = engine.one(DONE)
        if time.monotonic() >= due and done > done_before:
            place = chance.randrange(2)
            alive[place].kill()
            alive[place] = workers.start()
            killed, done_before, due = killed + 1, done, time.monotonic() + EVERY_SECONDS
        time.sleep(0.05)
    return killed


def test_every_invoice_is_converted_once_wherever_workers_are_killed(folder: Path, database_info: str) -> None:
    bodies = [make_invoice(number).pdf for number in range(40)]
    with converting(folder, database_info, bodies) as (engine, workers):
        for point in KILLS:
            assert workers.start(faults=point).wait(PATIENCE_SECONDS) == -signal.SIGKILL
        workers.start()
        wait_for_end(engine)
        workers.end()
        check(engine, workers, bodies, len(KILLS), folder)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_thousand_invoices_are_converted_once_while_workers_are_killed(folder: Path, database_info: str) -> None:
    bodies = [make_invoice(number).pdf for number in range(1000)]
    with converting(folder, database_info, bodies) as (engine, workers):
        began = time.monotonic()
        kills = work_off(engine, workers, len(bodies))
        seconds, taken_over = time.monotonic() - began, engine.one(TAKEN_OVER)
        sys.stdout.write(f"{len(bodies)} in {seconds:.0f} s, {kills} kills, {taken_over} taken over\n")
        workers.end()
        check(engine, workers, bodies, kills, folder)


@contextmanager
def converting(folder: Path, info: str, bodies: Sequence[bytes]) -> Generator[tuple[Engine, Workers]]:
    with workers_in(folder, info, lease_seconds=2, worker_slots=AT_ONCE) as workers, engine_on(info) as engine:
        asyncio.run(put_in_line(info, workers.data, bodies))
        yield engine, workers


def check(engine: Engine, workers: Workers, bodies: Sequence[bytes], kills: int, folder: Path) -> None:
    assert kills > 0
    assert engine.one(TAKEN_OVER) > 0
    check_results(engine, workers.data / "objects", bodies, folder)
    assert engine.rows(TWICE) == []
    engine.check_invariants()
    written = sum(1 for _ in (workers.data / "objects").rglob("result.xml"))
    assert len(bodies) <= written <= len(bodies) + kills * AT_ONCE  # a kill may leave what no row knows: the sweep's


def check_results(engine: Engine, objects: Path, bodies: Sequence[bytes], folder: Path) -> None:
    """One result for each, of equal values, whose file is as its row says."""
    rows = engine.rows(MADE)
    assert len(rows) == len(bodies)
    assert {row["source"]: row["record"] for row in rows} == dict(expected(bodies, folder))
    for row in rows:
        body = (objects / row["key"]).read_bytes()
        assert (len(body), sha256(body).hexdigest()) == (row["bytes"], row["sha256"])


def expected(bodies: Sequence[bytes], folder: Path) -> Iterator[tuple[str, object]]:
    mapping, path = load_shipped("invoice_v1"), folder / "one.pdf"
    for body in bodies:
        path.write_bytes(body)
        made = convert_words(sheets_from_json(pages_as_json(read_words(path))), mapping)
        yield sha256(body).hexdigest(), json.loads(conversion_to_json(made))
