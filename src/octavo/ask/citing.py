"""Looks every quote up in the passage that it is said to be from. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from octavo.ai.tasks.answer_question import CitedAnswer, CitedPassage
from octavo.ask.contract import Citation, Said
from octavo.language.quotes import find_quote


@dataclass(frozen=True, slots=True)
class Source:
    """A passage that was shown; `page_starts` are where its further pages begin, in characters of the text."""

    chunk_id: UUID
    document_id: UUID
    title: str
    content: str
    heading_path: list[str]
    char_start: int
    page_from: int | None
    page_starts: list[int]

    def page_at(self, place: int) -> int | None:
        if self.page_from is None:
            return None
        return self.page_from + bisect_right(self.page_starts, self.char_start + place)


def cite(answer: CitedAnswer, sources: Sequence[Source]) -> tuple[list[Said], list[Citation]]:
    """The statements with the numbers of what they cite, from 1; the same quote has one number."""
    citations: dict[tuple[UUID, str], Citation] = {}
    statements: list[Said] = []
    for statement in answer.statements:
        used: dict[int, Citation] = {}
        for cited in statement.citations:
            found = _look_up(cited, sources, len(citations) + 1)
            kept = citations.setdefault((found.chunk_id, found.quote), found)
            used[kept.number] = kept
        statements.append(Said(statement.text, list(used), any(one.verified for one in used.values())))
    return statements, list(citations.values())


def with_marks(said: Said, citations: Sequence[Citation]) -> str:
    """As plain text: [1] is a citation, [2?] one that is not verified. They are numbered in their order."""
    cited = [citations[number - 1] for number in said.citations]
    marks = "".join(f"[{one.number}]" if one.verified else f"[{one.number}?]" for one in cited)
    return f"{said.text} {marks}" if marks else said.text


def _look_up(cited: CitedPassage, sources: Sequence[Source], number: int) -> Citation:
    """Where it is said to stand, else in the one passage where it does: models count wrongly."""
    named = sources[cited.passage]
    found = find_quote(cited.quote, named.content)
    if found is None:
        places = [(one, place) for one in sources if (place := find_quote(cited.quote, one.content))]
        if len(places) == 1:
            named, found = places[0]
    page = named.page_at(found.start if found else 0)
    quote = found.text if found else cited.quote
    return Citation(number, named.document_id, named.title, named.chunk_id, page, quote, verified=found is not None)
