"""The facts of any document, from all that is known of it: its words, its text, its headings and the file's metadata.

`find_facts` is the entry point. Printed text counts more than metadata: a program writes metadata, often with its own
name and the time at which the file was made.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from octavo.facts.confidence import confidence
from octavo.facts.finding import CHECKED, FOUND, Fact, facts_of, read_document, sheets_of_text
from octavo.facts.layout import lines_of, locate_text
from octavo.facts.words import Place, Sheet, fold
from octavo.language.dates import find_date
from octavo.language.description import find_author, find_title
from octavo.language.document_types import find_type
from octavo.language.insights import ChunkText, DocumentSource, DocumentType
from octavo.language.languages import detect_document_language

# All names of facts, in the order in which they are shown.
NAMES = (
    *("kind", "title", "sender", "author", "recipient", "number", "date", "due_date", "period", "amount", "currency"),
    *("language", "iban", "vat_id", "doi", "isbn", "order_id", "account_id", "register_id", "party"),
)
# How a fact was found. `metadata`: written in the file by a program; `layout`: by its place on the page.
METADATA, LAYOUT, RULE = "metadata", "layout", "rule"
# Only the beginning and the end of a long text are read.
_HEAD, _TAIL, _READ = 6000, 2000, 60_000
_MOST_HEADINGS = 5
_MOST_VALUE = 200


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of the text. `start` is its offset in the Markdown; `place` is where it is printed, if it is known."""

    text: str
    level: int
    start: int = 0
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class FileMetadata:
    """What the file says about itself. `date` is an ISO 8601 date; `extra` has the other entries, e.g. `producer`."""

    title: str | None = None
    author: str | None = None
    date: str | None = None
    language: str | None = None
    extra: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class FactSource:
    """All that is known of a document.

    `sheets` are the words of its first pages with their boxes; they are empty if the document has no pages. `markdown`
    is the text, or the beginning of a long one, and `tail` the end of a long one. `word_count` is that of all the text.
    `language` is the detected language; it is empty if it could not be detected, and None if nobody tried.
    """

    sheets: tuple[Sheet, ...] = ()
    markdown: str = ""
    tail: str = ""
    headings: tuple[Heading, ...] = ()
    filename: str = ""
    metadata: FileMetadata = field(default_factory=FileMetadata)
    source_type: str = "other"
    language: str | None = None
    word_count: int = 0


def find_facts(source: FactSource) -> tuple[Fact, ...]:
    """All facts of a document, in the order of `NAMES`; the best one first if there are several with one name."""
    sheets = source.sheets or tuple(sheets_of_text(source.markdown[:_READ]))
    found = [one for one in facts_of(read_document(sheets), sheets) if one.name in NAMES]
    found += _described(source, {one.name: one for one in reversed(found)})
    found.sort(key=lambda one: (NAMES.index(one.name), one.source == METADATA, -one.confidence))
    return tuple(one for one in found if one.value.strip())


def _described(source: FactSource, printed: Mapping[str, Fact]) -> Iterator[Fact]:
    language = source.language
    if language is None:
        language = detect_document_language([source.markdown[:_HEAD]], source.metadata.language)
    if language:
        yield Fact("language", language, "", _sure("language"), RULE, FOUND)
    title = _title(source)
    kind = printed.get("kind") or _kind(source, title)
    if "kind" not in printed and kind:
        yield kind
    composed = _composed_title(kind, printed)
    if composed or title:
        yield composed or title or Fact("title", "", "", 0, RULE, FOUND)
    author = _author(source)
    if author:
        yield author
    if "date" not in printed:
        yield from _date(source, language)


def _kind(source: FactSource, title: Fact | None) -> Fact | None:
    name = find_type(
        kind=source.source_type,
        title=title.value if title else None,
        head=f"{source.markdown[:_HEAD]}\n{(source.tail or source.markdown)[-_TAIL:]}",
        words=source.word_count,
    )
    return None if name is DocumentType.OTHER else Fact("kind", str(name), "", _sure("kind"), RULE, FOUND)


