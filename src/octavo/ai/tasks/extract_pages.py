"""Model task: transcribe pages that are too difficult for a parser, with a vision model."""

from __future__ import annotations

from dataclasses import dataclass

from octavo.ai.calls import FileReference, InstructionText, Part, Picture
from octavo.ai.tasks.task import MarkdownText, Task, UnusableAnswer

TOKENS_PER_PAGE = 600


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


def build_parts(pages: PagesToRead) -> list[Part]:
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
    build_parts=build_parts,
    estimate_tokens=lambda pages: TOKENS_PER_PAGE * pages.count,
    output_tokens=65_536,
    check=check_not_empty,
    seconds=480.0,
)
