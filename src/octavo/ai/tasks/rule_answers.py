"""Turns values found by rules into an answer: a list with page numbers, and a quote for each item of the list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from octavo.language.insights import ChunkText, PageCitation

if TYPE_CHECKING:
    from octavo.language.extraction import Extraction, Subject
    from octavo.language.findings import Finding

MAX_LISTED = 80
_MAX_PAGES, _MAX_WORDS, _MAX_CHARACTERS = 5, 120, 19_000
_FOUND = "Found by rules, without a model. Rules can miss entries and misread words, so check the quotes."
_NONE = "The offline rules found no {subject} in this text, but they can miss some. Set up a model for a full answer."
_UNSUPPORTED = "The offline rules for {subject} cover English and German. Set up a model to answer this prompt."


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

    Every group gets an equal share, plus the shares that other groups do not use.
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
