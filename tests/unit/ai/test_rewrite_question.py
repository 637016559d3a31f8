"""A follow-up question is rewritten so that it can be understood alone, and other questions stay as they are."""

from __future__ import annotations

import pytest

from octavo.ai.tasks.rewrite_question import (
    MAX_QUESTION,
    EarlierTurn,
    FollowUp,
    RewrittenQuestion,
    build_parts,
    check_source,
    rewrite_offline,
)
from octavo.ai.tasks.task import UnusableAnswer

LEASE = "How long is the notice period of the crane lease?"
TITLES = ("Letter from the farm", "Letter from the mill")


def rewrite(question: str, before: str = LEASE, answer: str = "", titles: tuple[str, ...] = TITLES) -> str:
    return rewrite_offline(FollowUp(question, [EarlierTurn(before, answer, titles)])).question


@pytest.mark.parametrize(
    ("before", "question", "understood"),
    [
        # The subject is carried over.
        (LEASE, "And how much is the deposit?", "How much is the deposit of the crane lease?"),
        (LEASE, "How much is the deposit?", "How much is the deposit of the crane lease?"),
        ("What is the fee for the vans?", "And the deposit?", "What is the deposit for the vans?"),
        ("What does the lease say about pets?", "And smoking?", "What does the lease say about smoking?"),
        ("When is the party of the club?", "Who plays?", "Who plays (the club)?"),
        ("What was the first book of Ann Lee?", "And the best known?", "What was the best known book of Ann Lee?"),
        # A name, a time or the words after a preposition are replaced.
        ("What is the capital of Sweden?", "What about Norway?", "What is the capital of Norway?"),
        ("What is Coolblue's invoice number?", "And Flipkart's?", "What is Flipkart's invoice number?"),
        ("What was the revenue in 2022?", "And in 2023?", "What was the revenue in 2023?"),
        ("What was the revenue?", "And in March 2023?", "What was the revenue in March 2023?"),
        ("What is the notice period for the office?", "And for the vans?", "What is the notice period for the vans?"),
        # Another thing takes the place of the last one, but a property is one of the last thing.
        ("How much is the deposit of the van lease?", "What about the crane?", "How much is the deposit of the crane?"),
        ("When does the van lease begin?", "How about the crane lease?", "When does the crane lease begin?"),
        ("Who bought the mill in Lund?", "What about the old bakery?", "Who bought the old bakery?"),
        ("What did the van cost in 2022?", "What about the crane?", "What did the crane cost in 2022?"),
        ("What is the fee for the vans?", "What about the deposit?", "What is the deposit for the vans?"),
        ("When does the lease begin?", "What about the notice?", "What about the notice of the lease?"),
        # A pronoun is replaced.
        (LEASE, "When does it begin?", "When does the crane lease begin?"),
        ("When does the lease end?", "Who signed it?", "Who signed the lease?"),
        ("Where was Ann Lee born?", "Where did she study?", "Where did Ann Lee study?"),
        ("How large is the bog?", "How deep is its peat?", "How deep is the bog\u2019s peat?"),
        ("What was the revenue in 2022?", "Who checked it?", "Who checked the revenue in 2022?"),
        # A question word alone.
        ("When did the bog dry out?", "Why?", "Why did the bog dry out?"),
        ("Who bought the mill in Lund?", "When?", "When was the mill in Lund bought?"),
        ("Which documents mention rent?", "Why?", "Why: which documents mention rent?"),
        # German.
        ("Wie lang ist die Frist des Vertrags?", "Und wie hoch ist die Miete?", "Wie hoch ist die Miete des Vertrags?"),
    ],
)  # fmt: skip
def test_a_follow_up_question_gets_what_it_leaves_out(before: str, question: str, understood: str) -> None:
    assert rewrite(question, before) == understood


@pytest.mark.parametrize(
    "question",
    [
        "What is the capital of Mongolia?",
        "How many people worked in the harbour of Bergen in 2019?",
        "Which documents mention birches?",
        "Wer hat die Rechnung für das Dach bezahlt?",
        "There is a fee for pets in the contract, is that right?",
    ],
)
def test_a_question_that_can_be_understood_alone_is_not_changed(question: str) -> None:
    found = rewrite_offline(FollowUp(question, [EarlierTurn(LEASE, "", TITLES)]))
    assert (found.question, found.same_documents, found.source) == (question, False, None)


def test_the_first_question_is_not_changed() -> None:
    assert rewrite_offline(FollowUp("And how much is it?", [])).question == "And how much is it?"


def test_an_ordinal_names_a_source_of_the_last_answer() -> None:
    before = EarlierTurn("Which letters mention birches?", "", TITLES)
    second = rewrite_offline(FollowUp("What does the second one say about roots?", [before]))
    assert (second.question, second.source) == ("What does “Letter from the mill” say about roots?", 2)
    alone = rewrite_offline(FollowUp("What about the second one?", [before]))
    assert (alone.question, alone.source) == ("Which letters mention birches (“Letter from the mill”)?", 2)
    assert rewrite_offline(FollowUp("And the last document?", [before])).source == 2
    assert rewrite_offline(FollowUp("What about the fifth one?", [before])).source is None


def test_a_pronoun_stands_for_the_answer_if_the_question_asked_for_a_thing_or_a_person() -> None:
    assert rewrite("What did it cost?", "What did the club build?", "a shed") == "What did a shed cost?"
    assert rewrite("What did it cost?", "What did the club pay for the shed?", "90 euros") == "What did the shed cost?"
    assert rewrite("What did she pay?", "Who bought the mill in Lund?", "Ann Lee") == "What did Ann Lee pay?"


def test_a_new_name_or_time_is_not_limited_to_the_documents_of_the_last_answer() -> None:
    def same(question: str, before: str) -> bool:
        return rewrite_offline(FollowUp(question, [EarlierTurn(before, "", TITLES)])).same_documents

    assert same("And how much is the deposit?", LEASE)
    assert not same("And in 2023?", "What was the revenue in 2022?")
    assert not same("What about Norway?", "What is the capital of Sweden?")


@pytest.mark.parametrize(
    "question", ["?", "And", "and it", "What about", "it", "Why why why", "(((", "\\1 it", "x" * 999]
)
@pytest.mark.parametrize("before", ["?", "it", "And", "a", "What is it?", "of the", "x" * 999])
def test_any_text_can_be_rewritten(question: str, before: str) -> None:
    assert 0 < len(rewrite(question, before, titles=())) <= MAX_QUESTION


def test_a_model_sees_the_conversation_and_may_name_only_a_source_of_the_last_answer() -> None:
    given = FollowUp("And the second one?", [EarlierTurn(LEASE, "ninety days", TITLES)])
    shown = str(build_parts(given))
    assert all(words in shown for words in (LEASE, "ninety days", "2. Letter from the mill", "And the second one?"))
    check_source(given, RewrittenQuestion(question="What?", source=2))
    with pytest.raises(UnusableAnswer):
        check_source(given, RewrittenQuestion(question="What?", source=3))
