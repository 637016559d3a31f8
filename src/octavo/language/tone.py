"""How a passage speaks: for or against (VADER's rules), and with which feeling (a lexicon of our own). English only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from octavo.language.emotion_words import EMOTION_WORDS
from octavo.language.languages import ENGLISH
from octavo.language.once import once
from octavo.language.outputs import Emotion, Tone

if TYPE_CHECKING:
    from octavo.language.readings import Reading

UNKNOWN = Tone(polarity=0.0, primary_emotion=Emotion.UNKNOWN)
# The rules look at a sentence's words again for each of them, so a sentence without an end is read in pieces.
_MOST_WORDS = 60
# One sentence with a mood among many without is no mood of the passage; this many sentences without one are assumed.
_CALM = 1.0
# A feeling is named when at least this share of the words is about it: one word is enough in a line, not in a page.
_LEAST_SHARE = 1 / 150
_NEGATIONS = frozenset({"no", "not", "never", "without", "cannot", "hardly", "nor", "neither", "nobody", "nothing"})
_REACH = 3


def judge(reading: Reading) -> Tone:
    if reading.language != ENGLISH:
        return UNKNOWN
    return Tone(polarity=_polarity(reading), primary_emotion=_emotion([s.words for s in reading.sentences]))


def _polarity(reading: Reading) -> float:
    analyzer = _analyzer()
    scores = [
        analyzer.polarity_scores(part)["compound"]
        for sentence in reading.sentences
        if not analyzer.lexicon.keys().isdisjoint(sentence.words)
        for part in _pieces(reading.text[sentence.start : sentence.end])
    ]
    moved = [score for score in scores if score]
    return round(sum(moved) / (len(moved) + _CALM), 3)


def polarity_of(sentence: str) -> float:
    """Of one sentence of English: from -1, against, to 1, in favour."""
    return float(_analyzer().polarity_scores(sentence)["compound"])


def _pieces(sentence: str) -> Iterator[str]:
    words = sentence.split()
    for start in range(0, len(words), _MOST_WORDS):
        yield " ".join(words[start : start + _MOST_WORDS])


def _emotion(sentences: Sequence[Sequence[str]]) -> Emotion:
    """The feeling that most words are about, unless the words before them deny it."""
    counts: Counter[Emotion] = Counter(
        EMOTION_WORDS[word]
        for words in sentences
        for place, word in enumerate(words)
        if word in EMOTION_WORDS and not any(_denies(before) for before in words[max(place - _REACH, 0) : place])
    )
    if not counts:
        return Emotion.NEUTRAL
    (first, count), *others = counts.most_common(2)
    total = sum(map(len, sentences))
    stands_out = count >= total * _LEAST_SHARE and not (others and others[0][1] == count)
    return first if stands_out else Emotion.NEUTRAL


def _denies(word: str) -> bool:
    return word in _NEGATIONS or word.replace("\u2019", "'").endswith("n't")


@once
def _analyzer() -> Any:  # noqa: ANN401 - it has no types
    from vaderSentiment.vaderSentiment import (  # pyright: ignore[reportMissingTypeStubs]
        SentimentIntensityAnalyzer,
    )

    return SentimentIntensityAnalyzer()
