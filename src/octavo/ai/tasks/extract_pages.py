"""Pages that are too hard for a parser, read by a model that sees them."""

from __future__ import annotations

from dataclasses import dataclass

from octavo.ai.calls import FileReference, Part, Picture, Words
from octavo.ai.tasks.task import MarkdownText, Task, Unusable

TOKENS_A_PAGE = 600


@dataclass(frozen=True, slots=True)
class PagesToRead:
    """A file with just these pages, or a picture of each; `first` is the number that the first has in the document."""

    shown: FileReference | tuple[Picture, ...]
    first: int

    @property
    def count(self) -> int:
        return self.shown.pages if isinstance(self.shown, FileReference) else len(self.shown)

    @property
    def last(self) -> int:
        return self.first + self.count - 1


def show(pages: PagesToRead) -> list[Part]:
    numbers = f"{pages.first}" if pages.last == pages.first else f"{pages.first} to {pages.last}, in this order"
    if isinstance(pages.shown, FileReference):
        return [Words(f"The file has {pages.count} pages. Their numbers are {numbers}."), pages.shown]
    return [Words(f"There is a picture of each page. Their numbers are {numbers}."), *pages.shown]


def has_text(_pages: PagesToRead, answer: MarkdownText) -> MarkdownText:
    if not answer.markdown:
        raise Unusable("it is empty")
    return answer


EXTRACT_PAGES: Task[PagesToRead, MarkdownText] = Task(
    name="extract_pages",
    output=MarkdownText,
    show=show,
    expect=lambda pages: TOKENS_A_PAGE * pages.count,
    output_tokens=65_536,
    check=has_text,
    seconds=480.0,
)
