"""Model tasks that write Markdown.

One uses a vision model to transcribe pages that are too difficult for a parser. The other restores structure that was
lost when the text was extracted; the extracted text is always kept as well.
"""

from __future__ import annotations

from dataclasses import dataclass

from octavo.ai.calls import CHARACTERS_PER_TOKEN, FileReference, InstructionText, Part, Picture, QuotedText
from octavo.ai.tasks.task import MarkdownText, Task, UnusableAnswer

TOKENS_PER_PAGE = 600
# Running headers and menus may be removed, but an answer with fewer than half of the words has lost content.
MIN_KEPT = 0.5


@dataclass(frozen=True, slots=True)
class PagesToRead:
    """Pages to transcribe. `shown` is a file that contains only these pages, or one picture per page.

    `first` is the number of the first page.
    """

    shown: FileReference | tuple[Picture, ...]
    first: int

    @property
    def count(self) -> int:
        return self.shown.pages if isinstance(self.shown, FileReference) else len(self.shown)

    @property
    def last(self) -> int:
        return self.first + self.count - 1


def build_page_parts(pages: PagesToRead) -> list[Part]:
    numbers = f"{pages.first}" if pages.last == pages.first else f"{pages.first} to {pages.last}, in this order"
    if isinstance(pages.shown, FileReference):
        return [InstructionText(f"The file has {pages.count} pages. Their numbers are {numbers}."), pages.shown]
    return [InstructionText(f"The pages follow as pictures. Their numbers are {numbers}."), *pages.shown]


def check_not_empty(_pages: PagesToRead, answer: MarkdownText) -> MarkdownText:
    if not answer.markdown:
        raise UnusableAnswer("it is empty")
    return answer


EXTRACT_PAGES: Task[PagesToRead, MarkdownText] = Task(
    name="extract_pages",
    output=MarkdownText,
    build_parts=build_page_parts,
    estimate_tokens=lambda pages: TOKENS_PER_PAGE * pages.count,
    output_tokens=65_536,
    check=check_not_empty,
    seconds=480.0,
)


def build_text_parts(markdown: str) -> list[Part]:
    return [InstructionText("Clean this Markdown."), QuotedText("markdown", markdown)]


def check_length(markdown: str, answer: MarkdownText) -> MarkdownText:
    if len(answer.markdown.split()) < MIN_KEPT * len(markdown.split()):
        raise UnusableAnswer("text is missing")
    return answer


CLEAN_MARKDOWN: Task[str, MarkdownText] = Task(
    name="clean_markdown",
    output=MarkdownText,
    build_parts=build_text_parts,
    estimate_tokens=lambda markdown: len(markdown) // CHARACTERS_PER_TOKEN,
    output_tokens=32_768,
    check=check_length,
    seconds=300.0,
)
