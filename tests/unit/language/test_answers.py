"""A question is answered by sentences that stand in the passages letter by letter, or not at all."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octavo.ai.tasks.answer_question import ONLY_ENGLISH, QuestionToAnswer, answer_offline
from octavo.language import Embedder, answer
from octavo.language.insights import ChunkText
from octavo.language.quotes import find_answers

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


WAREHOUSE = ChunkText(
    "# Warehouse\n\nThe warehouse in Tallinn stood empty for nine years. Several firms looked at the warehouse in "
    "Tallinn and asked what it would cost. In May 2021 **Maarja Kask** bought it for 2,400,000 euros.",
    ("Warehouse",),
)
BOILER = ChunkText(
    "The boiler in the cellar was serviced in October. Its pressure must stay between 1.2 and 1.8 bar. The chimney "
    "sweep comes twice a year.",
    ("Boiler",),
)
LEASES = [
    ChunkText("Either party may end the lease with a notice period of 30 days.", ("Draft",)),
    ChunkText("Either party may end the lease with a notice period of 90 days.", ("Mail",)),
]


@pytest.mark.parametrize(
    ("question", "words", "sentence"),
    [
        ("Who bought the warehouse in Tallinn?", "Maarja Kask", "In May 2021 **Maarja Kask** bought it for"),
        ("How much was paid for the warehouse?", "2,400,000 euros", "In May 2021 **Maarja Kask** bought it for"),
        ("Which pressure must the boiler have?", "1.2 and 1.8 bar", "Its pressure must stay between"),
    ],
)
def test_the_words_that_answer_are_found_in_their_sentence(question: str, words: str, sentence: str) -> None:
    chunks = [WAREHOUSE, BOILER]
    best = find_answers(question, chunks)[0]
    assert words in best.answer
    assert best.text.startswith(sentence)
    assert best.text == chunks[best.chunk].content[best.start : best.end]


@pytest.mark.parametrize("question", ["What is the capital of Mongolia?", "How old is the chimney sweep?", "", "?"])
def test_a_question_that_no_sentence_answers_gets_no_answer(question: str) -> None:
    assert find_answers(question, [WAREHOUSE, BOILER]) == []
    assert answer_offline(QuestionToAnswer(question, [WAREHOUSE, BOILER])).statements == []


def test_documents_that_contradict_each_other_are_named() -> None:
    answered = answer_offline(QuestionToAnswer("What is the notice period?", LEASES))
    first, *quotes = answered.statements
    assert first.text.startswith("Your documents disagree: ")
    assert all(part in first.text for part in ("30 days", "Draft", "90 days", "Mail"))
    assert {one.text for one in quotes} == {one.content for one in LEASES}
    same = answer_offline(QuestionToAnswer("What is the notice period?", [LEASES[0], LEASES[0]]))
    assert (len(same.statements), same.short, same.note) == (1, "30 days", None)


def test_a_quote_of_a_long_sentence_contains_the_answer() -> None:
    long = ChunkText(
        f"{'Although the council was slow, ' * 30}the harbour of Visby was opened by Queen Astrid in 1904."
    )
    answered = answer_offline(QuestionToAnswer("Who opened the harbour of Visby?", [long]))
    (cited,) = answered.statements[0].citations
    assert "Queen Astrid" in cited.quote
    assert len(cited.quote) <= 500
    assert cited.quote in long.content


def test_texts_in_other_languages_are_searched_by_words_and_the_answer_says_so() -> None:
    german = ChunkText(
        "Der Mieter kann die Wohnung mit einer Frist von drei Monaten kündigen. Die Kündigung muss schriftlich sein."
    )
    answered = answer_offline(QuestionToAnswer("Mit welcher Frist kann der Mieter die Wohnung kündigen?", [german]))
    assert answered.statements[0].text.startswith("Der Mieter kann die Wohnung")
    assert (answered.short, answered.note) == (None, ONLY_ENGLISH)
