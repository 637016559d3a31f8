"""Language tags, the languages that OCR supports (ISO 639), and word counts for all writing systems."""

from __future__ import annotations

import re

ANY_LANGUAGE = "auto"
# The languages in each script. A language of several scripts is read by the one whose model fits best.
HAN_SCRIPTS = ("HanS", "HanT", "Japanese")
_LANGUAGES = {
    "Arabic": "ar fa ps ug ur",
    "Armenian": "hy",
    "Bengali": "as bn",
    "Cyrillic": "be bg kk ky mk mn ru sr tg uk",
    "Devanagari": "hi mr ne sa",
    "Ethiopic": "am ti",
    "Georgian": "ka",
    "Greek": "el",
    "Gujarati": "gu",
    "Gurmukhi": "pa",
    "HanS": "zh",
    "HanT": "zh",
    "Hangul": "ko",
    "Hebrew": "he yi",
    "Japanese": "ja",
    "Kannada": "kn",
    "Khmer": "km",
    "Lao": "lo",
    "Latin": "af az bs ca cs cy da de en es et eu fi fr ga gl hr hu id is it ku la lb lt lv mi ms mt nl no oc pl pt qu "
    "rm ro sk sl sq sr sv sw tl tr uz",
    "Malayalam": "ml",
    "Myanmar": "my",
    "Sinhala": "si",
    "Tamil": "ta",
    "Telugu": "te",
    "Thai": "th",
    "Vietnamese": "vi",
}
SCRIPTS = tuple(_LANGUAGES)
RECOGNISED_LANGUAGES = frozenset(" ".join(_LANGUAGES.values()).split())

# Han, kana, and their rarer extensions: each character counts as a word. Korean puts spaces between words.
ONE_CHARACTER = "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
# Thai, Lao, Burmese, Khmer: a word has about five characters.
FEW_CHARACTERS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"

# A word begins at its first letter or digit and ends at the next space. Symbols alone ("|", "##") are not words, and
# no run of symbols is scanned twice.
WORD = re.compile(f"[{ONE_CHARACTER}]|[{FEW_CHARACTERS}]{{1,5}}|[^\\W_][^\\s{ONE_CHARACTER}{FEW_CHARACTERS}]*")


def scripts_of_language(language: str) -> tuple[str, ...]:
    """Return the scripts that a language is written in; empty for a language that OCR does not support."""
    return tuple(script for script, languages in _LANGUAGES.items() if language in languages.split())


def primary_language(tag: str | None) -> str | None:
    """Return the first part of a language tag in lower case, such as `en` for en-US and en_GB.

    Used to compare languages. The database has a function with the same name.
    """
    return (tag or "").replace("_", "-").partition("-")[0].strip().lower() or None


def count_words(text: str) -> int:
    """Count the words in a text. In scripts without spaces, the count is estimated from the characters."""
    return sum(map(bool, WORD.finditer(text)))  # a match is always true, and map is faster than a generator
