"""Compares pairs of sentences, finds answers and ranks passages with the bundled octavo-small model (English only).

One pass of the model does all three. It estimates whether the first text of a pair entails or contradicts the second,
how likely a passage is to answer a question, and where in the passage the answer is. The probabilities are calibrated
on texts that the model was not trained on (docs/models/octavo-small.md). Each pair is judged separately, so a result
does not depend on other pairs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import exp, log
from typing import TYPE_CHECKING, TypeVar

from octavo.language.embedding import open_session, open_tokenizer, read_checked
from octavo.language.vocabulary import load_once

if TYPE_CHECKING:
    import numpy as np

NAME = "local/octavo-small-int8"
LANGUAGES = frozenset({"en"})
# Calibrated probabilities. At the first threshold, few pairs of real prose are false alarms. The second one balances
# finding answers against reporting answers in passages that have none. Both were chosen on the calibration part of the
# data.
CONTRADICTION_THRESHOLD = 0.763
ANSWER_THRESHOLD = 0.455

_MODEL, _TOKENIZER = "octavo-small-int8.onnx", "tokenizer.json"
_BEGIN, _END = 101, 102
_PAIR_PIECES, _PASSAGE_PIECES, _QUESTION_PIECES = 160, 320, 64
_OVERLAP = 64
_LONGEST_ANSWER = 30
# Platt scaling: probability = sigmoid(slope * score + offset).
_CONTRADICTION_SCALE = (0.702, -0.373)
_ANSWER_SCALE = (0.337, 0.495)
_TINY = 1e-6

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Judgement:
    """The probabilities that the first text implies the second, contradicts it, or does neither."""

    entails: float
    neutral: float
    contradicts: float


@dataclass(frozen=True, slots=True)
class AnswerSpan:
    """The part of a passage that answers a question."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class PassageAnswer:
    """A model's result for one passage.

    `probability` says how likely the passage is to answer the question. `span` is the answer, if it is likely enough.
    `rank` is a score for ranking passages.
    """

    probability: float
    span: AnswerSpan | None
    rank: float


@dataclass(frozen=True, slots=True)
class SplitText:
    """A passage and the offsets of its sentences."""

    text: str
    sentences: Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class SentenceAnswer:
    """The best answer in one sentence of a passage. `sentence` is the index of the sentence.

    `margin` is the score of the answer minus the score of "no answer here". `rank` is the score of the whole passage
    for the question.
    """

    sentence: int
    span: AnswerSpan
    margin: float
    rank: float


@dataclass(frozen=True, slots=True)
class _Window:
    """A question and a passage, or one section of a long passage, as tokens. `offsets` locates each token in the
    passage.
    """

    question: list[int]
    passage: list[int]
    offsets: list[tuple[int, int]]


