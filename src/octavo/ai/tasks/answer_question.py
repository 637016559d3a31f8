"""Model task: answer a question from chunks, with verbatim citations for each statement."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, StringConstraints

from octavo.ai.calls import InstructionText, Part, QuotedText
from octavo.ai.tasks.task import Task, UnusableAnswer
from octavo.language.insights import ChunkText, Output, Quote

if TYPE_CHECKING:
    from octavo.language.quotes import AnswerQuote

MAX_STATEMENTS = 20
MAX_CITATIONS = 5
ANSWER_TOKENS = 800
ONLY_ENGLISH = (
    "Without a model, answers are found only in English text. In other languages, Octavo quotes similar sentences."
)
_MAX_OFFLINE, _MAX_QUOTE = 4, 500
_PUNCTUATION = " .,;:|"

Text500 = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]
Text1000 = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1000)]


class ChunkCitation(Output):
    """A citation of a chunk.

    `passage` is the index of the chunk in the request, starting at 0. The caller checks that the chunk contains the
    quote.
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
    """A question and the chunks to answer it from. The first heading of each chunk is its document's title."""

    question: str
    chunks: Sequence[ChunkText]


def build_parts(given: QuestionToAnswer) -> list[Part]:
    parts: list[Part] = [InstructionText(f"Answer from these {len(given.chunks)} passages, numbered from 0.")]
    for number, chunk in enumerate(given.chunks):
        parts.append(QuotedText(f"passage-{number}", f"{' > '.join(chunk.headings)}\n\n{chunk.content}"))
    return [*parts, InstructionText(f"The question:\n{given.question}")]


_STATEMENT = re.compile(r'"text"\s*:\s*"((?:[^"\\]|\\.)*)')


def read_draft(written: str) -> str:
    """Return the statements in a model's unfinished JSON answer, one per line, without citations."""
    return "\n".join(map(_unescape, _STATEMENT.findall(written)))


def _unescape(text: str) -> str:
    try:
        return json.loads(f'"{text}"', strict=False)
    except ValueError:  # an incomplete escape at the end
        return _unescape(text[: text.rindex("\\")]) if "\\" in text else text


def check_citations(given: QuestionToAnswer, answer: CitedAnswer) -> CitedAnswer:
    last = len(given.chunks) - 1
    if any(cited.passage > last for one in answer.statements for cited in one.citations):
        raise UnusableAnswer(f"`passage` must be a number from 0 to {last}")
    return answer


class AnswerCitation(ChunkCitation):
    """A citation made without a model. `answer` is the part of the quote that answers the question."""

    answer: str


class OfflineAnswer(CitedAnswer):
    """An answer made without a model.

    `short` is the answer in a few words. `note` tells the user that offline answers are limited for languages other
    than English.
    """

    short: str | None = None
    note: str | None = None


def answer_offline(given: QuestionToAnswer) -> OfflineAnswer:
    """Answer with sentences quoted from the chunks.

    If the question asks for a summary, the most important sentences are quoted. Otherwise, if the question is in
    English, the built-in octavo-small model looks for answers in the English chunks. If there are none, the sentences
    most similar to the question are quoted from the chunks that the model has not read.
    """
    from octavo.language import asks_summary, summarise_in_quotes
    from octavo.language.languages import is_english
    from octavo.language.quotes import find_answers

    if asks_summary(given.question):
        return OfflineAnswer(statements=_quote(summarise_in_quotes(given.chunks, _MAX_OFFLINE).quotes))
    english = [is_english(chunk.content) for chunk in given.chunks] if is_english(given.question) else []
    read = [place for place, readable in enumerate(english) if readable]
    found = find_answers(given.question, [given.chunks[place] for place in read], _MAX_OFFLINE)
    if found:
        return _answer_in_words([replace(one, chunk=read[one.chunk]) for one in found], given.chunks)
    return _compare_words(given, [place for place in range(len(given.chunks)) if place not in set(read)])


def _answer_in_words(found: Sequence[AnswerQuote], chunks: Sequence[ChunkText]) -> OfflineAnswer:
    cited = [
        AnswerCitation(passage=one.chunk, quote=_cut_around(_flat(one.text), answer), answer=answer)
        for one in found
        if (answer := _flat(one.answer).strip(_PUNCTUATION) or _flat(one.answer))
    ]
    statements = [Statement(text=one.quote, citations=[one]) for one in cited]
    other = _find_conflict(cited)
    if other is None:
        return OfflineAnswer(statements=statements, short=cited[0].answer)
    sides = [f"“{one.answer}” ({', '.join(chunks[one.passage].headings[:1])})" for one in (cited[0], other)]
    differ = Statement(text=f"Your documents disagree: {' and '.join(sides)}."[:1000], citations=[cited[0], other])
    return OfflineAnswer(statements=[differ, *statements], short=f"{cited[0].answer} / {other.answer}")


def _find_conflict(cited: Sequence[AnswerCitation]) -> AnswerCitation | None:
    """Find the best answer that contradicts the first one and is from another chunk. Returns None if there is none."""
    from octavo.language.small_model import CONTRADICTION_THRESHOLD, offline_small_model

    first = cited[0]
    others = [one for one in cited[1:] if one.passage != first.passage and one.answer != first.answer]
    strengths = offline_small_model().contradiction_strengths([(first.quote, one.quote) for one in others])
    return next(
        (one for one, strength in zip(others, strengths, strict=True) if strength >= CONTRADICTION_THRESHOLD), None
    )


def _compare_words(given: QuestionToAnswer, places: Sequence[int]) -> OfflineAnswer:
    """Answer with the sentences of the chunks at `places` that are most similar to the question.

    Used if the question or these chunks are not in English, because octavo-small supports only English. A note in the
    answer says so.
    """
    from octavo.language import answer, offline_embedder

    if not places:
        return OfflineAnswer(statements=[])
    chunks = [given.chunks[place] for place in places]
    quotes = answer(given.question, chunks, offline_embedder().embed, most=_MAX_OFFLINE).quotes
    moved = [one.model_copy(update={"chunk": places[one.chunk]}) for one in quotes]
    return OfflineAnswer(statements=_quote(moved), note=ONLY_ENGLISH)


def _quote(quotes: Sequence[Quote]) -> list[Statement]:
    cited = [(one.chunk, words) for one in quotes if (words := _flat(one.text)[:_MAX_QUOTE].strip())]
    return [Statement(text=words, citations=[ChunkCitation(passage=chunk, quote=words)]) for chunk, words in cited]


def _cut_around(text: str, answer: str) -> str:
    """If a sentence is too long for a quote, shorten it to the words around its answer."""
    if len(text) <= _MAX_QUOTE:
        return text
    start = max(text.find(answer) - _MAX_QUOTE // 2, 0)
    start = text.find(" ", start) + 1 if start else 0
    return text[start : start + _MAX_QUOTE].strip()


def _flat(text: str) -> str:
    return " ".join(text.split())


ANSWER_QUESTION: Task[QuestionToAnswer, CitedAnswer] = Task(
    name="answer_question",
    output=CitedAnswer,
    build_parts=build_parts,
    estimate_tokens=lambda _given: ANSWER_TOKENS,
    output_tokens=5 * ANSWER_TOKENS,
    check=check_citations,
    offline=answer_offline,
)
