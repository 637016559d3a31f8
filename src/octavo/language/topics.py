"""What a whole document is about: the concepts of its passages, added up. Themes and tags are taken from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import log1p

from octavo.language.concepts import choose
from octavo.language.outputs import MOST_TAGS, MOST_THEMES, Concept
from octavo.language.phrases import Stems, better_form
from octavo.language.readings import Reading, stems_of

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
