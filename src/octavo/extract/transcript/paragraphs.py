"""Snippets to paragraphs: a new one after a pause, for another speaker, and when one is long enough."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from octavo.extract.contract import Moment
from octavo.extract.plain_text.escape import escape
from octavo.extract.transcript.snippets import Snippet
from octavo.extract.words import count_words

ENOUGH_WORDS = 60
MOST_WORDS = 120
PAUSE_SECONDS = 2.0
WORDS_BEFORE_PAUSE = 20
_SENTENCE_END = re.compile(r"[.!?…。！？]['\"”’»)\]]*$")  # noqa: RUF001 - full-width marks end sentences too


@dataclass(frozen=True, slots=True)
class Written:
    markdown: str
    moments: tuple[Moment, ...]


@dataclass(slots=True)
class _Paragraph:
    """Words with the second at which each snippet among them begins."""

    words: list[tuple[str, float | None]] = field(default_factory=list[tuple[str, float | None]])
    size: int = 0

    def add(self, word: str, second: float | None) -> None:
        self.words.append((word, second))
        self.size += count_words(word)

    @property
    def is_due(self) -> bool:
        ended = _SENTENCE_END.search(self.words[-1][0]) is not None
        return self.size >= MOST_WORDS or (self.size >= ENOUGH_WORDS and ended)


def write(snippets: Iterable[Snippet]) -> Written:
    """The text, and for each snippet the place where it begins."""
    parts: list[str] = []
    moments: list[Moment] = []
    length = 0
    for paragraph in _paragraphs(snippets):
        if parts:
            parts.append("\n\n")
            length += 2
        # Marks are escaped within their line, because most mean something only where they stand there.
        shown = escape(" ".join(word for word, _ in paragraph.words)).split(" ")
        for number, (word, (_, second)) in enumerate(zip(shown, paragraph.words, strict=True)):
            separator = " " if number else ""
            if second is not None:
                moments.append(Moment(length + len(separator), second))
            parts += (separator, word)
            length += len(separator) + len(word)
    return Written("".join(parts), tuple(moments))


def _paragraphs(snippets: Iterable[Snippet]) -> Iterator[_Paragraph]:
    paragraph = _Paragraph()
    before: Snippet | None = None
    for snippet in snippets:
        if paragraph.words and before and _begins_anew(paragraph, before, snippet):
            yield paragraph
            paragraph = _Paragraph()
        for number, word in enumerate(snippet.text.split()):
            if paragraph.words and paragraph.is_due:
                yield paragraph
                paragraph = _Paragraph()
            paragraph.add(word, snippet.start if number == 0 else None)
        before = snippet
    if paragraph.words:
        yield paragraph


def _begins_anew(paragraph: _Paragraph, before: Snippet, snippet: Snippet) -> bool:
    if snippet.new_speaker or before.start is None or snippet.start is None:
        return snippet.new_speaker or snippet.start is not None
    pause = snippet.start - before.start - before.duration
    return before.duration > 0 and pause > PAUSE_SECONDS and paragraph.size >= WORDS_BEFORE_PAUSE
