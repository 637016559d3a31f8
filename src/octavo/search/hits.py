"""Builds search hits: the details of a chunk, the reason why it was found, and a snippet with the matched words."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol
from uuid import UUID

from octavo.ai.calls import LOCAL, Caller, ModelAnswer
from octavo.ai.vectors import Vectors
from octavo.core.errors import OctavoError
from octavo.database import Connection, Row, fetch_rows, load_queries
from octavo.library.documents import moment_url
from octavo.records.search import Scores, SearchHit, Why

QUERIES = load_queries("search")
# The most sentences embedded for one page of hits. Each takes about 3.5 ms of processor time, a search at most 100 ms.
MOST_SENTENCES = 20
# The database puts these around matched words; texts never contain them.
BEGIN, END = "\x02", "\x03"
LENGTH = 280
# Most characters before the first matched word.
LEAD = 60
_FOUND = re.compile(f"{BEGIN}([^{END}]*){END}")
# Markdown syntax that is noise in one line of text; links and pictures become their text.
# Both parts are bounded: otherwise a chunk of nothing but opening brackets takes seconds.
_LINK = re.compile(r"!?\[([^\]\n]{0,300})\]\([^)\s]{0,1000}\)")
_NOISE = re.compile(r"^[ \t]*(?:#{1,6}|>|[-*+]|\|?[ \t:|-]{3,}\|?$)[ \t]*|[*`|]+|(?<!\w)_+|_+(?!\w)", re.MULTILINE)
# A heading gets a colon before its text, unless it ends with punctuation.
_HEADING = re.compile(rf"^[ \t]*#{{1,6}}[ \t]+(.*?[^\s.:!?#{END}]{END}?)[ \t]*#*[ \t]*$(?=\s*\S)", re.MULTILINE)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_SPACE = re.compile(r"\s+")
_OPENS = re.compile(r"(?<=[.!?…])\s+(?=\S)|(?<=[\u3002\uff01\uff1f])")


class QueryEmbedder(Protocol):
    """Interface for embedding texts. The AI gateway implements it."""

    async def embed(self, texts: Sequence[str], caller: Caller, model: str | None = None) -> ModelAnswer[Vectors]: ...


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a hit was found.

    `text` is its score in the keyword search, and `semantic` its score in the semantic search. `field` is the field of
    the document that matched.
    """

    text: float | None = None
    semantic: float | None = None
    field: Why | None = None

    @property
    def why(self) -> Why:
        if self.text is not None and self.semantic is not None:
            return "both"
        if self.text is None and self.semantic is not None:
            return self.field or "meaning"
        return self.field if self.field and self.text is None else "words"


@dataclass(frozen=True, slots=True)
class HitDraft:
    """A hit that has no snippet yet. `row` contains the details from the database."""

    row: Row
    score: float
    reason: Reason

    @property
    def needs_sentence(self) -> bool:
        """Whether the snippet needs a sentence chosen by similarity, because the chunk contains no matched word."""
        return self.reason.semantic is not None and BEGIN not in self.row["marked"]


async def read_details(
    connection: Connection, owner: UUID, keys: Sequence[UUID], marked: str | None
) -> dict[UUID, dict[str, Any]]:
    """Load the details of hits. `keys` are ids of chunks, or of documents without text."""
    values = {"owner": owner, "marked": marked, "begin": BEGIN, "end": END}
    chunks = await fetch_rows(connection, QUERIES.details, {**values, "chunks": list(keys)}, prepare=False)
    found: dict[UUID, dict[str, Any]] = {row["chunk_id"]: dict(row) for row in chunks}
    documents = [row["document_id"] for row in found.values()] + [key for key in keys if key not in found]
    fields = await fetch_rows(connection, QUERIES.document_details, {**values, "documents": documents}, prepare=False)
    by_document = {row["document_id"]: row for row in fields}
    for row in found.values():
        row.update({name: by_document[row["document_id"]][name] for name in ("filename", "tags")})
    without_text: dict[str, Any] = {
        "chunk_id": None,
        "heading_path": [],
        "page_from": None,
        "seconds": None,
        "source_url": None,
    }
    return found | {key: {**row, **without_text} for key, row in by_document.items() if key in set(keys)}


