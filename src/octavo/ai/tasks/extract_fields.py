"""Values that rules did not find in a form or an invoice, each with the words that say it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, StringConstraints

from octavo.ai.calls import Part, Quoted, Words
from octavo.ai.tasks.task import Task, Unusable
from octavo.language.insights import Output

# What a form says stands on its first pages.
MOST_CHARACTERS = 24_000
TOKENS_A_FIELD = 80

Text = Annotated[str, StringConstraints(max_length=500)]


@dataclass(frozen=True, slots=True)
class FieldToFind:
    """`labels` are some of those that the value may stand beside."""

    name: str
    type: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FieldsToFind:
    fields: Sequence[FieldToFind]
    text: str


class FoundField(Output):
    """`quote` is letter by letter in the text; a field that is not there is left out."""

    name: Text
    value: Text
    quote: Text


class FoundFields(Output):
    fields: Annotated[list[FoundField], Field(max_length=100)]


def show(given: FieldsToFind) -> list[Part]:
    lines = [f"- {one.name} ({one.type}): {', '.join(one.labels)}" for one in given.fields]
    asked = "Find these fields:\n" + "\n".join(lines)
    return [Words(asked), Quoted("document", given.text[:MOST_CHARACTERS])]


def only_asked(given: FieldsToFind, answer: FoundFields) -> FoundFields:
    known = {one.name for one in given.fields}
    if unknown := next((one.name for one in answer.fields if one.name not in known), None):
        raise Unusable(f"nobody asked for {unknown[:60]}")
    return answer


EXTRACT_FIELDS: Task[FieldsToFind, FoundFields] = Task(
    name="extract_fields",
    output=FoundFields,
    show=show,
    expect=lambda given: TOKENS_A_FIELD * len(given.fields),
    output_tokens=8192,
    check=only_asked,
)
