"""File names are labels for people; no path or key is ever made from one."""

from __future__ import annotations

import re
import unicodedata

MOST_CHARACTERS = 200
NAMELESS = "untitled"

# Control characters, marks that turn the reading direction around, and what stands for no character at all.
_UNSHOWN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufff9-\uffff\ud800-\udfff]")


def clean_filename(given: str) -> str:
    """The last part of whatever was given, readable, in one line and not too long; its ending stays."""
    shown = _UNSHOWN.sub("", unicodedata.normalize("NFC", given)).replace("\\", "/")
    name = shown.rstrip("/").rsplit("/", 1)[-1].strip().strip(".").strip()
    if len(name) <= MOST_CHARACTERS:
        return name or NAMELESS
    stem, dot, ending = name.rpartition(".")
    if not dot or len(ending) > 20:
        return name[:MOST_CHARACTERS]
    return f"{stem[: MOST_CHARACTERS - len(ending) - 1]}.{ending}"
