"""Finds the names of people and organisations by titles, roles, first names and legal forms.

A name is reported only with such evidence. Capital letters alone are not evidence, especially in German.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from octavo.language.findings import Finding, Statement
from octavo.language.vocabulary import STOPWORDS, load_once

PEOPLE, ORGANISATIONS = "People", "Organisations"
_FIRST_NAMES = Path(__file__).with_name("data") / "first_names.txt"
_UPPER = "A-ZÀ-ÖØ-ÞŁŚŠŽĆČĐ"
_CAPITAL = rf"[{_UPPER}][\w'\u2019]*(?:-[{_UPPER}][\w'\u2019]*)*"
_INITIALS = rf"(?:[{_UPPER}]\.[ -]?){{1,3}}"
_PARTICLE = r"(?:von|van|de|der|den|del|della|di|da|dos|du|la|le|ter|ten|zu|zur|bin|al|el|y)"
_GAP = r"[ \u00a0]+"
_HONORIFIC = (
    r"(?:Mr|Mrs|Ms|Miss|Mx|Dr|Prof|Sir|Dame|Lord|Lady|Judge|Justice|Senator|President|Minister|Herrn?|Frau|Dipl\.-\w+"
    r"|Professor(?:in)?|Doktor|Richter(?:in)?|Notar(?:in)?|Rechtsanw(?:alt|ältin)|Bürgermeister(?:in)?"
    r"|Minister(?:in)?"
    r"|Präsident(?:in)?|Kanzler(?:in)?|Bundeskanzler(?:in)?)\.?"
)
_NAME_WORDS = rf"(?:{_CAPITAL}|{_INITIALS})(?:{_GAP}(?:{_INITIALS}|(?:{_PARTICLE}{_GAP}){{0,2}}{_CAPITAL})){{0,3}}"
_HONOURED = re.compile(
    rf"\b{_HONORIFIC}{_GAP}(?:(?:{_HONORIFIC}|h\. ?c\.|med\.|jur\.|rer\. nat\."
    rf"|-Ing\.){_GAP}){{0,3}}(?P<name>{_NAME_WORDS})"
)
_ROLE = (
    r"(?i:represented by|signed by|written by|prepared by|authored by|edited by|submitted by|approved by"
    r"|reported by|authors?"
    r"|attn\.?|attention|contact(?: person)?|signature|witness(?:ed by)?|chief executive(?: officer)?|ceo|cfo"
    r"|chair(?:man|woman)?"
    r"|managing director|director|secretary|treasurer|vertreten durch|gezeichnet(?: von)?|gez\."
    r"|ansprechpartner(?:in)?"
    r"|geschäftsführer(?:in)?|geschäftsführung|vorstand(?:svorsitzender?)?|aufsichtsratsvorsitzender?|inhaber(?:in)?"
    r"|bearbeiter(?:in)?|verfasser(?:in)?|autor(?:in)?|unterzeichner(?:in)?|vermieter(?:in)?|mieter(?:in)?"
    r"|notar(?:in)?)"
)
_AFTER_ROLE = re.compile(rf"(?<!\w){_ROLE}(?:\s*[:\u2013-])?{_GAP}(?P<name>{_NAME_WORDS})")
_BEFORE_ROLE = re.compile(
    rf"(?P<name>{_CAPITAL}{_GAP}(?:{_INITIALS}{_GAP}?)?(?:(?:{_PARTICLE}{_GAP}){{0,2}}{_CAPITAL})),{_GAP}"
    r"(?i:(?:the |an? |its |our )?(?:ceo|cfo|cto|chief|chair|president|vice|managing director|director|secretary"
    r"|manager"
    r"|professor|minister|senator|judge|geschäftsführer|vorstand|leiter|professor|minister|präsident|sprecher))"
)
_ANY_NAME = re.compile(
    rf"(?<![\w.-])(?P<name>{_CAPITAL}(?:{_GAP}(?:{_INITIALS}|(?:{_PARTICLE}{_GAP}){{0,2}}{_CAPITAL}))+)"
)
_LEGAL = (
    r"(?:GmbH(?:\s?&\s?Co\.?\s?KGa?A?)?|gGmbH|mbH|AG(?:\s?&\s?Co\.?\s?KGa?A?)?|KGaA|KG|OHG|GbR"
    r"|UG(?:\s?\(haftungsbeschränkt\))?|SE"
    r"|eG|e\.\s?V\.|e\.\s?K\.|Ltd\.?|Limited|Inc\.?|Incorporated|Corp\.?|Corporation|LLC|L\.L\.C\.|LLP|L\.P\.|PLC"
    r"|plc|Pty\.? Ltd\.?"
    r"|S\.A\.(?:R\.L\.)?|SARL|SAS|S\.p\.A\.|S\.r\.l\.|B\.V\.|BV|N\.V\.|NV|Oy|Oyj|ApS|A/S|AB)"
)
_ORG_WORD = rf"(?:{_CAPITAL}|[a-z]{{1,2}}[{_UPPER}]\w+|[{_UPPER}\d][{_UPPER}\d&.-]+|\d+[{_UPPER}]\w*)"
_COMPANY = re.compile(
    rf"(?<![\w.-])(?P<name>{_ORG_WORD}(?:(?:{_GAP}(?:&|and|und|of|for){_GAP}|{_GAP}|,{_GAP}(?=(?:Inc|Ltd|LLC"
    rf"|L\.L\.C))){_ORG_WORD})"
    rf"{{0,5}},?{_GAP}{_LEGAL})(?!\w)"
)
_CLUB = re.compile(
    rf"(?<![\w.-])(?P<name>{_CAPITAL}(?:(?:{_GAP}(?:und|für|der|des|zur|von|im|in"
    rf"|\w+er)){{0,3}}{_GAP}{_CAPITAL}){{0,5}}{_GAP}(?:e\.\s?V\.|eG\b))"
)
_INSTITUTION = re.compile(
    rf"\b(?P<name>(?:(?:[{_UPPER}]\w+{_GAP}){{0,2}}(?:University|Ministry|Department|Institute|Court|Bank|Bureau"
    rf"|Council|Academy|College"
    rf"|Chamber|Board|Secretariat|House){_GAP}(?:of|for){_GAP}(?:the{_GAP})?{_CAPITAL}(?:{_GAP}(?:(?:and|of"
    rf"|&){_GAP})?{_CAPITAL}){{0,4}}"
    rf"|{_CAPITAL}(?:{_GAP}(?:and{_GAP}|of{_GAP}|&{_GAP})?{_CAPITAL}){{0,4}}{_GAP}(?:University|Institute"
    rf"|Foundation|Association|Agency"
    rf"|Commission|Ministry|Authority|Hospital|Museum|Bank|Parliament|Laborator(?:y|ies)|Press|Union)(?:{_GAP}(?:of"
    rf"|for){_GAP}(?:the{_GAP})?"
    rf"{_CAPITAL}(?:{_GAP}(?:(?:and|of|&){_GAP})?{_CAPITAL}){{0,4}})?"
    rf"|(?:Bundesministerium|Ministerium|Bundesamt|Landesamt|Institut){_GAP}(?:für|des"
    rf"|der){_GAP}(?:\w+{_GAP}){{0,2}}{_CAPITAL}(?:{_GAP}und{_GAP}{_CAPITAL})?"
    rf"|(?:Universität|Hochschule|Amtsgericht|Landgericht|Oberlandesgericht|Verwaltungsgericht|Finanzamt|Stadtwerke"
    rf"|Landkreis|Sparkasse"
    rf"|Stadtverwaltung|Volksbank|Handelskammer){_GAP}{_CAPITAL}|Bundes(?:gerichtshof|verfassungsgericht|regierung"
    rf"|bank|tag|rat|netzagentur)"
    r"|Deutsche (?:Bahn|Bank|Post|Telekom|Bundesbank)))\b"
)
# Capitalised words that begin or end something other than a name.
_NOT_NAME_WORDS = """
jr sr phd esq
abbildung absatz abschnitt abstract account act agreement air amount anhang anlage annex anschrift appendix april
article artikel attachment auftrag august avenue award bahnhof bank bay bestellung betrag betreff book boulevard box
bridge building buyer canyon castle center centre century chapter church city clause client code company conference
congress contract contractor copyright corporation council county court customer data date datum day december degree
department deutschland dezember dienstag document donnerstag drive east edition email employee employer ende english
european exhibit fax february federal fig figure firma foundation frage frau freitag friday gemeinde general gericht
german germany gesetz government group guide hall health herr herrn hill house institute international invoice island
jahr januar january journal juli july june juni kapitel key king kingdom konto kunde kunden kundennummer lake land
landlord lane law lease left lessee lessor letter library licensee licensor line list london mai march may method
mittwoch mode model monday montag month mountain märz national new news no north note november number nummer object
october office order ort page paper paragraph park part party payment period phone place platz point preis press prize
project public purchaser queen question rechnung rechnungsnummer report republic research results right river road
room rule samstag saturday satz school science section sections seite seller september series service society sonntag
south square stadt state states station strasse straße street summe sunday supplier system tabelle table tag team tel
telefon telephone tenant test theory thursday time title total tower tree tuesday type uhr union united university
upper valley version vertrag volume war wednesday week weg west world year york zeit ziffer zimmer
"""
_NOT_NAMES = frozenset(_NOT_NAME_WORDS.split())
_STREET = re.compile(r"(?i)(?:straße|strasse|str\.|weg|platz|allee|gasse|ufer|damm|ring)$")
_STOPWORDS = STOPWORDS["en"] | STOPWORDS["de"]
# Words at the start of a sentence or clause that are not part of an organisation's name.
_NOT_FIRST_WORDS = "dear sehr copyright signed rechnung invoice client customer firma company"
_NOT_FIRST = _STOPWORDS | frozenset(_NOT_FIRST_WORDS.split())
_MAX_NAME = 3
_INITIAL = re.compile(r"(?:\w\.-?)+")
_PARTICLES = frozenset(_PARTICLE[3:-1].split("|"))


def find_names(statement: Statement) -> Iterator[Finding]:
    """Find people and organisations in text order. A name inside another name is not reported again."""
    found: list[Finding] = []
    for pattern in (_CLUB, _COMPANY, _INSTITUTION):
        _add(found, (_organisation(statement, match) for match in pattern.finditer(statement.text)))
    for pattern in (_HONOURED, _AFTER_ROLE, _BEFORE_ROLE):
        _add(found, (_person(statement, match) for match in pattern.finditer(statement.text)))
    _add(found, _by_first_name(statement))
    yield from sorted(found, key=lambda one: one.start)


def join_names(findings: Sequence[Finding]) -> list[Finding]:
    """Replace short forms of names, such as surnames, with the full names.

    A short form is kept unless exactly one full name in the text matches it.
    """
    whole = {one.value for one in findings if " " in one.value}
    by_last: dict[tuple[str, str], set[str]] = {}
    for one in findings:
        if " " in one.value:
            by_last.setdefault((one.group, one.value.rpartition(" ")[2]), set()).add(one.value)
    return [_longer(one, by_last) if one.value not in whole else one for one in findings]


def _longer(one: Finding, by_last: dict[tuple[str, str], set[str]]) -> Finding:
    names = by_last.get((one.group, one.value), set())
    return Finding(one.group, names.copy().pop(), one.statement, one.start, one.end) if len(names) == 1 else one


def _add(found: list[Finding], more: Iterable[Finding | None]) -> None:
    for one in more:
        if one and not any(one.start < other.end and other.start < one.end for other in found):
            found.append(one)


def _organisation(statement: Statement, match: re.Match[str]) -> Finding | None:
    start, words = match.start("name"), match["name"].split()
    if "of" in words[2:] and _is_first_name(words[0]):  # "Dave Miller of Miller Ltd"
        start += match["name"].index(" of ") + 4
        words = words[words.index("of") + 1 :]
    while words and (words[0].casefold() in _NOT_FIRST or words[0].isdigit()):
        start += len(words[0]) + 1
        words = words[1:]
    if len(words) < 2 and not match["name"].startswith("Bundes"):  # noqa: PLR2004 - a legal form alone names nobody
        return None
    return Finding(ORGANISATIONS, " ".join(words), statement, start, match.end("name")) if words else None


def _person(statement: Statement, match: re.Match[str]) -> Finding | None:
    words = match["name"].split()
    while words and (is_ordinary_word(words[-1]) or words[-1].casefold() in {"der", "von", "van", "de", "the"}):
        words = words[:-1]
    alone = match.re is _HONOURED
    if (
        not words
        or is_ordinary_word(words[0])
        or (len(words) == 1 and not alone)
        or (words[0].isupper() and len(words) == 1)
    ):
        return None
    name = " ".join(words)
    return Finding(PEOPLE, name, statement, match.start("name"), match.start("name") + len(name))


def _by_first_name(statement: Statement) -> Iterator[Finding | None]:
    """Find names that begin with a known first name.

    A sequence of capitalised words may contain several names.
    """
    for match in _ANY_NAME.finditer(statement.text):
        for start, words in _split_run(match["name"]):
            if len(words) > 1 and not words[0].isupper() and not any(map(is_ordinary_word, words[1:])):
                name = " ".join(words)
                place = match.start("name") + start
                yield Finding(PEOPLE, name, statement, place, place + len(name))


def _split_run(run: str) -> Iterator[tuple[int, list[str]]]:
    """Split a sequence of capitalised words into names. A name is a known first name and the words after it.

    If too many words follow, only the next one is kept, because it is unclear where the name ends.
    """
    words = [(match.start(), match.group()) for match in re.finditer(r"\S+", run)]
    known = [_is_first_name(word) for _, word in words]
    place = 0
    while place < len(words):
        if not known[place]:
            place += 1
            continue
        end = place + 1
        while end < len(words) and not (known[end] and end > place + 1):
            end += 1
        name = [word for _, word in words[place:end]]
        if len(name) > _MAX_NAME and name[1].casefold() not in _PARTICLES:
            name = name[:3] if _INITIAL.fullmatch(name[1]) else name[:2]
        yield words[place][0], name
        place = end


def _is_first_name(word: str) -> bool:
    return word.casefold().partition("-")[0] in first_names()


def is_ordinary_word(word: str) -> bool:
    """Whether a capitalised word is an ordinary word and not part of a name."""
    low = word.casefold().strip(".,'\u2019").removesuffix("'s").removesuffix("\u2019s")
    return low in _NOT_NAMES or (low in _STOPWORDS and low not in {"will", "von"}) or bool(_STREET.search(word))


@load_once
def first_names() -> frozenset[str]:
    return frozenset(_FIRST_NAMES.read_text(encoding="utf-8").split())
