"""The one or two sentences of a passage that say most of what it is about. They are the document's own words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import fsum, sqrt

from octavo.language.importance import is_core
from octavo.language.parsed_chunks import Reading, Sentence
from octavo.language.vocabulary import fold

_FEWEST_WORDS, _MOST_WORDS = 5, 45
# Two short sentences rather than one; one long one is enough.
_SHORT_WORDS = 15
_MOST_CHARACTERS, _MOST_FIRST_WORDS, _MOST_OF_DOCUMENT = 400, 240, 600
_EARLY_PART, _EARLY_PASSAGES = 5, 3
# "This report shows": a sentence in which a document speaks of itself says what it is about.
OF_ITSELF = re.compile(
    r"\b(this|the present) (paper|article|report|book|document|study|guide|manual|thesis|essay|policy|agreement|note)\b"
    r"|\bwe (present|propose|describe|introduce|show)\b|\bdiese[rs]? (buch|bericht|artikel|dokument|arbeit)\b"
    r"|\bcet (article|ouvrage)\b",
    re.IGNORECASE,
)
SAYS_SO = 1.6
_SPACES = re.compile(r"\s+")
_BEFORE_MARK = re.compile(r"\s+(?=[,.;:!?])|[(\[]\s*[)\]]")


def summarise(reading: Reading, weights: Mapping[str, float]) -> str:
    """`weights` tells how much each word says. Where there are no sentences the first words stand for the passage."""
    good = good_sentences(reading) or [one for one in reading.sentences if len(one.words) >= _FEWEST_WORDS]
    if not good:
        return shorten(plain(_first_words(reading)), _MOST_FIRST_WORDS)
    scores = {one: rate(one, weights, place / len(good), reading.language) for place, one in enumerate(good)}
    best, *others = sorted(good, key=lambda one: (-scores[one], one.start))
    chosen = [best]
    if len(best.words) < _SHORT_WORDS and others:
        chosen = sorted([best, others[0]], key=lambda one: one.start)
    return shorten(" ".join(plain(reading.text[one.start : one.end]) for one in chosen))


def summarise_document(readings: Sequence[Reading], weights: Mapping[str, float]) -> str:
    """Two sentences from where documents say what they are about: an abstract, or the first fifth.

    Where no passage has a good sentence there is none to choose; its chunks have summaries of their own.
    """
    early = readings[: max(len(readings) // _EARLY_PART, _EARLY_PASSAGES)]
    early = [one for one in early if is_core(one.passage)] or early
    pairs = [(reading, sentence) for reading in early for sentence in good_sentences(reading)]
    scores = [
        rate(sentence, weights, place / len(pairs), reading.language)
        * (SAYS_SO if OF_ITSELF.search(_text(reading, sentence)) else 1)
        for place, (reading, sentence) in enumerate(pairs)
    ]
    places = {plain(_text(*pair)): place for place, pair in reversed(list(enumerate(pairs)))}  # each text once
    best = sorted(places, key=lambda text: -scores[places[text]])[:2]
    return shorten(" ".join(sorted(best, key=lambda text: places[text])), _MOST_OF_DOCUMENT)


def good_sentences(reading: Reading) -> list[Sentence]:
    return [one for one in reading.sentences if one.whole and _FEWEST_WORDS <= len(one.words) <= _MOST_WORDS]


def _text(reading: Reading, sentence: Sentence) -> str:
    return reading.text[sentence.start : sentence.end]


def rate(sentence: Sentence, weights: Mapping[str, float], place: float, language: str | None) -> float:
    """What its words weigh, for its length; a little more for standing early, where texts say what they are about."""
    told = fsum(weights.get(word, 0.0) for word in {fold(word, language) for word in sentence.words})
    return told / sqrt(len(sentence.words)) * (1.2 - 0.4 * place)


def plain(text: str) -> str:
    return _BEFORE_MARK.sub("", _SPACES.sub(" ", text)).strip()


def shorten(text: str, most: int = _MOST_CHARACTERS) -> str:
    if len(text) <= most:
        return text
    cut = text.rfind(" ", most // 2, most)
    return text[: cut if cut > 0 else most - 1].rstrip(" ,;:") + "…"


def _first_words(reading: Reading) -> str:
    parts: Sequence[str] = [reading.text[part.start : part.end].strip(" |") for part in reading.segments]
    return ". ".join(part.replace("|", ",") for part in parts if part)[: 4 * _MOST_CHARACTERS]