async def choose_sentences(
    embedder: QueryEmbedder, owner: UUID, query: str, drafts: Sequence[HitDraft]
) -> dict[UUID, int]:
    """Choose the sentence nearest to the query for each hit that only the semantic search found.

    Uses the local embedding model. Returns the index of the sentence for each chunk. Hits beyond a limit have no
    sentence and show the beginning of their chunk.
    """
    sentences: dict[UUID, list[str]] = {}
    for draft in drafts:
        if draft.needs_sentence and draft.row["chunk_id"]:
            sentences[draft.row["chunk_id"]] = plain_sentences(draft.row["marked"])
    chosen = _within_limit(sentences)
    if not chosen:
        return {}
    texts = [query, *(text for texts in chosen.values() for text in texts)]
    try:
        embedded = await embedder.embed(texts, Caller(owner), LOCAL)
    except OctavoError:
        return {}
    return _nearest_sentences(chosen, embedded.output.vectors)


def _within_limit(sentences: Mapping[UUID, list[str]]) -> dict[UUID, list[str]]:
    chosen: dict[UUID, list[str]] = {}
    left = MOST_SENTENCES
    for chunk, texts in sentences.items():
        if 1 < len(texts) <= left:
            chosen[chunk] = texts
            left -= len(texts)
    return chosen


def _nearest_sentences(sentences: Mapping[UUID, list[str]], vectors: Sequence[Sequence[float]]) -> dict[UUID, int]:
    query, *rest = vectors
    left = iter([sum(a * b for a, b in zip(query, vector, strict=True)) for vector in rest])
    scores = {chunk: [next(left) for _ in texts] for chunk, texts in sentences.items()}
    return {chunk: max(range(len(one)), key=one.__getitem__) for chunk, one in scores.items()}


def finish_hit(draft: HitDraft, sentence: int | None = None) -> SearchHit:
    """Build the search hit. Its snippet is cut around the matched words or around the given sentence."""
    row, why = draft.row, draft.reason.why
    snippet = cut_snippet(row["marked"], chosen=sentence)
    return SearchHit(
        document_id=row["document_id"],
        title=row["title"],
        source_type=row["source_type"],
        chunk_id=row["chunk_id"],
        snippet=snippet.text,
        marks=snippet.marks,
        page=_page(row, snippet),
        heading_path=row["heading_path"],
        seconds=row["seconds"],
        url=moment_url(row["source_url"], row["seconds"]),
        score=round(draft.score, 6),
        scores=Scores(draft.reason.text, draft.reason.semantic),
        why=why,
        sentence=snippet.sentence,
        matched=_matched(row, why),
    )


def _matched(row: Row, why: Why) -> str | None:
    fields = {"title": row["title"], "tag": ", ".join(row["tags"]), "filename": row["filename"]}
    return fields.get(why)


def _page(row: Row, snippet: Snippet) -> int | None:
    """Return the page on which the snippet begins. Returns None if the document has no pages."""
    if row["page_from"] is None:
        return None
    return row["page_from"] + bisect_right(row["page_starts"], row["char_start"] + snippet.at)


@dataclass(frozen=True, slots=True)
class Snippet:
    """The part of a chunk that is shown for a hit.

    `marks` are the start and end offsets of the matched words. `at` is the position of the first matched word in the
    chunk. `sentence` is the sentence with the largest number of distinct matched words, or the sentence that was chosen
    by similarity.
    """

    text: str
    marks: list[tuple[int, int]]
    at: int = 0
    sentence: str = ""


def cut_snippet(marked: str, length: int = LENGTH, chosen: int | None = None) -> Snippet:
    """Return the part of a text with the largest number of distinct matched words.

    It begins at the start of a sentence if possible. If the text has no matched words, `chosen` is the index of the
    sentence to show, as numbered by `plain_sentences`.
    """
    text, marks = read_marks(_tidy(marked))
    left, right = _spans(text)[chosen] if chosen is not None else _best_sentence(text, marks)
    sentence = text[left:right]
    if len(text) <= length:
        at = _first_found(marked, 0) if marks else _find_sentence(marked, sentence)
        return Snippet(text, marks, _place(marked, at), sentence)
    first = _densest(text, marks, length)
    start = left if _fits(marks, left, right, length) else _start(text, marks[first][0] if marks else 0)
    end = _end(text, start, length)
    before, after = "… " if start else "", " …" if end < len(text) else ""
    shift = len(before) - start
    inside = [(one + shift, other + shift) for one, other in marks if start <= one and other <= end]
    at = _first_found(marked, _first_inside(marks, start)) if marks else _find_sentence(marked, sentence)
    return Snippet(f"{before}{text[start:end].rstrip()}{after}", inside, _place(marked, at), sentence)


