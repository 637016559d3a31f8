"""Answers questions and summarises texts with verbatim quotes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import fsum, log, log10
from typing import TYPE_CHECKING

from octavo.core.texts import ONE_CHARACTER, count_words
from octavo.language.description import (
    SELF_REFERENCE,
    SELF_REFERENCE_BONUS,
    good_sentences,
    has_back_matter_heading,
    has_core_heading,
    rate_sentence,
)
from octavo.language.insights import Answer, ChunkText, Quote
from octavo.language.languages import ENGLISH, detect_document_language
from octavo.language.markdown_segments import Segment, SegmentKind, blank_markup, split_segments, split_sentences
from octavo.language.phrases import Topics, WordWeights, name_concepts, parse_chunk, score_phrases
from octavo.language.small_model import SentenceAnswer, SplitText, offline_small_model
from octavo.language.vocabulary import MAX_LETTERS, STOPWORDS, WORD, fold, root

if TYPE_CHECKING:
    import numpy as np


# Returns a unit vector for each text, like `Embedder.embed`.
Embed = Callable[[Sequence[str]], "np.ndarray"]

_MAX_QUOTES = 5
# Only the sentences with the best scores for words are compared by meaning. Embedding ten takes a few hundredths of a
# second, and comparing more does not find more answers (decision 20).
_MAX_EMBEDDED = 10
# A sentence must contain half of the question's words, or mean nearly the same as the question.
_MIN_SCORE = 0.5
# The similarity of unrelated sentences, and of a question and an answer that uses the same words.
_UNRELATED, _SAME = 0.15, 0.9
_MEANING_ALONE = 0.9
_OF_HEADINGS = 0.5
# A bonus for sentences that contain the figure or definition that the question asks for.
_BONUS = 0.15
_MIN_WORDS = 4
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
_ASKS_SUMMARY = re.compile(
    r"\bsummar(y|ies|i[sz]e|i[sz]ing)\b|\b(main|key|most important) (points|ideas|findings|messages)\b|\boverview\b"
    r"|\bwhat (is|are) .{1,60} about\b|\bzusammenfass|\bfasse\b.{1,80}\bzusammen\b|\brésum|\bresum(en|e|ir|o)\b"
    r"|\briassu|\bsamenvat",
    re.IGNORECASE,
)
_UNDER_CORE = 1.3
# Two sentences are repetitions if they share at least this share of the words of the shorter one.
_SAME_SHARE = 0.6
# Answers by octavo-small. The constants were chosen on the calibration part of the questions (decision 31).
# Passages have about the length of the paragraphs that the model learned from, and end with a paragraph if they can.
_MIN_PASSAGE, _MAX_PASSAGE = 350, 1100
_MAX_PASSAGES = 8
_MAX_HEADING = 80
# The maximum number of tokens read for one question: about half a second of processor time.
_MAX_PIECES = 4000
# The penalty for each place further down the search results, when passages are chosen.
_COVERAGE_PER_PLACE = 0.03
# The weights of a sentence's score: the model's margin over "not here", the place of its chunk in the search results,
# the share of the question's words in it, the same with the sentence before it, and an answer of the wrong kind.
_OF_MARGIN, _PER_PLACE, _OF_SENTENCE, _OF_CONTEXT, _WRONG_KIND = 0.17, 0.15, 1.2, 0.33, 3.0
# The best sentences are read again with only the sentence before them. Their margin counts this much.
_OF_SECOND_READING = 0.25
# The least score of an answer in one passage. The best of several unrelated passages scores higher, so the least score
# grows with their number.
_MIN_ANSWER_SCORE, _TENFOLD = 0.6, 0.22
# Further answers may score this much less than the best one.
_FURTHER = 0.8
_RANGE = re.compile(
    r"\b(?:between|from)\s+\S{1,20}(?:\s\w{1,10})?\s+(?:and|to)\s+\Z|\d\s?[\u2013-]\s?\Z", re.IGNORECASE
)
_NUMBER_WORD = (
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|fif|six|eigh|nine)teen|twenty|thirty"
    r"|forty|fifty|sixty|seventy|eighty|ninety|hundreds?|thousands?|millions?|billions?|dozens?|half|halves|third|quarter"
    r"|double|first|second|once|twice)\b"
)
_TIME_WORD = (
    r"\b(?:january|february|march|april|may|june|july|august|september|october|november|december|\w+day|centur\w+|years?"
    r"|months?|weeks?|decades?|night|morning|evening|noon|today|during|after|before|until|since|spring|summer|autumn"
    r"|winter|upon|while|ago|times?|age|war|reign|period|era|early|late|later|when|if|once|now|current\w*)\b"
)
# What an answer must contain, by the words that the question uses. The first matching pattern is used.
_ANSWER_KINDS = tuple(
    (re.compile(asked, re.IGNORECASE), re.compile(expected, re.IGNORECASE))
    for asked, expected in (
        (
            r"\bhow (?:many|much)\b|\bwhat (?:percentage|number|amount|share)\b",
            rf"{_NUMBER_WORD}|[$€£%]|\b(?:several|many|multiple|few|no(?:ne|thing)?|all|most|free|some|little|more|less)\b",
        ),
        (
            r"\bhow (?:often|frequently)\b",
            rf"{_NUMBER_WORD}|\b(?:daily|\w+ly|annual|every|each|per|often|always|never)\b",
        ),
        (
            r"\bhow old\b",
            rf"(?!twice|once)(?:{_NUMBER_WORD})|\b(?:centur\w+|decades?|born|since|ancient)\b",
        ),
        (
            r"\bhow (?:long|far|tall|high|deep|large|big|wide|fast|heavy)\b",
            rf"{_NUMBER_WORD}|{_TIME_WORD}|\b(?:days?|hours?|minutes?|long\w*|short\w*|larg\w+|small\w*)\b",
        ),
        (
            r"^\W*(?:since |until |by )?when\b|\b(?:what|which) (?:year|date|day|month|century|decade|time)\b",
            rf"{_NUMBER_WORD}|{_TIME_WORD}",
        ),
        # "Several firms" names nobody.
        (r"^\W*who\b", r"^(?!(?:several|some|many|few|most|various|other|others|any|no one|nobody)\b)"),
    )
)


@dataclass(frozen=True, slots=True)
class _Candidate:
    chunk: int
    start: int
    end: int
    text: str
    words: frozenset[str]
    around: frozenset[str]


def answer(question: str, chunks: Sequence[ChunkText], embed: Embed | None = None, most: int = _MAX_QUOTES) -> Answer:
    """Answer a question with quotes, best first.

    If `embed` is given, sentences with a similar meaning are also found. Otherwise, only words are compared.
    """
    language = detect_document_language([*(chunk.content for chunk in chunks), question]) or ENGLISH
    keys = _keys(question, language) or _keys(question, None)
    candidates = [one for place, chunk in enumerate(chunks) for one in _candidates(place, chunk, language)]
    by_words = _score_words(question, keys, candidates)
    order = sorted(range(len(candidates)), key=lambda place: -by_words[place])
    scores = {place: by_words[place] for place in order}
    if embed and candidates:
        looked_at = order[:_MAX_EMBEDDED]
        vectors = embed([question, *(candidates[place].text for place in looked_at)])
        for place, similarity in zip(looked_at, vectors[1:] @ vectors[0], strict=True):
            scores[place] = _join(by_words[place], float(similarity))
    best = sorted((place for place in order if scores[place] >= _MIN_SCORE), key=lambda place: -scores[place])
    unique = {candidates[place].text: place for place in reversed(best)}  # a repeated sentence is quoted once
    chosen = [place for place in best if unique[candidates[place].text] == place][:most]
    return Answer(quotes=[_quote(candidates[place], scores[place], chunks) for place in chosen])


def _candidates(place: int, chunk: ChunkText, language: str | None) -> Iterator[_Candidate]:
    text = blank_markup(chunk.content)
    around = _keys(" ".join(chunk.headings), language)
    for start, end in _sentences(chunk.content, text):
        words = _keys(text[start:end], language)
        if words and (chunk.content[start] == "|" or count_words(text[start:end]) >= _MIN_WORDS):
            yield _Candidate(place, start, end, text[start:end], words, around)


def _sentences(content: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield the offsets of all sentences and table rows, but not of headings. `text` is the content without markup."""
    for part in split_segments(content):
        if part.part is not SegmentKind.HEADING:
            yield from _split_segment(part, text)


