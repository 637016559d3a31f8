"""Pages that are too hard for a parser, read by a model that sees them."""

from __future__ import annotations

from dataclasses import dataclass

from octavo.ai.requests import FileReference, Part, Words
from octavo.ai.tasks.task import MarkdownText, Task, Unusable

TOKENS_A_PAGE = 600


@dataclass(frozen=True, slots=True)
class PagesToRead:
    """A file with just these pages; `first` is the number that its first page has in the document."""

    file: FileReference
    first: int

    @property
    def last(self) -> int:
        return self.first + self.file.pages - 1


def show(pages: PagesToRead) -> list[Part]:
    numbers = f"{pages.first}" if pages.last == pages.first else f"{pages.first} to {pages.last}, in this order"
    return [Words(f"The file has {pages.file.pages} pages. Their numbers are {numbers}."), pages.file]


def has_text(_pages: PagesToRead, answer: MarkdownText) -> MarkdownText:
    if not answer.markdown:
        raise Unusable("it is empty")
    return answer


EXTRACT_PAGES: Task[PagesToRead, MarkdownText] = Task(
    name="extract_pages",
    output=MarkdownText,
    show=show,
    expect=lambda pages: TOKENS_A_PAGE * pages.file.pages,
    output_tokens=65_536,
    check=has_text,
    seconds=480.0,
)
