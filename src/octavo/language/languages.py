"""Detects the language of a text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, cast

from octavo.core.texts import primary_language
from octavo.language.markdown_segments import blank_markup
from octavo.language.vocabulary import STOPWORDS, WORD, load_once

ENGLISH = "en"
# Below these limits, the detected language is discarded.
_MIN_LETTERS = 25
_MIN_PROBABILITY = 0.7
_SAMPLE = 600
# About half of the words of a text are stop words. A tenth can match stop words of another language by chance.
_MIN_STOPWORDS = 0.2
_MAX_SAMPLES = 5
_SHORT = 200
_QUESTION_WORD = re.compile(r"\W*(?:who|whose|whom|what|when|where|which|why|how)\b", re.IGNORECASE)


def detect_language(text: str) -> str | None:
    """Detect a text's language from its beginning, as an ISO 639-1 code. Returns None if the result is uncertain."""
    letters = " ".join(WORD.findall(text[: 2 * _SAMPLE]))[:_SAMPLE]
    if len(letters) < _MIN_LETTERS:
        return None
    language, probability = _classify(letters)
    return language if probability >= _MIN_PROBABILITY else None


def confirm_language(text: str, expected: str | None) -> str | None:
    """Return `expected` if the text contains enough stop words of that language. Otherwise, detect the language.

    If the detection is uncertain, return `expected`.
    """
    words, own = WORD.findall(text[:_SAMPLE].lower()), primary_language(expected)
    stopwords = STOPWORDS.get(own or "", frozenset())
    if words and sum(word in stopwords for word in words) >= _MIN_STOPWORDS * len(words):
        return own
    return detect_language(text) or own


def is_english(text: str) -> bool:
    """Whether a text is English.

    Language detection is unreliable for short texts, so the language of a question is recognised by its stop words.
    """
    if len(text) > _SHORT and (language := detect_language(blank_markup(text))):
        return language == ENGLISH
    if _QUESTION_WORD.match(text):
        return True
    words = WORD.findall(text[:_SAMPLE].lower())
    counts = {language: sum(word in stopwords for word in words) for language, stopwords in STOPWORDS.items()}
    if any(counts.values()):
        return counts[ENGLISH] == max(counts.values())
    return (detect_language(text) or ENGLISH) == ENGLISH


def detect_document_language(texts: Sequence[str], claimed: str | None = None) -> str | None:
    """Detect the most common language of a document's chunks, from a sample of them.

    Falls back to `claimed`, the language in the metadata.
    """
    step = max(len(texts) // _MAX_SAMPLES, 1)
    found = [
        language for text in texts[::step][: _MAX_SAMPLES + 1] if (language := detect_language(blank_markup(text)))
    ]
    if found:
        return max(found, key=found.count)
    code = primary_language(claimed)
    return code if code in _identifier().labels else None


@lru_cache(maxsize=100)
def _classify(letters: str) -> tuple[str, float]:
    """Detect the language of a sample.

    The result is cached, because several stages of processing need the language of the same text.
    """
    return cast("tuple[str, float]", _identifier().classify(letters))


@load_once
def _identifier() -> Any:  # noqa: ANN401 - it has no types
    from py3langid import langid  # pyright: ignore[reportMissingTypeStubs]

    library: Any = langid
    return library.LanguageIdentifier.from_model_file(library.MODEL_FILE, norm_probs=True)
