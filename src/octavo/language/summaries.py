"""Summarises chunks and documents with one or two representative sentences, quoted verbatim."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import fsum, sqrt

from octavo.language.importance import has_core_heading
from octavo.language.parsed_chunks import ParsedChunk, Sentence
from octavo.language.vocabulary import fold

_MIN_WORDS, _MAX_WORDS = 5, 45
# If the best sentence is shorter than this, a second one is added.
_SHORT_WORDS = 15
_MAX_CHARACTERS, _MAX_FIRST_WORDS, _MAX_OF_DOCUMENT = 400, 240, 600
_EARLY_PART, _EARLY_CHUNKS = 5, 3
# Sentences about the document itself, such as "This report shows …". They name its subject.
SELF_REFERENCE = re.compile(
    r"\b(this|the present) (paper|article|report|book|document|study|guide|manual|thesis|essay|policy|agreement|note)\b"
    r"|\bwe (present|propose|describe|introduce|show)\b|\bdiese[rs]? (buch|bericht|artikel|dokument|arbeit)\b"
    r"|\bcet (article|ouvrage)\b",
    re.IGNORECASE,
)
SELF_REFERENCE_BONUS = 1.6
_SPACES = re.compile(r"\s+")
# The time and the speaker of a line in a transcript.
_TRANSCRIPT_LINE = re.compile(
    r"^ ?(?:\[\d{1,2}:\d\d(?::\d\d)?\]|\d{1,2}:\d\d:\d\d) (?:[A-Z][\w.-]*(?: [A-Z][\w.-]*)?: )?"
)
_BEFORE_MARK = re.compile(r"\s+(?=[,.;:!?])|[(\[]\s*[)\]]")


def summarise(parsed: ParsedChunk, weights: Mapping[str, float]) -> str:
    """Summarise a chunk with the one or two sentences whose words have the highest weights.

    A chunk without sentences is summarised by its first words.
    """
    good = good_sentences(parsed) or [one for one in parsed.sentences if len(one.words) >= _MIN_WORDS]
    if not good:
        return shorten(plain_text(_first_words(parsed)), _MAX_FIRST_WORDS)
    scores = {one: rate_sentence(one, weights, place / len(good), parsed.language) for place, one in enumerate(good)}
    best, *others = sorted(good, key=lambda one: (-scores[one], one.start))
    chosen = [best]
    if len(best.words) < _SHORT_WORDS and others:
        chosen = sorted([best, others[0]], key=lambda one: one.start)
    return shorten(" ".join(plain_text(parsed.text[one.start : one.end]) for one in chosen))


def summarise_document(parsed_chunks: Sequence[ParsedChunk], weights: Mapping[str, float]) -> str:
    """Choose two sentences from the abstract, or from the first fifth of the document.

    Returns an empty string if there is no suitable sentence.
    """
    early = parsed_chunks[: max(len(parsed_chunks) // _EARLY_PART, _EARLY_CHUNKS)]
    early = [one for one in early if has_core_heading(one.chunk)] or early
    pairs = [(parsed, sentence) for parsed in early for sentence in good_sentences(parsed)]
    scores = [
        rate_sentence(sentence, weights, place / len(pairs), parsed.language)
        * (SELF_REFERENCE_BONUS if SELF_REFERENCE.search(_text(parsed, sentence)) else 1)
        for place, (parsed, sentence) in enumerate(pairs)
    ]
    places = {plain_text(_text(*pair)): place for place, pair in reversed(list(enumerate(pairs)))}  # each text once
    best = sorted(places, key=lambda text: -scores[places[text]])[:2]
    return shorten(" ".join(sorted(best, key=lambda text: places[text])), _MAX_OF_DOCUMENT)


def good_sentences(parsed: ParsedChunk) -> list[Sentence]:
    return [one for one in parsed.sentences if one.whole and _MIN_WORDS <= len(one.words) <= _MAX_WORDS]


def _text(parsed: ParsedChunk, sentence: Sentence) -> str:
    return parsed.text[sentence.start : sentence.end]


def rate_sentence(sentence: Sentence, weights: Mapping[str, float], place: float, language: str | None) -> float:
    """Score a sentence: the weight of its words relative to its length, plus a small bonus for an early position."""
    weight = fsum(weights.get(word, 0.0) for word in {fold(word, language) for word in sentence.words})
    return weight / sqrt(len(sentence.words)) * (1.2 - 0.4 * place)


def plain_text(text: str) -> str:
    return _BEFORE_MARK.sub("", _TRANSCRIPT_LINE.sub("", _SPACES.sub(" ", text))).strip()


def shorten(text: str, most: int = _MAX_CHARACTERS) -> str:
    if len(text) <= most:
        return text
    cut = text.rfind(" ", most // 2, most)
    return text[: cut if cut > 0 else most - 1].rstrip(" ,;:") + "…"


def _first_words(parsed: ParsedChunk) -> str:
    parts: Sequence[str] = [parsed.text[part.start : part.end].strip(" |") for part in parsed.segments]
    return ". ".join(part.replace("|", ",") for part in parts if part)[: 4 * _MAX_CHARACTERS]
