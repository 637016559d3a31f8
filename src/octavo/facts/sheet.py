"""Finds the facts of any document, from its words, text, headings and metadata. `find_facts` is the entry point.

Printed text has priority over metadata, because programs often write their own name and the time of saving into the
metadata.

This module also chooses the dates of documents that are not invoices. Such a date can be a day, a month or a year, such
as 2017-05-30 or 2017-05.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from octavo.core.texts import primary_language
from octavo.facts.authors import claimed_author, find_author, find_signature
from octavo.facts.confidence import confidence, tier
from octavo.facts.dates import DATE_LINE, find_dates, find_months, is_ambiguous, writes_month_first
from octavo.facts.fact_source import FactSource, FileMetadata, Heading, PrintedLine, plain
from octavo.facts.finding import CHECKED, FOUND, Fact, Reading, facts_of, read_document, sheets_of_text
from octavo.facts.kinds import KindChoice, find_kind
from octavo.facts.layout import lines_of, locate_text
from octavo.facts.titles import Title, find_title, title_from_filename
from octavo.facts.words import Notation, Place, TypedMatch, fold
from octavo.language.insights import DocumentFacts, DocumentSource
from octavo.language.insights import DocumentType as Kind
from octavo.language.languages import detect_document_language

_OWN = re.compile(
    r"(?:^|\W)(?:(?:invoice|bill|issue|publication|report|letter|receipt|statement|order|revision|meeting|printing|"
    r"print) date|"
    r"date(?: of (?:issue|publication|this \w+))?|dated|published(?: on| online)?|issued(?: on)?|posted(?: on)?|"
    r"(?:last )?(?:updated|modified|revised|edited|reviewed)(?: on)?|delivered(?: on| the)?|printed(?: on)?|"
    r"(?:first|second|third|\d\w\w) (?:printing|edition|published)|edition|version(?: of)?|sent|datum|vom|den|stand|"
    r"ausgestellt am|erstellt am|veroffentlicht(?: am)?|rechnungsdatum|fecha|data|le|du|date de (?:facture|"
    r"publication)|"
    r"publie le|mis a jour le|factuurdatum|data emissione|fait a \w+,? le|berlin|aktualisiert am|gedruckt am|"
    r"\u1107\u1112\u110b)[\s:.,]*(?:the\s+)?$"
)
_OTHER = re.compile(
    r"\b(?:due|deadline|expir\w*|expiration[\w &]*|until|till|before|after|born|birth|since|between|from|to|delivery|"
    r"payable|fallig|bis|seit|ab|geboren|geb|echeance|jusqu\w*|hasta|vencimiento|scadenza|entro|vervaldatum|tot|"
    r"released?|"
    r"effective|valid|start|end|adm|d/c|period|appointment|fye|year ended|founded|established|accessed|retrieved|"
    r"as of|received|accepted|submitted|endorsement|initial release|birthday|dob|hired|employed|lease|"
    r"term)\b[^\d]{0,24}$"
)
_COPYRIGHT = re.compile(
    r"(?:\u00a9|\(c\)|copyright(?: c)?)\s{0,3}(?:\u00a9\s?)?(?:by )?(?:\S+ ){0,4}?(?P<year>(?:19|20)\d\d)(?!\d|"
    r"\s?[-\u2013]\s?(?:19|20))",
    re.IGNORECASE,
)
_AMERICAN = re.compile(r"\b(?:AM|PM|EST|EDT|PST|PDT|CST|CDT|USA|U\.S\.|LLC|Inc\.|USD)\b|\$\d")
_EDGE_TOP, _EDGE_BOTTOM = 0.09, 0.9
_LONG_LINE = 300  # letters; longer lines are prose, which mentions other dates
_NEAR_TITLE = 12
_MOST_WORDS = 9
_PAGES = 5
_TABLES = frozenset({"xlsx", "xlsb", "xls", "ods", "csv"})
_OF_PUBLISHER = frozenset({"eml", "msg", "epub", "fb2", "mobi", "jats", "docbook", "html", "mhtml", "web", "youtube"})
_TOP_OF_TEXT = 0.4


@dataclass(frozen=True, slots=True)
class OwnDate:
    """The date of a document and the evidence for it.

    It can be a year, a month or a day: 2017, 2017-05 or 2017-05-30.
    """

    value: str
    evidence: frozenset[str]
    quote: str = ""
    place: Place | None = None
    score: float = 0.0


def find_own_date(source: FactSource, title_lines: Sequence[int] = ()) -> OwnDate | None:
    """Return the date of a document: the date given by the publisher, the printed date, or the year of the copyright
    notice.

    The first of these that is found is used. The modification date of the file is never used.
    """
    claimed = source.metadata.date if source.source_type in _OF_PUBLISHER else None
    found = sorted(_printed_date(source, title_lines), key=lambda one: -one.score)
    if claimed:
        same = next((one for one in found if one.value == claimed), None)
        return same or OwnDate(claimed, frozenset({"publisher"}))
    if found:
        best = found[0]
        rival = any(one.value[:7] != best.value[:7] and one.score > best.score - 0.25 for one in found)
        return OwnDate(best.value, best.evidence | {"rival"}, best.quote, best.place) if rival else best
    return _copyright(source)


def notation_of(texts: Sequence[str]) -> Notation:
    first = writes_month_first(texts)
    american = any(_AMERICAN.search(text) for text in texts)
    return Notation(month_first=american if first is None else first)


def _printed_date(source: FactSource, title_lines: Sequence[int]) -> Iterator[OwnDate]:
    lines = source.front
    notation = notation_of([line.text for line in lines])
    last_title = max(title_lines, default=-1)
    for index, line in enumerate(lines):
        if len(line.text) > _LONG_LINE or (line.page == 0 and line.cells > 1 and source.source_type in _TABLES):
            continue
        matches = [*find_dates(line.text, notation), *find_months(line.text, notation)]
        for match in matches:
            judged = _judge(lines, index, match, near_title=0 < index - last_title <= _NEAR_TITLE)
            if judged:
                score, evidence = judged
                quote = line.text[match.start : match.end]
                if is_ambiguous(quote) and writes_month_first([one.text for one in lines]) is None:
                    evidence |= {"ambiguous"}
                place = line.run.place(match.start, match.end) if line.run and line.page else None
                score -= 0.3 * (len(match.value) < 10) + 0.002 * index + 0.5 * (line.page > 1)  # noqa: PLR2004
                yield OwnDate(match.value, frozenset(evidence), quote, place, score)


def _judge(
    lines: Sequence[PrintedLine], index: int, match: TypedMatch, *, near_title: bool
) -> tuple[float, set[str]] | None:
    """Score how likely a date in the text is to be the date of the document, and collect the evidence.

    Returns None if it is the date of something else.
    """
    line = lines[index]
    folded = fold(line.text)
    before = folded[max(match.start - 45, 0) : match.start]
    if match.start <= 2 and not before.strip(" :(") and line.cells > 1:  # noqa: PLR2004
        before = _text_to_the_left(lines, index)
    if _OTHER.search(before) or _OWN.search(before):
        return None if _OTHER.search(before) else (4.0, {"label"})
    is_alone = bool(DATE_LINE.fullmatch(folded.strip(" .()|"))) and len(folded.split()) <= _MOST_WORDS
    at_edge = line.page > 0 and (line.top < _EDGE_TOP or line.top > _EDGE_BOTTOM)
    if is_alone and near_title:
        return 3.6, {"near title"}
    if is_alone and not at_edge and (line.top < _TOP_OF_TEXT):
        return 3.2, {"alone"}
    if at_edge and len(folded.split()) <= 2 * _MOST_WORDS:
        return 2.2, {"margin"}
    if is_alone and near_title is False and line.page == 0:
        return 1.5, {"alone late"}
    return None


def _text_to_the_left(lines: Sequence[PrintedLine], index: int) -> str:
    """Return the text to the left of a date that begins a table cell, because this text can be the label of the date.

    Only its last 45 letters are returned. The result is empty if there is no such text.
    """
    line = lines[index]
    if line.run is None:
        return ""
    left = [one for one in lines[max(index - 4, 0) : index] if one.run and one.run.line == line.run.line]
    return fold(left[-1].text)[-45:] if left and left[-1].page == line.page else ""


def _copyright(source: FactSource) -> OwnDate | None:
    """Return the year in a copyright notice on the first pages."""
    texts = [run.text for line in lines_of(source.sheets[:_PAGES]) for run in line.runs] or [
        plain(row) for row in source.markdown[:6000].splitlines()
    ]
    years = [(match["year"], text) for text in texts for match in _COPYRIGHT.finditer(text)]
    if not years or source.source_type in _TABLES:
        return None
    year, quote = years[0]
    return OwnDate(year, frozenset({"copyright"}), quote)


__all__ = ["NAMES", "FactSource", "FileMetadata", "Heading", "describe_chunks", "find_facts", "find_language"]

# All names of facts, in the order in which they are shown.
NAMES = (
    *("kind", "title", "sender", "author", "recipient", "number", "date", "due_date", "period", "amount", "currency"),
    *("language", "iban", "vat_id", "doi", "isbn", "order_id", "account_id", "register_id", "party"),
)
# The facts in a composed title.
COMPOSED = ("number", "sender", "date", "amount", "currency")
# How a fact was found. `metadata`: in the metadata or name of the file. `layout`: by its position on the page.
METADATA, LAYOUT, RULE = "metadata", "layout", "rule"
# Only the beginning and the end of a long text are read.
_HEAD, _READ = 6000, 60_000
_MOST_VALUE = 200
# Kinds of documents that have a sender rather than an author.
_SENT = frozenset(
    {Kind.INVOICE, Kind.RECEIPT, Kind.LETTER, Kind.BANK_STATEMENT, Kind.PAYSLIP, Kind.FORM, Kind.CERTIFICATE, Kind.MAIL}
)
_SIGNED = frozenset({Kind.LETTER})
_WRITTEN_BY_PROGRAMS = frozenset(
    ("pdf", "docx", "doc", "pptx", "ppt", "xlsx", "xlsb", "xls", "odt", "ods", "odp", "rtf", "iwork")
)
_NUMBERED = frozenset({Kind.INVOICE, Kind.RECEIPT})
_WITHOUT_DATE = frozenset({Kind.PHOTO, Kind.CODE})
_PLACES_OF_SENDER = {"label", "owner", "footer", "letterhead", "return line"}
_OWNER = {"owner", "return line"}
_SIGNS = {"EUR": "\u20ac", "USD": "$", "GBP": "\u00a3", "INR": "\u20b9", "JPY": "\u00a5"}


def find_facts(source: FactSource) -> tuple[Fact, ...]:
    """Return all facts of a document, in the order of `NAMES`.

    If several have the same name, the best one comes first.
    """
    sheets = source.sheets or tuple(sheets_of_text(source.markdown[:_READ]))
    reading = read_document(sheets)
    title = find_title(source)
    kind = find_kind(source, title.text if title else None, reading)
    if not (source.markdown.strip() or source.sheets or source.filename):
        return ()
    found = [one for one in facts_of(reading, sheets) if one.name in NAMES and _belongs(one, kind)]
    found += _described(source, reading, kind, title, {one.name: one for one in reversed(found)})
    found.sort(key=lambda one: (NAMES.index(one.name), one.source == METADATA, -one.confidence))
    return tuple(one for one in found if one.value.strip())


def _belongs(fact: Fact, kind: KindChoice) -> bool:
    """Whether to keep a fact that was found by the rules for invoices.

    Other rules always determine the kind of a document. They also determine its date, unless it is an invoice.
    """
    return fact.name != "kind" and (fact.name != "date" or kind.kind is Kind.INVOICE)


def find_language(metadata: FileMetadata, source_type: str, detected: str | None) -> Iterator[Fact]:
    """Find the language of a document: its language tag, such as pt-BR, or the detected language.

    Office programs write their own language into files, so a tag that they wrote is ignored if another language is
    detected.
    """
    tag = (metadata.language or "").strip().replace("_", "-")
    declared = primary_language(tag)
    is_trusted = source_type not in _WRITTEN_BY_PROGRAMS or not detected or detected == declared
    if language := tag if declared and is_trusted else detected:
        yield _fact("language", language, frozenset({"detected"}), RULE)


def _described(
    source: FactSource, reading: Reading, kind: KindChoice, title: Title | None, printed: Mapping[str, Fact]
) -> Iterator[Fact]:
    detected = source.language
    if detected is None:
        detected = detect_document_language([source.markdown[:_HEAD]], source.metadata.language)
    yield from find_language(source.metadata, source.source_type, detected)
    yield _fact("kind", str(kind.kind), kind.evidence, RULE)
    known = dict(printed)
    lines = title.lines if title else ()
    for fact in (*_parties(source, reading, kind, printed, lines), *_date(source, kind, printed, lines)):
        known.setdefault(fact.name, fact)
        yield fact
    yield from _title(source, kind, title, known)


def _fact(
    name: str, value: str, evidence: frozenset[str], source: str, place: Place | None = None, quote: str = ""
) -> Fact:
    return Fact(name, value, quote, confidence(name, evidence), source, FOUND, place, tier(name, evidence))


# Titles


def _title(source: FactSource, kind: KindChoice, title: Title | None, known: Mapping[str, Fact]) -> Iterator[Fact]:
    composed = _composed_title(kind.kind, known)
    if kind.kind is Kind.LETTER and title and title.evidence <= {"first line", "printed"}:
        title = None  # the first line is the address of the sender
    if composed:
        yield composed
    elif title and kind.kind is not Kind.CODE and not (kind.kind is Kind.PHOTO and "claimed" not in title.evidence):
        place = title.place or (_printed(source, title.text) if "metadata" not in title.evidence else None)
        origin = METADATA if title.evidence <= {"metadata", "claimed"} else LAYOUT
        status = CHECKED if {"printed", "claimed"} <= title.evidence else FOUND
        fact = _fact("title", title.text, title.evidence, origin, place, title.quote)
        yield replace(fact, status=status)
    else:
        name = title_from_filename(source.filename) or _title_of_letter(kind.kind, known)
        if name:
            yield _fact("title", name, frozenset({"filename"}), METADATA)


def _composed_title(kind: Kind, known: Mapping[str, Fact]) -> Fact | None:
    text = compose_title(kind, {name: known[name].value for name in COMPOSED if name in known})
    used = [known[name] for name in ("number", "sender", "amount", "date") if name in known]
    if text is None:
        return None
    sure = min(one.confidence for one in used)
    return replace(used[0], name="title", value=text, confidence=sure, source=RULE, status=FOUND)


def compose_title(kind: str, values: Mapping[str, str]) -> str | None:
    """Compose a title from facts, such as "Invoice 993548900 · Coolblue · 2014-04-19 · € 717.97".

    Returns None if the kind has no composed titles, or if too few facts are known. A composed title is stored as a fact
    with the source `rule`.
    """
    number, sender, date, amount = (values.get(name) for name in ("number", "sender", "date", "amount"))
    if kind not in _NUMBERED or not (number or sender) or not (number or date or amount):
        return None
    name = kind.replace("_", " ").capitalize()
    parts = [f"{name} {number}" if number else name, *(one for one in (sender, date) if one)]
    if amount:
        currency = values.get("currency", "")
        parts.append(f"{_SIGNS.get(currency, currency)} {amount}".strip())
    return " · ".join(parts)[:_MOST_VALUE]


def _title_of_letter(kind: Kind, known: Mapping[str, Fact]) -> str | None:
    sender, date = known.get("sender"), known.get("date")
    if kind is not Kind.LETTER or not sender:
        return None
    return f"Letter from {sender.value}, {date.value}" if date else f"Letter from {sender.value}"


# People and organisations


def _parties(
    source: FactSource, reading: Reading, kind: KindChoice, printed: Mapping[str, Fact], lines: tuple[int, ...]
) -> Iterator[Fact]:
    if kind.kind is Kind.MAIL:
        sender = claimed_author(source.metadata.author) or source.metadata.author
        if sender:
            yield _fact("sender", sender, frozenset({"mail"}), RULE, quote=sender)
        return
    if kind.kind in _SIGNED:
        signature = find_signature(source)
        if signature:
            place = _printed(source, signature.quote)
            yield _fact("sender", signature.names, signature.evidence, RULE, place, signature.quote)
    if kind.kind in {*_SENT, Kind.OTHER} and "sender" not in printed:
        yield from _letterhead(source, reading, _PLACES_OF_SENDER if kind.kind in _SENT else _OWNER)
    if kind.kind not in _SENT or kind.kind is Kind.FORM:
        yield from _author(source, lines)


def _letterhead(source: FactSource, reading: Reading, places: set[str]) -> Iterator[Fact]:
    """Yield the organisation that sent a form, letter or statement, from its letterhead or footer."""
    sender = reading.values.get("sender")
    if sender and sender.evidence & places:
        place = sender.mention.place
        evidence = sender.evidence | {"not invoice"}
        yield _fact("sender", sender.value, evidence, LAYOUT, place if source.sheets else None, place.quote)


def _author(source: FactSource, lines: tuple[int, ...]) -> Iterator[Fact]:
    author = find_author(source, lines)
    if author:
        origin = METADATA if author.evidence & {"metadata", "publisher"} else LAYOUT
        place = author.place or _printed(source, author.names.split(",")[0])
        yield _fact("author", author.names[:_MOST_VALUE], author.evidence, origin, place, author.quote)


# Dates


def _date(source: FactSource, kind: KindChoice, printed: Mapping[str, Fact], lines: tuple[int, ...]) -> Iterator[Fact]:
    if "date" in printed:
        return
    own: OwnDate | None = find_own_date(source, lines) if kind.kind not in _WITHOUT_DATE else None
    if own:
        origin = METADATA if "publisher" in own.evidence else RULE
        yield _fact("date", own.value, own.evidence | {"own"}, origin, own.place, own.quote)
    elif source.metadata.date:
        yield _fact("date", source.metadata.date, frozenset({"file", "own"}), METADATA)


def _printed(source: FactSource, text: str) -> Place | None:
    """Return the position of a text on the first two pages. Returns None if they do not contain the text."""
    return locate_text(lines_of(source.sheets[:2]), text)


# Descriptions


def describe_chunks(source: DocumentSource) -> DocumentFacts:
    """Return the title, author, date and type of a document, from its chunks and metadata only.

    A known type is not changed. If the title and the type are both known, the text was already searched for facts, and
    is not searched again.
    """
    if source.title and source.type:
        return DocumentFacts(source.title, source.author, source.date, source.type)
    headings = tuple(dict.fromkeys(text for chunk in source.chunks[:20] for text in chunk.headings))
    given = FactSource(
        markdown="\n\n".join(chunk.content for chunk in source.chunks)[:_READ],
        headings=tuple(Heading(text, 1) for text in headings),
        metadata=FileMetadata(source.title, source.author, source.date),
        source_type=source.kind,
        language=source.language,
        word_count=sum(len(chunk.content.split()) for chunk in source.chunks),
    )
    best = {one.name: one.value for one in reversed(find_facts(given))}
    author = best.get("author") or best.get("sender")
    return DocumentFacts(best.get("title"), author, best.get("date"), source.type or Kind(best.get("kind", "other")))
