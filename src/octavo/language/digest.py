"""What some passages say, in a few of their own sentences: for prompts that ask for a summary."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from octavo.language.concepts import Weights, name_concepts, score
from octavo.language.importance import is_core, is_rest
from octavo.language.inputs import Passage
from octavo.language.languages import detect_most
from octavo.language.outputs import Answer, Quote
from octavo.language.readings import read
from octavo.language.summaries import OF_ITSELF, SAYS_SO, good_sentences, rate
from octavo.language.topics import Topics
from octavo.language.words import fold

_ASKS_SUMMARY = re.compile(
    r"\bsummar(y|ies|i[sz]e|i[sz]ing)\b|\b(main|key|most important) (points|ideas|findings|messages)\b|\boverview\b"
    r"|\bwhat (is|are) .{1,60} about\b|\bzusammenfass|\bfasse\b.{1,80}\bzusammen\b|\brésum|\bresum(en|e|ir|o)\b"
    r"|\briassu|\bsamenvat",
    re.IGNORECASE,
)
_UNDER_CORE = 1.3
# Two sentences that share so many of the words of the shorter one say the same.
_SAME_SHARE = 0.6


@dataclass(frozen=True, slots=True)
class _Candidate:
    passage: int
    start: int
    end: int
    text: str
    words: frozenset[str]
    score: float


def asks_summary(question: str) -> bool:
    """Whether it asks for what is said, and not for something that has words of its own."""
    return bool(_ASKS_SUMMARY.search(question))


def digest(passages: Sequence[Passage], most: int) -> Answer:
    """The sentences that say most of what all of the passages are about, the best first, and nothing twice."""
    chosen: list[_Candidate] = []
    for one in sorted(_candidates(passages), key=lambda one: (-one.score, one.passage, one.start)):
        if len(chosen) == most:
            break
        if not any(_say_the_same(one.words, other.words) for other in chosen):
            chosen.append(one)
    return Answer(quotes=[_quote(one) for one in chosen])


def _candidates(passages: Sequence[Passage]) -> list[_Candidate]:
    language = detect_most([passage.content for passage in passages])
    readings = [read(passage, language) for passage in passages]
    weights = Weights([reading.phrases for reading in readings], language)
    told = Topics([name_concepts(one.phrases, score(one.phrases, weights)) for one in readings]).word_weights()
    found: list[_Candidate] = []
    for place, reading in enumerate(readings):
        good = [] if is_rest(reading.passage) else good_sentences(reading)
        for number, one in enumerate(good):
            text = reading.passage.content[one.start : one.end]
            worth = rate(one, told, number / len(good), reading.language)
            worth *= (SAYS_SO if OF_ITSELF.search(text) else 1) * (_UNDER_CORE if is_core(reading.passage) else 1)
            words = frozenset(fold(word, reading.language) for word in one.words) & told.keys()
            found.append(_Candidate(place, one.start, one.end, text, words, worth))
    return found


def _say_the_same(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) > _SAME_SHARE * min(len(one), len(other)) if one and other else one == other


def _quote(one: _Candidate) -> Quote:
    """Scores of different passages can be compared; they have no end, so they are brought between 0 and 1."""
    return Quote(
        passage=one.passage, start=one.start, end=one.end, text=one.text, score=round(one.score / (1 + one.score), 3)
    )
