"""Model task: find values in a form or invoice that a mapping's rules did not find, each with a verbatim quote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, StringConstraints

from octavo.ai.calls import InstructionText, Part, QuotedText
from octavo.ai.tasks.task import Task, UnusableAnswer
from octavo.language.insights import Output

# The values of a form are on its first pages.
MAX_CHARACTERS = 24_000
TOKENS_PER_FIELD = 80

Text = Annotated[str, StringConstraints(max_length=500)]


@dataclass(frozen=True, slots=True)
class FieldToFind:
    """A field to find. `labels` contains the labels that may appear next to its value."""

    name: str
    type: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FieldsToFind:
    fields: Sequence[FieldToFind]
    text: str


class FieldValue(Output):
    """The value of a field. `quote` is verbatim from the text. The answer omits fields that were not found."""

    name: Text
    value: Text
    quote: Text


class FieldValues(Output):
    fields: Annotated[list[FieldValue], Field(max_length=100)]


def build_parts(given: FieldsToFind) -> list[Part]:
    lines = [f"- {one.name} ({one.type}): {', '.join(one.labels)}" for one in given.fields]
    wanted = "Find these fields:\n" + "\n".join(lines)
    return [InstructionText(wanted), QuotedText("document", given.text[:MAX_CHARACTERS])]


def check_only_requested(given: FieldsToFind, answer: FieldValues) -> FieldValues:
    known = {one.name for one in given.fields}
    if unknown := next((one.name for one in answer.fields if one.name not in known), None):
        raise UnusableAnswer(f"{unknown[:60]} was not requested")
    return answer


EXTRACT_FIELDS: Task[FieldsToFind, FieldValues] = Task(
    name="extract_fields",
    output=FieldValues,
    build_parts=build_parts,
    estimate_tokens=lambda given: TOKENS_PER_FIELD * len(given.fields),
    output_tokens=8192,
    check=check_only_requested,
)
