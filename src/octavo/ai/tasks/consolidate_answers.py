"""Task: combine the answers of all segments of a document into one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from octavo.ai.calls import InstructionText, Part, QuotedText
from octavo.ai.tasks.answer_segment import LongText, PageCitation
from octavo.ai.tasks.task import Task
from octavo.language.insights import Output

MAX_CITATIONS = 24
ANSWER_TOKENS = 2000
# Offline: quotes that score less than this share of the best one are omitted.
_MIN_SHARE_OF_BEST = 0.75
_MAX_OFFLINE = 10
_NOTHING = "Nothing about this was found in the document."


class ConsolidatedAnswer(Output):
    answer: LongText
    citations: Annotated[list[PageCitation], Field(max_length=MAX_CITATIONS)]


@dataclass(frozen=True, slots=True)
class SegmentResult:
    """The answer for one segment, the pages from `first` to `last`."""

    first: int
    last: int
    answer: str
    citations: Sequence[PageCitation]


@dataclass(frozen=True, slots=True)
class AnswersToConsolidate:
    question: str
    system: str
    parts: Sequence[SegmentResult]
    unit: str = "page"


def build_parts(given: AnswersToConsolidate) -> list[Part]:
    parts: list[Part] = [
        InstructionText(f"There are answers for {len(given.parts)} parts. Give one answer for the whole document.")
    ]
    if given.system:
        parts.append(InstructionText(f"How to answer:\n{given.system}"))
    parts.append(InstructionText(f"The question:\n{given.question}"))
    for part in given.parts:
        quotes = "\n".join(f"{given.unit} {one.page}: {one.quote}" for one in part.citations)
        text = f"{given.unit} {part.first} to {part.last}\n\n{part.answer}\n\n{quotes}"
        parts.append(QuotedText(f"part-{part.first}", text))
    return parts


def consolidate_offline(given: AnswersToConsolidate) -> ConsolidatedAnswer:
    """Answer with the best quotes, in page order."""
    cited = [one for part in given.parts for one in part.citations]
    best = max((one.relevance for one in cited), default=0.0)
    ranked = sorted(
        (one for one in cited if one.relevance >= _MIN_SHARE_OF_BEST * best), key=lambda one: -one.relevance
    )
    kept = sorted(ranked[:_MAX_OFFLINE], key=lambda one: one.page)
    text = "\n".join(f"- {one.quote} ({given.unit} {one.page})" for one in kept)
    return ConsolidatedAnswer(answer=text or _NOTHING, citations=kept)


CONSOLIDATE_ANSWERS: Task[AnswersToConsolidate, ConsolidatedAnswer] = Task(
    name="consolidate_answers",
    output=ConsolidatedAnswer,
    build_parts=build_parts,
    estimate_tokens=lambda _given: ANSWER_TOKENS,
    output_tokens=16_384,
    check=lambda _given, answer: answer,
    seconds=240.0,
    offline=consolidate_offline,
)
