"""Prompts that ask for a summary get the sentences that say most, in the order of the pages and word by word."""

from __future__ import annotations

import pytest

from octavo.ai.tasks.answer_segment import SegmentToAnswer, answer_offline
from octavo.analyse.document_text import PageTexts, verify
from octavo.language import asks_summary

BUILT_IN = "Summarise what these pages say: their subject, the main points in their order, and what they conclude."
TEXTS = {
    7: """# Bogs

This report shows how the water table of raised bogs fell after ditches had been dug. The weather was nice. Peat that
dries out loses carbon to the air.""",
    8: """Ditches were dammed in four bogs in spring. The water table of these bogs rose by twenty centimetres within
a year. We had lunch at noon.""",
    9: """## Conclusion

Damming ditches keeps the water table of bogs high and the carbon in their peat.""",
}
PAGES = list(TEXTS.items())


def test_the_built_in_summary_prompt_is_answered_with_the_main_sentences_in_order_and_all_are_found() -> None:
    answer = answer_offline(SegmentToAnswer(BUILT_IN, "", PAGES))
    cited = verify([(one.page, one.quote, one.relevance) for one in answer.citations], PageTexts(TEXTS))
    assert answer.found
    assert {one.page for one in cited} == {7, 8, 9}
    assert all(one.verified and 0 < one.relevance <= 1 for one in cited)
    lines = answer.answer.splitlines()
    assert [line.rpartition("(page ")[2] for line in lines] == sorted(line.rpartition("(page ")[2] for line in lines)
    assert "This report shows how the water table of raised bogs fell" in answer.answer
    assert "lunch" not in answer.summary


def test_what_is_said_on_every_page_is_told_once_and_pages_without_sentences_give_nothing() -> None:
    again = [(number, "The water table of raised bogs fell after the ditches.") for number in range(1, 6)]
    assert len(answer_offline(SegmentToAnswer("Give an overview.", "", again)).citations) == 1
    empty = answer_offline(SegmentToAnswer("Give an overview.", "", [(1, "| 1 | 2 |"), (2, "")]))
    assert (empty.found, empty.citations) == (False, [])


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        (BUILT_IN, True),
        ("What are the key findings?", True),
        ("Fasse die Seiten in drei Sätzen zusammen.", True),
        ("Which amounts of money are named, for what, who pays them and to whom?", False),
        ("What is the harbour fee?", False),
    ],
)
def test_only_prompts_that_name_nothing_to_find_ask_for_a_summary(question: str, *, asked: bool) -> None:
    assert asks_summary(question) is asked
