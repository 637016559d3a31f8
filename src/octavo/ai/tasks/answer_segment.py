"""Model task: answer a prompt from some pages of a large document, with verbatim citations.

Without a model, the answer is a list of the values that rules find, each with its page numbers and a quote.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from octavo.ai.calls import FileReference, InstructionText, Part, QuotedText
from octavo.ai.tasks.task import Task
from octavo.language.insights import ChunkText, LongText, Output, PageCitation, Text

if TYPE_CHECKING:
    from octavo.language.extraction import Extraction, Subject
    from octavo.language.findings import Finding


MAX_LISTED = 80
_MAX_PAGES, _MAX_WORDS, _MAX_CHARACTERS = 5, 120, 19_000
_FOUND = "Found by rules, without a model. Rules can miss entries and misread words, so check the quotes."
_NONE = "The offline rules found no {subject} in this text, but they can miss some. Set up a model for a full answer."
_UNSUPPORTED = (
    "This text is not in English or German, and the offline rules for {subject} only support these languages. "
    "Set up a model to answer this prompt."
)


@dataclass(frozen=True, slots=True)
class RuleAnswer:
    text: str
    citations: list[PageCitation]


def list_findings(subject: Subject, texts: Sequence[tuple[int, str]], unit: str) -> RuleAnswer:
    """List everything that rules find about a subject, such as all dates. `texts` contains numbered pages."""
    from octavo.language import extract

    found = extract(subject, [ChunkText(text) for _, text in texts])
    if found.is_empty:
        return RuleAnswer((_NONE if found.supported else _UNSUPPORTED).format(subject=subject.value), [])
    numbers = [number for number, _ in texts]
    sections, cited = [_FOUND], list[PageCitation]()
    for (group, entries), most in zip(found.groups, _share(found), strict=True):
        listed = entries[:most]
        lines = [f"- {_describe(same, [numbers[one.statement.chunk] for one in same], unit)}" for same in listed]
        more = f"\n\nand {len(entries) - most:,} more" if len(entries) > most else ""
        sections.append(f"**{group}**\n\n" + "\n".join(lines) + more)
        cited += [_cite(same[0], numbers) for same in listed]
    return RuleAnswer("\n\n".join(sections)[:_MAX_CHARACTERS], cited)


def _share(found: Extraction) -> list[int]:
    """Return how many items to list for each group.

    Every group gets an equal share, plus the unused part of the other groups' shares.
    """
    sizes = [len(entries) for _, entries in found.groups]
    equal = MAX_LISTED // len(sizes)
    return [max(equal, MAX_LISTED - sum(min(other, equal) for other in sizes) + min(size, equal)) for size in sizes]


def _cite(finding: Finding, numbers: Sequence[int]) -> PageCitation:
    return PageCitation(page=numbers[finding.statement.chunk], quote=finding.quote[:500], relevance=1.0)


def _describe(same: Sequence[Finding], pages: Sequence[int], unit: str) -> str:
    """Format a found value as one list entry: the value, the words around it, and its page numbers."""
    value, quote = _escape(same[0].value), _escape(_shorten(same[0].quote, same[0].value))
    words = quote if same[0].value == same[0].quote else f"**{value}**: {quote}"
    unique = list(dict.fromkeys(pages))
    listed = ", ".join(map(str, unique[:_MAX_PAGES])) + (" …" if len(unique) > _MAX_PAGES else "")
    return f"{words} ({unit} {listed})"


def _shorten(quote: str, value: str) -> str:
    """Shorten a long quote to the words around the value."""
    if len(quote) <= _MAX_WORDS:
        return quote
    start = max(0, quote.find(value) - _MAX_WORDS // 3)
    start = quote.find(" ", start) + 1 if start else 0
    end = quote.rfind(" ", start, start + _MAX_WORDS)
    end = end if end > start else start + _MAX_WORDS
    return ("… " if start else "") + quote[start:end].rstrip(",;:") + (" …" if end < len(quote) else "")


def _escape(text: str) -> str:
    """Escape Markdown characters, so that text from the document cannot become markup in the answer."""
    return "".join(f"\\{one}" if one in "*_`[]<>\\" else one for one in text)


MAX_CITATIONS = 12
# Rules find more in a segment than a model quotes.
MAX_FOUND = 100
ANSWER_TOKENS = 1500
_NOTHING = "The offline search found no sentence that matches this prompt. Set up a model to get an answer."


class SegmentAnswer(Output):
    """The answer from one segment (some pages) of a document.

    `found` is true if the pages contain an answer. `summary` is passed as context to the call about the next segment.
    """

    found: bool
    answer: LongText
    citations: Annotated[list[PageCitation], Field(max_length=MAX_FOUND)]
    summary: Text


@dataclass(frozen=True, slots=True)
class SegmentToAnswer:
    """A prompt and the pages of a document to answer it from.

    `texts` contains the numbered pages of the segment, and `context` contains the pages before it. If `file` is set, it
    contains all of these pages in order. Remote models then receive the file, and only the `local` provider uses the
    texts. `before` is the summary of the previous segment. `unit` says what is numbered: `page` or `passage`.
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


