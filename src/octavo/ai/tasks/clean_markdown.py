"""The same text with the structure that was lost on its way. The raw text is always kept beside it."""

from __future__ import annotations

from octavo.ai.calls import CHARACTERS_A_TOKEN, Part, Quoted, Words
from octavo.ai.tasks.task import MarkdownText, Task, Unusable

# Running heads and menus may go, but who lost half of the words told another story.
LEAST_KEPT = 0.5


def show(markdown: str) -> list[Part]:
    return [Words("Clean this Markdown."), Quoted("markdown", markdown)]


def still_the_same(markdown: str, answer: MarkdownText) -> MarkdownText:
    if len(answer.markdown.split()) < LEAST_KEPT * len(markdown.split()):
        raise Unusable("text is missing")
    return answer


CLEAN_MARKDOWN: Task[str, MarkdownText] = Task(
    name="clean_markdown",
    output=MarkdownText,
    show=show,
    expect=lambda markdown: len(markdown) // CHARACTERS_A_TOKEN,
    output_tokens=32_768,
    check=still_the_same,
    seconds=300.0,
)
