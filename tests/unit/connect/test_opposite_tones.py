"""A shared concept in opposite tones is a candidate for the model, in every language, with quotes that show it."""

from __future__ import annotations

from uuid import uuid4

import pytest

from octavo.connect.detection import find_opposite_tones
from octavo.connect.evidence import MOST_QUOTED, ChunkPair, ComparableChunk, SentenceCache
from octavo.records.search import Engine, Status

GERMAN = (
    "Der Zug kam um acht. Die neue Hafenbrücke ist ein Segen für die Stadt. Alle freuen sich.",
    "Am Abend regnete es. Die neue Hafenbrücke ist eine Gefahr für alle. Niemand will sie betreten.",
)


def chunk(content: str, polarity: float | None, concepts: dict[str, float], language: str = "de") -> ComparableChunk:
    return ComparableChunk(uuid4(), uuid4(), content, concepts, polarity=polarity, language=language)


def pair(first: ComparableChunk, second: ComparableChunk, similarity: float = 0.1) -> ChunkPair:
    return ChunkPair(first, second, similarity)


def german(first: float | None = 0.7, second: float | None = -0.8, importance: float = 0.9) -> ChunkPair:
    return pair(
        chunk(GERMAN[0], first, {"Hafenbrücke": importance}), chunk(GERMAN[1], second, {"hafenbrücke": importance})
    )


def test_a_shared_concept_in_opposite_tones_is_a_candidate_in_every_language() -> None:
    one = german()
    (found,) = find_opposite_tones([one], SentenceCache())
    assert (found.engine, found.status, found.detail["kind"]) == (Engine.CONTRADICTION, Status.POSSIBLE, "polarity")
    assert all("Hafenbrücke ist" in quote for quote in found.quotes)
    assert found.quotes[0].startswith("Die neue")
    assert "Hafenbrücke" in found.explanation


@pytest.mark.parametrize(("first", "second"), [(0.7, 0.8), (0.7, -0.1), (0.0, -0.8), (None, -0.8), (0.7, None)])
def test_tones_that_are_not_clearly_opposite_are_none(first: float | None, second: float | None) -> None:
    assert find_opposite_tones([german(first, second)], SentenceCache()) == []


def test_without_a_shared_concept_there_is_no_candidate() -> None:
    one = pair(chunk(GERMAN[0], 0.7, {"Hafenbrücke": 0.9}), chunk(GERMAN[1], -0.8, {"Regen": 0.9}))
    assert find_opposite_tones([one], SentenceCache()) == []


def test_the_more_central_the_concept_and_the_clearer_the_tone_the_stronger() -> None:
    clear, faint, aside = german(0.9, -0.9), german(0.3, -0.3), german(0.9, -0.9, importance=0.1)
    strengths = [find_opposite_tones([one], SentenceCache())[0].strength for one in (clear, faint, aside)]
    assert strengths[0] == max(strengths)
    assert all(0.5 <= strength <= 0.9 for strength in strengths)


def test_in_english_the_sentence_with_the_tone_of_the_chunk_is_quoted() -> None:
    text = "# Bridge\n\nThe bridge was built in 1987. " + "It rains. " * 60 + "The bridge is a wonderful success."
    other = "The bridge is in town. " + "It rains. " * 60 + "The bridge is a horrible disaster."
    one = pair(chunk(text, 0.6, {"bridge": 0.9}, "en-GB"), chunk(other, -0.6, {"bridge": 0.9}, "en"))
    (found,) = find_opposite_tones([one], SentenceCache())
    assert found.quotes == ("The bridge is a wonderful success.", "The bridge is a horrible disaster.")


@pytest.mark.parametrize("text", ["word " * 500, "# Only a heading", "| a | table |", "吾輩は猫である。" * 200])
def test_a_quote_is_verbatim_and_short(text: str) -> None:
    one = pair(chunk(text, 0.6, {"other": 0.9}, "ja"), chunk(text.strip(), -0.6, {"other": 0.9}, "ja"))
    (found,) = find_opposite_tones([one], SentenceCache())
    assert all(quote and quote in text and len(quote) <= MOST_QUOTED for quote in found.quotes)
