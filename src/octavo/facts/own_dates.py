"""Chooses the date of a document that is not an invoice.

It can be a day, a month or a year, such as 2017-05-30 or 2017-05.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from octavo.facts.dates import DATE_LINE, find_dates, find_months, is_ambiguous, writes_month_first
from octavo.facts.fact_source import FactSource, PrintedLine, plain
from octavo.facts.layout import lines_of
from octavo.facts.words import Notation, Place, TypedMatch, fold

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
    """Return the date of a document: the date given by the publisher, or else the printed date, or else the year of the
    copyright notice. The modification date of the file is never used.
    """
    claimed = source.metadata.date if source.source_type in _OF_PUBLISHER else None
    found = sorted(_printed(source, title_lines), key=lambda one: -one.score)
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


def _printed(source: FactSource, title_lines: Sequence[int]) -> Iterator[OwnDate]:
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
    """Return the text to the left of a date that begins a table cell, or an empty string.

    This text can be the label of the date. Only its last 45 letters are returned.
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