def _split_segment(part: Segment, text: str) -> Iterator[tuple[int, int]]:
    if part.part is SegmentKind.CELLS:
        yield part.start, part.end
    else:
        yield from split_sentences(text, part.start, part.end)


def _score_words(question: str, keys: frozenset[str], candidates: Sequence[_Candidate]) -> list[float]:
    """Score each sentence by the share of the question's words that it contains.

    Rare words weigh more. A word that occurs only in the headings above the sentence counts for half.
    """
    weights = _weigh(keys, [one.words & keys for one in candidates])
    wanted = _FIGURE if _ASKS_FIGURE.search(question) else _MEANING if _ASKS_MEANING.search(question) else None
    scores: list[float] = []
    for one in candidates:
        inside = fsum(weights[word] for word in one.words & keys)
        above = fsum(weights[word] for word in one.around & keys - one.words)
        bonus = _BONUS if wanted and wanted.search(one.text) else 0.0
        scores.append((inside + _OF_HEADINGS * above) * (1 + bonus) if inside else 0.0)
    return scores


def _weigh(keys: frozenset[str], having: Sequence[frozenset[str]]) -> dict[str, float]:
    """Return the weight of each word in a question. Words that occur in few of the texts weigh more. The weights add up
    to 1.
    """
    counts = Counter(word for one in having for word in one)
    weights = {word: log(1 + len(having) / (1 + counts[word])) for word in keys}
    total = fsum(weights.values()) or 1.0
    return {word: weight / total for word, weight in weights.items()}


