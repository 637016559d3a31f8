"""How well questions are answered offline: does the best quote contain the answer, and is nothing said without one?

`python -m benchmarks.ask FOLDER [PART] [STEP]`: FOLDER contains the questions that octavo-small was trained and
measured with (`train-qa-newwiki.jsonl.xz`: SQuADShifts, new Wikipedia articles). PART is `validation` (default) or
`calibration`; every STEP-th question is asked. The library contains all 29 articles, in chunks of at least 200 words.

Each question is asked three times. Present: of the whole library. Removed: without the paragraph that it was written
for. Absent: also without the other paragraphs that contain the words of the answer. Paragraphs are removed from the
chunks that were found, so the search does not help to stay silent.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psycopg

from benchmarks.search.library import Passage, Text, add_texts, empty_database, new_owner
from octavo.ai.gateway_setup import open_local_gateway
from octavo.ai.tasks.answer_question import AnswerCitation, OfflineAnswer, QuestionToAnswer, answer_offline
from octavo.database import Database
from octavo.language import NAME, Embedder, answer
from octavo.language.insights import ChunkText
from octavo.search.ask import find_sources
from octavo.search.citations import SourceChunk
from tools.octavo_small.sources import Question, part_of, read_paragraphs, read_questions

GOAL_PRESENT, GOAL_SILENT, GOAL_SECONDS = 0.80, 0.80, 1.0
MIN_WORDS = 200
SHARES = (12, 12)
_WORD = re.compile(r"\w+")
_ARTICLES = {"a", "an", "the"}


@dataclass(slots=True)
class Figures:
    present: list[bool] = field(default_factory=list[bool])
    removed: list[bool] = field(default_factory=list[bool])
    absent: list[bool] = field(default_factory=list[bool])
    f1: list[float] = field(default_factory=list[float])
    seconds: list[float] = field(default_factory=list[float])


Answer = Callable[[QuestionToAnswer], OfflineAnswer | list[str]]


def main(folder: Path, part: str = "validation", step: int = 1) -> int:
    questions = [one for one in read_questions(folder, "newwiki") if part_of(one.group, *SHARES) == part][::step]
    articles = read_paragraphs(folder, "newwiki")
    with empty_database() as info:
        with psycopg.connect(info, autocommit=True) as connection:
            owner = new_owner(connection)
            add_texts(connection, owner, list(make_texts(articles)), NAME)
            connection.execute("ANALYZE")

        async def search() -> list[Sequence[SourceChunk]]:
            async with Database(info) as database:
                gateway = open_local_gateway()
                return [(await find_sources(database, gateway, owner, one.text)).sources for one in questions]

        found = asyncio.run(search())
    paragraphs = [text for texts in articles.values() for text in texts]
    embedder = Embedder(threads=2)

    def by_words(given: QuestionToAnswer) -> list[str]:
        return [one.text for one in answer(given.question, given.chunks, embedder.embed).quotes]

    small = measure(questions, found, paragraphs, answer_offline)
    words = measure(questions, found, paragraphs, by_words)
    texts = ["\n".join(source.content for source in sources) for sources in found]
    recall = np.mean([one.context.strip() in text for one, text in zip(questions, texts, strict=True)])
    print(f"{len(questions)} questions of the {part} part; paragraph found by search {recall:.3f}")
    print("             present  removed   absent  span F1   seconds p50, p95")
    for name, one in (("octavo-small", small), ("words", words)):
        means = "".join(f"{np.mean(values):9.3f}" for values in (one.present, one.removed, one.absent, one.f1))
        print(f"{name:<12}{means}{np.median(one.seconds):10.3f}{np.quantile(one.seconds, 0.95):8.3f}")
    good = np.mean(small.present) >= GOAL_PRESENT and np.mean(small.absent) >= GOAL_SILENT
    return 0 if good and np.quantile(small.seconds, 0.95) <= GOAL_SECONDS else 1


def make_texts(articles: dict[str, list[str]]) -> Iterator[Text]:
    """Put the paragraphs of an article into chunks, as Octavo does with short paragraphs."""
    embedder = Embedder(threads=2)
    for name, paragraphs in articles.items():
        chunks = [""]
        for paragraph in paragraphs:
            chunks[-1] = f"{chunks[-1]}\n\n{paragraph.strip()}".strip()
            if len(chunks[-1].split()) >= MIN_WORDS:
                chunks.append("")
        contents = [one for one in chunks if one]
        vectors = embedder.embed(contents).tolist()
        title = name.removeprefix("wiki-").replace("_", " ")
        yield Text(title, [Passage(content, vector) for content, vector in zip(contents, vectors, strict=True)])


def measure(
    questions: Sequence[Question], found: Sequence[Sequence[SourceChunk]], paragraphs: Sequence[str], solve: Answer
) -> Figures:
    figures = Figures()
    for question, sources in zip(questions, found, strict=True):
        start = time.process_time()
        said = solve(given(question, sources))
        figures.seconds.append(time.process_time() - start)
        quotes, span = read_answer(said)
        answers = [text for text, _ in question.answers]
        figures.present.append(bool(quotes) and any(plain(text) in plain(quotes[0]) for text in answers))
        figures.f1.append(max(f1(span, text) for text in answers))
        own = [question.context]
        having = [text for text in paragraphs if any(one.lower() in text.lower() for one in answers)]
        figures.removed.append(not read_answer(solve(given(question, sources, own)))[0])
        figures.absent.append(not read_answer(solve(given(question, sources, [*own, *having])))[0])
    return figures


def given(question: Question, sources: Sequence[SourceChunk], removed: Sequence[str] = ()) -> QuestionToAnswer:
    chunks: list[ChunkText] = []
    for source in sources:
        content = source.content
        for text in removed:
            content = content.replace(text.strip(), "")
        if content.strip():
            chunks.append(ChunkText(content, (source.title,)))
    return QuestionToAnswer(question.text, chunks)


def read_answer(said: OfflineAnswer | list[str]) -> tuple[list[str], str]:
    """The quotes, best first, and the words of the best answer."""
    if isinstance(said, list):
        return said, said[0] if said else ""
    cited = [one for statement in said.statements for one in statement.citations]
    first = cited[0] if cited else None
    return [one.quote for one in cited], first.answer if isinstance(first, AnswerCitation) else ""


def plain(text: str) -> str:
    return " ".join(_WORD.findall(text.lower()))


def f1(found: str, right: str) -> float:
    """The overlap of two answers in words, without articles, as SQuAD measures it."""
    one, other = ([word for word in _WORD.findall(text.lower()) if word not in _ARTICLES] for text in (found, right))
    common = sum((Counter(one) & Counter(other)).values())
    return 2 * common / (len(one) + len(other)) if common else 0.0


if __name__ == "__main__":
    defaults = ["", "validation", "1"]
    given_values = sys.argv[1:]
    folder, part, step = [*given_values, *defaults[len(given_values) :]]
    sys.exit(main(Path(folder), part, int(step)))
