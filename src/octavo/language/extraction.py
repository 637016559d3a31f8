"""Answers prompts that ask for everything of one kind: names, dates, money or duties, with quotes as evidence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from octavo.language import deadlines, duties, names
from octavo.language.deadlines import find_deadlines
from octavo.language.duties import find_duties
from octavo.language.findings import Finding, merge_repeated, read_statements
from octavo.language.insights import ChunkText
from octavo.language.languages import detect_document_language
from octavo.language.money import GROUP as AMOUNTS
from octavo.language.money import find_money
from octavo.language.names import find_names, join_names


class Subject(StrEnum):
    """What a prompt asks for; the value completes “The offline rules recognised no …”."""

    NAMES = "people or organisations"
    DATES = "dates or deadlines"
    MONEY = "amounts of money"
    DUTIES = "obligations or risks"


GROUPS: dict[Subject, tuple[str, ...]] = {
    Subject.NAMES: (names.PEOPLE, names.ORGANISATIONS),
    Subject.DATES: (deadlines.DATES, deadlines.PERIODS),
    Subject.MONEY: (AMOUNTS,),
    Subject.DUTIES: (duties.DUTIES, duties.PROHIBITIONS, duties.PENALTIES, duties.RISKS),
}
# Only questions for a complete list. A question about one thing is answered with the sentences about it.
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
_WHO_HAS_TO = re.compile(r"^\W*(?:who (?:has to|must|shall) do what|wer muss was)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Extraction:
    """The findings of each group in text order, repeated ones together. `supported`: rules exist for this"
    " language."""

    groups: list[tuple[str, list[list[Finding]]]]
    supported: bool

    @property
    def is_empty(self) -> bool:
        return not self.groups


def find_subject(question: str) -> Subject | None:
    """What kind of list a question asks for; None if it asks for something else."""
    if _WHO_HAS_TO.search(question):
        return Subject.DUTIES
    return next((subject for subject, pattern in _PATTERNS.items() if pattern.search(question)), None)


def extract(subject: Subject, chunks: Sequence[ChunkText]) -> Extraction:
    """Everything of one kind in the chunks. `Statement.chunk` is the index of the chunk."""
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
