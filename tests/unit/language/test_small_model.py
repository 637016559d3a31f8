"""The bundled model tells contradictions from sentences that only look alike, finds answers, and ranks passages."""

from __future__ import annotations

import pytest

from octavo.language import small_model
from octavo.language.small_model import ANSWER_THRESHOLD, CONTRADICTION_THRESHOLD, SmallModel

LEASE = (
    "The lease runs for five years. The tenant pays a monthly rent of $1,200, due on the first of each month. "
    "Either party may terminate the lease with 90 days' notice."
)
BRIDGE = "The harbour bridge opened in 2019 and carries forty thousand vehicles every day."


@pytest.fixture(scope="module")
def model() -> SmallModel:
    return SmallModel()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("The notice period is 30 days.", "Either party may terminate with 90 days' notice."),
        ("The monthly rent is $1,200.", "Rent amounts to $1,500 per month."),
        ("The council approved the plan.", "The council did not approve the plan."),
    ],
)
def test_contradictions_are_strong(model: SmallModel, first: str, second: str) -> None:
    there, back = model.contradiction_strengths([(first, second), (second, first)])
    assert there == pytest.approx(back)
    assert there > CONTRADICTION_THRESHOLD


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            "The tenant may end the lease with thirty days' notice.",
            "The tenant can terminate by giving notice of 30 days.",
        ),
        ("The TREC 2002 track used 500 questions.", "The TREC 2003 track used 413 questions."),
        ("Revenue in 2020 was 5 million euros.", "Revenue in 2021 was 7 million euros."),
        ("The contract starts on 1 March 2024.", "The contract takes effect on March 1, 2024."),
        ("Section 3 describes the method.", "Section 4 describes the results."),
        (BRIDGE, LEASE),
    ],
)
def test_sentences_that_can_both_be_true_are_no_contradiction(model: SmallModel, first: str, second: str) -> None:
    assert model.contradiction_strengths([(first, second)])[0] < 0.2


def test_a_judgement_is_a_distribution_and_has_a_direction(model: SmallModel) -> None:
    whole, part = "Anna Smith founded the school in 1950 in Leeds.", "Anna Smith founded the school."
    there, back = model.judge([(whole, part), (part, whole)])
    assert there.entails + there.neutral + there.contradicts == pytest.approx(1)
    assert there.entails > 0.5 > back.entails


def test_an_answer_is_a_part_of_its_passage_or_not_there(model: SmallModel) -> None:
    lease, bridge = model.find_answers("What is the monthly rent?", [LEASE, BRIDGE])
    assert lease.span is not None
    assert lease.span.text == LEASE[lease.span.start : lease.span.end]
    assert "1,200" in lease.span.text
    assert bridge.span is None
    assert bridge.probability < ANSWER_THRESHOLD < lease.probability


def test_the_end_of_a_long_passage_is_read(model: SmallModel) -> None:
    long = f"{BRIDGE} " * 60 + LEASE
    found = model.find_answers("What is the monthly rent?", [long])[0]
    assert found.span is not None
    assert "1,200" in found.span.text


def test_the_passage_with_the_answer_ranks_first() -> None:
    assert small_model.rank("When did the harbour bridge open?", [LEASE, "", BRIDGE])[0] == 2


def test_texts_without_words_and_damaged_texts_are_judged(model: SmallModel) -> None:
    assert model.contradiction_strengths([("", ""), ("\ud800", LEASE)]) == pytest.approx([0, 0], abs=0.2)
