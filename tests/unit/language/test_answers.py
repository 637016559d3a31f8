"""A question is answered by sentences that stand in the passages letter by letter, or not at all."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octavo.language import Embedder, answer
from octavo.language.insights import ChunkText

PASSAGES = [
    ChunkText(
        "# Harbour\n\nThe new bridge opened in 2019. It was **built by** Smith & Sons. Ships pass below it.",
        ("Harbour",),
    ),
    ChunkText(
        "Overfitting is when a model learns the noise of its training data.\n\nMany students ask about overfitting."
    ),
    ChunkText("| Product | Price |\n|---|---|\n| Anchor | 120 EUR |\n| Rope | 15 EUR |", ("Price list",)),
    ChunkText("東京は日本の首都です。大阪は商業の町です。"),
]


@pytest.mark.parametrize(
    ("question", "quote"),
    [
        ("When did the bridge open?", "The new bridge opened in 2019."),
        ("What is overfitting?", "Overfitting is when a model learns the noise of its training data."),
        ("How much is the anchor?", "| Anchor | 120 EUR |"),
        ("日本の首都はどこですか", "東京は日本の首都です。"),
    ],
)
def test_the_best_sentence_comes_first(question: str, quote: str) -> None:
    assert answer(question, PASSAGES).quotes[0].text == quote


def test_marks_stay_whole() -> None:
    (quote, *_) = answer("Who built it?", PASSAGES[:1]).quotes
    assert quote.text == "It was **built by** Smith & Sons."


def test_paraphrases_are_found_by_meaning() -> None:
    passages = [ChunkText("Feed the starter daily. The automobile was repaired last week. Bread rises overnight.")]
    assert answer("Has the car been fixed?", passages).quotes == []
    (quote,) = answer("Has the car been fixed?", passages, Embedder().embed).quotes
    assert quote.text == "The automobile was repaired last week."


@pytest.mark.parametrize("question", ["What is the capital of France?", "", "?", "the of and"])
def test_what_is_not_there_is_not_answered(question: str) -> None:
    assert answer(question, PASSAGES[:3], Embedder().embed).quotes == []


def test_repeated_sentences_are_quoted_once() -> None:
    twice = [ChunkText("The bridge opened in 2019."), ChunkText("The bridge opened in 2019.")]
    assert [quote.chunk for quote in answer("When did the bridge open?", twice).quotes] == [0]


texts = st.text(alphabet=st.sampled_from("abc ABC.!?\n#*_|-`[]()1\u3002東京"), max_size=200)


@settings(deadline=None)
@given(texts, st.lists(texts.map(ChunkText), max_size=4))
def test_quotes_are_verbatim(question: str, passages: list[ChunkText]) -> None:
    found = answer(question, passages)
    assert len(found.quotes) <= 5
    for quote in found.quotes:
        assert passages[quote.chunk].content[quote.start : quote.end] == quote.text != ""
        assert 0.5 <= quote.score <= 1
