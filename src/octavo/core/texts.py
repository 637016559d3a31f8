"""Texts in the language of the reader. English texts are the keys of the catalogues.

Only pages set a catalogue, so the API and the command line are always English.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from gettext import NullTranslations
from typing import Literal, TypeVar

Key = TypeVar("Key")
ENGLISH = "en"


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The translations of one language. `locale` is Babel's name for its formats of numbers and dates."""

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
    """Use a catalogue for the texts of one request."""
    token = _catalogue.set(catalogue)
    try:
        yield
    finally:
        _catalogue.reset(token)


def gettext(message: str, /, **values: object) -> str:
    """Translate a text, and insert the values: `gettext("Page %(page)s", page=3)`."""
    # The empty text is the key of a catalogue's header.
    text = _catalogue.get().translations.gettext(message) if message else ""
    return text % values if values else text


def ngettext(one: str, many: str, number_: int, /, **values: object) -> str:
    """Translate a text in the singular or plural that fits a number, and insert the values."""
    text = _catalogue.get().translations.ngettext(one, many, number_)
    return text % values if values else text


def mark(message: str) -> str:
    """Add a constant to the catalogues. It is translated where it is shown."""
    return message


class Texts(Mapping[Key, str]):
    """A table of texts. The values are in the catalogues, and are translated whenever they are read."""

    def __init__(self, texts: Mapping[Key, str]) -> None:
        self._texts = texts

    def __getitem__(self, key: Key) -> str:
        return gettext(self._texts[key])

    def __iter__(self) -> Iterator[Key]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


def translate_sentences(text: str) -> str:
    """Translate a stored message, such as that of an error: the longest known beginning of whole sentences."""
    if current_catalogue().is_english:
        return text
    ends = [*(found.start() + 1 for found in _SENTENCE_END.finditer(text)), len(text)]
    for end in reversed(ends):
        if (translated := gettext(text[:end])) != text[:end]:
            return translated + text[end:]
    return text


_SENTENCE_END = re.compile(r"[.!?](?= )")
