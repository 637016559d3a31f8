"""What asking answers. The records here are the public form: the API streams them as they are."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Citation:
    """`verified`: the words stand in the passage, and `quote` is how they stand there, letter by letter.

    What is not verified is what a model claimed; `number` is how the answer refers to it.
    """

    number: int
    document_id: UUID
    title: str
    chunk_id: UUID
    page: int | None
    quote: str
    verified: bool


@dataclass(frozen=True, slots=True)
class Said:
    """One statement, with the numbers of its citations. `verified`: at least one of them is."""

    text: str
    citations: list[int]
    verified: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """`found`: the documents answer it. `made_by` is `local` or a model; nobody is asked where nothing was found."""

    found: bool
    statements: list[Said]
    citations: list[Citation]
    made_by: str
    cost_usd: float
