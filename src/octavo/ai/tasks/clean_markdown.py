"""Model task: restore Markdown structure that was lost when the text was extracted.

The extracted text is always kept as well.
"""

from __future__ import annotations

from octavo.ai.calls import CHARACTERS_PER_TOKEN, InstructionText, Part, QuotedText
from octavo.ai.tasks.task import MarkdownText, Task, UnusableAnswer

# Running headers and menus may be removed, but an answer with fewer than half of the words has lost content.
MIN_KEPT = 0.5


def build_parts(markdown: str) -> list[Part]:
    return [InstructionText("Clean this Markdown."), QuotedText("markdown", markdown)]


def check_length(markdown: str, answer: MarkdownText) -> MarkdownText:
    if len(answer.markdown.split()) < MIN_KEPT * len(markdown.split()):
        raise UnusableAnswer("text is missing")
    return answer


CLEAN_MARKDOWN: Task[str, MarkdownText] = Task(
    name="clean_markdown",
    output=MarkdownText,
    build_parts=build_parts,
    estimate_tokens=lambda markdown: len(markdown) // CHARACTERS_PER_TOKEN,
    output_tokens=32_768,
    check=check_length,
    seconds=300.0,
)
