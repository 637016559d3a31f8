"""Answers prompts that request a list of all names, dates, amounts of money or obligations, with quotes as evidence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from octavo.language import duties, names
from octavo.language.duties import find_deadlines, find_duties
from octavo.language.findings import Finding, Statement, merge_repeated, read_statements
from octavo.language.insights import ChunkText
from octavo.language.languages import detect_document_language
from octavo.language.names import find_names, join_names

AMOUNTS = "Amounts"


class Subject(StrEnum):
    """The subject of a list that a prompt requests, such as names or dates.

    The enum value completes the message “The offline rules found no …”.
    """

    NAMES = "people or organisations"
    DATES = "dates or deadlines"
    MONEY = "amounts of money"
    DUTIES = "obligations or risks"


GROUPS: dict[Subject, tuple[str, ...]] = {
    Subject.NAMES: (names.PEOPLE, names.ORGANISATIONS),
    Subject.DATES: (duties.DATES, duties.PERIODS),
    Subject.MONEY: (AMOUNTS,),
    Subject.DUTIES: (duties.DUTIES, duties.PROHIBITIONS, duties.PENALTIES, duties.RISKS),
}
# Only questions for a complete list match. Other questions are answered with sentences about their subject.
_ASKS = (
    r"^\W*(?:which|what|list|name|find|extract|give|show|welche|nenne|liste|finde|zeige)(?: me)?"
    r"(?: all| any| every| the| alle)*"
)
_TOPICS: dict[Subject, str] = {
    Subject.NAMES: r"people|persons?|names?|organi[sz]ations?|companies|parties|personen|organisationen|firmen"
    r"|unternehmen",
    Subject.DATES: r"dates?|deadlines?|periods?|time limits?|termine?|fristen|daten|zeiträume",
    Subject.MONEY: r"amounts?(?: of money)?|sums?(?: of money)?|prices?|payments?|beträge|geldbeträge|summen|preise"
    r"|zahlungen",
    Subject.DUTIES: r"obligations?|duties|risks?|penalties|pflichten|verpflichtungen|risiken|vertragsstrafen",
}
_PATTERNS = {
    subject: re.compile(
        rf"{_ASKS} (?:{words})(?:(?:,| and| or| und| oder)+ [\w -]{{3,40}})?(?: (?:are|is|sind|werden)\b|\s*[.?:]|$)",
        re.IGNORECASE,
    )
    for subject, words in _TOPICS.items()
}
_NUMBER = (
    r"\d{1,3}(?:[.,'\u2019 \u00a0\u202f]\d{3})+(?:[.,](?:\d{1,2}|[-\u2013]{1,2}))?(?!\d)"
    r"|\d+(?:[.,](?:\d{1,4}|[-\u2013]{1,2}))?"
)
_SCALE = (
    r"(?:[ \u00a0]?(?:thousand|million|billion|trillion|mill?\.?|mio\.?|mrd\.?|bn|tsd\.?|tausend|millionen|milliarden"
    r"|milliarde)\b\.?|[kKmMbB]\b)?"
)
_SIGN = r"(?:US|A|C|CA|AU|NZ|HK|S)?\$|[€£¥₹₽₩₺₪]|R\$|Fr\.|Rs\.?"
_CODE = r"EUR|USD|GBP|CHF|JPY|CNY|RMB|SEK|NOK|DKK|PLN|CZK|HUF|AUD|CAD|NZD|INR|BRL|ZAR|TRY|RUB|SGD|HKD|MXN|ILS"
_WORD = (
    r"euros?|(?:(?:us|canadian|australian) )?dollars?|pounds?(?: sterling)?|swiss francs?|schweizer franken|francs?"
    r"|franken|yen|yuan|rupees?|rubles?|roubles?|zloty|crowns?|kronen|cents?|deutsche mark|dm|d-mark"
)
_AMOUNT = re.compile(
    rf"(?<![\w.,])(?:(?P<before>(?:{_SIGN})|\b(?:{_CODE})\b)[ \u00a0\u202f]?(?P<a>{_NUMBER}){_SCALE}"
    rf"|(?P<b>{_NUMBER}){_SCALE}[ \u00a0\u202f]?(?P<after>(?:{_SIGN})(?![\w$])|(?:{_CODE})\b|(?i:{_WORD})\b))"
)
_WHO_HAS_TO = re.compile(r"^\W*(?:who (?:has to|must|shall) do what|wer muss was)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Extraction:
    """The findings that answer a prompt, by group, such as "People", and in text order.

    Findings with the same value are in one list. `supported` is true if there are rules for the language of the text.
    """

    groups: list[tuple[str, list[list[Finding]]]]
    supported: bool

    @property
    def is_empty(self) -> bool:
        return not self.groups


def find_subject(question: str) -> Subject | None:
    """Return the subject of the list that a question requests, or None if the question does not request a list."""
    if _WHO_HAS_TO.search(question):
        return Subject.DUTIES
    return next((subject for subject, pattern in _PATTERNS.items() if pattern.search(question)), None)


def extract(subject: Subject, chunks: Sequence[ChunkText]) -> Extraction:
    """Find everything of one type, such as all dates, in the chunks.

    In each finding, `statement.chunk` is the index of the chunk.
    """
    language = detect_document_language([chunk.content for chunk in chunks])
    statements = read_statements(chunks)
    match subject:
        case Subject.NAMES:
            found = join_names([one for statement in statements for one in find_names(statement)])
        case Subject.DATES:
            found = [one for statement in statements for one in find_deadlines(statement, language)]
        case Subject.MONEY:
            found = [one for statement in statements for one in find_money(statement)]
        case Subject.DUTIES:
            found = [one for statement in statements for one in find_duties(statement, language)]
    merged = merge_repeated(found)
    groups = [(group, [one for one in merged if one[0].group == group]) for group in GROUPS[subject]]
    supported = subject is Subject.MONEY or language is None or duties.has_rules(language)
    return Extraction([(group, listed) for group, listed in groups if listed], supported)


def find_money(statement: Statement) -> Iterator[Finding]:
    for match in _AMOUNT.finditer(statement.text):
        yield Finding(AMOUNTS, " ".join(match.group().split()), statement, match.start(), match.end())
