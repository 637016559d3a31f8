"""Determines the kind of a document, such as letter or paper, from its format, title, typical words and layout.

Each cue, such as a typical phrase, adds a weight to a kind. The kind with the highest sum is chosen if the sum is high
enough and no other kind has a similar sum. The name of a kind counts only in the title or in a short line at the top.
Elsewhere, a single word proves little. For example, a paper that mentions receipts is not a receipt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import median
from typing import Any

from octavo.facts.fact_source import FactSource, plain
from octavo.facts.finding import Reading
from octavo.facts.words import fold, read_data
from octavo.language.insights import DocumentType as Kind

_BY_SOURCE = {
    **dict.fromkeys(("eml", "msg"), Kind.MAIL),
    **dict.fromkeys(("pptx", "ppt", "odp"), Kind.SLIDES),
    **dict.fromkeys(("xlsx", "xlsb", "xls", "ods", "csv"), Kind.SPREADSHEET),
    **dict.fromkeys(("epub", "fb2", "mobi"), Kind.BOOK),
    "jats": Kind.PAPER,
    "ipynb": Kind.CODE,
    "youtube": Kind.ARTICLE,
}
_CODE_FILE = re.compile(
    r".*\.(?:py|pyi|js|jsx|ts|tsx|mjs|java|kt|c|h|cc|cpp|hpp|cs|go|rs|rb|php|pl|pm|sh|bash|zsh|ps1|bat|sql|swift|"
    r"scala|r|m|"
    r"lua|dart|vue|css|scss|less|ipynb|toml|ini|cfg|gradle|cmake|makefile|dockerfile|asm|s|f90|jl|hs|ex|exs|clj|nix|"
    r"tf)|"
    r".*(?:^|/)(?:makefile|dockerfile|rakefile|gemfile)",
    re.IGNORECASE,
)
# Lines that occur only in program code.
_CODE_LINE = re.compile(
    r"\s*(?:(?:def|class|import|from|return|if|for|while|else|elif|try|except|function|const|let|var|public|private|"
    r"static|"
    r"#include|package|func|fn|struct|impl|use|using|namespace|select|create table|insert into)\b.*[:;{(=)]?|.*[;{}]|"
    r"[)\]}]+[,;]?|(?://|#!|/\*|\*/).*|\w+\s*(?:=|:=|\+=)\s*\S+.*|@\w+.*)"
)
_STRONG_CODE = re.compile(
    r"(?m)^\s*(?:def \w+\(|class \w+[:({]|import \w|from \w[\w.]* import|#include|function \w*\(|public class|"
    r"const \w+ =)"
)
_NAME, _TITLE = 2.0, 3.0

_START = r"(?:^|\n)[^\w\n]{0,10}(?:\d{1,2}[ .)]{1,3})?"
_SPEAKER = re.compile(r"(?:[\[(]?[\d:.,/ \-]{4,22}(?:[ap]m)?[\])]?[\s\-\u2013]*)?(?P<who>[A-Z][\w.' -]{0,28}?):\s+\S")
_STAMP = re.compile(
    r"[\[(]?(?:\d{1,4}[./-]\d{1,2}[./-]\d{1,4},?\s+)?\d{1,2}:\d{2}(?::\d{2})?(?:\s?[ap]m)?[\])]?(?:\s?[-\u2013]\s?|"
    r"\s+)[^\W\d][^:\n]{0,30}:"
)
_BLANK = re.compile(
    r"(?:\\?_){4,}|\.{9,}(?![. ]*\d)|\u2026{3,}(?![\u2026. ]*\d)|[\u2610\u2611\u2612\u25a1\u25a2]|\[ \]|_{4,}"
)
_LEAST, _SURE, _MARGIN = 2.9, 5.0, 0.8
_BOOK_WORDS, _LETTER_WORDS = 40_000, 1500
_PICTURE_WORDS = 25
_SHORT_LINE = 9
# Kinds of documents that consist of figures. A prose text about them has few digits.
_WITH_FIGURES = frozenset({Kind.RECEIPT, Kind.BANK_STATEMENT, Kind.PAYSLIP})
_FEW_DIGITS = 0.03


@dataclass(frozen=True, slots=True)
class _Cues:
    """The patterns that identify one kind of document, from `data/kinds.yaml`.

    `named` matches a line that is only the name of the kind. `in_title` matches a title that contains the name.
    """

    named: re.Pattern[str] | None
    in_title: re.Pattern[str] | None
    cues: tuple[tuple[float, re.Pattern[str]], ...]


@lru_cache(maxsize=1)
def _patterns() -> dict[Kind, _Cues]:
    return {Kind(name): _compile(**parts) for name, parts in read_data("kinds").items()}


def _compile(names: Sequence[str] = (), cues: Sequence[Mapping[str, Any]] = ()) -> _Cues:
    either = "|".join(names)
    named = re.compile(rf"(?:{either})(?:\W.*)?") if names else None
    in_title = re.compile(rf"(?:.*\W)?(?:{either})(?:\W.*)?") if names else None
    return _Cues(named, in_title, tuple((float(cue["weight"]), _pattern(cue)) for cue in cues))


def _pattern(cue: Mapping[str, Any]) -> re.Pattern[str]:
    words = "|".join(cue["words"])
    return re.compile(f"{_START}(?:{words})" if cue.get("start") else words)


@dataclass(frozen=True, slots=True)
class KindChoice:
    kind: Kind
    evidence: frozenset[str]


class _Text:
    """The texts in a document that show its kind, such as its title and first lines."""

    def __init__(self, source: FactSource, title: str | None) -> None:
        self.source = source
        self.title = fold(title or "")

    @cached_property
    def body(self) -> str:
        """The beginning and end of the text, in lower case, without accents or link targets."""
        text = self.source.markdown[:8000] + "\n" + (self.source.tail or self.source.markdown[8000:])[-2500:]
        return fold("\n".join(plain(row.strip("#| ")) for row in text.splitlines()))

    @cached_property
    def digits(self) -> float:
        """The share of digits in the text, from 0 to 1."""
        return sum(map(str.isdigit, self.body)) / max(len(self.body), 1)

    @cached_property
    def top(self) -> list[str]:
        """Short lines at the top of the document, which may name its kind."""
        lines = [fold(line.text).strip(" .:*#|-") for line in self.source.front[:25]]
        return [line for line in lines if line and len(line.split()) <= _SHORT_LINE]


def find_kind(source: FactSource, title: str | None, reading: Reading | None = None) -> KindChoice:
    """Return the kind of a document. Returns `OTHER` if the kind is not clear."""
    by_form = _by_format(source)
    if by_form:
        return KindChoice(by_form, frozenset({"format"}))
    if reading and reading.is_invoice and not _is_receipt(source, title):
        return KindChoice(Kind.INVOICE, frozenset({"signs"}))
    text = _Text(source, title)
    scores = dict(_scores(text))
    best, second, *_ = (*sorted(scores, key=lambda one: -scores[one]), Kind.OTHER, Kind.OTHER)
    lead = scores.get(best, 0.0) - scores.get(second, 0.0)
    if scores.get(best, 0.0) >= _LEAST and lead >= (_MARGIN if scores[best] < _SURE else 0.3):
        evidence = {"strong" if scores[best] >= _SURE and lead >= _MARGIN else "words"}
        return KindChoice(best, frozenset(evidence))
    return _by_shape(text, scores)


def _by_format(source: FactSource) -> Kind | None:
    if source.source_type in _BY_SOURCE:
        return _BY_SOURCE[source.source_type]
    if source.source_type == "image" and source.word_count <= _PICTURE_WORDS:
        return Kind.PHOTO
    if source.source_type in {"text", "other", "xml", "json"} and _CODE_FILE.fullmatch(source.filename):
        return Kind.CODE
    return None


def _is_receipt(source: FactSource, title: str | None) -> bool:
    top = [fold(line.text).strip(" .:") for line in source.front[:10]]
    receipt, invoice = (_patterns()[kind].named for kind in (Kind.RECEIPT, Kind.INVOICE))
    is_named = any(receipt and receipt.fullmatch(line) for line in (fold(title or ""), *top))
    return is_named and not any(invoice and invoice.fullmatch(line) for line in top)


def _scores(text: _Text) -> Iterator[tuple[Kind, float]]:
    for kind in Kind:
        score = sum(weight for weight, cue in _cues(kind) if cue.search(text.body))
        score += _name_score(text, kind) + _form_score(text, kind)
        if kind in _WITH_FIGURES and _is_prose(text.source) and text.digits < _FEW_DIGITS:
            score -= 4
        if kind is Kind.LETTER and text.source.word_count > _LETTER_WORDS:
            score -= 3
        if kind is Kind.INVOICE:
            score = 0.0  # decided by the signs of an invoice instead
        if score > 0:
            yield kind, score


def _cues(kind: Kind) -> tuple[tuple[float, re.Pattern[str]], ...]:
    known = _patterns().get(kind)
    return known.cues if known else ()


def _name_score(text: _Text, kind: Kind) -> float:
    known = _patterns().get(kind)
    if known is None or known.named is None or known.in_title is None:
        return 0.0
    if text.title and known.in_title.fullmatch(text.title):
        return _TITLE
    return _NAME if any(known.named.fullmatch(line) for line in text.top[:15]) else 0.0


def _form_score(text: _Text, kind: Kind) -> float:
    """Score how well the structure of a text fits a kind of document.

    For example, a form has blanks to fill in, and a chat has speakers.
    """
    raw = text.source.markdown[:8000]
    if kind is Kind.FORM:
        questions = sum(row.rstrip(" _").endswith("?") or "? " in row for row in raw.splitlines())
        return min(len(_BLANK.findall(raw)), 8) * 0.45 + 1.5 * (questions >= 5 and text.source.word_count < 1500)  # noqa: PLR2004
    if kind is Kind.CHAT:
        return _chat_score(raw)
    if kind is Kind.CODE:
        return _code_score(text.source)
    if kind is Kind.BOOK and text.source.word_count >= _BOOK_WORDS:
        return 4.0
    if kind is Kind.SLIDES:
        return 4.0 if _are_slides(text.source) else 0.0
    return 0.0


def _chat_score(raw: str) -> float:
    """Score how likely a text is to be a chat. Its lines have a time and a name, or there are several speakers."""
    rows = [row.strip() for row in raw.splitlines() if row.strip()]
    stamps = sum(bool(_STAMP.match(row)) for row in rows)
    speakers: dict[str, int] = {}
    for row in rows:
        if match := _SPEAKER.match(plain(row)):
            speakers[match["who"]] = speakers.get(match["who"], 0) + 1
    turns = sum(count for count in speakers.values() if count > 1)
    several = sum(count > 1 for count in speakers.values()) >= 2  # noqa: PLR2004
    share = max(stamps, turns if several else 0) / max(len(rows), 1)
    return 5.0 if share > 0.4 and len(rows) >= 4 else 2.0 if share > 0.25 and several else 0.0  # noqa: PLR2004


def _code_score(source: FactSource) -> float:
    if source.source_type not in {"text", "other", "paste"}:
        return 0.0
    rows = [row for row in source.markdown[:6000].splitlines() if row.strip() and not row.startswith("```")]
    share = sum(bool(_CODE_LINE.fullmatch(row)) for row in rows) / max(len(rows), 1)
    return 6.0 if share > 0.6 and len(rows) >= 5 and _STRONG_CODE.search(source.markdown[:6000]) else 0.0  # noqa: PLR2004


def _are_slides(source: FactSource) -> bool:
    """Whether the pages are slides: wide pages with few words."""
    sheets = source.sheets
    wide = sum(sheet.width > 1.2 * sheet.height for sheet in sheets)
    return len(sheets) >= 3 and wide > 0.9 * len(sheets) and median(len(sheet.words) for sheet in sheets) < 120  # noqa: PLR2004


def _by_shape(text: _Text, scores: Mapping[Kind, float]) -> KindChoice:
    """Choose the kind of a document for which no kind has a clear score.

    Web pages and prose with a title become articles, and pasted texts become notes. For some kinds, a score that is
    almost high enough is accepted.
    """
    source = text.source
    if source.source_type in {"html", "web", "mhtml"}:
        return KindChoice(Kind.ARTICLE, frozenset({"web"}))
    if source.source_type == "image" and source.word_count < 2 * _PICTURE_WORDS:
        return KindChoice(Kind.OTHER, frozenset({"none"}))
    if source.source_type == "paste":
        return KindChoice(Kind.NOTES, frozenset({"pasted"}))
    ranked = sorted(scores, key=lambda one: -scores[one])
    leaning = ranked[0] if ranked and scores[ranked[0]] >= _LEAST - 0.9 else None
    if leaning and leaning in {Kind.REPORT, Kind.PAPER, Kind.MANUAL, Kind.ARTICLE, Kind.FORM, Kind.NOTES}:
        return KindChoice(leaning, frozenset({"leaning"}))
    if text.title and _is_prose(source):
        return KindChoice(Kind.ARTICLE, frozenset({"prose"}))
    return KindChoice(Kind.OTHER, frozenset({"none"}))


_PROSE_WORDS, _LONG_ROW = 150, 100


def _is_prose(source: FactSource) -> bool:
    rows = [row for row in source.markdown[:8000].splitlines() if row.strip()]
    letters = sum(len(row) for row in rows)
    long = sum(len(row) for row in rows if len(row) >= _LONG_ROW and not row.startswith("|"))
    return source.word_count >= _PROSE_WORDS and long > 0.5 * letters
