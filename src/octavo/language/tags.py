"""Chooses the tags of a document: a few phrases that a person would also choose.

A tag names a subject, so a phrase must be repeated or be in a heading. Words that occur in all kinds of documents, such
as months, parts of a page, labels on invoices, and verbs in instructions, are not used as tags. Tags that the account
already uses come first, because a tag is useful only if several documents have it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from octavo.language.findings import MONTH_NUMBERS
from octavo.language.insights import MAX_TAGS, DocumentType
from octavo.language.phrases import ParsedChunk, Stems, find_phrases, heading_stems
from octavo.language.vocabulary import rarity

_LONGEST = 40
_MOST = 4
_REPEATED, _OFTEN, _VERY_OFTEN = 2, 3, 4
_SEVERAL_CHUNKS, _MANY_CHUNKS = 3, 8
_LEAST_SHARE, _MAIN_SHARE = 0.25, 0.75  # as a share of the best phrase's weight
_TOO_COMMON, _COMMON = 0.86, 0.94  # rarity of a single word in the title, and of one that is not in it
_COMMON_PHRASE = 0.7  # mean rarity of the words of a phrase that is not in a heading
_MODIFIES = 0.5  # share of occurrences before another word
_VERB = 0.34  # occurrences as a verb, per occurrence that may be a noun
_FRAGMENT = 0.5  # share of occurrences after a number or a hyphen, or before the same word
_SHORT, _LONG = 3, 7  # letters of an abbreviation; of a word that names a subject in languages other than English
_BROKEN = 0.06  # share of single letters in a text whose words were broken apart
_LETTER = re.compile(r"(?<![\w'\u2019])[b-hj-z](?![\w'\u2019.])")
_PLACEHOLDER = re.compile(r"\blorem ipsum\b|\bquick brown fox\b|\bhuardest gefburn\b", re.IGNORECASE)
_ANY_WORD = re.compile(r"[^\W\d_]+")
# Documents that consist of labels and figures. Their facts show what they are about.
_WITHOUT_TOPICS = frozenset(
    {
        DocumentType.INVOICE,
        DocumentType.RECEIPT,
        DocumentType.BANK_STATEMENT,
        DocumentType.PAYSLIP,
        DocumentType.CODE,
    }
)
_NOT_TAGS = """
figure figures fig table tables page pages section sections chapter chapters appendix note notes footnote footnotes
paragraph title subtitle heading header footer column columns row rows list item items element elements example
examples sample samples test tests type types kind kinds form forms file files document documents attachment
attachments byte bytes image images picture pictures photo link links text texts word words line lines part parts
number numbers value values option options attribute attributes default string float integer void str self import
class function method methods return returns parameter parameters object objects name names address street phone
telephone fax mail email e-mail website web url http https www com org net html pdf txt doc docx xml json csv png jpg
date dates day days week weeks month months year years time times hour hours minute minutes second seconds today
monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat sun pm am min max incl excl etc
montag dienstag mittwoch donnerstag freitag samstag sonntag lundi mardi mercredi jeudi vendredi samedi dimanche amount
amounts total totals subtotal price prices quantity qty tax vat sum invoice invoices customer customers order iban bic
kto blz ust mwst btw tva iva inc ltd llc gmbh corp kvk hrb tel telefon kontakt impressum seite seiten datum nummer
betrag menge rechnung beträge leistungen kunde kunden vorsitz vorstand factuur facture prijs artikel aantal add remove
update delete save open close click select press enter choose fill check use user users run start stop make made take
give get set put see show shown find found look keep help need want work works worked working correct yeah yes okay
thanks thank please hello dear regards sincerely deliver delivered shipment description details detail information
data result results case cases way ways thing things people person group groups member members sets question questions
answer answers issue issues point points problem problems area areas level levels orders place places state states
fact facts reason reasons change changes end beginning side sides view views moment moments travers series story
stories author authors editor publisher publication edition editions copyright rights reserved license licence ebook
ebooks gutenberg contents introduction abstract summary conclusion references bibliography index glossary
acknowledgements preface version versions revision draft unknown untitled sheet hidden col bar chart charts graph
legend source sources overview background purpose scope general other others various several speaker participant
participants respondent respondents percent percentage average mean median annual quarter rss login register search
menu home cookie cookies privacy policy terms contact newsletter subscribe share comments replies reply wrote sent
received forwarded subject attached enclosed field fields tool tools response responses scale cost costs surface
report reports patch merge employee employees euro euros dollar dollars varchar downstream relax format formats access
veranstaltungen übersicht beiträge termine archiv startseite aktuelles éditions mot mots dit fois jour jours chose
choses hombre vez casa años cosa parte tipo jahr jahre mal teil zeit leben welt mann frau haus tag weg hand auge gibt
process processes system systems model models approach approaches study studies paper papers article articles book
books equation equations term step steps size sizes length width height color colour font code codes man men woman
women boy girl hands eye eyes face head door room house voice heart mind life world night morning thee thou thy thine
o'er ere doth hath true false slide slides phase phases clause clauses content label labels category categories
application applications topic topics thema themen service services efficient copy variable variables involvement
cycle bit bits rename destination hurry eat interviewer frac phys mathrm left right additional simplified proposal
correo electrónico pro monat medien fokus public domain alice bob farewell enquiry enquiries organize feature features
loop instruction instructions threshold thresholds compound compounds facility facilities recommendation recommendations
objective objectives statistic statistics template templates div span wilt shalt doi arxiv preprint rev reference active
inactive lorem ipsum dolor amet elit documentation variation variations sidebar readme img pypi sponsor
sponsors past notice
"""
_STOP = frozenset(_NOT_TAGS.split()) | frozenset(MONTH_NUMBERS)
# Words that begin or end a clause, but not the name of a subject.
_VERBAL = re.compile(
    r"(?:allow|provid|includ|follow|requir|mak|tak|giv|us|ensur|improv|maintain|eliminat|perform|protect)(?:e|es|s|ed|ing)?"
)
# Words that need another word to name a subject, such as "solar cell".
_NOT_ALONE = frozenset(
    ["cell", "comment", "prose", "bold", "italic", "fixture", "caption", "quote", "schedule", "cohort"]
)
_CAMEL_CASE = re.compile(r"\w*[a-z][A-Z]\w*[a-z][A-Z]\w*")  # a name in a program, such as yourInputBuffer
# Adjectives that say nothing about a subject, as in "main objective".
_VAGUE_WORDS = """
main standard different important following current new good great big small large specific certain possible basic
common key overall simple many few first last next previous same similar whole entire own major minor available
"""
_VAGUE = frozenset(_VAGUE_WORDS.split())
_ADJECTIVE = re.compile(r"\w+(?:able|ible|ous|ful|less|ional|ical|ual)")
_ADJECTIVE_ALONE = re.compile(r"\w{4,}ic")  # such as "supersonic"; a few nouns are lost
_NOUNS = frozenset(["vegetable", "ritual", "individual", "professional", "chemical", "musical"])


@dataclass(frozen=True, slots=True)
class TagSource:
    """The input for choosing tags: the document's phrases with their weights and spellings, and its parsed chunks."""

    weights: Mapping[Stems, float]
    forms: Mapping[Stems, str]
    chunks: Sequence[ParsedChunk]
    language: str | None
    kind: DocumentType = DocumentType.OTHER
    title: str = ""
    known: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class _Found:
    """Statistics for choosing tags.

    `counts` maps each phrase to its number of occurrences, and `chunks_with` to the number of chunks that contain it.
    `title` and `headings` contain the stems of the words in the title and the headings. `best` is the highest weight of
    any phrase.
    """

    counts: Mapping[Stems, int]
    chunks_with: Mapping[Stems, int]
    title: set[str]
    headings: set[str]
    best: float


