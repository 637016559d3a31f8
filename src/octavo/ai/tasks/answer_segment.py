"""What some pages of a large document say to a prompt, with the words that show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, StringConstraints

from octavo.ai.calls import FileReference, Part, Quoted, Words
from octavo.ai.tasks.task import Task
from octavo.language.insights import Output, Passage, Share, Text

MOST_CITATIONS = 12
ANSWER_TOKENS = 1500
_NOTHING = "Nothing was found here."

LongText = Annotated[str, StringConstraints(strip_whitespace=True, max_length=20_000)]
QuotedWords = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]


class CitedWords(Output):
    """`page` as it is numbered in the question; `quote` word by word; `relevance` of it for the answer."""

    page: Annotated[int, Field(ge=1)]
    quote: QuotedWords
    relevance: Share


class SegmentAnswer(Output):
    """`found`: whether the pages say anything about it. `summary`: what one has to know to read on."""

    found: bool
    answer: LongText
    citations: Annotated[list[CitedWords], Field(max_length=MOST_CITATIONS)]
    summary: Text


@dataclass(frozen=True, slots=True)
class SegmentToAnswer:
    """`texts` are the segment's own pages by number, `context` those before it, which are not asked about.

    With a `file`, which has all of them in order, the texts are only for whoever cannot read files. `before` is what
    was said of the segment before. `unit` is what the numbers count: `page` or `passage`.
    """

    question: str
    system: str
    texts: Sequence[tuple[int, str]]
    context: Sequence[tuple[int, str]] = ()
    file: FileReference | None = None
    before: str = ""
    unit: str = "page"

    @property
    def first(self) -> int:
        return self.texts[0][0]

    @property
    def last(self) -> int:
        return self.texts[-1][0]


def show(segment: SegmentToAnswer) -> list[Part]:
    unit = segment.unit
    parts: list[Part] = [Words(f"Answer for {unit} {segment.first} to {segment.last} of the document.")]
    if segment.context:
        parts.append(
            Words(f"{unit.capitalize()} {segment.context[0][0]} to {segment.first - 1} only show what came before.")
        )
    if segment.system:
        parts.append(Words(f"How to answer:\n{segment.system}"))
    parts.append(Words(f"The question:\n{segment.question}"))
    if segment.before:
        parts.append(Quoted("before", segment.before))
    if segment.file:
        parts.append(Words(f"The file's first page is number {(segment.context or segment.texts)[0][0]}."))
        return [*parts, segment.file]
    return [*parts, *(Quoted(f"{unit}-{number}", text) for number, text in [*segment.context, *segment.texts])]


def answer_here(segment: SegmentToAnswer) -> SegmentAnswer:
    """Sentences of the pages themselves, the best first; a summary has them in the order of the pages."""
    from octavo.language import answer, asks_summary, digest, offline_embedder

    numbers = [number for number, _ in segment.texts]
    passages = [Passage(text) for _, text in segment.texts]
    in_order = asks_summary(segment.question)
    if in_order:
        quotes = digest(passages, MOST_CITATIONS).quotes
    else:
        quotes = answer(segment.question, passages, offline_embedder().embed, most=MOST_CITATIONS).quotes
    cited = [
        CitedWords(page=numbers[one.passage], quote=words, relevance=one.score)
        for one in quotes
        if (words := " ".join(one.text.split())[:500])
    ]
    shown = sorted(cited, key=lambda one: one.page) if in_order else cited
    said = "\n".join(f"- {one.quote} ({segment.unit} {one.page})" for one in shown)
    summary = cited[0].quote if cited else ""
    return SegmentAnswer(found=bool(cited), answer=said or _NOTHING, citations=cited, summary=summary)


ANSWER_SEGMENT: Task[SegmentToAnswer, SegmentAnswer] = Task(
    name="answer_segment",
    output=SegmentAnswer,
    show=show,
    expect=lambda _segment: ANSWER_TOKENS,
    output_tokens=8192,
    check=lambda _segment, answer: answer,
    seconds=240.0,
    local=answer_here,
)