def _join(by_words: float, similarity: float) -> float:
    """Combine two scores of a sentence: one for matching words and one for similar meaning.

    Matching words count twice as much as meaning, but a very similar meaning alone can give nearly the highest score.
    """
    by_meaning = min(max((similarity - _UNRELATED) / (_SAME - _UNRELATED), 0.0), 1.0)
    return max((2 * by_words + by_meaning) / 3, _MEANING_ALONE * by_meaning)


def _keys(text: str, language: str | None) -> frozenset[str]:
    """Return the words of a text in a form that can be compared, without stop words. English words are reduced to
    stems.

    In scripts without spaces, pairs of characters are used instead of words.
    """
    grammar = STOPWORDS.get(language or "", frozenset())
    words = {word.lower() for word in WORD.findall(_IDEOGRAPHS.sub(" ", text)) if len(word) <= MAX_LETTERS} - grammar
    pairs = {run[place : place + 2] for run in _IDEOGRAPHS.findall(text) for place in range(len(run) - 1)}
    pairs = {pair for pair in pairs if not _HIRAGANA.fullmatch(pair)}  # pairs of hiragana are Japanese grammar
    numbers = set(_NUMBER.findall(text))
    return frozenset({root(word) if language == "en" else word for word in words} | pairs | numbers)


def _quote(candidate: _Candidate, score: float, chunks: Sequence[ChunkText]) -> Quote:
    content = chunks[candidate.chunk].content
    start, end = _with_marks(content, candidate.start, candidate.end)
    text = content[start:end]
    return Quote(chunk=candidate.chunk, start=start, end=end, text=text, score=round(min(score, 1.0), 3))


def _with_marks(content: str, start: int, end: int) -> tuple[int, int]:
    """Extend the range of a sentence to include the markup directly around it, such as the asterisks of bold text."""
    while start and content[start - 1] in _MARKS:
        start -= 1
    while end < len(content) and content[end] in _MARKS:
        end += 1
    return start, end


@dataclass(frozen=True, slots=True)
class AnswerQuote:
    """A sentence that answers a question.

    `text` is `content[start:end]` of its chunk. `answer` is the part of the sentence that contains the answer.
    """

    chunk: int
    start: int
    end: int
    text: str
    answer: str
    score: float


@dataclass(frozen=True, slots=True)
class _Passage:
    """A few sentences or table rows of a chunk, preceded by their heading, as input for the octavo-small model.

    Adding `start` to an offset in the passage gives the offset in the chunk. `heading` is the length of the heading.
    `words` contains, for each sentence, the question's words that occur in it.
    """

    chunk: int
    start: int
    heading: int
    split: SplitText
    words: tuple[frozenset[str], ...]

    @property
    def all_words(self) -> frozenset[str]:
        return frozenset[str]().union(*self.words)


