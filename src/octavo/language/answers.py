"""Answers a question with sentences of the passages, letter by letter; it never says anything of its own."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import fsum, log
from typing import TYPE_CHECKING

from octavo.core.words import ONE_CHARACTER, count_words
from octavo.language import sentences
from octavo.language.inputs import Passage
from octavo.language.languages import ENGLISH, detect_most
from octavo.language.outputs import Answer, Quote
from octavo.language.prose import Part, blank, segments
from octavo.language.stopwords import STOPWORDS
from octavo.language.words import MOST_LETTERS, WORD, root

if TYPE_CHECKING:
    import numpy as np

# Gives a normalised vector for each text, as `Embedder.embed` does.
Embed = Callable[[Sequence[str]], "np.ndarray"]

_MOST_QUOTES = 5
# So many sentences, the best by their words, are looked at by meaning: a few hundredths of a second for each ten.
_MOST_EMBEDDED = 60
# Half of what is asked for has to be in a sentence, or it has to mean nearly the same.
_LEAST_SCORE = 0.5
# Similarity of unrelated sentences, and of a question with its answer in the same words.
_UNRELATED, _SAME = 0.15, 0.9
_MEANING_ALONE = 0.9
_OF_HEADINGS = 0.5
# A sentence that has what a question of its kind asks for comes first: a figure, or what something is.
_BONUS = 0.15
_FEWEST_WORDS = 4
_MARKS = "*_`"
_IDEOGRAPHS = re.compile(f"[{ONE_CHARACTER}]{{2,}}")
_ASKS_FIGURE = re.compile(
    r"\b(when|how (many|much|long|old|far|often)|which year|what (year|date|percentage|number)|wann|wie ?viele?|combien"
    r"|quand|cuándo|cuántos?)\b",
    re.IGNORECASE,
)
_HIRAGANA = re.compile("[\u3040-\u309f]+")
_NUMBER = re.compile(r"\d+")
_FIGURE = re.compile(r"\d")
_ASKS_MEANING = re.compile(
    r"^\W*(what (is|are|does|do)|who (is|are|was)|was (ist|sind|bedeutet)|qu'est)\b", re.IGNORECASE
)
_MEANING = re.compile(
    r"\b(is|are|was|means?|refers? to|called|defined as|known as|stands for|ist|sind|bedeutet|heißt|est|signifie)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Candidate:
    passage: int
    start: int
    end: int
    text: str
    words: frozenset[str]
    around: frozenset[str]


def answer(question: str, passages: Sequence[Passage], embed: Embed | None = None, most: int = _MOST_QUOTES) -> Answer:
    """Quotes, the best first. `embed` finds what says it in other words, in English; without it only words count."""
    language = detect_most([*(passage.content for passage in passages), question]) or ENGLISH
    asked = _keys(question, language) or _keys(question, None)
    candidates = [one for place, passage in enumerate(passages) for one in _candidates(place, passage, language)]
    by_words = _score_words(question, asked, candidates)
    order = sorted(range(len(candidates)), key=lambda place: -by_words[place])
    scores = {place: by_words[place] for place in order}
    if embed and candidates:
        looked_at = order[:_MOST_EMBEDDED]
        vectors = embed([question, *(candidates[place].text for place in looked_at)])
        for place, similarity in zip(looked_at, vectors[1:] @ vectors[0], strict=True):
            scores[place] = _join(by_words[place], float(similarity))
    best = sorted((place for place in order if scores[place] >= _LEAST_SCORE), key=lambda place: -scores[place])
    unique = {candidates[place].text: place for place in reversed(best)}  # what is said twice is quoted once
    chosen = [place for place in best if unique[candidates[place].text] == place][:most]
    return Answer(quotes=[_quote(candidates[place], scores[place], passages) for place in chosen])


def _candidates(place: int, passage: Passage, language: str | None) -> Iterator[_Candidate]:
    text = blank(passage.content)
    around = _keys(" ".join(passage.headings), language)
    for part in segments(passage.content):
        rows = [(part.start, part.end)] if part.part is Part.CELLS else sentences.split(text, part.start, part.end)
        for start, end in rows if part.part is not Part.HEADING else ():
            words = _keys(text[start:end], language)
            if words and (part.part is Part.CELLS or count_words(text[start:end]) >= _FEWEST_WORDS):
                yield _Candidate(place, start, end, text[start:end], words, around)


def _score_words(question: str, asked: frozenset[str], candidates: Sequence[_Candidate]) -> list[float]:
    """The share of what is asked for that is there; rare words count more, words in the headings above count half."""
    having = Counter(word for one in candidates for word in one.words & asked)
    weights = {word: log(1 + len(candidates) / (1 + having[word])) for word in asked}
    total = fsum(weights.values()) or 1.0
    wanted = _FIGURE if _ASKS_FIGURE.search(question) else _MEANING if _ASKS_MEANING.search(question) else None
    scores: list[float] = []
    for one in candidates:
        inside = fsum(weights[word] for word in one.words & asked)
        above = fsum(weights[word] for word in one.around & asked - one.words)
        bonus = _BONUS if wanted and wanted.search(one.text) else 0.0
        scores.append((inside + _OF_HEADINGS * above) / total * (1 + bonus) if inside else 0.0)
    return scores


def _join(by_words: float, similarity: float) -> float:
    """The same words count for more than the same meaning, and the same meaning alone for nearly as much as both."""
    by_meaning = min(max((similarity - _UNRELATED) / (_SAME - _UNRELATED), 0.0), 1.0)
    return max((2 * by_words + by_meaning) / 3, _MEANING_ALONE * by_meaning)


def _keys(text: str, language: str | None) -> frozenset[str]:
    """What words are compared by. Scripts without spaces are compared by pairs of characters."""
    grammar = STOPWORDS.get(language or "", frozenset())
    words = {word.lower() for word in WORD.findall(_IDEOGRAPHS.sub(" ", text)) if len(word) <= MOST_LETTERS} - grammar
    pairs = {run[place : place + 2] for run in _IDEOGRAPHS.findall(text) for place in range(len(run) - 1)}
    pairs = {pair for pair in pairs if not _HIRAGANA.fullmatch(pair)}  # Japanese grammar
    numbers = set(_NUMBER.findall(text))
    return frozenset({root(word) if language == "en" else word for word in words} | pairs | numbers)


def _quote(candidate: _Candidate, score: float, passages: Sequence[Passage]) -> Quote:
    """With the marks that stand right before and behind it, so that what is bold stays so."""
    content = passages[candidate.passage].content
    start, end = candidate.start, candidate.end
    while start and content[start - 1] in _MARKS:
        start -= 1
    while end < len(content) and content[end] in _MARKS:
        end += 1
    text = content[start:end]
    return Quote(passage=candidate.passage, start=start, end=end, text=text, score=round(min(score, 1.0), 3))
