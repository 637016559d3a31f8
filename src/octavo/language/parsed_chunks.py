"""Parses a chunk once, so that all analyses of the chunk can share the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from octavo.language import languages, sentences
from octavo.language.insights import ChunkText
from octavo.language.markdown_segments import Segment, SegmentKind, blank_markup, split_segments
from octavo.language.phrases import Phrases, find_phrases
from octavo.language.vocabulary import MAX_LETTERS, STOPWORDS, WORD

_CLOSING = "\"')]\u201d\u2019\u300d\u300f\uff09"
_ENDING = ".!?\u2026\u3002\uff01\uff1f\uff61"


class Sentence(NamedTuple):
    """A sentence, `content[start:end]` of its chunk. `whole` is true if it ends with sentence punctuation."""

    start: int
    end: int
    words: tuple[str, ...]
    whole: bool


@dataclass(frozen=True, slots=True)
class ParsedChunk:
    """A parsed chunk. `phrases` is empty for languages without a list of stop words."""

    chunk: ChunkText
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


def parse_chunk(chunk: ChunkText, language: str | None) -> ParsedChunk:
    """Parse a chunk. `language` is the document's language. If the chunk is in another language, that one is used."""
    text = blank_markup(chunk.content)
    parts = list(split_segments(chunk.content))
    own = languages.confirm_language(text, language)
    known = own if own in STOPWORDS else None
    return ParsedChunk(
        chunk=chunk,
        text=text,
        language=own,
        segments=parts,
        sentences=list(_sentences(text, parts)),
        phrases=find_phrases((text[part.start : part.end] for part in parts), known),
    )


def _sentences(text: str, parts: Sequence[Segment]) -> Iterator[Sentence]:
    for part in parts:
        if part.part in {SegmentKind.PARAGRAPH, SegmentKind.ITEM}:
            for start, end in sentences.split_sentences(text, part.start, part.end):
                words = tuple(word.lower() for word in WORD.findall(text, start, end) if len(word) <= MAX_LETTERS)
                whole = text[start:end].rstrip(_CLOSING).endswith(tuple(_ENDING))
                yield Sentence(start, end, words, whole)


def heading_stems(text: str, language: str | None) -> Counter[str]:
    """Count the stems of the content words in a heading."""
    return find_phrases([blank_markup(text)], language if language in STOPWORDS else None).stems