def choose_tags(source: TagSource) -> list[str]:
    """Choose a document's tags, most important first.

    If no phrase is suitable, a document of several chunks can get its most important word as a tag. Documents without
    topics, such as invoices, get only their type as a tag. Garbled texts and program code get no tags.
    """
    if source.kind in _WITHOUT_TOPICS or _is_broken(source.chunks):
        return [source.kind.value.replace("_", " ")] if source.kind in _WITHOUT_TOPICS - {DocumentType.CODE} else []
    counts, chunks_with = _count(source.chunks)
    known = list(_known(source, counts))
    best = max(source.weights.values(), default=0.0)
    title = set(heading_stems(source.title, source.language))
    found = _Found(counts, chunks_with, title, _headings(source), best)
    subjects = [
        phrase
        for phrase in sorted(source.weights, key=lambda phrase: (-source.weights[phrase], phrase))
        if source.weights[phrase] >= _LEAST_SHARE * best
        and _is_subject(source.forms[phrase], phrase, source.language)
        and not _is_modifier(phrase, found, source.language)
        and not _is_fragment(source.forms[phrase], source.chunks)
        and not _has_verb(phrase, source)
    ]
    good = [phrase for phrase in subjects if _is_salient(phrase, found, source)]
    if not good and not known and len(source.chunks) >= _SEVERAL_CHUNKS:
        good = [phrase for phrase in subjects if _is_main_word(phrase, found, source)][:1]
    chosen: list[Stems] = []
    for phrase in good:
        if not any(_repeats(phrase, other) for other in chosen):
            chosen.append(phrase)
    names = [*known, *(source.forms[phrase].lower() for phrase in chosen)]
    return list(dict.fromkeys(names))[: min(_MOST, MAX_TAGS)]


