"""What is given to whoever describes a document, be it a model or `local`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk: its Markdown, and the headings that it stands under, the outermost first."""

    content: str
    headings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """A document: its chunks in order, and what the file says of itself. `kind` is how it came in: pdf, eml, web, …"""

    passages: Sequence[Passage]
    kind: str = "other"
    filename: str | None = None
    title: str | None = None
    author: str | None = None
    date: str | None = None
    language: str | None = None


@dataclass(frozen=True, slots=True)
class TwoPassages:
    """What two documents say, side by side."""

    first: str
    second: str
