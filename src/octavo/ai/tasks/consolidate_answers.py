"""One answer to a prompt from those that the segments of a document gave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from octavo.ai.calls import Part, Quoted, Words
from octavo.ai.tasks.answer_segment import CitedWords, LongText
from octavo.ai.tasks.task import Task
from octavo.language.insights import Output

MOST_CITATIONS = 24
ANSWER_TOKENS = 2000
# Offline: quotes that fit so much worse than the best one are left out.
_WORTH = 0.75
_MOST_HERE = 10
_NOTHING = "Nothing about this was found in the document."


class ConsolidatedAnswer(Output):
    answer: LongText
    citations: Annotated[list[CitedWords], Field(max_length=MOST_CITATIONS)]


@dataclass(frozen=True, slots=True)
class SegmentSaid:
    """What the pages from `first` to `last` gave."""

    first: int
    last: int
    answer: str
    citations: Sequence[CitedWords]


@dataclass(frozen=True, slots=True)
class AnswersToConsolidate:
    question: str
    system: str
    parts: Sequence[SegmentSaid]
    unit: str = "page"


def show(given: AnswersToConsolidate) -> list[Part]:
    parts: list[Part] = [Words(f"{len(given.parts)} parts of the document were asked. Give one answer for all of it.")]
    if given.system:
        parts.append(Words(f"How to answer:\n{given.system}"))
    parts.append(Words(f"The question:\n{given.question}"))
    for part in given.parts:
        quotes = "\n".join(f"{given.unit} {one.page}: {one.quote}" for one in part.citations)
        text = f"{given.unit} {part.first} to {part.last}\n\n{part.answer}\n\n{quotes}"
        parts.append(Quoted(f"part-{part.first}", text))
    return parts


def consolidate_here(given: AnswersToConsolidate) -> ConsolidatedAnswer:
    """The quotes that fit best, in the order of their pages."""
    cited = [one for part in given.parts for one in part.citations]
    best = max((one.relevance for one in cited), default=0.0)
    worth = sorted((one for one in cited if one.relevance >= _WORTH * best), key=lambda one: -one.relevance)
    kept = sorted(worth[:_MOST_HERE], key=lambda one: one.page)
    said = "\n".join(f"- {one.quote} ({given.unit} {one.page})" for one in kept)
    return ConsolidatedAnswer(answer=said or _NOTHING, citations=kept)


CONSOLIDATE_ANSWERS: Task[AnswersToConsolidate, ConsolidatedAnswer] = Task(
    name="consolidate_answers",
    output=ConsolidatedAnswer,
    show=show,
    expect=lambda _given: ANSWER_TOKENS,
    output_tokens=16_384,
    check=lambda _given, answer: answer,
    seconds=240.0,
    local=consolidate_here,
)