def _is_broken(chunks: Sequence[ParsedChunk]) -> bool:
    """Whether the text is a placeholder, or has so many single letters that its words were probably broken apart."""
    text = " ".join(chunk.text for chunk in chunks[:20])
    words = len(_ANY_WORD.findall(text))
    return bool(_PLACEHOLDER.search(text)) or (words > 0 and len(_LETTER.findall(text)) > _BROKEN * words)


def _count(chunks: Sequence[ParsedChunk]) -> tuple[Counter[Stems], Counter[Stems]]:
    counts: Counter[Stems] = Counter()
    chunks_with: Counter[Stems] = Counter()
    for chunk in chunks:
        for phrase, seen in chunk.phrases.seen.items():
            counts[phrase] += seen.count
            chunks_with[phrase] += 1
    return counts, chunks_with


def _headings(source: TagSource) -> set[str]:
    """Return the stems of the words in the title and in the headings."""
    texts = dict.fromkeys((source.title, *(text for chunk in source.chunks for text in chunk.chunk.headings)))
    return set(heading_stems(". ".join(texts), source.language))


def _known(source: TagSource, counts: Mapping[Stems, int]) -> Iterator[str]:
    """Yield tags that the account already uses and that occur often in the text, most frequent first."""
    found: list[tuple[int, str]] = []
    for tag in source.known:
        phrases = find_phrases([tag], source.language) if source.language else None
        longest = max(phrases.seen, key=len, default=()) if phrases else ()
        if longest and counts.get(longest, 0) >= _OFTEN:
            found.append((counts[longest], tag))
    yield from (tag for _, tag in sorted(found, key=lambda one: (-one[0], one[1])))


def _is_subject(form: str, phrase: Stems, language: str | None) -> bool:
    """Whether the words of a phrase can name the subject of a document."""
    words = form.lower().split()
    if len(form) > _LONGEST or any(len(word) < 3 or _VERBAL.fullmatch(word) for word in words):  # noqa: PLR2004
        return False
    if any(map(_CAMEL_CASE.fullmatch, form.split())) or _says_nothing(words, phrase):
        return False
    if language != "en" and any(word in _STOP for word in words):
        return False
    if language == "en" and (words[-1].endswith("ed") or words[0].endswith("ed")):
        return False
    if len(words) > 1:
        return True
    return len(form) >= _LONG if language != "en" else not words[0].endswith("ing")


def _says_nothing(words: Sequence[str], phrase: Stems) -> bool:
    """Whether a phrase is too vague for a tag.

    A phrase of several words is too vague if it ends with a stop word, begins with a vague word, or repeats a word. A
    single word is too vague if it is a stop word or an adjective, or needs another word to name a subject.
    """
    if words[-1] in _STOP or phrase[-1] in _STOP or all(word in _STOP for word in words):
        return True
    if len(words) > 1:
        return words[0] in _VAGUE or len({*phrase}) < len(phrase)
    return phrase[0] in _NOT_ALONE or _ADJECTIVE_ALONE.fullmatch(phrase[0]) is not None


