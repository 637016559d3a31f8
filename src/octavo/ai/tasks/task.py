"""What a task is: what is shown to a model, what it has to answer, and how long that may take and be."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from octavo.ai.answer_schemas import Schema, clean, fit, plain_schema, whole_schema
from octavo.ai.calls import Part, Request
from octavo.core.errors import Defect
from octavo.core.types import JSON
from octavo.language.insights import Output

AI_SECONDS = 90.0
VERSION = "version: "
SPARE_TOKENS = 1000
_FENCE = re.compile(r"\A\s*```[a-z]*\n(.*?)\n?```\s*\Z", re.DOTALL)
_MOST_MISTAKES = 5

In = TypeVar("In")
Out = TypeVar("Out", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Prompt:
    version: str
    text: str


@cache
def load_prompt(name: str) -> Prompt:
    """`prompts/<name>.md`, followed by what every model is told about documents."""
    own, about_documents = _read(name), _read("about_documents")
    return Prompt(f"{own.version}.{about_documents.version}", f"{own.text}\n\n{about_documents.text}")


def _read(name: str) -> Prompt:
    head, _, text = files("octavo.ai").joinpath("prompts", f"{name}.md").read_text().partition("\n")
    if not head.startswith(VERSION):
        raise Defect(f"The prompt {name} does not begin with its version.")
    return Prompt(head.removeprefix(VERSION), text.strip())


class Unusable(Exception):
    """Why an answer cannot be used; told to the model, which gets one chance to put it right."""


class MarkdownText(Output):
    """The answer of a task that is asked for text."""

    markdown: str


@dataclass(frozen=True, slots=True)
class Task(Generic[In, Out]):
    """`show` makes what a model sees; `expect` guesses how many tokens it answers with, of `output_tokens` at most.

    `check` raises `Unusable` for an answer in the right form that is still wrong. `local` does the same here, offline.
    """

    name: str
    output: type[Out]
    show: Callable[[In], Sequence[Part]]
    expect: Callable[[In], int]
    output_tokens: int
    check: Callable[[In, Out], Out]
    seconds: float = AI_SECONDS
    local: Callable[[In], Out] | None = None

    def request(self, given: In) -> Request:
        prompt, expected = load_prompt(self.name), self.expect(given)
        is_text = self.output is MarkdownText
        # Servers with little room count what might be answered; text has to be whole, however long it becomes.
        most = self.output_tokens if is_text else min(self.output_tokens, 2 * expected + SPARE_TOKENS)
        return Request(
            purpose=self.name,
            version=prompt.version,
            instructions=prompt.text,
            parts=tuple(self.show(given)),
            schema=None if is_text else plain_schema(self.output),
            output_tokens=most,
            expected_tokens=min(expected, most),
        )

    def read(self, answer: str, given: In) -> Out:
        """The typed output, or `Unusable`."""
        fenced = _FENCE.match(answer)
        text = clean(fenced[1] if fenced else answer).strip()
        value: JSON = {"markdown": text} if self.output is MarkdownText else _parse(text, whole_schema(self.output))
        try:
            return self.check(given, self.output.model_validate(value))
        except ValidationError as error:
            raise Unusable(_explain(error)) from None


def _parse(text: str, schema: Schema) -> JSON:
    try:
        return fit(json.loads(text), schema)
    except (ValueError, RecursionError):
        raise Unusable("it is not JSON") from None


def _explain(error: ValidationError) -> str:
    """Where and what, without the values: they are the document's."""
    wrong = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors(include_input=False)]
    return "; ".join(wrong[:_MOST_MISTAKES])


class Tasks:
    """All tasks by their names; two of one name are refused."""

    def __init__(self, *tasks: Task[Any, Any]) -> None:
        self._tasks = {task.name: task for task in tasks}
        if len(self._tasks) != len(tasks):
            raise ValueError("two tasks have the same name")

    def __contains__(self, name: str) -> bool:
        return name in self._tasks

    @property
    def names(self) -> list[str]:
        return sorted(self._tasks)
