"""Phrases that may name a concept: words in a row with no mark and no word of grammar between them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from octavo.language.vocabulary import MOST_LETTERS, TOKEN, fold, is_content

MOST_WORDS = 3
_POSSESSIVE = re.compile(r"['\u2019]s$")

Stems = tuple[str, ...]


@dataclass(slots=True)
class Seen:
    """How often a phrase stands in a text, which phrase of the text was its first, and how it is written there."""

    count: int
    first: int
    form: str


@dataclass(frozen=True, slots=True)
class Phrases:
    """`runs` is how many there are in all, however long."""

    stems: Counter[str] = field(default_factory=Counter[str])
    seen: dict[Stems, Seen] = field(default_factory=dict[Stems, Seen])
    runs: int = 0


def find_phrases(texts: Iterable[str], language: str | None) -> Phrases:
    """In a language without a list of stop words nothing can be told, and nothing is."""
    stems: Counter[str] = Counter()
    seen: dict[Stems, Seen] = {}
    number = 0
    for run in (run for text in texts for run in _runs(text, language)) if language else ():
        run_stems = tuple(fold(word, language) for word in run)
        stems.update(run_stems)
        for start, end in _spans(len(run)):
            if language == "de" and not run[end - 1][0].isupper():
                continue  # German writes its nouns with a capital, and a phrase ends with one
            form = " ".join(run[start:end])
            known = seen.setdefault(run_stems[start:end], Seen(0, number, form))
            known.count += 1
            if form != known.form:
                known.form = better_form(known.form, form)
        number += 1
    return Phrases(stems, seen, number)


def better_form(one: str, other: str) -> str:
    """The singular, and small letters: a capital that is not always there only begins a sentence or a heading."""
    return min(one, other, key=lambda form: (len(form), form.swapcase()))


def _runs(text: str, language: str) -> Iterator[Sequence[str]]:
    run: list[str] = []
    for token in TOKEN.findall(text):
        if token[0].isalpha() and len(token) <= MOST_LETTERS and is_content(token, language):
            run.append(_POSSESSIVE.sub("", token))
        elif run:
            yield run
            run = []
    if run:
        yield run


def _spans(length: int) -> Iterator[tuple[int, int]]:
    for start in range(length):
        for end in range(start + 1, min(start + MOST_WORDS, length) + 1):
            yield start, end


def parts_of(phrase: Stems) -> Iterator[Stems]:
    """Every shorter phrase within it."""
    for start, end in _spans(len(phrase)):
        if end - start < len(phrase):
            yield phrase[start:end]
