"""Where a text stands in a document, when only its letters are known: what a model or a mapping says is looked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from octavo.convert.contract import Place
from octavo.convert.layout import Line, fold
from octavo.convert.types import FIELD_TYPES, Habits


def locate_text(lines: Sequence[Line], text: str, page: int | None = None) -> Place | None:
    """The first place with these words, whatever their case; words that only contain them do not count."""
    wanted = fold(" ".join(text.split()))
    if not wanted:
        return None
    for line in lines:
        if page is not None and line.page != page:
            continue
        for piece in line.pieces:
            start = piece.folded.find(wanted)
            while start >= 0:
                end = start + len(wanted)
                if not _is_within(piece.folded, start, end):
                    return piece.place(start, end)
                start = piece.folded.find(wanted, start + 1)
    return None


def _is_within(text: str, start: int, end: int) -> bool:
    before, after = text[start - 1 : start], text[end : end + 1]
    return (before.isalnum() and text[start].isalnum()) or (after.isalnum() and text[end - 1].isalnum())


def locate_value(lines: Sequence[Line], value: str, kind: str, habits: Habits) -> Place | None:
    """The first place where a value of this type means the same, however it is written there."""
    if kind == "text":
        return locate_text(lines, value)
    return next((place for place, found in every_value(lines, kind, habits) if found == value), None)


def every_value(lines: Sequence[Line], kind: str, habits: Habits) -> Iterator[tuple[Place, str]]:
    for line in lines:
        for piece in line.pieces:
            for found in FIELD_TYPES[kind].find(piece.text, habits):
                yield piece.place(found.start, found.end), found.value