@dataclass(frozen=True, slots=True)
class _RatedSentence:
    passage: _Passage
    answer: SentenceAnswer
    score: float

    @property
    def text(self) -> str:
        start, end = self.passage.split.sentences[self.answer.sentence]
        return self.passage.split.text[start:end]

    def closer_text(self) -> SplitText:
        """Return a shorter passage for the sentence: its heading, the previous sentence and the sentence itself."""
        text, heading = self.passage.split.text, self.passage.heading
        start, end = self.passage.split.sentences[self.answer.sentence]
        first, _ = self.passage.split.sentences[max(self.answer.sentence - 1, 0)]
        return SplitText(text[:heading] + text[first:end], [(start - first + heading, end - first + heading)])

    def quote(self, content: str) -> AnswerQuote:
        start, end = self.passage.split.sentences[self.answer.sentence]
        left, right = _with_marks(content, self.passage.start + start, self.passage.start + end)
        span = slice(self.passage.start + self.answer.span.start, self.passage.start + self.answer.span.end)
        lower = _RANGE.search(content, left, span.start)  # "between 1.2 and 1.8 bar", not "1.8 bar"
        words = content[lower.start() if lower else span.start : span.stop]
        return AnswerQuote(self.passage.chunk, left, right, content[left:right], words, round(self.score, 3))


def find_answers(question: str, chunks: Sequence[ChunkText], most: int = _MAX_QUOTES) -> list[AnswerQuote]:
    """Answer an English question from English chunks with the octavo-small model. The best answer comes first.

    The chunks must be in the order in which the search found them. The result is empty if nothing answers the question.
    """
    keys = _keys(question, ENGLISH) or _keys(question, None)
    passages, weights = _choose_passages(keys, chunks)
    rated = _rate_sentences(question, passages, weights)
    unique = {" ".join(one.text.split()): one for one in sorted(rated, key=lambda one: one.score)}
    best = sorted(unique.values(), key=lambda one: -one.score)[:most]
    again = sorted(_read_again(question, best), key=lambda one: -one.score)
    least = _MIN_ANSWER_SCORE + _TENFOLD * log10(max(len(passages), 1))
    least = max(least, again[0].score - _FURTHER) if again else least
    return [one.quote(chunks[one.passage.chunk].content) for one in again if one.score > least]


def _rate_sentences(
    question: str, passages: Sequence[_Passage], weights: Mapping[str, float]
) -> Iterator[_RatedSentence]:
    """Find the best answer in each sentence of the passages. Yields the sentences with their scores."""
    found = offline_small_model().find_in_sentences(question, [one.split for one in passages])
    for passage, answers in zip(passages, found, strict=True):
        for answer in answers:
            score = _OF_MARGIN * answer.margin - _PER_PLACE * passage.chunk
            score += _rate_words(passage, answer.sentence, weights)
            score -= 0 if _is_of_kind(question, answer.span.text) else _WRONG_KIND
            yield _RatedSentence(passage, answer, score)


def _read_again(question: str, rated: Sequence[_RatedSentence]) -> Iterator[_RatedSentence]:
    """Run the model again on each sentence with less context, and adjust the score of the sentence.

    The context is only the heading and the previous sentence.
    """
    found = offline_small_model().find_in_sentences(question, [one.closer_text() for one in rated])
    for one, answers in zip(rated, found, strict=True):
        margin = max(answer.margin for answer in answers) if answers else one.answer.margin
        change = _OF_SECOND_READING * (margin - one.answer.margin)
        yield replace(one, score=one.score + _OF_MARGIN * change)


def _rate_words(passage: _Passage, sentence: int, weights: Mapping[str, float]) -> float:
    """Score a sentence by how many of the question's words it contains, with and without the previous sentence."""
    own = passage.words[sentence]
    context = own | passage.words[max(sentence - 1, 0)]
    return _OF_SENTENCE * fsum(weights[word] for word in own) + _OF_CONTEXT * fsum(weights[word] for word in context)


def _is_of_kind(question: str, answer: str) -> bool:
    """Whether an answer has the type that the question asks for, such as a number for "how many"."""
    for asked, expected in _ANSWER_KINDS:
        if asked.search(question):
            return bool(expected.search(answer))
    return True


def _choose_passages(keys: frozenset[str], chunks: Sequence[ChunkText]) -> tuple[list[_Passage], dict[str, float]]:
    """Choose the passages that the model reads, in the order in which it reads them.

    Passages with many of the question's words, and passages from highly ranked chunks, come first. Also returns the
    weights of the question's words.
    """
    passages = [one for place, chunk in enumerate(chunks) for one in _passages(place, chunk, keys)]
    weights = _weigh(keys, [one.all_words for one in passages])

    def cost(one: _Passage) -> float:
        return _COVERAGE_PER_PLACE * one.chunk - fsum(weights[word] for word in one.all_words)

    best = sorted(passages, key=cost)[:_MAX_PASSAGES]
    read = accumulate(map(offline_small_model().count_pieces, (one.split.text for one in best)))
    return [one for one, pieces in zip(best, read, strict=True) if pieces <= _MAX_PIECES or one is best[0]], weights


