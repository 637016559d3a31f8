"""Prepares documents for display in the rows and cards of the library."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from octavo.core.formatting import count_of, format_bytes, format_day, format_full_date, format_money, format_span
from octavo.core.texts import Texts
from octavo.core.texts import gettext as _
from octavo.database import Connection, fetch_rows, load_queries
from octavo.jobs.views import find_jobs
from octavo.library.facts import chosen_facts
from octavo.library.files import first_figures, is_pictured
from octavo.records.documents import Document, FactView
from octavo.web.shell.document_status import StatusText, describe, needs_person

QUERIES = load_queries("pages")
MOST_TAGS = 3
OPENING_CHARACTERS = 400
PREVIEW_CHARACTERS = 900
ROW_WIDTH, CARD_WIDTH = 120, 400
KINDS = Texts(
    {
        "pdf": "PDF",
        "epub": "EPUB",
        "fb2": "FictionBook",
        "docx": "DOCX",
        "pptx": "PPTX",
        "xlsx": "XLSX",
        "xlsb": "XLSB",
        "xls": "XLS",
        "odt": "ODT",
        "ods": "ODS",
        "odp": "ODP",
        "rtf": "RTF",
        "eml": "Email",
        "msg": "Outlook message",
        "csv": "CSV",
        "mhtml": "Saved web page",
        "rst": "reStructuredText",
        "org": "Org",
        "asciidoc": "AsciiDoc",
        "latex": "LaTeX",
        "jats": "Article (JATS)",
        "docbook": "DocBook",
        "xml": "XML",
        "json": "JSON",
        "ipynb": "Notebook",
        "vtt": "Captions",
        "srt": "Captions",
        "archive": "Archive",
        "extension": "Extension",
        "doc": "DOC",
        "ppt": "PPT",
        "iwork": "iWork",
        "mobi": "Kindle book",
        "djvu": "DjVu",
        "audio": "Audio",
        "video": "Video",
        "markdown": "Markdown",
        "text": "Text",
        "html": "HTML",
        "web": "Web page",
        "youtube": "YouTube",
        "paste": "Pasted",
        "transcript": "Transcript",
        "image": "Image",
    }
)
KIND_NAMES = Texts(
    {
        "invoice": "Invoice",
        "receipt": "Receipt",
        "contract": "Contract",
        "letter": "Letter",
        "bank_statement": "Bank statement",
        "payslip": "Payslip",
        "form": "Form",
        "certificate": "Certificate",
        "report": "Report",
        "paper": "Paper",
        "article": "Article",
        "book": "Book",
        "manual": "Manual",
        "slides": "Slides",
        "spreadsheet": "Spreadsheet",
        "mail": "Mail",
        "chat": "Chat",
        "notes": "Notes",
        "code": "Code",
        "photo": "Photo",
        "other": "Other",
    }
)
# Kinds that say no more than the type of the file.
UNTOLD = frozenset({None, "other", "image", "email", "spreadsheet", "presentation", "transcript", "notes"})
BADGE_LETTERS = 4
# Markdown syntax that is removed: marks at the start of a line, emphasis, code, link targets and escaping backslashes.
_MARKS = re.compile(r"^[#>\-*+\s]+|[*`~]{1,3}|!?\[(?=[^\]]*\]\()|\]\([^)]*\)|<[^>]*>|\\(?=[!-/:-@\[-`{-~])")
# Underscores are emphasis only around words. Inside a word they belong to a name: my_file_name.
_EMPHASIS = re.compile(r"(?<![\w\\])(_{1,3})(?=[^\s_])(.{1,200}?)(?<=[^\s_\\])\1(?!\w)")
_RULES = re.compile(r"[-=|:\s]*")


@dataclass(frozen=True, slots=True)
class Row:
    """A document in a list.

    `named` is true if it has a title other than its file name; such titles are shown in a serif typeface. `preview` is
    the beginning of the text, shown on a card that has no picture. `width` is the width of the picture in pixels.
    """

    document: Document
    words: StatusText
    kind: str
    badge: str
    length: str
    size: str
    added: str
    named: bool
    opening: str = ""
    figure: str | None = None
    facts: str = ""
    preview: str = ""
    width: int = ROW_WIDTH

    @property
    def picture(self) -> str | None:
        """The path of a picture of the first page, or else of the first figure. None if there is neither."""
        page = f"/api/v1/documents/{self.document.id}/pages/1.png" if is_pictured(self.document) else self.figure
        return f"{page}?width={self.width}" if page else None

    @property
    def has_jpeg(self) -> bool:
        """Whether there is a JPEG copy of the picture."""
        return self.document.source_type == "image" and is_pictured(self.document)

    @property
    def tab(self) -> str:
        """The library tab on which the document is listed."""
        document = self.document
        if document.status == "pending":
            return "needs_you" if self.words.tone == "warn" else "working"
        if document.status == "failed":
            return "failed"
        return "needs_you" if needs_person(document) else document.quality or ""

    @property
    def tags(self) -> list[str]:
        return self.document.tags[:MOST_TAGS]

    @property
    def about(self) -> str | None:
        document = self.document
        if document.status == "failed" and self.words.tone == "bad":
            return _("The file could not be read. It is kept, and you can download it.")
        return document.summary or self.opening or document.author


async def make_rows(
    connection: Connection, owner: UUID, documents: Sequence[Document], now: datetime, *, cards: bool = False
) -> list[Row]:
    """Return the rows of a list of documents, with everything that the page shows about each document.

    If `cards` is true, the rows are shown as cards, with a large picture or, if there is none, the beginning of the
    text.
    """
    unfinished = [one.process_id for one in documents if one.status != "completed"]
    jobs = await find_jobs(connection, owner, unfinished) if unfinished else {}
    openings = await _openings(connection, [one.id for one in documents if one.text_ready and not one.summary])
    figures = await first_figures(connection, [one.id for one in documents if one.text_ready and not is_pictured(one)])
    rows = (
        make_row(one, describe(one, jobs.get(one.process_id), now), now, openings.get(one.id, "")) for one in documents
    )
    facts = await chosen_facts(connection, [one.id for one in documents], ["number", "date"])
    made = [
        replace(row, figure=figures.get(row.document.id), facts=facts_line(row.document, facts[row.document.id]))
        for row in rows
    ]
    return await _as_cards(connection, made) if cards else made


async def _as_cards(connection: Connection, rows: Sequence[Row]) -> list[Row]:
    bare = [row.document.id for row in rows if row.document.text_ready and not row.picture]
    previews = await _openings(connection, bare, PREVIEW_CHARACTERS)
    return [
        replace(row, width=CARD_WIDTH, preview="\n".join(plain_lines(previews.get(row.document.id, ""))))
        for row in rows
    ]


def facts_line(document: Document, facts: Mapping[str, FactView]) -> str:
    """Return the facts about a document in one line: Invoice 993548900 · Coolblue · 19 April 2014 · € 717.97.

    Facts that are already in the title are left out. A date is left out if it comes only from the metadata of the file.
    """
    title, number = document.title.casefold(), facts.get("number")
    day = document.document_date if "date" in facts and facts["date"].source != "metadata" else None
    parts = [
        kind_label(document.kind) if document.kind not in UNTOLD else "",
        number.value if number else "",
        document.sender or "",
        format_full_date(day) if day else "",
        format_money(document.amount, document.currency) if document.amount is not None else "",
    ]
    return " · ".join(part for part in parts if part and part.casefold() not in title)


def kind_label(kind: str | None) -> str:
    """Return the name of a kind. Kinds that people entered are shown as they are."""
    return KIND_NAMES.get(kind or "") or (kind or "").replace("_", " ").capitalize()


async def _openings(
    connection: Connection, documents: list[UUID], characters: int = OPENING_CHARACTERS
) -> dict[UUID, str]:
    """Return the beginning of the text of each document."""
    values = {"documents": documents, "characters": characters}
    rows = await fetch_rows(connection, QUERIES.openings, values) if documents else []
    return {row["document_id"]: row["opening"] for row in rows}


def make_row(document: Document, words: StatusText, now: datetime, opening: str = "") -> Row:
    return Row(
        document=document,
        words=words,
        kind=kind_of(document),
        badge=badge_of(document),
        length=length_of(document),
        size=format_bytes(document.bytes),
        added=format_day(document.created_at, now),
        named=document.title != document.filename,
        opening=plain_words(opening, document.title),
    )


def plain_words(markdown: str, title: str) -> str:
    """Return the beginning of a text on one line, without Markdown syntax and without the title."""
    words = [line for line in plain_lines(markdown) if line != title]
    return " ".join(" ".join(words).split())


def plain_lines(markdown: str) -> list[str]:
    """Return the lines of a text without Markdown syntax. Empty lines are left out."""
    lines = [_MARKS.sub("", _EMPHASIS.sub(r"\2", line)).strip() for line in markdown.splitlines()]
    return [line for line in lines if line and not _RULES.fullmatch(line)]


def kind_of(document: Document) -> str:
    return KINDS.get(document.source_type) or _suffix(document.filename) or _("File")


def badge_of(document: Document) -> str:
    """Return the short label, such as PDF, that is shown instead of a picture."""
    if document.source_type in {"web", "youtube", "paste"}:
        return {"web": "WEB", "youtube": "VIDEO", "paste": "TEXT"}[document.source_type]
    return (_suffix(document.filename) or document.source_type).upper()[: BADGE_LETTERS + 1]


def length_of(document: Document) -> str:
    seconds = document.metadata.get("seconds")
    if isinstance(seconds, int | float):
        return format_span(timedelta(seconds=seconds))
    if document.page_count:
        return count_of(document.page_count, "page")
    if document.word_count:
        return count_of(document.word_count, "word")
    return "—"


def _suffix(filename: str) -> str:
    stem, dot, suffix = filename.rpartition(".")
    return suffix.upper() if dot and stem and suffix.isalnum() and len(suffix) <= BADGE_LETTERS + 1 else ""
