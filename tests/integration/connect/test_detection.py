"""Documents are compared when their vectors are there, and what is found goes with them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from psycopg.types.json import Jsonb

from octavo.ai.gateway import Gateway
from octavo.ai.gateway_setup import open_gateway
from octavo.connect import detection
from octavo.connect.connections import Decision, decide, list_connections, rebuild
from octavo.connect.evidence import SentenceCache
from octavo.core.settings import Settings
from octavo.library.changes import Edit, edit_documents
from tests.support.connections import put_passage, put_vector
from tests.support.fake_ai import FakeGemini
from tests.support.fake_ai.server import SECRET, Asked
from tests.support.library import Desk
from tests.support.processes import PATIENCE_SECONDS
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
GERMAN = (
    "# Bericht\n\nDie neue Hafenbrücke ist ein Segen für die Stadt und ihre Bürger, sagt der Rat.",
    "# Brief\n\nDie neue Hafenbrücke ist eine Gefahr für alle, die sie betreten müssen, schreibt der Ingenieur.",
)
LEASES = [
    f"# Lease of the tower crane\n\nEither party may end the lease with a notice period of {days} days. "
    f"The lessee pays a deposit of {deposit} EUR before delivery."
    for days, deposit in ((30, "10,000"), (90, "12,500"))
]
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
    async with asyncio.timeout(PATIENCE_SECONDS):
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
    # The four comparisons run in parallel: the pair is kept by the one that ends last.
    jobs = await desk.rows("SELECT output FROM jobs WHERE kind = 'detect_connections'")
    engines = [job["output"]["engines"] for job in jobs]
    assert sum(each["semantic_similarity"]["kept"] for each in engines) > 0
    assert all(engine["seconds"] >= 0 for each in engines for engine in each.values())
    assert {(job["output"]["calls"], job["output"]["cost_usd"]) for job in jobs} == {(0, 0.0)}


async def test_all_contradictions_of_two_passages_are_kept_and_judged_one_by_one(
    desk: Desk, owner: UUID, sandbox: OpenSandbox, folder: Path
) -> None:
    async with working(desk, sandbox, folder):
        draft, mail = [await add(desk, owner, "lease.md", text.encode()) for text in LEASES]
        await settled(desk)
        assert await found_between(desk, draft, mail) == {"contradiction_detection"}
        async with desk.database.transaction() as connection:
            first, second = (await list_connections(connection, owner, draft)).items
            await decide(connection, owner, first.id, Decision.DISMISS)
            await rebuild(connection, owner)
        await settled(desk)
    async with desk.database.connection() as connection:
        (left,) = (await list_connections(connection, owner, mail)).items
    assert {one.source.quote for one in (first, second)} == set(re.findall(r"(?:Either|The lessee) .*?\.", LEASES[0]))
    assert (left.source.quote, left.target.quote) == (second.target.quote, second.source.quote)


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


async def a_passage(
    desk: Desk,
    owner: UUID,
    number: int,
    concepts: dict[str, float],
    polarity: float,
    vector: Sequence[float] = (1.0, 0.0),
) -> UUID:
    """A document with one described chunk."""
    document = (await desk.add(owner, f"Note {number}.".encode())).document_id
    await desk.rows("UPDATE documents SET revision = 1, last_revision = 1, language = 'de' WHERE id = %s", document)
    passage = await put_passage(desk.rows, document, f"Die Brücke {number} ist gut oder schlecht.")
    await put_vector(desk.rows, passage, vector)
    tone = Jsonb({"polarity": polarity, "primary_emotion": "neutral"})
    await desk.rows("UPDATE chunks SET tone = %s, importance = 0.9 WHERE id = %s", tone, passage)
    for concept, importance in concepts.items():
        await desk.rows(
            "INSERT INTO chunk_concepts (chunk_id, concept, importance, owner_id) VALUES (%s, %s, %s, %s)",
            *(passage, concept, importance, owner),
        )
    return passage


async def found_for(desk: Desk, owner: UUID, passage: UUID) -> detection.DetectionResult:
    result = detection.DetectionResult()
    document = await desk.one("SELECT document_id FROM chunks WHERE id = %s", passage)
    async with desk.database.connection() as connection:
        model = await detection.find_model(connection, document, "test")
        assert model
        scope = await detection.search_scope(connection, owner, document, model)
    await detection.compare(desk.database, scope, [passage], SentenceCache(), result)
    return result


async def test_what_speaks_of_the_same_in_the_opposite_tone_is_not_crowded_out(desk: Desk, owner: UUID) -> None:
    praise = await a_passage(desk, owner, 0, {"Brücke": 0.4, "Stahl": 0.9}, 0.8)
    for number in range(detection.MOST_BY_CONCEPTS + 1):
        await a_passage(desk, owner, number + 1, {"Brücke": 0.9, "Stahl": 0.9}, 0.5)
    blame = await a_passage(desk, owner, 100, {"brücke": 0.4}, -0.8)
    (one,) = (await found_for(desk, owner, praise)).opposite_tones
    assert (one.pair.source.id, one.pair.target.id) == (praise, blame)


async def test_of_a_common_concept_a_limited_number_of_chunks_is_read_and_rare_ones_count_first(
    desk: Desk, owner: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = {"most_per_concept": 5, "most_candidates": 6}
    monkeypatch.setattr(detection, "CONCEPT_LIMITS", detection.CONCEPT_LIMITS | limits)
    mine = await a_passage(desk, owner, 0, {"Stahl": 0.9, "Pylon": 0.3}, 0.5)
    for number in range(12):
        await a_passage(desk, owner, number + 1, {"Stahl": 0.5 + number / 100}, 0.5)
    rare = await a_passage(desk, owner, 20, {"pylon": 0.3, "stahl": 0.1}, 0.5)
    stranger = await desk.new_owner()
    await a_passage(desk, stranger, 21, {"Pylon": 0.9}, 0.5)
    document = await desk.one("SELECT document_id FROM chunks WHERE id = %s", mine)
    async with desk.database.connection() as connection:
        model = await detection.find_model(connection, document, "test")
        assert model
        scope = await detection.search_scope(connection, owner, document, model)
        values = scope.values() | {"chunks": [mine]} | detection.CONCEPT_LIMITS
        rows = await (await connection.execute(detection.QUERIES.by_concepts, values)).fetchall()
    found = {row[1] for row in rows}
    common = "SELECT chunk_id FROM chunk_concepts WHERE concept = 'Stahl' AND chunk_id <> %s"
    best = await desk.rows(f"{common} ORDER BY importance DESC LIMIT 5", mine)
    assert found == {rare, *(row["chunk_id"] for row in best)}


async def test_concepts_move_with_their_document_to_another_account(desk: Desk, owner: UUID) -> None:
    passage, other = await a_passage(desk, owner, 0, {"Stahl": 0.9}, 0.5), await desk.new_owner()
    await desk.rows("UPDATE documents SET owner_id = %s RETURNING id", other)
    assert await desk.one("SELECT owner_id FROM chunk_concepts WHERE chunk_id = %s", passage) == other


async def describe_as(desk: Desk, document: UUID, polarity: float) -> None:
    """What a model that reads German would say of it."""
    tone = Jsonb({"polarity": polarity, "primary_emotion": "neutral"})
    await desk.rows("UPDATE chunks SET tone = %s WHERE document_id = %s", tone, document)
    await desk.rows(
        "INSERT INTO chunk_concepts (chunk_id, concept, importance, owner_id) "
        "SELECT c.id, 'Hafenbrücke', 0.9, d.owner_id FROM chunks c JOIN documents d ON d.id = c.document_id "
        "WHERE d.id = %s ON CONFLICT DO NOTHING",
        document,
    )


def confirm(asked: Asked) -> str:
    numbers = re.findall(r"Pair (\d+)\.", asked.text)
    said = [{"pair": int(n), "verdict": "contradiction", "explanation": "Segen oder Gefahr."} for n in numbers]
    return json.dumps({"pairs": said})


async def test_opposite_tones_are_a_contradiction_only_where_a_model_confirms_it(
    desk: Desk, owner: UUID, sandbox: OpenSandbox, folder: Path
) -> None:
    async def compare(gateway: Gateway | None = None) -> list[dict[str, Any]]:
        async with working(desk, sandbox, folder, gateway=gateway):
            async with desk.database.transaction() as connection:
                await rebuild(connection, owner, [praise])
            await settled(desk)
        return await desk.rows("SELECT status, explanation FROM connections WHERE engine = 'contradiction_detection'")

    async with working(desk, sandbox, folder):
        praise, blame = [await add(desk, owner, "note.md", text.encode()) for text in GERMAN]
        await settled(desk)
    await describe_as(desk, praise, 0.8)
    await describe_as(desk, blame, -0.8)
    assert await compare() == []
    with FakeGemini() as gemini:
        gemini.answer = confirm
        given = {"providers": "gemini", "gemini_key": SECRET, "gemini_url": gemini.url, "embedding_model": "local"}
        async with aclosing(open_gateway(Settings.model_validate(given), desk.database)) as gateway:
            found = await compare(gateway)
    assert found == [{"status": "confirmed", "explanation": "Segen oder Gefahr."}]


async def test_a_personal_tag_never_removes_a_bridge_and_one_subject_is_none(desk: Desk, owner: UUID) -> None:
    shared, nothing = {"buffer": 0.5, "slow release": 0.5}, 0.0
    bog = await a_passage(desk, owner, 0, {**shared, "peat": 0.9, "moss": 0.9}, nothing)
    bank = await a_passage(desk, owner, 1, {**shared, "money": 0.9, "credit": 0.9}, nothing, (0.0, 1.0))
    fen = await a_passage(desk, owner, 2, {**shared, "fen": 0.9, "reeds": 0.9}, nothing, (0.0, 1.0))
    documents = [row["document_id"] for row in await desk.rows("SELECT document_id FROM chunks ORDER BY content")]
    async with desk.database.connection() as connection:
        await edit_documents(connection, owner, documents, Edit(tags=["To read"]))
    assert {pair.target.id for pair, _ in (await found_for(desk, owner, bog)).bridges} == {bank, fen}
    # The same topics, or documents that lie close together as a whole, are one domain.
    await desk.rows("UPDATE chunks SET themes = '{Wetlands,Water}' WHERE id = ANY (%s)", [bog, fen])
    await desk.rows("UPDATE chunks SET themes = '{Money,Water}' WHERE id = %s", bank)
    assert {pair.target.id for pair, _ in (await found_for(desk, owner, bog)).bridges} == {bank}
    near = await put_passage(desk.rows, documents[1], "Bogs and fens keep the rain.", index=1)
    await put_vector(desk.rows, near, [3.0, 0.5])
    assert (await found_for(desk, owner, bog)).bridges == []
