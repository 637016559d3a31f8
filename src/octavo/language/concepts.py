"""Finds the concepts of a chunk, and the topics and themes of a document, by counting phrases.

No language model is used, because it would take ten times as long as embedding the chunk. The weight of a phrase
depends on its words. A word weighs more if it is frequent in the chunk, rare in English, and present in few chunks of
the document. Occurrences inside a longer phrase are not counted, and phrases near the beginning weigh more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import log, log1p, sqrt

from octavo.language.insights import MAX_CONCEPTS, MAX_THEMES, Concept
from octavo.language.phrases import ParsedChunk, Phrases, Stems, better_form, heading_stems, parts_of
from octavo.language.vocabulary import rarity

# Half of a word's weight does not depend on the other chunks, so that the subject of the whole document is a concept.
_OWN = 0.5
# An exponent below one, so that a frequently repeated word does not outweigh all others.
_REPEATED = 0.7
_MAX_CHARACTERS = 80
NamedConcepts = Sequence[tuple[Stems, Concept]]

_UNDER_HEADING = 1.5
_LONGEST_THEME = 80


class WordWeights:
    """The weights of a document's words. A word that occurs in few chunks weighs more."""

    def __init__(self, chunks: Sequence[Phrases], language: str | None) -> None:
        self._is_english = language == "en"
        self._count = len(chunks)
        self._chunks_with: Counter[str] = Counter(stem for phrases in chunks for stem in phrases.stems)

    def weigh(self, stem: str) -> float:
        scarce = log((1 + self._count) / max(self._chunks_with[stem], 1)) / log(1 + self._count)
        return (rarity(stem) ** 2 if self._is_english else 1) * (_OWN + (1 - _OWN) * scarce)


def score_phrases(phrases: Phrases, weights: WordWeights) -> dict[Stems, float]:
    """Score each phrase by its words. Occurrences inside a longer phrase are not counted."""
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
        if (alone := seen.count - inside[phrase]) > 0 and len(seen.form) <= _MAX_CHARACTERS
    }


def choose_distinct(scores: Mapping[Stems, float], most: int, *, apart: bool = False) -> list[Stems]:
    """Return the best phrases, without those that share most of their words with a better phrase.

    If `apart` is true, longer phrases that contain a better phrase are also left out.
    """
    size = min if apart else max
    chosen: list[Stems] = []
    for phrase in sorted(scores, key=lambda phrase: (-scores[phrase], phrase)):
        own = {*phrase}
        if not any(own <= {*other} or 2 * len(own & {*other}) > size(len(own), len(other)) for other in chosen):
            chosen.append(phrase)
        if len(chosen) == most:
            break
    return chosen


def name_concepts(phrases: Phrases, scores: Mapping[Stems, float]) -> NamedConcepts:
    """Choose and name the concepts of a chunk. The most important one has an importance of 1."""
    chosen = choose_distinct(scores, MAX_CONCEPTS)
    best = scores[chosen[0]] if chosen else 1.0
    return [
        (phrase, Concept(text=phrases.seen[phrase].form, importance=round(scores[phrase] / best, 3)))
        for phrase in chosen
        if best > 0
    ]


class Topics:
    """The concepts of a whole document. The weight of a concept is its sum over all chunks."""

    def __init__(self, chunks: Sequence[NamedConcepts]) -> None:
        self._weights: Counter[Stems] = Counter()
        self._chunks_with: Counter[Stems] = Counter()
        self._forms: dict[Stems, str] = {}
        for named in chunks:
            for phrase, concept in named:
                self._weights[phrase] += concept.importance  # pyright: ignore[reportArgumentType] - counters add floats
                self._chunks_with[phrase] += 1
                self._forms[phrase] = better_form(self._forms.get(phrase, concept.text), concept.text)

    def weigh(self, named: NamedConcepts) -> float:
        """Return how important these concepts are in the whole document."""
        return sum(concept.importance * log1p(self._weights[phrase]) for phrase, concept in named)

    def word_weights(self) -> dict[str, float]:
        """Return the weight of each word in the whole document."""
        weights: dict[str, float] = {}
        for phrase, weight in self._weights.items():
            for stem in phrase:
                weights[stem] = weights.get(stem, 0.0) + weight
        return {stem: log1p(weight) for stem, weight in weights.items()}

    def themes(self, parsed: ParsedChunk, named: NamedConcepts) -> list[str]:
        """Return the themes of a chunk: those of its concepts that are most important in the whole document.

        Concepts that also occur in the chunk's headings get a higher score. If the chunk has no concepts, its headings
        are returned.
        """
        if not named:
            return _short(list(reversed(parsed.chunk.headings)), _LONGEST_THEME)[:MAX_THEMES]
        headings = heading_stems(". ".join(parsed.chunk.headings), parsed.language)
        scores = {
            phrase: concept.importance
            * log1p(self._weights[phrase])
            * (_UNDER_HEADING if any(stem in headings for stem in phrase) else 1)
            for phrase, concept in named
        }
        return [self._forms[phrase] for phrase in choose_distinct(scores, MAX_THEMES, apart=True)]

    @property
    def weights(self) -> Mapping[Stems, float]:
        return self._weights

    @property
    def forms(self) -> Mapping[Stems, str]:
        return self._forms


def _short(texts: Sequence[str], most: int) -> list[str]:
    return list(dict.fromkeys(text.strip() for text in texts if text.strip() and len(text.strip()) <= most))
