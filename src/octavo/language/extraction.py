"""Answers prompts that request a list of all names, dates, amounts of money or obligations, with quotes as evidence.

Lists of obligations include prohibitions, penalties and risks. Lists of dates include periods and deadlines. The rules
cover English and German.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from octavo.language import names
from octavo.language.findings import Finding, Statement, find_spans, merge_repeated, read_statements
from octavo.language.insights import ChunkText
from octavo.language.languages import detect_document_language
from octavo.language.markdown_segments import SegmentKind
from octavo.language.names import find_names, join_names

DUTIES, PROHIBITIONS, PENALTIES, RISKS = "Duties", "Prohibitions", "Penalties and liability", "Risks"
_MIN_WORDS = 4
# German states duties as "ist zu zahlen", but "ist zu sehen" is not a duty. These verbs describe obligations.
_VERBS = (
    "zahlen|bezahlen|leisten|entrichten|erbringen|übergeben|melden|prüfen|erstatten|unterrichten|informieren"
    "|ersetzen|behandeln"
    "|unterlassen|beseitigen|liefern|tragen|sorgen|gewähren|dulden|erfüllen|räumen|reinigen|pflegen|halten"
    "|übernehmen|gewährleisten"
    "|versichern|erteilen|stellen|verwenden|überweisen|vergüten|beachten|löschen|sichern|verwahren"
)
# The first matching group wins. Groups are in the order in which they are checked, not in which they are shown.
_DUTY_PATTERNS: dict[str, dict[str, re.Pattern[str]]] = {
    language: {group: re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for group, words in groups.items()}
    for language, groups in {
        "en": {
            PENALTIES: r"penalt(?:y|ies)|liquidated damages|late (?:fees?|charges?)|fined?|is liable|are liable"
            r"|be liable"
            r"|liability for|indemnif(?:y|ies|ied)|forfeits?|in default|breach of",
            PROHIBITIONS: r"(?:must|shall|may|can) not|mustn['\u2019]t|cannot be|is prohibited|are prohibited"
            r"|prohibited from"
            r"|is forbidden|are forbidden|is not (?:permitted|allowed) to|are not (?:permitted|allowed) to"
            r"|no (?:person|party|employee|tenant|member) (?:may|shall)",
            DUTIES: r"must|shall|(?:is|are|was|were|be) (?:required|obliged|obligated) to|(?:has|have|had) to"
            r"|undertakes? to"
            r"|agrees? to|covenants? to|(?:is|are|be) responsible for|(?:has|have) a duty to|(?:is|are) due|payable"
            r"|owed"
            r"|owes?|needs? to be",
            RISKS: r"risks?|hazards?|hazardous|danger(?:ous)?|exposure to (?:loss|claims?)",
        },
        "de": {
            PENALTIES: r"Vertragsstrafen?|Bußgeld(?:er)?|Geldbußen?|Mahngebühr(?:en)?|Verzugszins(?:en)?"
            r"|Schadens?ersatz"
            r"|haftet|haften|Haftung|im Verzug",
            PROHIBITIONS: r"(?:darf|dürfen)(?: \w+){0,5} (?:nicht|keine?n?|weder)|(?:ist"
            r"|sind)(?: \w+){0,3} (?:nicht gestattet|untersagt"
            r"|verboten|unzulässig)|nicht zulässig",
            DUTIES: rf"muss|müssen|verpflichtet|verpflichten sich|Verpflichtung(?:en)?|(?:hat|haben|ist"
            rf"|sind) [^.;]{{1,80}} zu (?:{_VERBS})"
            r"|(?:hat|haben) [^.;]{1,80} (?:an|auf|ab|vor|bei|ein|mit|aus|nach|nieder|zurück|sicher|fern|frei"
            r"|offen)zu\w+en"
            r"|schuldet|schulden|obliegt|obliegen|zu zahlen|fällig|zuständig für"
            r"|verantwortlich für|Pflicht(?:en)?",
            RISKS: r"Risik(?:o|en)|Gefahr(?:en)?|gefährlich\w*",
        },
    }.items()
}
# Not a duty: an inference, a phrase that only introduces a statement, or a modal verb without an obligation.
_NO_DUTY = re.compile(
    r"\bmust(?:n['\u2019]t)? (?:not )?have (?:been|had)\b|\bit must be (?:noted|said|remembered|admitted)\b"
    r"|\bshall (?:we|i)\b"
    r"|\b(?:had|has|have) to do with\b|\bmay not (?:be (?:able|aware|obvious|clear|enough|the)|have|always|yet)\b"
    r"|\bcannot be (?:overstated|emphasi[sz]ed|excluded|known)\b|\bdue (?:to|in part)\b",
    re.IGNORECASE,
)


def has_rules(language: str | None) -> bool:
    return language in _DUTY_PATTERNS


def find_duties(statement: Statement, language: str | None) -> Iterator[Finding]:
    """Find a duty, prohibition, penalty or risk in a sentence.

    Yields at most one finding. If several patterns match, the first in the order of `_DUTY_PATTERNS` is used.
    """
    text = statement.text
    if statement.kind is SegmentKind.HEADING or len(text.split()) < _MIN_WORDS or text.rstrip().endswith("?"):
        return
    plain = _NO_DUTY.sub(lambda match: " " * len(match.group()), text)
    for group, pattern in _DUTY_PATTERNS.get(language or "", {}).items():
        if match := pattern.search(plain):
            found = Finding(group, "", statement, match.start(), match.end())
            yield replace(found, value=found.quote)
            return


DATES, PERIODS = "Dates", "Periods and deadlines"
_COUNT = (
    r"(?:\d{1,4}(?:[.,]\d)?|one|two|three|four|five|six|seven|eight|nine|ten|twelve|fourteen|thirty|sixty|ninety"
    r"|einer?|einem|einen|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|zwölf|vierzehn|dreißig|sechzig|neunzig)"
)
_LONG = (
    r"(?:(?:business|working|calendar|banking) )?(?:days?|weeks?|months?|years?|quarters?)"
    r"|(?:arbeits|werk|bank|kalender)?tage?n?|wochen?|monate?n?s?|jahre?n?s?|quartale?n?s?"
)
_SHORT = rf"(?:{_LONG}|hours?|minutes?|stunden?|minuten?)"
_LIMIT = (
    r"within|no later than|not later than|at the latest|at least|every|after|for|up to|innerhalb(?: von)?|binnen"
    r"|spätestens|mindestens|alle|nach|für|bis zu|seit|vor"
)
# Expressions without a count, such as "each month", "the first Monday of every quarter" or "zum Quartalsende".
_REPEATED = (
    r"\b(?:(?:the )?(?:first|last|second|third|\d{1,2}(?:st|nd|rd|th)) (?:(?:business|working|calendar) )?"
    r"(?:day|week|monday|tuesday|wednesday|thursday|friday) of (?:each|every|the) (?:calendar )?(?:month|quarter"
    r"|year|week)"
    r"|(?:each|every) (?:calendar )?(?:day|week|month|quarter|year)"
    r"|(?:zum|am) (?:ersten|zweiten|dritten|fünften|letzten|\d{1,2}\.) (?:(?:werk|arbeits|bank)?tag )?(?:eines"
    r"|jedes|des) (?:jeden )?"
    r"(?:kalender)?(?:monats|quartals|jahres)"
    r"|(?:zum|am) (?:monats|quartals|jahres)ende|jeden (?:tag|monat)|jedes (?:jahr|quartal)|jede woche)\b"
)
_PERIOD = re.compile(
    rf"{_REPEATED}|\b(?:{_LIMIT})\s+(?:(?:the|a|an|den|die|der)\s+)?{_COUNT}(?:\s*\([^()]{{1,20}}\))?[\s-]{_SHORT}\b"
    rf"|(?<![\w.,])(?:{_COUNT})(?:\s*\([^()]{{1,20}}\))?[\s-](?:{_LONG})\b"
    r"|\b(?:Q[1-4]|FY|fiscal year|Geschäftsjahr|(?:first|second|third|fourth) quarter(?: of)?)[ /-]?(?:19|20)\d\d\b",
    re.IGNORECASE,
)
_MONTHS = (
    r"January|February|March|April|May|June|July|August|September|October|November|December"
    r"|Januar|Jänner|Februar|März|Mai|Juni|Juli|Oktober|Dezember"
)
_YEAR = re.compile(
    r"\b(?:in|since|from|until|by|during|before|after|of|seit|ab|bis|im jahre?|vor|nach|anno)\s(?P<year>1[6-9]\d\d"
    r"|20\d\d)\b"
    r"(?![-/.,]?\d|\s?(?:%|[A-Z]{3}\b|€|\$|euros?|dollars?|pages?|seiten?|words?|people))",
    re.IGNORECASE,
)
# A day without a year. Abbreviations such as "mar" usually mean something else.
_DAY = re.compile(
    rf"(?<![\d.])\d{{1,2}}(?:st|nd|rd|th|\.)?(?: of)? (?:{_MONTHS})\b|\b(?:{_MONTHS}) \d{{1,2}}(?:st|nd|rd"
    rf"|th)?(?![\d.,:]*\d|\s?%)"
)
_AGE = re.compile(r"[\s-]+(?:old|alt|of age)\b", re.IGNORECASE)


def find_deadlines(statement: Statement, language: str | None) -> Iterator[Finding]:
    text = statement.text
    dates = [(start, end) for _, start, end in find_spans(text, language)]
    others = [match.span() for match in _DAY.finditer(text)] + [match.span("year") for match in _YEAR.finditer(text)]
    taken = dates + [one for one in others if not any(_overlap(one, other) for other in dates)]
    periods = [
        match.span()
        for match in _PERIOD.finditer(text)
        if not _AGE.match(text, match.end()) and not any(_overlap(match.span(), other) for other in taken)
    ]
    found = [(span, DATES) for span in taken] + [(span, PERIODS) for span in periods]
    for (start, end), group in sorted(found):
        yield Finding(group, " ".join(text[start:end].split()), statement, start, end)


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


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
    Subject.DATES: (DATES, PERIODS),
    Subject.MONEY: (AMOUNTS,),
    Subject.DUTIES: (DUTIES, PROHIBITIONS, PENALTIES, RISKS),
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
    """The findings that answer a prompt, grouped under headings such as "People", and in text order.

    Findings with the same value are in one list. `supported` is true if there are rules for the language of the text.
    """

    groups: list[tuple[str, list[list[Finding]]]]
    supported: bool

    @property
    def is_empty(self) -> bool:
        return not self.groups


def find_subject(question: str) -> Subject | None:
    """Return the subject of the list that a question requests. Returns None if the question does not request a list."""
    if _WHO_HAS_TO.search(question):
        return Subject.DUTIES
    return next((subject for subject, pattern in _PATTERNS.items() if pattern.search(question)), None)


def extract(subject: Subject, chunks: Sequence[ChunkText]) -> Extraction:
    """Find all values of one type, such as all dates, in the chunks.

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
    supported = subject is Subject.MONEY or language is None or has_rules(language)
    return Extraction([(group, listed) for group, listed in groups if listed], supported)


def find_money(statement: Statement) -> Iterator[Finding]:
    for match in _AMOUNT.finditer(statement.text):
        yield Finding(AMOUNTS, " ".join(match.group().split()), statement, match.start(), match.end())
