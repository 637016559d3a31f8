"""Reads iCalendar files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from octavo.extensions import Empty

_FOLDED = re.compile(r"\r?\n[ \t]")
_ESCAPED = re.compile(r"\\([nN,;\\])")
_DATE = re.compile(r"(\d{4})(\d{2})(\d{2})(?:T(\d{2})(\d{2}))?")


def read_calendar(path: Path) -> str:
    """Return a calendar as Markdown: a heading for each event, its date, its place and its description."""
    events = list(_events(_FOLDED.sub("", path.read_text(errors="replace"))))
    if not events:
        raise Empty("The calendar has no events.")
    return "\n\n".join(_as_markdown(event) for event in events)


def _events(text: str) -> Iterator[dict[str, str]]:
    event: dict[str, str] | None = None
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if line == "BEGIN:VEVENT":
            event = {}
        elif line == "END:VEVENT" and event is not None:
            yield event
            event = None
        elif event is not None:
            event[name.partition(";")[0]] = _ESCAPED.sub(lambda found: "\n" if found[1] in "nN" else found[1], value)


def _as_markdown(event: dict[str, str]) -> str:
    date = _DATE.match(event.get("DTSTART", ""))
    day = f"{date[1]}-{date[2]}-{date[3]}" + (f" {date[4]}:{date[5]}" if date[4] else "") if date else ""
    facts = " · ".join(part for part in (day, event.get("LOCATION", "")) if part)
    return "\n\n".join(
        part for part in (f"# {event.get('SUMMARY', 'Event')}", facts, event.get("DESCRIPTION", "")) if part
    )
