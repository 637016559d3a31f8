"""The words of a file page by page. For the sandbox."""

from __future__ import annotations

from pathlib import Path

from octavo.extract.pdf.document import PageError, open_document
from octavo.extract.pdf.words import MOST_ATTACHMENT_BYTES, MOST_PAGES, WordPage, WordPages, join_letters


def read_words(path: Path, password: str | None = None) -> WordPages:
    """A page that cannot be read has no words."""
    with open_document(path, password) as document:
        numbers = range(1, min(document.page_count, MOST_PAGES) + 1)
        pages: list[WordPage] = []
        for number in numbers:
            try:
                with document.page(number) as page:
                    pages.append(WordPage(number, *page.size, tuple(join_letters(page.letters()))))
            except PageError:
                pages.append(WordPage(number, 0.0, 0.0, ()))
        attachments = tuple(document.attachments(".xml", MOST_ATTACHMENT_BYTES))
        return WordPages(document.page_count, tuple(pages), attachments)
