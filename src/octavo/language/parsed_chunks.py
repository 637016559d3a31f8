"""A passage read once, for everything that is made of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from octavo.language import languages, sentences
from octavo.language.insights import Passage
from octavo.language.markdown_segments import Part, Segment, blank, segments
from octavo.language.phrases import Phrases, find_phrases
from octavo.language.vocabulary import MOST_LETTERS, STOPWORDS, WORD

_CLOSING = "\"')]\u201d\u2019\u300d\u300f\uff09"
_ENDING = ".!?\u2026\u3002\uff01\uff1f\uff61"


class Sentence(NamedTuple):
    """`content[start:end]` of its passage; `whole` if it ends as sentences do."""

    start: int
    end: int
    words: tuple[str, ...]
    whole: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """In a language whose grammar is not known here there are no phrases."""

    passage: Passage
    text: str
    language: str | None
    segments: Sequence[Segment]
    sentences: Sequence[Sentence]
    phrases: Phrases

    @property
    def stems(self) -> Counter[str]:
        return self.phrases.stems

    @property
    def word_count(self) -> int:
        return sum(len(sentence.words) for sentence in self.sentences)


def read(passage: Passage, language: str | None) -> Reading:
    """`language` is that of the document; a passage in another one is read as what it is."""
    text = blank(passage.content)
    parts = list(segments(passage.content))
    own = languages.confirm(text, language)
    known = own if own in STOPWORDS else None
    return Reading(
        passage=passage,
        text=text,
        language=own,
        segments=parts,
        sentences=list(_sentences(text, parts)),
        phrases=find_phrases((text[part.start : part.end] for part in parts), known),
    )


def _sentences(text: str, parts: Sequence[Segment]) -> Iterator[Sentence]:
    for part in parts:
        if part.part in {Part.PARAGRAPH, Part.ITEM}:
            for start, end in sentences.split(text, part.start, part.end):
                words = tuple(word.lower() for word in WORD.findall(text, start, end) if len(word) <= MOST_LETTERS)
                whole = text[start:end].rstrip(_CLOSING).endswith(tuple(_ENDING))
                yield Sentence(start, end, words, whole)


def stems_of(text: str, language: str | None) -> Counter[str]:
    """The words of a heading that say what it is about."""
    return find_phrases([blank(text)], language if language in STOPWORDS else None).stems
