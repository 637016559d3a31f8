"""Writes what rules found as an answer: a list with page numbers, and a quote for each entry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from octavo.ai.tasks.page_citations import PageCitation
from octavo.language.insights import ChunkText

if TYPE_CHECKING:
    from octavo.language.extraction import Extraction, Subject
    from octavo.language.findings import Finding

MAX_LISTED = 100
MAX_CHARACTERS = 18_000
_MAX_PAGES, _MAX_WORDS = 5, 160
_FOUND = "Found by rules, offline. Rules can miss some or misread a word; the quotes show what they read."
_NONE = "The offline rules recognised no {subject} in this text. They can miss some. Set up a model for a full answer."
_UNSUPPORTED = "The offline rules for {subject} cover English and German. Set up a model to answer this prompt."


@dataclass(frozen=True, slots=True)
class FoundByRules:
    text: str
    citations: list[PageCitation]


def list_findings(subject: Subject, texts: Sequence[tuple[int, str]], unit: str) -> FoundByRules:
    """List everything of one kind in these numbered texts."""
    from octavo.language import extract

    found = extract(subject, [ChunkText(text) for _, text in texts])
    if found.is_empty:
        return FoundByRules((_NONE if found.supported else _UNSUPPORTED).format(subject=subject.value), [])
    numbers = [number for number, _ in texts]
    lines, cited, left = [_FOUND], list[PageCitation](), 0
    for heading, same, page in _entries(found, numbers):
        line = f"{heading}- {_describe(same, [numbers[one.statement.chunk] for one in same], unit)}"
        if len(cited) == MAX_LISTED or sum(map(len, lines)) + len(line) > MAX_CHARACTERS:
            left += 1
            continue
        lines.append(line)
        cited.append(PageCitation(page=page, quote=same[0].quote[:500], relevance=1.0))
    more = [f"\nand {left:,} more. The parts of the document list them."] if left else []
    return FoundByRules("\n".join(lines + more), cited)


def _entries(found: Extraction, numbers: Sequence[int]) -> Iterator[tuple[str, list[Finding], int]]:
    """Each entry with the heading to write before it, and the page of its first occurrence."""
    for group, entries in found.groups:
        heading = f"\n**{group}**\n\n"
        for same in entries:
            yield heading, same, numbers[same[0].statement.chunk]
            heading = ""


def _describe(same: Sequence[Finding], pages: Sequence[int], unit: str) -> str:
    """The value with the words around it, and its pages."""
    value, quote = _escape(same[0].value), _escape(same[0].quote)
    words = value if same[0].value == same[0].quote else f"**{value}**: {_shorten(quote)}"
    unique = list(dict.fromkeys(pages))
    listed = ", ".join(map(str, unique[:_MAX_PAGES])) + (" …" if len(unique) > _MAX_PAGES else "")
    return f"{words} ({unit} {listed})"


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_WORDS else text[: text.rfind(" ", 0, _MAX_WORDS)].rstrip(",;:") + " …"


def _escape(text: str) -> str:
    """Characters of the document must not become markup of the answer."""
    return "".join(f"\\{one}" if one in "*_`[]<>\\" else one for one in text)