def plain_sentences(marked: str) -> list[str]:
    """Return the sentences of a chunk as plain text."""
    text, _ = read_marks(_tidy(marked))
    return [text[left:right] for left, right in _spans(text)]


def _spans(text: str) -> list[tuple[int, int]]:
    opens = [0, *(match.end() for match in _OPENS.finditer(text)), len(text)]
    return [(left, left + len(text[left:right].rstrip())) for left, right in pairwise(opens) if left < right] or [
        (0, 0)
    ]


def _best_sentence(text: str, marks: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return the offsets of the sentence with the largest number of distinct matched words.

    If several sentences have the same number, the first of them is returned.
    """

    def count(span: tuple[int, int]) -> int:
        return len({text[one:other].lower() for one, other in marks if span[0] <= one and other <= span[1]})

    return max(_spans(text), key=count)


def _fits(marks: Sequence[tuple[int, int]], left: int, right: int, length: int) -> bool:
    """Whether a snippet that starts with this sentence is long enough for all matched words of the sentence."""
    inside = [end for start, end in marks if left <= start and end <= right]
    return not inside or inside[-1] - left <= length - LEAD


def _first_inside(marks: Sequence[tuple[int, int]], start: int) -> int:
    """Return the index of the first matched word at or after this position. Returns 0 if there is none."""
    return next((place for place, mark in enumerate(marks) if mark[0] >= start), 0)


def _find_sentence(marked: str, sentence: str) -> int:
    """Return the approximate position of a sentence in `marked`, in which control characters enclose matched words."""
    words = sentence.split()
    for count in (4, 2, 1):
        if words and (place := marked.find(" ".join(words[:count]))) >= 0:
            return place
    return 0


def read_marks(marked: str) -> tuple[str, list[tuple[int, int]]]:
    """Remove the control characters that enclose matched words. Returns the text and the positions of these words."""
    parts: list[str] = []
    marks: list[tuple[int, int]] = []
    length = end = 0
    for found in _FOUND.finditer(marked):
        before = _bare(marked[end : found.start()])
        parts += before, found[1]
        length += len(before)
        if found[1]:
            marks.append((length, length + len(found[1])))
        length += len(found[1])
        end = found.end()
    return "".join(parts) + _bare(marked[end:]), marks


def _tidy(marked: str) -> str:
    plain = _NOISE.sub(" ", _HEADING.sub(r"\1:", _LINK.sub(r"\1", marked)))
    return _SPACE.sub(" ", _ESCAPED.sub(r"\1", plain)).strip()


def _bare(text: str) -> str:
    return text.replace(BEGIN, "").replace(END, "")


def _densest(text: str, marks: Sequence[tuple[int, int]], length: int) -> int:
    """Return the index of the first matched word of the best snippet with `length` characters.

    The best snippet contains the largest number of distinct matched words.
    """
    words = [text[start:end].lower() for start, end in marks]
    best, most, last = 0, -1.0, 0
    inside: dict[str, int] = {}
    for first, (start, _) in enumerate(marks):
        while last < len(marks) and marks[last][1] <= start + length - LEAD:
            inside[words[last]] = inside.get(words[last], 0) + 1
            last += 1
        value = len(inside) + (last - first) / (len(marks) + 1)
        if value > most:
            best, most = first, value
        if first < last:
            inside[words[first]] -= 1
            if not inside[words[first]]:
                del inside[words[first]]
        else:
            last = first + 1
    return best


def _start(text: str, found: int) -> int:
    """Return the offset at which the snippet starts.

    This is the start of the sentence if it is near enough to the matched word, otherwise the start of a word.
    """
    if found <= LEAD:
        return 0
    opens = [match.end() for match in _OPENS.finditer(text, found - LEAD, found)]
    if opens:
        return opens[-1]
    space = text.find(" ", found - LEAD // 2, found)
    return space + 1 if space >= 0 else found


def _end(text: str, start: int, length: int) -> int:
    if start + length >= len(text):
        return len(text)
    space = text.rfind(" ", start + length // 2, start + length)
    return space if space > start else start + length


def _first_found(marked: str, number: int) -> int:
    """Return the position of the matched word with this index.

    In `marked`, control characters enclose each matched word.
    """
    for place, match in enumerate(found for found in _FOUND.finditer(marked) if found[1]):
        if place == number:
            return match.start()
    return 0


def _place(marked: str, at: int) -> int:
    """Convert a position in `marked` to the position in the text without control characters.

    In `marked`, control characters enclose matched words.
    """
    return at - sum(marked.count(mark, 0, at) for mark in (BEGIN, END))
