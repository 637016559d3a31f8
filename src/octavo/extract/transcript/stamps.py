"""Recognises a transcript in pasted text by the times at the beginnings of its lines."""

from __future__ import annotations

import re
from dataclasses import dataclass

from octavo.extract.transcript.snippets import Snippet

LEAST_STAMPS = 3
# "0:00 words", "12:34" alone, "1:02:03", "[00:12]", "(0:05)", with a dash or a colon after it or without.
_STAMP = re.compile(
    r"[ \t]*(?P<open>[\[(]?)(?:(?P<hours>\d{1,3}):)?(?P<minutes>\d{1,3}):(?P<seconds>[0-5]\d)(?:[.,]\d{1,3})?[\])]?"
    r"(?![\d:])(?:[ \t]*[-\u2013\u2014:][ \t]+|[ \t]+|$)"
)
_MINUTES_OF_AN_HOUR = 60
# Times of day are round; of moments in speech only some are.
_ROUND = 5
_EARLY_SECONDS = 300


@dataclass(frozen=True, slots=True)
class _Stamp:
    seconds: int
    is_plain: bool


def read_stamps(text: str) -> list[Snippet] | None:
    """The words behind each time, or None where the text is no transcript. What stands before the first time stays."""
    snippets: list[tuple[_Stamp | None, list[str]]] = [(None, [])]
    for line in text.split("\n"):
        found = _STAMP.match(line)
        stamp = _read(found) if found else None
        if found and stamp:
            snippets.append((stamp, []))
        snippets[-1][1].append(line[found.end() :] if found and stamp else line)
    stamps = [stamp for stamp, _ in snippets if stamp]
    if not _is_transcript(stamps):
        return None
    return [Snippet(" ".join(lines), stamp.seconds if stamp else None) for stamp, lines in snippets]


def _read(found: re.Match[str]) -> _Stamp | None:
    hours, minutes = found["hours"], int(found["minutes"])
    if hours and minutes >= _MINUTES_OF_AN_HOUR:
        return None
    seconds = int(hours or 0) * 3600 + minutes * 60 + int(found["seconds"])
    return _Stamp(seconds, is_plain=not hours and not found["open"])


def _is_transcript(stamps: list[_Stamp]) -> bool:
    times = [stamp.seconds for stamp in stamps]
    if len(set(times)) < LEAST_STAMPS or times != sorted(times):
        return False
    agenda = all(stamp.is_plain and stamp.seconds % _ROUND == 0 for stamp in stamps)
    return not (agenda and times[0] >= _EARLY_SECONDS)
