"""Translates texts into the language of the reader. English texts are the keys of the catalogues.

Only pages and emails set a catalogue, so the API and the command line are always English. A catalogue is read from its
`.po` file when the language is first used, so nothing has to be compiled.

This module also contains other functions that depend on a language: they read language tags, list the languages that
OCR supports (ISO 639), and count words in all writing systems.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from gettext import GNUTranslations, NullTranslations
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import Literal, TypeVar

Key = TypeVar("Key")
ENGLISH = "en"
FOLDER = Path(__file__).parents[1] / "web" / "locale"
# Each in its own language, in the order in which they are offered.
LANGUAGES = MappingProxyType({"en": "English", "de": "Deutsch", "es": "Español", "fr": "Français", "zh": "简体中文"})
LOCALES = {"en": "en", "zh": "zh_Hans_CN"}
RIGHT_TO_LEFT = frozenset({"ar", "fa", "he", "ur"})


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The translations of one language. `locale` is the name of Babel's locale for formatting numbers and dates."""

    language: str = ENGLISH
    locale: str = ENGLISH
    direction: Literal["ltr", "rtl"] = "ltr"
    translations: NullTranslations = field(default_factory=NullTranslations)

    @property
    def is_english(self) -> bool:
        return self.language == ENGLISH


_ENGLISH = Catalogue()
_catalogue: ContextVar[Catalogue] = ContextVar("catalogue", default=_ENGLISH)
current_catalogue = _catalogue.get


@contextmanager
def texts_from(catalogue: Catalogue) -> Generator[None]:
    """Use a catalogue within a `with` block, for example for one request or one email."""
    token = _catalogue.set(catalogue)
    try:
        yield
    finally:
        _catalogue.reset(token)


@cache
def catalogue_of(language: str) -> Catalogue:
    if language == ENGLISH:
        return Catalogue()
    from babel.messages.mofile import write_mo
    from babel.messages.pofile import read_po

    compiled = BytesIO()
    with (FOLDER / language / "LC_MESSAGES" / "octavo.po").open("rb") as file:
        write_mo(compiled, read_po(file, locale=language))
    compiled.seek(0)
    direction = "rtl" if language in RIGHT_TO_LEFT else "ltr"
    return Catalogue(language, LOCALES.get(language, language), direction, GNUTranslations(compiled))


def catalogue_for(language: str | None) -> Catalogue:
    """Return the catalogue for a language. Returns the English one if the language is None or not supported."""
    return catalogue_of(language if language in LANGUAGES else ENGLISH)


def use_catalogue(catalogue: Catalogue) -> None:
    """Use another catalogue until the end of the enclosing `texts_from` block."""
    _catalogue.set(catalogue)


def gettext(message: str, /, **values: object) -> str:
    """Translate a text, and insert the values: `gettext("Page %(page)s", page=3)`."""
    # The empty text is the key of a catalogue's header.
    text = _catalogue.get().translations.gettext(message) if message else ""
    return text % values if values else text


def ngettext(one: str, many: str, number_: int, /, **values: object) -> str:
    """Translate a text, in its singular or plural form depending on the number, and insert the values."""
    text = _catalogue.get().translations.ngettext(one, many, number_)
    return text % values if values else text


def mark(message: str) -> str:
    """Mark a constant text for translation, and return it unchanged. It is translated where it is shown."""
    return message


class Texts(Mapping[Key, str]):
    """A read-only dictionary of texts. A text is translated each time it is read."""

    def __init__(self, texts: Mapping[Key, str]) -> None:
        self._texts = texts

    def __getitem__(self, key: Key) -> str:
        return gettext(self._texts[key])

    def __iter__(self) -> Iterator[Key]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


def translate_sentences(text: str) -> str:
    """Translate a stored message, such as an error message.

    If the catalogue does not contain the whole message, look it up without its last sentence, then without the last
    two, and so on. The sentences that were left out stay in English.
    """
    if current_catalogue().is_english:
        return text
    ends = [*(found.start() + 1 for found in _SENTENCE_END.finditer(text)), len(text)]
    for end in reversed(ends):
        if (translated := gettext(text[:end])) != text[:end]:
            return translated + text[end:]
    return text


_SENTENCE_END = re.compile(r"[.!?](?= )")


ANY_LANGUAGE = "auto"
# The languages in each script. For a language with several scripts, OCR uses the script whose model fits best.
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
    """Return the scripts that a language is written in. The result is empty if OCR does not support the language."""
    return tuple(script for script, languages in _LANGUAGES.items() if language in languages.split())


def primary_language(tag: str | None) -> str | None:
    """Return the first part of a language tag in lower case, such as `en` for en-US and en_GB.

    Used to compare languages. The database has a function with the same name.
    """
    return (tag or "").replace("_", "-").partition("-")[0].strip().lower() or None


def count_words(text: str) -> int:
    """Count the words in a text. In scripts without spaces, the count is estimated from the characters."""
    return sum(map(bool, WORD.finditer(text)))  # a match is always true, and map is faster than a generator
