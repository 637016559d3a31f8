"""Documents are compared when their vectors are there, and what is found goes with them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import UUID

import pytest

from octavo.connect import detection
from tests.support.library import Desk
from tests.support.processing import OpenSandbox
from tests.support.working import add, working

SAFE = (
    "# Harbour report\n\n"
    "The new harbour bridge opened in 2019 and carries forty thousand vehicles every day. "
    "Engineers consider the bridge safe and the steel cables are in excellent condition. "
)
UNSAFE = (
    "# Inspection note\n\n"
    "The harbour bridge carries forty thousand vehicles every day. "
    "Engineers do not consider the bridge safe, and the steel cables are in poor, dangerous condition. "
)
STUDY = (
    "# Traffic study\n\n"
    "The new bridge across the harbour, open since 2019, is used by roughly forty thousand cars and trucks daily, "
    "and engineers call it safe. "
)
BREAD = "# Sourdough\n\n" + "Feed the starter with flour and water, let the dough rest overnight, bake it with steam. "
PAIRS = """SELECT engine, least(source_document::text, target_document::text) AS one,
                  greatest(source_document::text, target_document::text) AS other FROM connections"""


@pytest.fixture
def sandbox() -> OpenSandbox:
    """The texts are the test's own."""
    return OpenSandbox()


async def found_between(desk: Desk, *documents: UUID) -> set[str]:
    one, other = sorted(map(str, documents))
    return {row["engine"] for row in await desk.rows(PAIRS) if (row["one"], row["other"]) == (one, other)}


async def settled(desk: Desk) -> None:
    """Nothing is in line or being done any more."""
    open_jobs = "SELECT id FROM jobs WHERE status IN ('queued', 'processing') AND kind <> 'housekeeping'"
    async with asyncio.timeout(60):
        while await desk.rows(open_jobs):  # noqa: ASYNC110 - another task makes it true
            await asyncio.sleep(0.02)


async def test_what_agrees_and_what_contradicts_is_found_and_bread_is_left_alone(
    desk: Desk, owner: UUID, sandbox: OpenSandbox, folder: Path
) -> None:
    async with working(desk, sandbox, folder):
        texts = (SAFE, UNSAFE, STUDY, BREAD)
        safe, unsafe, study, bread = [await add(desk, owner, "note.md", text.encode()) for text in texts]
        await settled(desk)
    assert "semantic_similarity" in await found_between(desk, safe, study)
    assert "contradiction_detection" in await found_between(desk, safe, unsafe)
    assert "contradiction_detection" not in await found_between(desk, safe, study)
    assert not {engine for other in (safe, unsafe, study) for engine in await found_between(desk, bread, other)} - {
        "thematic_bridge"
    }
    (output,) = await desk.rows("SELECT output FROM jobs WHERE kind = 'detect_connections' AND document_id = %s", study)
    engines = output["output"]["engines"]
    assert engines["semantic_similarity"]["kept"] > 0
    assert all(engine["seconds"] >= 0 for engine in engines.values())
    assert (output["output"]["calls"], output["output"]["cost_usd"]) == (0, 0.0)


async def test_a_comparison_that_ends_late_keeps_what_a_later_one_found(
    desk: Desk, owner: UUID, sandbox: OpenSandbox, folder: Path
) -> None:
    async with desk.database.connection() as connection:
        before_the_other_came = await detection.start_of_comparison(connection)
    async with working(desk, sandbox, folder):
        safe, study = [await add(desk, owner, "note.md", text.encode()) for text in (SAFE, STUDY)]
        await settled(desk)
    found = await found_between(desk, safe, study)
    async with desk.database.connection() as connection:
        await detection.save(connection, owner, safe, [], before_the_other_came)
    assert found
    assert await found_between(desk, safe, study) == found
    async with desk.database.connection() as connection:
        await detection.save(connection, owner, safe, [], await detection.start_of_comparison(connection))
    assert not await found_between(desk, safe, study)
