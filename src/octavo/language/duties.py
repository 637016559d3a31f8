"""Finds sentences that state duties, prohibitions, penalties and risks, in English and German."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from octavo.language.findings import Finding, Statement
from octavo.language.markdown_segments import SegmentKind

DUTIES, PROHIBITIONS, PENALTIES, RISKS = "Duties", "Prohibitions", "Penalties and liability", "Risks"
_MIN_WORDS = 4
# German states duties as "ist zu zahlen", but also says "ist zu sehen". These verbs name something that one has to do.
_VERBS = (
    "zahlen|bezahlen|leisten|entrichten|erbringen|übergeben|melden|prüfen|erstatten|unterrichten|informieren"
    "|ersetzen|behandeln"
    "|unterlassen|beseitigen|liefern|tragen|sorgen|gewähren|dulden|erfüllen|räumen|reinigen|pflegen|halten"
    "|übernehmen|gewährleisten"
    "|versichern|erteilen|stellen|verwenden|überweisen|vergüten|beachten|löschen|sichern|verwahren"
)
# The first matching group wins. Groups are in the order in which they are checked, not in which they are listed.
_PATTERNS: dict[str, dict[str, re.Pattern[str]]] = {
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
# An inference, a phrase that only introduces a statement, or a modal verb that states no duty.
_NO_DUTY = re.compile(
    r"\bmust(?:n['\u2019]t)? (?:not )?have (?:been|had)\b|\bit must be (?:noted|said|remembered|admitted)\b"
    r"|\bshall (?:we|i)\b"
    r"|\b(?:had|has|have) to do with\b|\bmay not (?:be (?:able|aware|obvious|clear|enough|the)|have|always|yet)\b"
    r"|\bcannot be (?:overstated|emphasi[sz]ed|excluded|known)\b|\bdue (?:to|in part)\b",
    re.IGNORECASE,
)


def has_rules(language: str | None) -> bool:
    return language in _PATTERNS


def find_duties(statement: Statement, language: str | None) -> Iterator[Finding]:
    """At most one finding for each sentence: the group is what it mainly states."""
    text = statement.text
    if statement.kind is SegmentKind.HEADING or len(text.split()) < _MIN_WORDS or text.rstrip().endswith("?"):
        return
    plain = _NO_DUTY.sub(lambda match: " " * len(match.group()), text)
    for group, pattern in _PATTERNS.get(language or "", {}).items():
        if match := pattern.search(plain):
            found = Finding(group, "", statement, match.start(), match.end())
            yield replace(found, value=found.quote)
            return
