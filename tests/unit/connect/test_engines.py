"""Similarity, bridges, verdicts by content, and the map: pure, and the same for the same input."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID, uuid4

import numpy as np
import pytest

from octavo.connect.bridge import (
    MOST_CANDIDATES,
    DocumentDomain,
    are_different,
    choose_candidates,
    find_candidates,
)
from octavo.connect.bridge import UNKNOWN as UNKNOWN_DOMAIN
from octavo.connect.evidence import MOST_QUOTED, ChunkPair, ComparableChunk, SentenceCache, digest_of
from octavo.connect.map import HEIGHT, WIDTH, lay_out
from octavo.connect.neighbours import MOST_KEPT, UNKNOWN, find_similar, thresholds_of
from octavo.language.embedding import NAME
from octavo.records.search import Engine

HARBOUR = "Gulls cry. The harbour bridge carries forty thousand vehicles every day. Rain falls."
STUDY = "We counted for a week. Every day forty thousand vehicles use the bridge in the harbour."


def chunk(content: str = HARBOUR, number: int = 0, **more: object) -> ComparableChunk:
    return ComparableChunk(UUID(int=number) if number else uuid4(), uuid4(), content, **more)  # pyright: ignore[reportArgumentType]


def test_the_sentences_that_are_quoted_are_those_that_have_most_in_common() -> None:
    (found,) = find_similar([ChunkPair(chunk(), chunk(STUDY), 0.9)], 0.7, SentenceCache())
    assert found.quotes == (
        "The harbour bridge carries forty thousand vehicles every day.",
        "Every day forty thousand vehicles use the bridge in the harbour.",
    )
    assert found.strength == 0.9


@pytest.mark.parametrize(
    ("first", "second", "explanation"),
    [
        (HARBOUR, STUDY, "Similar wording."),
        ("The dam holds 4,500 litres.", "In all, 4,500 litres are kept behind it.", "Same numbers: 4,500."),
        ("Rye is sown in autumn.", "Bakers like flour of many kinds.", "Similar subject."),
    ],
)
def test_similar_passages_are_described_by_their_quotes_and_nothing_more_is_claimed(
    first: str, second: str, explanation: str
) -> None:
    (found,) = find_similar([ChunkPair(chunk(first), chunk(second), 0.9)], 0.7, SentenceCache())
    assert found.explanation == explanation


def test_of_each_passage_the_nearest_ten_above_the_threshold_are_kept() -> None:
    source = chunk()
    pairs = [ChunkPair(source, chunk(STUDY), 0.6 + number / 100) for number in range(30)]
    found = find_similar(pairs, 0.7, SentenceCache())
    assert len(found) == MOST_KEPT
    assert min(one.strength for one in found) >= 0.79


def test_a_long_quote_is_cut_and_stays_verbatim() -> None:
    endless, note = chunk("word " * 500), chunk("A note.")
    (found,) = find_similar([ChunkPair(endless, note, 0.9)], 0.7, SentenceCache())
    assert all(quote and quote in one.content for quote, one in zip(found.quotes, (endless, note), strict=True))
    assert len(found.quotes[0]) <= MOST_QUOTED


def test_tables_without_a_sentence_are_not_called_similar() -> None:
    one, other = chunk("# Enrolment\n\n| 2007 | 34,205 |\n| 2008 | 34,286 |"), chunk("| 40 years | 2,468 |")
    pairs = [ChunkPair(one, other, 0.9), ChunkPair(one, chunk(), 0.9), ChunkPair(chunk(), other, 0.9)]
    assert find_similar(pairs, 0.7, SentenceCache()) == []


def test_bridges_are_important_of_other_subjects_and_share_some_concepts() -> None:
    concepts = {"slow release": 0.5, "buffer": 0.4}
    bog = chunk("A bog releases its water slowly.", 1, concepts={**concepts, "peat": 0.9, "moss": 0.9}, importance=0.9)
    bank = chunk(
        "A bank keeps reserves as a buffer.", 2, concepts={**concepts, "bank": 0.9, "money": 0.8}, importance=0.8
    )
    ((found, overlap),) = find_candidates([ChunkPair(bog, bank, 0.2)], 0.5)
    assert (found.source, found.target) == (bog, bank)
    assert 0.2 < overlap < 0.7
    refused = [
        ChunkPair(bog, chunk(number=3, concepts=bank.concepts, importance=0.5), 0.2),  # of little importance
        ChunkPair(bog, bank, 0.8),  # the same subject
        ChunkPair(bog, chunk(number=4, concepts=bog.concepts, importance=0.9), 0.2),  # all the same concepts
        ChunkPair(bog, chunk(number=5, concepts={"cheese": 0.9}, importance=0.9), 0.2),  # none
    ]
    assert find_candidates(refused, 0.5) == []


def domain(*topics: str, mean: Sequence[float] = (1.0, 0.0)) -> DocumentDomain:
    return DocumentDomain(frozenset(topics), np.array(mean, dtype=np.float32))


def test_different_domains_are_detected_by_topics_and_mean_vectors() -> None:
    bog = domain("bog", "water", "moss")
    assert are_different(bog, domain("bank", "water", "money", mean=(0.0, 1.0)), 0.5)
    # One common topic of several is what a bridge is built on; most of them are the same subject.
    assert not are_different(bog, domain("bog", "water", "fen", mean=(0.0, 1.0)), 0.5)
    assert not are_different(bog, domain("bog", mean=(0.0, 1.0)), 0.5)
    # Other words for the same: the documents as a whole are near each other.
    assert not are_different(bog, domain("mire", "rain", "sphagnum", mean=(0.8, 0.6)), 0.5)
    assert are_different(UNKNOWN_DOMAIN, UNKNOWN_DOMAIN, 0.5)


def test_of_each_passage_the_strongest_bridges_to_other_domains_are_candidates() -> None:
    source = chunk(number=1, importance=0.9)
    others = [chunk(number=n, importance=0.6 + n / 200) for n in range(2, 42)]
    same = chunk(number=50, importance=0.99)
    pairs = [(ChunkPair(source, other, 0.1), 0.4) for other in (*others, same)]
    domains = {source.document_id: domain("bog"), same.document_id: domain("bog")}
    chosen = choose_candidates(pairs, domains, 0.5)
    assert [pair.target.id.int for pair, _ in chosen] == list(range(41, 41 - MOST_CANDIDATES, -1))


def test_a_verdict_is_stored_by_both_quotes_in_any_order() -> None:
    one, other = "The bridge is\nsafe.", "It is not safe!"
    assert digest_of(Engine.CONTRADICTION, [one, other]) == digest_of(
        Engine.CONTRADICTION, ["it is NOT safe", "The bridge is safe."]
    )
    assert digest_of(Engine.SIMILARITY, [one, other]) != digest_of(Engine.CONTRADICTION, [one, other])


def test_models_that_nobody_measured_have_higher_thresholds() -> None:
    assert thresholds_of("somebody:new-model") == UNKNOWN
    assert thresholds_of(NAME).similar < UNKNOWN.similar


def test_the_map_is_the_same_every_time_and_fits() -> None:
    edges = [(0, 1, 0.9), (1, 2, 0.5), (3, 4, 0.8)]
    spots = lay_out(6, edges)
    assert spots == lay_out(6, edges)
    assert all(0 <= spot.x <= WIDTH and 0 <= spot.y <= HEIGHT for spot in spots)
    assert len(set(spots)) == 6
    assert [len(lay_out(count, [])) for count in (0, 1)] == [0, 1]
