"""Short questions for one fact are recognised; all others are answered from the text."""

from __future__ import annotations

import pytest

from octavo.search.fact_answers import FactQuestion, read_question


@pytest.mark.parametrize(
    ("question", "name", "words", "needs_sender"),
    [
        ("What is Coolblue's invoice number?", "number", ("coolblue",), False),
        ("Wie lautet die Rechnungsnummer von Hansen?", "number", ("hansen",), False),
        ("When is the invoice of Coolblue due?", "due_date", ("invoice", "coolblue"), False),
        ("How much did Coolblue charge?", "amount", ("coolblue", "charge"), True),
        ("When was the perceptron invented?", "date", ("perceptron", "invented"), True),
    ],
)
def test_a_question_for_a_fact(question: str, name: str, words: tuple[str, ...], *, needs_sender: bool) -> None:
    asked = read_question(question)
    assert asked is not None
    assert (asked.name, asked.needs_sender) == (name, needs_sender)
    assert set(words) <= set(asked.words)


@pytest.mark.parametrize("question", ["How does a bog keep its rain?", "List all invoice numbers of Coolblue", "Why?"])
def test_other_questions(question: str) -> None:
    assert not isinstance(read_question(question), FactQuestion)
