"""Which language a text is in, and what can be told about texts in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from octavo.language.load_once import load_once
from octavo.language.markdown_segments import blank
from octavo.language.vocabulary import STOPWORDS, WORD

ENGLISH = "en"
# A guess by fewer letters, or one that the library itself is not sure of, is none.
_LEAST_LETTERS = 25
_LEAST_PROBABILITY = 0.7
_SAMPLE = 600
# Half of a text's words are words of grammar; of the grammar of another language a tenth may be there by chance.
_LEAST_GRAMMAR = 0.2
_MOST_SAMPLES = 5


def detect(text: str) -> str | None:
    """The language of a short text as ISO 639-1 has it, by its beginning."""
    letters = " ".join(WORD.findall(text[: 2 * _SAMPLE]))[:_SAMPLE]
    if len(letters) < _LEAST_LETTERS:
        return None
    language, probability = cast("tuple[str, float]", _identifier().classify(letters))
    return language if probability >= _LEAST_PROBABILITY else None


def confirm(text: str, expected: str | None) -> str | None:
    """The language of a passage in a document whose language is known: it is the same one if its grammar is there."""
    words = WORD.findall(text[:_SAMPLE].lower())
    grammar = STOPWORDS.get(expected or "", frozenset())
    if words and sum(word in grammar for word in words) >= _LEAST_GRAMMAR * len(words):
        return expected
    return detect(text) or expected


def detect_most(texts: Sequence[str], claimed: str | None = None) -> str | None:
    """The language of a document by a few passages; what the file says of itself counts where they do not tell."""
    step = max(len(texts) // _MOST_SAMPLES, 1)
    found = [language for text in texts[::step][: _MOST_SAMPLES + 1] if (language := detect(blank(text)))]
    if found:
        return max(found, key=found.count)
    code = (claimed or "").replace("_", "-").partition("-")[0].lower()
    return code if code in _identifier().labels else None


@load_once
def _identifier() -> Any:  # noqa: ANN401 - it has no types
    from py3langid import langid  # pyright: ignore[reportMissingTypeStubs]

    library: Any = langid
    return library.LanguageIdentifier.from_model_file(library.MODEL_FILE, norm_probs=True)
