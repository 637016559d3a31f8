"""Answers a question from passages, each statement with the words that show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, StringConstraints

from octavo.ai.calls import Part, Quoted, Words
from octavo.ai.tasks.task import Task, Unusable
from octavo.language.insights import Output, Passage

MOST_STATEMENTS = 20
MOST_CITATIONS = 5
ANSWER_TOKENS = 800
_MOST_HERE = 4

Words500 = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]
Words1000 = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1000)]


class CitedPassage(Output):
    """`passage` counts from 0; whether the quote stands there is looked at by whoever asked."""

    passage: Annotated[int, Field(ge=0)]
    quote: Words500


class Statement(Output):
    text: Words1000
    citations: Annotated[list[CitedPassage], Field(max_length=MOST_CITATIONS)]


class CitedAnswer(Output):
    """No statements: the passages do not answer it."""

    statements: Annotated[list[Statement], Field(max_length=MOST_STATEMENTS)]


@dataclass(frozen=True, slots=True)
class QuestionToAnswer:
    """The headings of a passage begin with the title of its document."""

    question: str
    passages: Sequence[Passage]


def show(given: QuestionToAnswer) -> list[Part]:
    parts: list[Part] = [Words(f"Answer from these {len(given.passages)} passages, numbered from 0.")]
    for number, passage in enumerate(given.passages):
        parts.append(Quoted(f"passage-{number}", f"{' > '.join(passage.headings)}\n\n{passage.content}"))
    return [*parts, Words(f"The question:\n{given.question}")]


def of_these_passages(given: QuestionToAnswer, answer: CitedAnswer) -> CitedAnswer:
    last = len(given.passages) - 1
    if any(cited.passage > last for one in answer.statements for cited in one.citations):
        raise Unusable(f"`passage` must be a number from 0 to {last}")
    return answer


def answer_here(given: QuestionToAnswer) -> CitedAnswer:
    """Sentences of the passages, the best first; each is its own citation."""
    from octavo.language import answer, offline_embedder

    quotes = answer(given.question, given.passages, offline_embedder().embed, most=_MOST_HERE).quotes
    said = [(one.passage, words) for one in quotes if (words := " ".join(one.text.split())[:500].strip())]
    return CitedAnswer(
        statements=[
            Statement(text=words, citations=[CitedPassage(passage=passage, quote=words)]) for passage, words in said
        ]
    )


ANSWER_QUESTION: Task[QuestionToAnswer, CitedAnswer] = Task(
    name="answer_question",
    output=CitedAnswer,
    show=show,
    expect=lambda _given: ANSWER_TOKENS,
    output_tokens=5 * ANSWER_TOKENS,
    check=of_these_passages,
    local=answer_here,
)
