"""Task: answer a question from chunks, with verbatim citations for each statement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, StringConstraints

from octavo.ai.calls import InstructionText, Part, QuotedText
from octavo.ai.tasks.task import Task, UnusableAnswer
from octavo.language.insights import ChunkText, Output

MAX_STATEMENTS = 20
MAX_CITATIONS = 5
ANSWER_TOKENS = 800
_MAX_OFFLINE = 4

Text500 = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]
Text1000 = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1000)]


class ChunkCitation(Output):
    """A citation of a chunk.

    `passage` is the index of the chunk, from 0. The caller checks that the chunk contains the quote.
    """

    passage: Annotated[int, Field(ge=0)]
    quote: Text500


class Statement(Output):
    text: Text1000
    citations: Annotated[list[ChunkCitation], Field(max_length=MAX_CITATIONS)]


class CitedAnswer(Output):
    """An answer with citations. If `statements` is empty, the chunks do not answer the question."""

    statements: Annotated[list[Statement], Field(max_length=MAX_STATEMENTS)]


@dataclass(frozen=True, slots=True)
class QuestionToAnswer:
    """A question and the chunks to answer it from. The first heading of each chunk is the title of its document."""

    question: str
    chunks: Sequence[ChunkText]


def build_parts(given: QuestionToAnswer) -> list[Part]:
    parts: list[Part] = [InstructionText(f"Answer from these {len(given.chunks)} passages, numbered from 0.")]
    for number, chunk in enumerate(given.chunks):
        parts.append(QuotedText(f"passage-{number}", f"{' > '.join(chunk.headings)}\n\n{chunk.content}"))
    return [*parts, InstructionText(f"The question:\n{given.question}")]


def check_citations(given: QuestionToAnswer, answer: CitedAnswer) -> CitedAnswer:
    last = len(given.chunks) - 1
    if any(cited.passage > last for one in answer.statements for cited in one.citations):
        raise UnusableAnswer(f"`passage` must be a number from 0 to {last}")
    return answer


def answer_offline(given: QuestionToAnswer) -> CitedAnswer:
    """Answer with the best sentences of the chunks. Each sentence is quoted verbatim as its own citation."""
    from octavo.language import answer, offline_embedder

    quotes = answer(given.question, given.chunks, offline_embedder().embed, most=_MAX_OFFLINE).quotes
    cited = [(one.chunk, words) for one in quotes if (words := " ".join(one.text.split())[:500].strip())]
    return CitedAnswer(
        statements=[
            Statement(text=words, citations=[ChunkCitation(passage=chunk, quote=words)]) for chunk, words in cited
        ]
    )


ANSWER_QUESTION: Task[QuestionToAnswer, CitedAnswer] = Task(
    name="answer_question",
    output=CitedAnswer,
    build_parts=build_parts,
    estimate_tokens=lambda _given: ANSWER_TOKENS,
    output_tokens=5 * ANSWER_TOKENS,
    check=check_citations,
    offline=answer_offline,
)
