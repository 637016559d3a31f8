"""Model task: combine the answers from all segments of a long document into one answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from octavo.ai.calls import LOCAL, InstructionText, Part, QuotedText
from octavo.ai.tasks.answer_segment import list_findings
from octavo.ai.tasks.task import Task
from octavo.language.insights import LongText, Output, PageCitation

MAX_CITATIONS = 100
ANSWER_TOKENS = 2000
# Offline: quotes that score less than this share of the best one are omitted.
_MIN_SHARE_OF_BEST = 0.75
_MAX_OFFLINE = 10
_NOTHING = "The offline search found no sentence that matches this prompt. Set up a model to get an answer."
_MAX_CHARACTERS = 19_000
_SHORTENED = "\n\n… This answer was shortened. Open the parts in the grid to read their full answers."


class ConsolidatedAnswer(Output):
    answer: LongText
    citations: Annotated[list[PageCitation], Field(max_length=MAX_CITATIONS)]


@dataclass(frozen=True, slots=True)
class SegmentResult:
    """The answer from pages `first` to `last`. `made_by` is the model, or `local`."""

    first: int
    last: int
    answer: str
    citations: Sequence[PageCitation]
    made_by: str = LOCAL


@dataclass(frozen=True, slots=True)
class AnswersToConsolidate:
    """The answers to combine.

    `texts` contains the numbered pages whose answers were made without a model. The offline rules search these pages
    again; models do not receive them.
    """

    question: str
    system: str
    parts: Sequence[SegmentResult]
    unit: str = "page"
    texts: Sequence[tuple[int, str]] = ()


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
    """Combine answers that were made without a model into one list.

    Answers written by a model are kept unchanged, each under its page range.
    """
    written = [part for part in given.parts if part.made_by != LOCAL]
    found = _combine_found(given, [part for part in given.parts if part.made_by == LOCAL])
    if not written:
        return found
    sections = [
        f"**{given.unit.capitalize()} {part.first} to {part.last}** ({part.made_by})\n\n{part.answer}"
        for part in written
    ]
    text = "\n\n".join([*sections, f"**Answered offline**\n\n{found.answer}"] if found.citations else sections)
    if len(text) > _MAX_CHARACTERS:
        text = text[: text.rfind("\n", 0, _MAX_CHARACTERS)] + _SHORTENED
    cited = [one for part in written for one in part.citations] + list(found.citations)
    return ConsolidatedAnswer(answer=text, citations=cited[:MAX_CITATIONS])


def _combine_found(given: AnswersToConsolidate, parts: Sequence[SegmentResult]) -> ConsolidatedAnswer:
    """Combine answers that were made without a model.

    The offline rules are applied again, to all pages together. If no rules fit the prompt, the best quotes are listed
    in page order.
    """
    from octavo.language import find_subject

    if given.texts and (subject := find_subject(given.question)):
        listed = list_findings(subject, given.texts, given.unit)
        return ConsolidatedAnswer(answer=listed.text, citations=listed.citations)
    cited = [one for part in parts for one in part.citations]
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
