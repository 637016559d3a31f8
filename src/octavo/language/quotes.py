"""Quotes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import fsum, log
from typing import TYPE_CHECKING

from octavo.core.languages import ONE_CHARACTER, count_words
from octavo.language import sentences
from octavo.language.insights import Answer, Passage, Quote
from octavo.language.languages import ENGLISH, detect_most
from octavo.language.markdown_segments import Part, blank, segments
from octavo.language.vocabulary import MOST_LETTERS, STOPWORDS, WORD, root

if TYPE_CHECKING:
    import numpy as np
from collections.abc import Iterable

from octavo.language.concepts import Topics, Weights, name_concepts, score
from octavo.language.importance import is_core, is_rest
from octavo.language.parsed_chunks import read
from octavo.language.summaries import OF_ITSELF, SAYS_SO, good_sentences, rate
from octavo.language.vocabulary import fold

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
class _SummaryCandidate:
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
    chosen: list[_SummaryCandidate] = []
    for one in sorted(_summary_candidates(passages), key=lambda one: (-one.score, one.passage, one.start)):
        if len(chosen) == most:
            break
        if not any(_say_the_same(one.words, other.words) for other in chosen):
            chosen.append(one)
    return Answer(quotes=[_scored_quote(one) for one in chosen])


def _summary_candidates(passages: Sequence[Passage]) -> list[_SummaryCandidate]:
    language = detect_most([passage.content for passage in passages])
    readings = [read(passage, language) for passage in passages]
    weights = Weights([reading.phrases for reading in readings], language)
    told = Topics([name_concepts(one.phrases, score(one.phrases, weights)) for one in readings]).word_weights()
    found: list[_SummaryCandidate] = []
    for place, reading in enumerate(readings):
        good = [] if is_rest(reading.passage) else good_sentences(reading)
        for number, one in enumerate(good):
            text = reading.passage.content[one.start : one.end]
            worth = rate(one, told, number / len(good), reading.language)
            worth *= (SAYS_SO if OF_ITSELF.search(text) else 1) * (_UNDER_CORE if is_core(reading.passage) else 1)
            words = frozenset(fold(word, reading.language) for word in one.words) & told.keys()
            found.append(_SummaryCandidate(place, one.start, one.end, text, words, worth))
    return found


def _say_the_same(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) > _SAME_SHARE * min(len(one), len(other)) if one and other else one == other


def _scored_quote(one: _SummaryCandidate) -> Quote:
    """Scores of different passages can be compared; they have no end, so they are brought between 0 and 1."""
    return Quote(
        passage=one.passage, start=one.start, end=one.end, text=one.text, score=round(one.score / (1 + one.score), 3)
    )


_WORD = re.compile(r"\S+")
LEAST_CHARACTERS = 3


@dataclass(frozen=True, slots=True)
class Found:
    """`text` is `source[start:end]`, letter by letter, and not what the model wrote."""

    text: str
    start: int
    end: int


def find_quote(quote: str, source: str) -> Found | None:
    """The first place where it stands; only how lines are broken may differ."""
    words = _WORD.findall(quote)
    if sum(map(len, words)) < LEAST_CHARACTERS:
        return None
    place = re.search(r"\s+".join(map(re.escape, words)), source)
    return Found(place.group(), place.start(), place.end()) if place else None


def keep_verbatim(quotes: Iterable[str], source: str) -> list[Found]:
    """Those that stand in the source; the others are dropped."""
    return [found for quote in quotes if (found := find_quote(quote, source))]