class SmallModel:
    """The octavo-small model with its tokenizer.

    The model reads two texts at a time: two sentences, or a question and a passage. `threads` is the number of such
    pairs that are processed in parallel. All methods can be called from any thread.
    """

    def __init__(self, threads: int = 1) -> None:
        self._session = open_session(read_checked(_MODEL))
        self._tokenizer = open_tokenizer(read_checked(_TOKENIZER))
        self._threads = threads

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[Judgement]:
        """Judge whether the first text of each pair entails or contradicts the second.

        Pairs of more than 160 tokens are shortened.
        """
        return list(self._map(self._judge, pairs))

    def contradiction_strengths(self, pairs: Sequence[tuple[str, str]], least_forward: float = 0.0) -> list[float]:
        """Return the calibrated probability that each pair is a contradiction.

        Each pair is judged in both directions, and the lower probability is used. If the probability in the first
        direction is below `least_forward`, the result is 0, and the second direction is not judged.
        """
        forward = [one.contradicts for one in self.judge(pairs)]
        likely = [place for place, strength in enumerate(forward) if strength >= least_forward]
        strengths = [0.0] * len(pairs)
        backward = self.judge([(pairs[place][1], pairs[place][0]) for place in likely])
        for place, other in zip(likely, backward, strict=True):
            weaker = min(forward[place], other.contradicts)
            strengths[place] = _calibrate(_log_odds(weaker), _CONTRADICTION_SCALE)
        return strengths

    def find_answers(self, question: str, passages: Sequence[str]) -> list[PassageAnswer]:
        """Find the answer in each passage. Long passages are split into overlapping windows."""
        return list(self._map(lambda passage: self._answer(question, passage), passages))

    def find_in_sentences(self, question: str, passages: Sequence[SplitText]) -> list[list[SentenceAnswer]]:
        """Look for the answer in each sentence of each passage. An answer never spans several sentences."""
        return list(self._map(lambda passage: list(self._answer_sentences(question, passage)), passages))

    def count_pieces(self, text: str) -> int:
        """Count the tokens in a text. The model's running time for a passage is proportional to this count."""
        return len(self._encode(text)[0])

    def _judge(self, pair: tuple[str, str]) -> Judgement:
        import numpy as np

        first, second = _shorten([self._encode(text)[0] for text in pair], _PAIR_PIECES - 3)
        logits = self._run(first, second)[0][0]
        values = np.exp(logits - logits.max())
        return Judgement(*(float(value) for value in values / values.sum()))

    def _answer(self, question: str, passage: str) -> PassageAnswer:
        answers = [self._answer_window(window, passage) for window in self._windows(question, passage)]
        return max(answers, key=lambda answer: answer.rank, default=PassageAnswer(0.0, None, float("-inf")))

    def _answer_window(self, window: _Window, passage: str) -> PassageAnswer:
        margins, rank = self._score_spans(window)
        start, end = divmod(int(margins.argmax()), margins.shape[1])
        margin = float(margins[start, end])
        probability = _calibrate(margin, _ANSWER_SCALE)
        place = window.offsets[start][0], window.offsets[end][1]
        span = AnswerSpan(passage[place[0] : place[1]], *place) if probability > ANSWER_THRESHOLD else None
        return PassageAnswer(probability, span, margin / 2 + rank)

    def _answer_sentences(self, question: str, passage: SplitText) -> Iterator[SentenceAnswer]:
        for window in self._windows(question, passage.text):
            margins, rank = self._score_spans(window)
            for number, (left, right) in enumerate(passage.sentences):
                inside = [place for place, (a, b) in enumerate(window.offsets) if left <= a and b <= right]
                if not inside:
                    continue
                part = margins[inside[0] : inside[-1] + 1, inside[0] : inside[-1] + 1]
                start, end = divmod(int(part.argmax()), part.shape[1])
                place = window.offsets[inside[0] + start][0], window.offsets[inside[0] + end][1]
                span = AnswerSpan(passage.text[place[0] : place[1]], *place)
                yield SentenceAnswer(number, span, float(part[start, end]), rank)

    def _score_spans(self, window: _Window) -> tuple[np.ndarray, float]:
        """Score each possible answer, identified by its first and last token, relative to the score of "no answer
        here".

        Also returns the score of the whole passage for the question.
        """
        import numpy as np

        _, rank, spans = self._run(window.question, window.passage)
        first, last = len(window.question) + 2, len(window.question) + 2 + len(window.passage)
        scores = spans[0, first:last, 0][:, None] + spans[0, first:last, 1][None, :]
        allowed = np.tril(np.triu(np.ones_like(scores, bool)), _LONGEST_ANSWER - 1)
        return np.where(allowed, scores - spans[0, 0].sum(), -np.inf), float(rank[0, 0])

    def _windows(self, question: str, passage: str) -> Iterator[_Window]:
        asked = self._encode(question)[0][:_QUESTION_PIECES]
        pieces, offsets = self._encode(passage)
        size = _PASSAGE_PIECES - 3 - len(asked)
        for start in range(0, max(len(pieces) - _OVERLAP, min(len(pieces), 1)), size - _OVERLAP):
            part = slice(start, start + size)
            yield _Window(asked, pieces[part], offsets[part])

    def _encode(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        whole = text.encode(errors="replace").decode()  # a text may contain a lone surrogate
        return self._tokenizer.encode_places(whole)

    def _run(self, first: list[int], second: list[int]) -> Sequence[np.ndarray]:
        import numpy as np

        pieces = np.array([[_BEGIN, *first, _END, *second, _END]], np.int64)
        kinds = np.zeros_like(pieces)
        kinds[0, len(first) + 2 :] = 1
        return self._session.run(["judgement", "rank", "span"], {"pieces": pieces, "kinds": kinds})

    def _map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        if self._threads == 1 or len(items) == 1:
            yield from map(function, items)
            return
        with ThreadPoolExecutor(self._threads) as pool:
            yield from pool.map(function, items)


@load_once
def offline_small_model() -> SmallModel:
    """Return the octavo-small model, shared by all threads of the process."""
    return SmallModel(threads=len(os.sched_getaffinity(0)))


def judge(pairs: Sequence[tuple[str, str]]) -> list[Judgement]:
    return offline_small_model().judge(pairs)


def contradiction_strength(first: str, second: str) -> float:
    return offline_small_model().contradiction_strengths([(first, second)])[0]


def find_answers(question: str, passages: Sequence[str]) -> list[PassageAnswer]:
    return offline_small_model().find_answers(question, passages)


def rank(question: str, passages: Sequence[str]) -> list[int]:
    """Sort passages by how likely they are to answer the question. Returns their indexes, most likely first."""
    answers = find_answers(question, passages)
    return sorted(range(len(passages)), key=lambda place: -answers[place].rank)


def _shorten(texts: list[list[int]], room: int) -> list[list[int]]:
    """Shorten two token lists so that together they have at most `room` tokens. The longer list is shortened first."""
    first, second = texts
    half = room // 2
    if len(first) + len(second) <= room:
        return texts
    if len(first) <= half:
        return [first, second[: room - len(first)]]
    if len(second) <= half:
        return [first[: room - len(second)], second]
    return [first[: room - half], second[:half]]


def _calibrate(score: float, scale: tuple[float, float]) -> float:
    slope, offset = scale
    return 1 / (1 + exp(-(slope * score + offset)))


def _log_odds(probability: float) -> float:
    kept = min(max(probability, _TINY), 1 - _TINY)
    return log(kept / (1 - kept))
