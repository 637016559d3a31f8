"""Reads facts about a PDF: page count, bookmarks, title, author, date and language."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

from octavo.extract.extracted import Metadata
from octavo.extract.markdown.headings import shorten
from octavo.extract.pdf.document import Document, open_document
from octavo.extract.pdf.letters import clean_letters
from octavo.extract.pdf.page_batches import Bookmark, PdfFacts

MOST_BOOKMARKS = 20_000
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*")
_DATE = re.compile(r"(?:D:)?\s*(\d{4})(?:-?(0[1-9]|1[0-2])(?:-?(0[1-9]|[12]\d|3[01]))?)?")
_YEARS = ("1900", "2999")
_FILE_NAME = re.compile(
    r"(?:Microsoft \w+ - )?.*\.(?:docx?|pptx?|xlsx?|dvi|tex|indd|qxd|rtf|odt|pdf|ps)", re.IGNORECASE
)
_NO_TITLE = frozenset({"untitled", "unknown", "title", "document", "(anonymous)", "anonymous", "none"})
_EXTRA = {"Subject": "subject", "Keywords": "keywords", "Creator": "creator", "Producer": "producer"}


def open_pdf(path: Path, password: str | None = None) -> PdfFacts:
    """Read facts about a PDF. Raises `Encrypted`, `Empty`, `TooLarge`, or `BadInput` for a file too damaged to open."""
    with open_document(path, password) as document:
        return PdfFacts(
            page_count=document.page_count,
            bookmarks=_bookmarks(document),
            metadata=_metadata(document),
            encrypted=document.is_encrypted,
            tagged=document.is_tagged,
        )


def _bookmarks(document: Document) -> tuple[Bookmark, ...]:
    found = ((level, _line(title), page) for level, title, page in islice(document.bookmarks(), MOST_BOOKMARKS))
    return tuple(Bookmark(level, title, page) for level, title, page in found if title)


def _metadata(document: Document) -> Metadata:
    information = {name: line for name, value in document.information.items() if (line := _line(value))}
    title = information.get("Title", "")
    language = document.language
    return Metadata(
        title=None if _is_not_a_title(title) else title,
        author=information.get("Author"),
        date=_date(information.get("CreationDate", "")) or _date(information.get("ModDate", "")),
        language=language if _LANGUAGE.fullmatch(language) else None,
        extra={ours: information[theirs] for theirs, ours in _EXTRA.items() if theirs in information},
    )


def _line(value: str) -> str:
    return shorten(clean_letters(value))


def _is_not_a_title(title: str) -> bool:
    """Whether the title is missing, a placeholder or a file name. Many programs write the file name as the title."""
    return not title or title.lower() in _NO_TITLE or _FILE_NAME.fullmatch(title) is not None


def _date(written: str) -> str | None:
    found = _DATE.match(written)
    return "-".join(filter(None, found.groups())) if found and _YEARS[0] <= found[1] <= _YEARS[1] else None