def build_parts(segment: SegmentToAnswer) -> list[Part]:
    unit = segment.unit
    parts: list[Part] = [InstructionText(f"Answer for {unit} {segment.first} to {segment.last} of the document.")]
    if segment.context:
        parts.append(
            InstructionText(f"{unit.capitalize()} {segment.context[0][0]} to {segment.first - 1} are context only.")
        )
    if segment.system:
        parts.append(InstructionText(f"How to answer:\n{segment.system}"))
    parts.append(InstructionText(f"The question:\n{segment.question}"))
    if segment.before:
        parts.append(QuotedText("before", segment.before))
    if segment.file:
        parts.append(InstructionText(f"The first page of the file is page {(segment.context or segment.texts)[0][0]}."))
        return [*parts, segment.file]
    return [*parts, *(QuotedText(f"{unit}-{number}", text) for number, text in [*segment.context, *segment.texts])]


def answer_offline(segment: SegmentToAnswer) -> SegmentAnswer:
    """Answer with a list made by rules, such as all dates.

    If no rules fit the prompt, answer with the best sentences from the pages.
    """
    from octavo.language import find_subject

    if subject := find_subject(segment.question):
        listed = list_findings(subject, segment.texts, segment.unit)
        summary = listed.citations[0].quote if listed.citations else ""
        return SegmentAnswer(
            found=bool(listed.citations), answer=listed.text, citations=listed.citations, summary=summary
        )
    return _quote_offline(segment)


def _quote_offline(segment: SegmentToAnswer) -> SegmentAnswer:
    """Answer with sentences from the pages.

    If the question asks for a summary, the most important sentences are listed in page order. Otherwise, the sentences
    that answer the question best are listed.
    """
    from octavo.language import answer, asks_summary, offline_embedder, summarise_in_quotes

    numbers = [number for number, _ in segment.texts]
    chunks = [ChunkText(text) for _, text in segment.texts]
    in_order = asks_summary(segment.question)
    if in_order:
        quotes = summarise_in_quotes(chunks, MAX_CITATIONS).quotes
    else:
        quotes = answer(segment.question, chunks, offline_embedder().embed, most=MAX_CITATIONS).quotes
    cited = [
        PageCitation(page=numbers[one.chunk], quote=words, relevance=one.score)
        for one in quotes
        if (words := " ".join(one.text.split())[:500])
    ]
    listed = sorted(cited, key=lambda one: one.page) if in_order else cited
    text = "\n".join(f"- {one.quote} ({segment.unit} {one.page})" for one in listed)
    summary = cited[0].quote if cited else ""
    return SegmentAnswer(found=bool(cited), answer=text or _NOTHING, citations=cited, summary=summary)


ANSWER_SEGMENT: Task[SegmentToAnswer, SegmentAnswer] = Task(
    name="answer_segment",
    output=SegmentAnswer,
    build_parts=build_parts,
    estimate_tokens=lambda _segment: ANSWER_TOKENS,
    output_tokens=8192,
    check=lambda _segment, answer: answer,
    seconds=240.0,
    offline=answer_offline,
)