def _composed_title(kind: Fact | None, printed: Mapping[str, Fact]) -> Fact | None:
    """The title of a document with a number, such as an invoice, which is named by it and by its sender."""
    number, sender = printed.get("number"), printed.get("sender")
    if not kind or not number:
        return None
    named = f"{kind.value.replace('_', ' ').capitalize()} {number.value}"
    text = f"{named} · {sender.value}" if sender else named
    return replace(number, name="title", value=text[:_MOST_VALUE], source=RULE, status=FOUND)


# Metadata is written by people in these formats, and by programs in the others.
_BY_PEOPLE = frozenset({"epub", "fb2", "html", "mhtml", "web", "eml", "msg", "jats", "docbook", "markdown", "youtube"})


def _title(source: FactSource) -> Fact | None:
    claimed = source.metadata.title if not _is_software(source.metadata.title) else None
    if claimed and source.source_type in _BY_PEOPLE:
        return _metadata_fact("title", find_title(_as_document(source, title=claimed)), source)
    for heading in source.headings[:_MOST_HEADINGS]:
        text = find_title(_as_document(source, chunks=[ChunkText("", (heading.text,))]))
        if text:
            place = heading.place or _printed(source, heading.text)
            return Fact("title", text, heading.text, _sure("title"), LAYOUT, FOUND, place)
    if claimed:
        return _metadata_fact("title", find_title(_as_document(source, title=claimed)), source)
    text = find_title(_as_document(source, chunks=[ChunkText(source.markdown[:_HEAD])]))
    return Fact("title", text, text, _sure("title"), RULE, FOUND, _printed(source, text)) if text else None


def _author(source: FactSource) -> Fact | None:
    text = find_author(_as_document(source, chunks=[ChunkText(source.markdown[:_HEAD])]))
    if text:
        return Fact("author", text, text, _sure("author"), RULE, FOUND, _printed(source, text))
    claimed = source.metadata.author
    if not claimed or _is_software(claimed):
        return None
    return _metadata_fact("author", find_author(_as_document(source, author=claimed)), source)


def _date(source: FactSource, language: str | None) -> Iterator[Fact]:
    """The printed date, or else that of the metadata, which is labelled as such wherever it is shown."""
    text = find_date(source.markdown[:_HEAD], None, language)
    if text:
        yield Fact("date", text, "", _sure("date"), RULE, FOUND)
    elif source.metadata.date:
        yield Fact("date", source.metadata.date, "", _sure("date"), METADATA, FOUND)


def _metadata_fact(name: str, value: str | None, source: FactSource) -> Fact | None:
    """A fact from the metadata. If the same text is printed, it is a checked fact of the page."""
    if not value:
        return None
    place = _printed(source, value)
    if place or fold(value) in fold(source.markdown[:_HEAD]):
        return Fact(name, value, place.quote if place else value, _sure(name), LAYOUT, CHECKED, place)
    return Fact(name, value, "", _sure(name), METADATA, FOUND)


def _printed(source: FactSource, text: str) -> Place | None:
    """Where a text is printed on the first pages."""
    return locate_text(lines_of(source.sheets[:2]), text)


def _as_document(
    source: FactSource, *, title: str | None = None, author: str | None = None, chunks: Sequence[ChunkText] = ()
) -> DocumentSource:
    return DocumentSource(chunks, source.source_type, source.filename, title, author)


# Programs that write their own name as the title or the author.
_SOFTWARE = re.compile(
    r"python-docx|openpyxl|xlsxwriter|pandoc|latex|(pdf|xe|lua)?tex\b|libreoffice|openoffice|microsoft|acrobat|distiller"
    r"|pdfcreator|wkhtmltopdf|tcpdf|fpdf|itext|reportlab|ghostscript|quartz|chrom(e|ium)|skia|prince|word\b|excel"
    r"|powerpoint|canon|scanner|administrator|unknown|anonymous|^(admin|user|root|owner|pc|author|default)$",
    re.IGNORECASE,
)


def _is_software(text: str | None) -> bool:
    return bool(text and _SOFTWARE.search(text))


def _sure(name: str) -> float:
    return confidence(name, frozenset({"heading"}))
