"""What every type is asked for: where in a text its values are, and how the document writes such things."""

from __future__ import annotations

from typing import NamedTuple


class Found(NamedTuple):
    """A value in its one form, and the characters it was read from."""

    value: str
    start: int
    end: int


class Habits(NamedTuple):
    """How a document writes what could mean two things: 1.234 and 3/4/2024."""

    decimal: str | None = None
    month_first: bool = False
    date_formats: tuple[str, ...] = ()