def _passages(place: int, chunk: ChunkText, keys: frozenset[str]) -> Iterator[_Passage]:
    """Split a chunk into passages of whole sentences. A passage never continues past a heading."""
    text = blank_markup(chunk.content)
    heading = chunk.headings[-1] if chunk.headings else ""
    taken = list[tuple[int, int]]()
    for part in split_segments(chunk.content):
        is_heading = part.part is SegmentKind.HEADING
        for start, end in _split_segment(part, text):
            if taken and (is_heading or end - taken[0][0] > (_MIN_PASSAGE if start == part.start else _MAX_PASSAGE)):
                yield _passage(place, heading, text, taken, keys)
                taken = []
            taken += [] if is_heading else [(start, end)]
        heading = text[part.start : part.end].strip() if is_heading else heading
    if taken:
        yield _passage(place, heading, text, taken, keys)


def _passage(
    place: int, heading: str, text: str, sentences: Sequence[tuple[int, int]], keys: frozenset[str]
) -> _Passage:
    """Build a passage. Its text begins with the heading above it, because the model needs the heading as context."""
    first, last = sentences[0][0], sentences[-1][1]
    before = f"{heading[:_MAX_HEADING]}. " if heading else ""
    start = first - len(before)
    words = tuple(_keys(text[left:right], ENGLISH) & keys for left, right in sentences)
    places = [(left - start, right - start) for left, right in sentences]
    return _Passage(place, start, len(before), SplitText(before + text[first:last], places), words)


@dataclass(frozen=True, slots=True)
class _SummaryCandidate:
    chunk: int
    start: int
    end: int
    text: str
    words: frozenset[str]
    score: float


def asks_summary(question: str) -> bool:
    """Whether a question requests a summary instead of something specific."""
    return bool(_ASKS_SUMMARY.search(question))


def summarise_in_quotes(chunks: Sequence[ChunkText], most: int) -> Answer:
    """Summarise the chunks with their most representative sentences, best first, without repetitions."""
    chosen: list[_SummaryCandidate] = []
    for one in sorted(_summary_candidates(chunks), key=lambda one: (-one.score, one.chunk, one.start)):
        if len(chosen) == most:
            break
        if not any(_say_the_same(one.words, other.words) for other in chosen):
            chosen.append(one)
    return Answer(quotes=[_scored_quote(one) for one in chosen])


def _summary_candidates(chunks: Sequence[ChunkText]) -> list[_SummaryCandidate]:
    language = detect_document_language([chunk.content for chunk in chunks])
    parsed_chunks = [parse_chunk(chunk, language) for chunk in chunks]
    weights = WordWeights([parsed.phrases for parsed in parsed_chunks], language)
    word_weights = Topics(
        [name_concepts(one.phrases, score_phrases(one.phrases, weights)) for one in parsed_chunks]
    ).word_weights()
    found: list[_SummaryCandidate] = []
    for place, parsed in enumerate(parsed_chunks):
        good = [] if has_back_matter_heading(parsed.chunk) else good_sentences(parsed)
        for number, one in enumerate(good):
            text = parsed.chunk.content[one.start : one.end]
            score = rate_sentence(one, word_weights, number / len(good), parsed.language)
            score *= (SELF_REFERENCE_BONUS if SELF_REFERENCE.search(text) else 1) * (
                _UNDER_CORE if has_core_heading(parsed.chunk) else 1
            )
            words = frozenset(fold(word, parsed.language) for word in one.words) & word_weights.keys()
            found.append(_SummaryCandidate(place, one.start, one.end, text, words, score))
    return found


def _say_the_same(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) > _SAME_SHARE * min(len(one), len(other)) if one and other else one == other


def _scored_quote(one: _SummaryCandidate) -> Quote:
    """Make a quote from a sentence. The sentence's score has no upper limit, so it is converted to a number from 0 to
    1.
    """
    return Quote(
        chunk=one.chunk, start=one.start, end=one.end, text=one.text, score=round(one.score / (1 + one.score), 3)
    )
