"""Words, how common each is in English, and which forms belong together."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from math import log
from pathlib import Path

from octavo.language.once import once
from octavo.language.stopwords import STOPWORDS

WORD = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
# A word, a number, or a mark that ends a phrase.
TOKEN = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*|\d[\d.,:/-]*|[^\s\w]")

_TOKENIZER = Path(__file__).with_name("data") / "tokenizer.json"
_FIRST_WORD = "the"
_LEAST_LETTERS = 3
# What is longer is no word, and would only fill the memory of what was looked up.
MOST_LETTERS = 40
_ENDING = re.compile(r"(?<=\w{3})(?:ations?|ments?|ings?|edly|ies|ers?|ely|ed|es|ly|s|e)$")


@once
def _ranks() -> dict[str, int]:
    """The vocabulary of the embedding model stands in the order of how often its words are used."""
    vocabulary: dict[str, int] = json.loads(_TOKENIZER.read_bytes())["model"]["vocab"]
    first = vocabulary[_FIRST_WORD]
    words = ((word, place - first + 1) for word, place in vocabulary.items() if place >= first and word.isalpha())
    return dict(sorted(words, key=lambda one: one[1]))


@lru_cache(maxsize=50_000)
def rarity(stem: str) -> float:
    """From 0 for the commonest word of English to 1 for one that is not among the usual thirty thousand."""
    ranks = _ranks()
    last = next(reversed(ranks.values()))
    rank = ranks.get(stem) or min(ranks.get(part, last) for part in stem.split("-"))
    return log(rank) / log(last)


def fold(word: str, language: str | None) -> str:
    """What words are counted by."""
    return stem(word) if language == "en" else word.lower()


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """The singular of an English plural, or nearly; forms that differ otherwise are told apart."""
    low = word.lower().replace("\u2019", "'").removesuffix("'s")
    if len(low) <= _LEAST_LETTERS or not low.endswith("s") or low.endswith(("ss", "us", "is")):
        return low
    if low.endswith("ies"):
        return low[:-3] + "y"
    if low.endswith(("sses", "xes", "ches", "shes", "zes")):
        return low[:-2]
    return low[:-1]


@lru_cache(maxsize=50_000)
def is_content(word: str, language: str) -> bool:
    """Whether a word can say what a text is about. Adverbs cannot."""
    low = word.lower().replace("\u2019", "'")
    if len(low) < _LEAST_LETTERS and not (len(low) > 1 and word.isupper()):
        return False
    return low not in STOPWORDS[language] and not (language == "en" and low.endswith("ly"))


@lru_cache(maxsize=50_000)
def root(word: str) -> str:
    """What the forms of an English word begin with, or nearly: good for comparing, not for showing."""
    return _ENDING.sub("", word.lower().replace("\u2019", "'").removesuffix("'s"))