def _is_salient(phrase: Stems, found: _Found, source: TagSource) -> bool:
    """Whether a phrase is prominent enough to be a subject of the document.

    In a long document, the phrase must occur in at least two chunks. A phrase of several words must also meet one of
    these conditions:

    - All its words are in the title.
    - All its words are in headings, it occurs at least twice, and it does not begin with a stop word.
    - It occurs at least four times, is not too common, and does not begin with a stop word.

    A single word must also meet one of these conditions:

    - It is in the title, occurs at least twice, and is either rare or the only word of the title.
    - It is an English word that is frequent and important in the document, very rare elsewhere, and not an
      abbreviation.

    Words in languages other than English count as rare.
    """
    count = found.counts.get(phrase, 0)
    if len(source.chunks) >= _MANY_CHUNKS and found.chunks_with.get(phrase, 0) < _REPEATED:
        return False
    in_title = all(stem in found.title for stem in phrase)
    rare = sum(map(rarity, phrase)) / len(phrase) if source.language == "en" else 1.0
    if len(phrase) > 1:
        in_heading = all(stem in found.headings for stem in phrase)
        if not in_title and phrase[0] in _STOP:
            return False
        return in_title or (count >= _REPEATED if in_heading else count >= _VERY_OFTEN and rare >= _COMMON_PHRASE)
    if in_title and count >= _REPEATED and (rare >= _TOO_COMMON or len(found.title) == 1):
        return True
    is_main = count >= _VERY_OFTEN and source.weights[phrase] >= _MAIN_SHARE * found.best
    return source.language == "en" and is_main and rare >= _COMMON and all(len(stem) > _SHORT for stem in phrase)


def _is_main_word(phrase: Stems, found: _Found, source: TagSource) -> bool:
    """Whether a single English word is rare in general, but frequent and important in this document."""
    is_main = found.counts.get(phrase, 0) >= _VERY_OFTEN and source.weights[phrase] >= _MAIN_SHARE * found.best
    is_rare = len(phrase) == 1 and rarity(phrase[0]) >= _TOO_COMMON and len(phrase[0]) > _SHORT
    return source.language == "en" and is_main and is_rare


def _is_modifier(phrase: Stems, found: _Found, language: str | None) -> bool:
    """Whether a phrase only describes another word.

    Either its last word is an adjective, or it is a single word that is usually followed by another word.
    """
    last = phrase[-1]
    if language != "en" or last in _NOUNS:
        return False
    if _ADJECTIVE.fullmatch(last):
        return True
    before = sum(count for other, count in found.counts.items() if len(other) == 2 and other[0] == last)  # noqa: PLR2004
    return len(phrase) == 1 and before > _MODIFIES * found.counts.get(phrase, 0)


def _is_fragment(form: str, chunks: Sequence[ParsedChunk]) -> bool:
    """Whether a phrase is only a part of a longer one.

    Examples are "level paging" in "5-level paging", and "free stream mach" in "free stream mach number".
    """
    before, after = r"(\w[-\u2010\u2011\u2013]|\d\s)?\b", r"(?:['\u2019]s?|\b)(?:[ \n]([^\W\d_]{4,}))?"
    pattern = re.compile(f"{before}{re.escape(form)}{after}", re.IGNORECASE)
    found = [match for chunk in chunks for match in pattern.finditer(chunk.text)]
    following = Counter(match[2].lower() for match in found if match[2])
    repeated = max(following.values(), default=0) if len(found) >= _REPEATED and " " in form else 0
    return max(sum(bool(match[1]) for match in found), repeated) > _FRAGMENT * len(found)


def _has_verb(phrase: Stems, source: TagSource) -> bool:
    """Whether the text uses the first or last word of an English phrase as a verb.

    For example, "attached" in the text shows that "attach" is a verb.
    """
    if source.language != "en":
        return False
    least = {phrase[0]: 1.0, phrase[-1]: _VERB}
    return any(_verb_share(word, source.chunks) >= share for word, share in least.items())


def _verb_share(word: str, chunks: Sequence[ParsedChunk]) -> float:
    """Return how often a word ends in "ed" or "ing", divided by how often it occurs without such an ending."""
    base = re.escape(word.removesuffix("e"))
    forms = re.compile(rf"\b{base}(?:(e?s?)|(ed|ing))\b", re.IGNORECASE)
    endings = [bool(match[2]) for chunk in chunks for match in forms.finditer(chunk.text)]
    return sum(endings) / max(len(endings) - sum(endings), 1)


def _repeats(phrase: Stems, other: Stems) -> bool:
    """Whether two phrases are too similar to be separate tags, because they share most words of the shorter phrase."""
    own, known = {*phrase}, {*other}
    return 2 * len(own & known) > min(len(own), len(known))
