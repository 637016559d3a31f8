"""Defines tasks for models. A task consists of a prompt, its input, the type of its answer, and limits."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from octavo.ai.calls import ModelRequest, Part, Schema, clean_text, fit_to_schema, plain_schema, whole_schema
from octavo.core.errors import Defect
from octavo.core.types import JSON
from octavo.language.insights import Output

CALL_SECONDS = 90.0
VERSION = "version: "
SPARE_TOKENS = 1000
_FENCE = re.compile(r"\A\s*```[a-z]*\n(.*?)\n?```\s*\Z", re.DOTALL)
_MAX_MISTAKES = 5

In = TypeVar("In")
Out = TypeVar("Out", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Prompt:
    version: str
    text: str


@cache
def load_prompt(name: str) -> Prompt:
    """Read `prompts/<name>.md` and append the shared instructions about documents.

    Changing the version of a prompt invalidates its stored answers.
    """
    own, about_documents = _read(name), _read("about_documents")
    return Prompt(f"{own.version}.{about_documents.version}", f"{own.text}\n\n{about_documents.text}")


def _read(name: str) -> Prompt:
    head, _, text = files("octavo.ai").joinpath("prompts", f"{name}.md").read_text().partition("\n")
    if not head.startswith(VERSION):
        raise Defect(f"The prompt {name} does not start with its version.")
    return Prompt(head.removeprefix(VERSION), text.strip())


class UnusableAnswer(Exception):
    """Raised when a model's answer is rejected.

    The model then receives the reason and one chance to correct its answer.
    """


class MarkdownText(Output):
    """The output of a task whose answer is text instead of JSON."""

    markdown: str


@dataclass(frozen=True, slots=True)
class Task(Generic[In, Out]):
    """A task for a model.

    `build_parts` builds the request. `estimate_tokens` estimates the length of the answer, up to `output_tokens`.
    `check` raises `UnusableAnswer` if a well-formed answer is wrong. `offline` performs the task without a model.
    """

    name: str
    output: type[Out]
    build_parts: Callable[[In], Sequence[Part]]
    estimate_tokens: Callable[[In], int]
    output_tokens: int
    check: Callable[[In, Out], Out]
    seconds: float = CALL_SECONDS
    offline: Callable[[In], Out] | None = None

    def request(self, given: In) -> ModelRequest:
        prompt, expected = load_prompt(self.name), self.estimate_tokens(given)
        is_text = self.output is MarkdownText
        # Servers with a small context window also count the longest possible answer, so JSON gets a small limit. A text
        # must not be cut off, so it gets the full limit.
        limit = self.output_tokens if is_text else min(self.output_tokens, 2 * expected + SPARE_TOKENS)
        return ModelRequest(
            purpose=self.name,
            version=prompt.version,
            instructions=prompt.text,
            parts=tuple(self.build_parts(given)),
            schema=None if is_text else plain_schema(self.output),
            output_tokens=limit,
            expected_tokens=min(expected, limit),
        )

    def read(self, answer: str, given: In) -> Out:
        """Parse and validate a model's answer. Raises `UnusableAnswer` if the answer is invalid."""
        fenced = _FENCE.match(answer)
        text = clean_text(fenced[1] if fenced else answer).strip()
        value: JSON = {"markdown": text} if self.output is MarkdownText else _parse(text, whole_schema(self.output))
        try:
            return self.check(given, self.output.model_validate(value))
        except ValidationError as error:
            raise UnusableAnswer(_explain(error)) from None


def _parse(text: str, schema: Schema) -> JSON:
    try:
        return fit_to_schema(json.loads(text), schema)
    except (ValueError, RecursionError):
        raise UnusableAnswer("it is not JSON") from None


def _explain(error: ValidationError) -> str:
    """List each position where validation failed, with the reason. Values are omitted, because they may contain text
    from the document.
    """
    wrong = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors(include_input=False)]
    return "; ".join(wrong[:_MAX_MISTAKES])


class Tasks:
    """A registry of all tasks by name. Two tasks cannot have the same name."""

    def __init__(self, *tasks: Task[Any, Any]) -> None:
        self._tasks = {task.name: task for task in tasks}
        if len(self._tasks) != len(tasks):
            raise ValueError("two tasks have the same name")

    def __contains__(self, name: str) -> bool:
        return name in self._tasks

    @property
    def names(self) -> list[str]:
        return sorted(self._tasks)
