"""Cleans file names. They are labels for people and never used in paths or keys."""

from __future__ import annotations

import unicodedata

MOST_CHARACTERS = 200
MOST_ENDING_CHARACTERS = 20
NAMELESS = "untitled"

# Control characters, direction marks, line breaks, and lone surrogates.
_UNSHOWN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_PLACEHOLDERS = "\ufffc\ufffd"
# Invisible characters that scripts and emoji need inside a name.
_JOINERS = "\u200c\u200d"
_SPACES = " \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_EDGES = f".{_JOINERS}{_SPACES}"


def clean_filename(given: str) -> str:
    """Turn the last part of a path into a readable name: on one line, not too long, and with its extension."""
    # Normalise after removing invisible characters, which may separate a letter from its accent.
    shown = unicodedata.normalize("NFC", "".join(filter(_is_shown, given)))
    name = shown.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1].strip(_EDGES)
    return _shorten(name) or NAMELESS


def _is_shown(character: str) -> bool:
    if character in _JOINERS:
        return True
    return unicodedata.category(character) not in _UNSHOWN and not _is_placeholder(character)


def _is_placeholder(character: str) -> bool:
    number = ord(character)
    return character in _PLACEHOLDERS or number & 0xFFFE == 0xFFFE or 0xFDD0 <= number <= 0xFDEF  # noqa: PLR2004


def _shorten(name: str) -> str:
    if len(name) <= MOST_CHARACTERS:
        return name
    stem, dot, ending = name.rpartition(".")
    if not dot or len(ending) > MOST_ENDING_CHARACTERS:
        return name[:MOST_CHARACTERS].rstrip(_EDGES)
    return f"{stem[: MOST_CHARACTERS - len(ending) - 1].rstrip(_EDGES)}.{ending}"
