"""Answers with citations. Each quote is checked against the chunk that the answer cites. All functions are pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from octavo.ai.tasks.answer_question import AnswerCitation, ChunkCitation, CitedAnswer
from octavo.language.text_positions import find_quote
from octavo.records.search import Citation, Statement


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a question. `found` is true if the documents answer the question.

    `made_by` is the name of a model, or `local` for an answer made without a model. `short` is the answer in a few
    words, if there is one. `note` tells the user about the limits of offline answers, if they apply.
    """

    found: bool
    statements: list[Statement]
    citations: list[Citation]
    made_by: str
    cost_usd: float
    short: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class SourceChunk:
    """A chunk that is sent to the model. `page_starts` are the offsets at which its second and later pages begin."""

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


def cite(answer: CitedAnswer, sources: Sequence[SourceChunk]) -> tuple[list[Statement], list[Citation]]:
    """Verify the citations of an answer and number them from 1.

    Identical quotes from the same chunk get the same number.
    """
    citations: dict[tuple[UUID, str], Citation] = {}
    statements: list[Statement] = []
    for statement in answer.statements:
        used: dict[int, Citation] = {}
        for cited in statement.citations:
            found = _look_up(cited, sources, len(citations) + 1)
            kept = citations.setdefault((found.chunk_id, found.quote), found)
            used[kept.number] = kept
        statements.append(Statement(statement.text, list(used), any(one.verified for one in used.values())))
    return statements, list(citations.values())


def with_marks(statement: Statement, citations: Sequence[Citation]) -> str:
    """Format a statement as plain text. [1] marks a verified citation, and [2?] an unverified one.

    `citations` must be sorted by number.
    """
    cited = [citations[number - 1] for number in statement.citations]
    marks = "".join(f"[{one.number}]" if one.verified else f"[{one.number}?]" for one in cited)
    return f"{statement.text} {marks}" if marks else statement.text


def _look_up(cited: ChunkCitation, sources: Sequence[SourceChunk], number: int) -> Citation:
    """Find the quote in the chunk that the model named.

    If the quote is in exactly one other chunk instead, that chunk is cited, because models sometimes confuse the
    numbers.
    """
    named = sources[cited.passage]
    found = find_quote(cited.quote, named.content)
    if found is None:
        places = [(one, place) for one in sources if (place := find_quote(cited.quote, one.content))]
        if len(places) == 1:
            named, found = places[0]
    page = named.page_at(found.start if found else 0)
    quote = found.text if found else cited.quote
    answer = cited.answer if isinstance(cited, AnswerCitation) else None
    return Citation(
        number, named.document_id, named.title, named.chunk_id, page, quote, verified=found is not None, answer=answer
    )
