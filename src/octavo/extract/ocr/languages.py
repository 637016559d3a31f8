"""Which letters a language is written with, so that others are not taken for them."""

from __future__ import annotations

import re

from octavo.core.languages import ANY_LANGUAGE, CHINESE, IN_LATIN_LETTERS

_EAST_ASIAN = re.compile(
    "[\u1100-\u11ff\u2e80-\ua4cf\ua960-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff]"
)
_KANA = re.compile("[\u3040-\u30ff\u31f0-\u31ff\uff65-\uff9f]")


def has_letter(language: str, letter: str) -> bool:
    """Whether a text in this language may hold it. Digits and signs are in all of them."""
    if language == ANY_LANGUAGE:
        return True
    if language in IN_LATIN_LETTERS:
        return not _EAST_ASIAN.match(letter)
    return language != CHINESE or not _KANA.match(letter)
