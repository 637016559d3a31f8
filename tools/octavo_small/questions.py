# ruff: noqa: E501, PLR2004, S311
"""Makes the questions that octavo-small learns to answer, with paragraphs that do and do not hold the answer.

    python -m octavo_small.questions DATA OUT [--share 0.01]

People wrote the questions of SQuADShifts (new Wikipedia) and PolicyQA. More are made from sentences: an answer is taken
out of a sentence and asked for. The close readings (`questions-close`) ask the questions of SQuADShifts again, of
paragraphs below the title of their article and of single sentences.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator
from math import log
from pathlib import Path
from random import Random
from typing import Any

from octavo_small.edits import MONTHS
from octavo_small.sources import (
    CALIBRATION,
    TRAINING,
    VALIDATION,
    Question,
    part_of,
    read_labelled,
    read_paragraphs,
    read_questions,
    read_speeches,
    split_sentences,
    write_lines,
)

SEED = 11
_WORD = re.compile(r"\w{3,}")
_DATE = rf"(?:(?:{'|'.join(MONTHS)}) \d{{1,2}}, \d{{4}}|\d{{1,2}} (?:{'|'.join(MONTHS)}) \d{{4}}|(?:{'|'.join(MONTHS)}) \d{{4}}|(?:1[4-9]|20)\d\d)"
_NAME = r"[A-Z][\w'.-]+(?: (?:(?:of|de|van|the) )*[A-Z][\w'.-]+)*"
# The kind of answer, where it stands, and how it is asked for.
_ANSWERS = (
    (re.compile(rf"\b(?:on|in|since|until|during|In|On|Since|By|by|around) ({_DATE})\b"), ("When", "In what year", "What year")),
    (re.compile(r"\b(\d[\d,.]*\d|\d+|two|three|four|five|six|seven|eight|nine|ten) ([a-z]{4,}s)\b"), ("How many {}",)),
    (re.compile(r"(\$ ?\d[\d,.]*(?: (?:million|billion|thousand))?)"), ("How much", "What amount")),
    (re.compile(r"\b(\d+(?:\.\d+)? ?(?:percent|%))"), ("What percentage", "How much")),
    (re.compile(rf"\bby ((?:the )?{_NAME})"), ("Who", "By whom")),
    (re.compile(rf"\b(?:in|at|near|from) ((?:the )?{_NAME})"), ("Where", "In which place", "What place")),
    (re.compile(rf"^((?:The |President )?{_NAME}) (?=is|was|has|had|were|are|became|won|wrote|will)"), ("Who", "What", "Which")),
    (re.compile(r"\b(?:called|named|known as) ((?:the )?[\w'\u2019-]+(?: [\w'\u2019-]+){0,2})"), ("What is the name of what", "What")),
    (re.compile(r"\b(because (?:of )?[^,.;]{8,80})"), ("Why",)),
    (re.compile(r"\b(?:is|was|are|were) ((?:an?|the) [a-z][^,.;()]{6,60})"), ("What", "Who or what")),
)  # fmt: skip
_DEFINITION = re.compile(
    r"^([A-Z][^,;]{2,40}?)(?: \([^()]*\))? (is|was|are|were) ((?:an?|the|one of) [^,.;()]{6,80}?)(?=,|\.| who| which| that|$)"
)


def words_of(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


def negatives(question: Question, contexts: list[str], rng: Random, count: int) -> Iterator[str]:
    """Choose paragraphs of the same article that share words with the question but do not hold the answer."""
    answers = [text.lower() for text, _ in question.answers]
    others = [text for text in contexts if text != question.context and not any(a in text.lower() for a in answers)]
    asked = words_of(question.text)
    for _ in range(count):
        if others:
            best = max(rng.sample(others, min(6, len(others))), key=lambda text: len(words_of(text) & asked))
            others.remove(best)
            yield best


def examples(questions: list[Question], rng: Random, per_question: int) -> Iterator[dict[str, Any]]:
    """Pair each question with its paragraph and with some that do not answer it.

    The same question is asked of many paragraphs of privacy policies, and unmarked ones may answer it too, so it is put to
    paragraphs of Wikipedia instead.
    """
    contexts: dict[str, list[str]] = {}
    articles = [question.context for question in questions if question.source == "newwiki"]
    for question in questions:
        found = contexts.setdefault(question.group, [])
        if question.context not in found:
            found.append(question.context)
    for question in questions:
        yield _row(question, question.context, question.answers[0])
        if question.source == "policy":
            yield _row(question, rng.choice(articles), None)
            continue
        for context in negatives(question, contexts[question.group], rng, per_question):
            yield _row(question, context, None)


class CloseReading:
    """Questions put to what Ask reads offline: a paragraph below the title of its article, or one sentence of it.

    A sentence comes with the one before it. Paragraphs and sentences without the answer are those with the most words
    of the question: in the same paragraph, in the same article and in all articles.
    """

    def __init__(self, questions: list[Question], rng: Random) -> None:
        self._rng, self._asked = rng, [question for question in questions if question.source == "newwiki"]
        self._articles: dict[str, list[str]] = {}
        for question in self._asked:
            self._articles.setdefault(question.group, []).append(question.context)
        self._articles = {group: list(dict.fromkeys(texts)) for group, texts in self._articles.items()}
        self._paragraphs = [(group, text) for group, texts in self._articles.items() for text in texts]
        self._words = {text: words_of(text) for _, text in self._paragraphs}
        counts = Counter(word for words in self._words.values() for word in words)
        self._weights = {word: log(1 + len(self._paragraphs) / count) for word, count in counts.items()}
        self._windows = {text: list(sentence_windows(text)) for _, text in self._paragraphs}
        self._words |= {window: words_of(window) for found in self._windows.values() for _, _, window in found}

    def examples(self) -> Iterator[dict[str, Any]]:
        for question in self._asked:
            yield self._below_title(question, question.group, question.context, question.answers[0])
            yield from self._with_answer(question)
            same = [(question.group, window) for _, _, window in self._windows[question.context]]
            near = [(question.group, text) for text in self._articles[question.group] if text != question.context]
            further = [(group, text) for group, text in self._paragraphs if group != question.group]
            windows = [(group, window) for group, text in near for _, _, window in self._windows[text]]
            for texts, count in ((same, 2), (windows, 2), (near, 1), (further, 1)):
                for group, text in self._most_alike(question, texts, count):
                    yield self._below_title(question, group, text, None)

    def _with_answer(self, question: Question) -> Iterator[dict[str, Any]]:
        answer, start = question.answers[0]
        for first, sentence, window in self._windows[question.context]:
            if sentence <= start and start + len(answer) <= first + len(window):
                yield self._below_title(question, question.group, window, (answer, start - first))

    def _most_alike(self, question: Question, texts: list[tuple[str, str]], count: int) -> list[tuple[str, str]]:
        answers, asked = [text.lower() for text, _ in question.answers], words_of(question.text)
        without = [(g, text) for g, text in texts if not any(answer in text.lower() for answer in answers)]
        scores = {text: sum(self._weights[word] for word in self._words[text] & asked) for _, text in without}
        return sorted(without, key=lambda entry: -scores[entry[1]])[:count]

    def _below_title(self, question: Question, group: str, text: str, answer: tuple[str, int] | None) -> dict[str, Any]:
        title = group.removeprefix("wiki-").replace("_", " ") + ". " if self._rng.random() < 0.8 else ""
        moved = None if answer is None else (answer[0], answer[1] + len(title))
        return _row(question, title + text, moved)


def sentence_windows(text: str) -> Iterator[tuple[int, int, str]]:
    """Return each sentence with the one before it: where both start, where the sentence starts, and their text."""
    first = position = 0
    for sentence in split_sentences(text, 0, len(text) + 1):
        start = text.find(sentence, position)
        if start < 0:
            continue
        yield first, start, text[first : start + len(sentence)]
        first, position = start, start + len(sentence)


def _row(question: Question, context: str, answer: tuple[str, int] | None) -> dict[str, Any]:
    return {"q": question.text, "c": context, "a": answer, "s": question.source}


def made_questions(paragraphs: dict[str, list[str]], per_paragraph: int, rng: Random, source: str) -> list[Question]:
    """Ask for phrases of the sentences of these paragraphs."""
    questions: list[Question] = []
    for group, texts in paragraphs.items():
        for text in texts:
            sentences = split_sentences(text)
            for sentence in rng.sample(sentences, min(per_paragraph, len(sentences))):
                made = _define(sentence) if rng.random() < 0.25 else None
                made = made or _ask(sentence, rng)
                start = text.find(sentence)
                if made and start >= 0:
                    question, answer, offset = made
                    if text[start + offset : start + offset + len(answer)] == answer:
                        questions.append(Question(group, question, text, ((answer, start + offset),), source))
    return questions


def _define(sentence: str) -> tuple[str, str, int] | None:
    match = _DEFINITION.match(sentence)
    if match is None:
        return None
    return (
        f"What {match[2]} {match[1][0].lower() + match[1][1:] if match[1].startswith('The ') else match[1]}?",
        match[3],
        match.start(3),
    )


def _ask(sentence: str, rng: Random) -> tuple[str, str, int] | None:
    kinds = [(match, words) for pattern, words in _ANSWERS for match in pattern.finditer(sentence)]
    if not kinds:
        return None
    match, words = rng.choice(kinds)
    answer = match[1].rstrip(" .,;")
    opening = rng.choice(words)
    if "{}" in opening:
        opening = opening.format(match[2])
    before, after = sentence[: match.start()], sentence[match.end() :]
    clause = f"{before.split(';')[-1]} {re.split(r'[;(]|, (?:and|but|which|who)', after)[0]}"
    rest = [word for word in clause.strip(" .,").split() if rng.random() > 0.12]
    if len(rest) < 3:
        return None
    rest[0] = rest[0].lower() if rest[0] in {"The", "In", "It", "He", "She", "They", "A", "An", "This"} else rest[0]
    return f"{opening} {' '.join(rest).strip(' ,.')}?", answer, match.start(1)


def evidence_paragraphs(data: Path, rng: Random) -> dict[str, list[str]]:
    """Put the evidence of claims about different things together, so that a question has to find its sentence."""
    pairs = [pair for pair in read_labelled(data)[TRAINING] if pair.source in {"fever", "fever-dev", "fm2"}]
    texts = sorted({pair.a for pair in pairs if 60 < len(pair.a) < 350})
    rng.shuffle(texts)
    groups = [texts[i : i + 24] for i in range(0, len(texts), 24)]
    return {
        f"evidence-{i}": [" ".join(group[j : j + 3]) for j in range(0, len(group), 3)] for i, group in enumerate(groups)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--share", type=float, default=1.0)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    rng = Random(SEED)
    written = [question for name in ("newwiki", "policy") for question in read_questions(options.data, name)]
    parts = {
        part: [q for q in written if part_of(q.group, 12, 12) == part] for part in (TRAINING, CALIBRATION, VALIDATION)
    }
    made = made_questions(evidence_paragraphs(options.data, rng), 3, rng, "made-evidence")
    for name, per_paragraph in (("newwiki", 5), ("policy", 2)):
        articles = {group: texts for group, texts in read_paragraphs(options.data, name).items() if part_of(group, 12, 12) == TRAINING}  # fmt: skip
        made += made_questions(articles, per_paragraph, rng, f"made-{name}")
    speeches = {name: texts for name, texts in read_speeches(options.data).items() if part_of(name) == TRAINING}
    made += made_questions(speeches, 2, rng, "made-speech")
    rng.shuffle(made)
    sets = {
        "questions": list(examples(parts[TRAINING], rng, 2)),
        "questions-made": list(examples(made, rng, 1)),
        "questions-close": list(CloseReading(parts[TRAINING], Random(SEED)).examples()),
    }
    for part in (CALIBRATION, VALIDATION):
        sets[f"questions-{part}"] = [
            {"g": q.group, "q": q.text, "c": q.context, "a": q.answers, "s": q.source} for q in parts[part]
        ]
    for name, rows in sets.items():
        kept = rows[: max(40, int(len(rows) * options.share))]
        write_lines(options.out / f"{name}.jsonl.xz", kept)
        print(name, len(kept), "of", len(rows), "groups", len({row.get("g") for row in rows}))


if __name__ == "__main__":
    main()
