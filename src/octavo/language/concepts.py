"""Concepts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import log, log1p, sqrt

from octavo.language.insights import MOST_CONCEPTS, MOST_TAGS, MOST_THEMES, Concept
from octavo.language.parsed_chunks import Reading, stems_of
from octavo.language.phrases import Phrases, Stems, better_form, parts_of
from octavo.language.vocabulary import rarity

# Half of a word's weight does not depend on the other passages: what a whole document is about is a concept too.
_OWN = 0.5
# Less than one, so that a word that is repeated does not drown all others.
_REPEATED = 0.7
_MOST_CHARACTERS = 80


class Weights:
    """How much each word of a document tells, by how many of its passages have it."""

    def __init__(self, passages: Sequence[Phrases], language: str | None) -> None:
        self._is_english = language == "en"
        self._count = len(passages)
        self._passages_with: Counter[str] = Counter(stem for phrases in passages for stem in phrases.stems)

    def weigh(self, stem: str) -> float:
        scarce = log((1 + self._count) / max(self._passages_with[stem], 1)) / log(1 + self._count)
        return (rarity(stem) ** 2 if self._is_english else 1) * (_OWN + (1 - _OWN) * scarce)


def score(phrases: Phrases, weights: Weights) -> dict[Stems, float]:
    """A score for each phrase that stands somewhere alone."""
    inside: Counter[Stems] = Counter()
    for phrase, seen in phrases.seen.items():
        for part in parts_of(phrase):
            inside[part] = max(inside[part], seen.count)
    words = {stem: weights.weigh(stem) * log(1 + count) for stem, count in phrases.stems.items()}
    return {
        phrase: alone**_REPEATED
        * sum(words[stem] for stem in phrase)
        / sqrt(len(phrase))
        / (1 + seen.first / phrases.runs)
        for phrase, seen in phrases.seen.items()
        if (alone := seen.count - inside[phrase]) > 0 and len(seen.form) <= _MOST_CHARACTERS
    }


def choose(scores: Mapping[Stems, float], most: int, *, apart: bool = False) -> list[Stems]:
    """The best ones, none of which only repeats a better one; with `apart` none is a better one with more words."""
    size = min if apart else max
    chosen: list[Stems] = []
    for phrase in sorted(scores, key=lambda phrase: (-scores[phrase], phrase)):
        own = {*phrase}
        if not any(own <= {*other} or 2 * len(own & {*other}) > size(len(own), len(other)) for other in chosen):
            chosen.append(phrase)
        if len(chosen) == most:
            break
    return chosen


def name_concepts(phrases: Phrases, scores: Mapping[Stems, float]) -> list[tuple[Stems, Concept]]:
    """The most important one has an importance of 1."""
    chosen = choose(scores, MOST_CONCEPTS)
    best = scores[chosen[0]] if chosen else 1.0
    return [
        (phrase, Concept(text=phrases.seen[phrase].form, importance=round(scores[phrase] / best, 3)))
        for phrase in chosen
        if best > 0
    ]


Named = Sequence[tuple[Stems, Concept]]

_UNDER_HEADING = 1.5
_LONGEST_TAG = 40
_LONGEST_THEME = 80
# In a document with this many passages a tag has to be found in two of them.
_MANY_PASSAGES = 20


class Topics:
    """`passages` has the concepts of each passage."""

    def __init__(self, passages: Sequence[Named]) -> None:
        self._count = len(passages)
        self._weights: Counter[Stems] = Counter()
        self._passages: Counter[Stems] = Counter()
        self._forms: dict[Stems, str] = {}
        for named in passages:
            for phrase, concept in named:
                self._weights[phrase] += concept.importance  # pyright: ignore[reportArgumentType] - counters add floats
                self._passages[phrase] += 1
                self._forms[phrase] = better_form(self._forms.get(phrase, concept.text), concept.text)

    def weigh(self, named: Named) -> float:
        """How much of what the document is about these concepts are."""
        return sum(concept.importance * log1p(self._weights[phrase]) for phrase, concept in named)

    def word_weights(self) -> dict[str, float]:
        """How much each word says of the whole document."""
        weights: dict[str, float] = {}
        for phrase, weight in self._weights.items():
            for stem in phrase:
                weights[stem] = weights.get(stem, 0.0) + weight
        return {stem: log1p(weight) for stem, weight in weights.items()}

    def themes(self, reading: Reading, named: Named) -> list[str]:
        """Concepts of the passage that the document or the headings above it have too; without any, the headings."""
        if not named:
            return _short(list(reversed(reading.passage.headings)), _LONGEST_THEME)[:MOST_THEMES]
        headings = stems_of(". ".join(reading.passage.headings), reading.language)
        scores = {
            phrase: concept.importance
            * log1p(self._weights[phrase])
            * (_UNDER_HEADING if any(stem in headings for stem in phrase) else 1)
            for phrase, concept in named
        }
        return [self._forms[phrase] for phrase in choose(scores, MOST_THEMES, apart=True)]

    def tags(self) -> list[str]:
        least = 2 if self._count >= _MANY_PASSAGES else 1
        scores = {
            phrase: weight
            for phrase, weight in self._weights.items()
            if self._passages[phrase] >= least and len(self._forms[phrase]) <= _LONGEST_TAG
        }
        return [self._forms[phrase].lower() for phrase in choose(scores, MOST_TAGS, apart=True)]


def _short(texts: Sequence[str], most: int) -> list[str]:
    return list(dict.fromkeys(text.strip() for text in texts if text.strip() and len(text.strip()) <= most))
