"""Selects the sentences of a chunk that can be compared with other documents to find contradictions.

Only English texts are supported.

It skips headings, table rows, questions, captions, references, entries of a table of contents, code, URLs, email
addresses, boilerplate, and sentences that only make sense in context ("It was built in 1987", "This paper ...",
"today").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from octavo.connect.english_words import (
    NUMBER_WORDS,
    Quantity,
    as_root,
    is_content_word,
    read_quantities,
    word_set,
)
from octavo.language.markdown_segments import SegmentKind, blank_markup, split_segments, split_sentences
from octavo.language.vocabulary import STOPWORDS

WORD = re.compile(r"[$€£]?\d+(?:[.,:]\d+)*|[^\W\d_]+(?:['\u2019-][^\W\d_]+)*|%|°[cC]")
# References to a bibliography: [23], [1, 2-4], (Smith et al., 2001), and superscript numbers.
_CITATION = re.compile(
    r"\s*\[\d{1,3}(?:\s*[,;\u2013-]\s*\d{1,3})*\]|\s*\([^()]*\b(?:1[89]|20)\d\d[a-z]?\)|[\u00b9\u00b2\u00b3\u2070-\u2079]+"
)
# The number of chunks whose sentences each process keeps, because a chunk is compared with many new documents.
REMEMBERED_CHUNKS = 1000
_LEAST_WORDS, _MOST_WORDS, _MOST_CHARACTERS = 4, 45, 320
_LEAST_STOPWORDS, _MOST_NUMBERS, _MOST_CAPITALS = 0.15, 0.3, 0.5
_ENDING = re.compile(r"[.!][\"'\u201d\u2019)]*$")
_OPENING = re.compile(r"[\"'\u201c\u2018(]*[A-Z0-9$€£]")
_NUMBER = re.compile(r"[$€£]?\d")
# Labels of parts of a document, as at the beginning of a caption.
_CAPTION = re.compile(
    r"(?:fig(?:ure|\.)?|tab(?:le|\.)?|chart|exhibit|plate|photo|map|box|listing|algorithm|equation|eq\.|appendix|annex"
    r"|section|chapter|part|page|note|source|theorem|lemma|definition|example|exercise|step|slide|question|q|a)s?"
    r"\s*[\dIVX]+[\d.]*\b|(?:note|source|key|legend|abstract|keywords?|summary)\s*:",
    re.IGNORECASE,
)
_NO_STATEMENT = re.compile(
    r"https?://|www\.|@|\bdoi\b|\barxiv\b|\bISBN\b|\bISSN\b|\bpp?\.\s*\d|\bvol\.\s*\d|\bet al\b|\bin proceedings\b"
    r"|\bproceedings of\b|\beds?\.|©|\bcopyright\b|\ball rights reserved\b|\blicen[cs]ed under\b|\bcookies?\b"
    r"|\bterms of use\b|\bprivacy policy\b|\bclick\b|\bsubscribe\b|\bforwarded message\b|\bwrote:"
    r"|\.{4,}|[{}<>=|\\]|\bsee (?:also|below|above)\b|::|//",
    re.IGNORECASE,
)
_CODE_NAME = re.compile(r"\b[a-z]+[A-Z]\w*|\w\(|_\w")
_LABEL = re.compile(r"[A-Z][\w' -]{0,30}:\s")
_INITIALS = re.compile(r"(?:^|[ ,])[A-Z]\.(?:\s?[A-Z]\.)*,? [A-Z][a-z]|[A-Z][a-z]+, [A-Z]\.")
# A sentence that begins with one of these takes its subject from the sentence before it.
_POINTS_BACK = word_set(
    """
    he she it they this that these those his her its their such here both neither one another others some former latter
    him them so thus hence then therefore consequently otherwise instead similarly likewise conversely again nor
    """
)
# In different documents, these words refer to different people or different days.
_SPEAKER = word_set(
    "i we you me us my our your mine ours yours myself ourselves i'm we're i've we've i'd we'd i'll we'll"
)
_DEICTIC = re.compile(
    r"\b(?:this|these|those|today|yesterday|tomorrow|tonight|overnight|ago|so far|to date|nowadays|"
    r"(?:last|next|past|previous|coming) (?:morning|afternoon|evening|night|week|weekend|"
    r"month|year|quarter|season|summer|winter|spring|autumn|monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
    r"|(?:present|current|following|preceding|above|below) (?:paper|study|report|section|chapter|table|figure|"
    r"article|document|book|volume|work|thesis|appendix|example|exercise|experiment|investigation|note|analysis|"
    r"edition|release|version|case|problem|method|algorithm|paragraph|page))\b",
    re.IGNORECASE,
)
# Sentences in which a paper reports on itself: each paper has its own measurements, equations and results.
_STUDY = re.compile(
    r"(?:\w+[ -]){0,3}(?:measurements?|results?|calculations?|experiments?|tests|surveys|equations?|analys[ie]s|theory|"
    r"study|studies|investigations?|methods?|solutions?|comparisons?|examples?|authors?|paper|findings|hypothes[ie]s)\b"
    r"|.*\b(?:is|are|was|were) (?:presented|discussed|derived|concluded|neglected|computed|calculated|investigated)\b",
    re.IGNORECASE,
)
_SUPPOSED = re.compile(r"(?:suppose|assume|let|consider|imagine|for example|for instance|note that)\b", re.IGNORECASE)
_STOPWORDS = STOPWORDS["en"]
_DATE_WORDS = word_set(
    """
    january february march april may june july august september october november december
    monday tuesday wednesday thursday friday saturday sunday
    mondays tuesdays wednesdays thursdays fridays saturdays sundays
    """
)
_YEAR = re.compile(r"1\d\d\d|20\d\d")
_BEFORE_VALUE = word_set("is was are were by named called")
_ROMAN = re.compile(r"[IVX]{1,5}")
_LABELS = word_set(
    """
    section chapter table figure part article clause paragraph page step group phase stage type class level grade model
    version volume issue number no item line route room floor building gate dam tube sample test trial case study
    experiment question exercise example run series lot unit module layer method option scenario zone district region
    """
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of a chunk: `content[start:end]`. `text` is the sentence without markup and references.

    `roots` are the roots of its content words. `values` are the names after "is" or "by". `labels` are names with a
    number, such as ("trec", "2002").
    """

    start: int
    end: int
    text: str
    words: tuple[str, ...]
    roots: frozenset[str]
    names: frozenset[str]
    values: frozenset[str]
    labels: frozenset[tuple[str, str]]
    dates: frozenset[str]
    quantities: tuple[Quantity, ...]

    @property
    def letters(self) -> str:
        return "".join(one for one in self.text.lower() if one.isalnum())


@lru_cache(maxsize=REMEMBERED_CHUNKS)
def read_statements(content: str) -> tuple[Statement, ...]:
    """Read the statements in a chunk, in order. Repetitions of a sentence are left out."""
    found = dict[str, Statement]()
    for statement in _statements(content):
        found.setdefault(statement.letters, statement)
    return tuple(found.values())


def _statements(content: str) -> Iterator[Statement]:
    blank = blank_markup(content)
    for segment in split_segments(content):
        if segment.part not in {SegmentKind.PARAGRAPH, SegmentKind.ITEM}:
            continue
        for start, end in split_sentences(blank, segment.start, segment.end):
            written = content[start:end]
            text = " ".join(blank_markup(_CITATION.sub("", written)).replace("\n>", " ").split())
            if is_statement(text, written):
                yield _read(start, end, text)


def is_statement(text: str, written: str) -> bool:
    """Whether a sentence makes sense without the sentences around it. `written` is the sentence with its markup."""
    words = WORD.findall(text)
    if not _LEAST_WORDS <= len(words) <= _MOST_WORDS or len(text) > _MOST_CHARACTERS:
        return False
    if not _ENDING.search(text) or not _OPENING.match(text) or "`" in written:
        return False
    if _is_reference_or_code(text) or any(one.match(text) for one in (_SUPPOSED, _STUDY)) or _DEICTIC.search(text):
        return False
    low = [word.lower().replace("\u2019", "'") for word in words]
    if low[0] in _POINTS_BACK or not _SPEAKER.isdisjoint(low):
        return False
    return _is_prose(words, low)


def _is_reference_or_code(text: str) -> bool:
    patterns = (_NO_STATEMENT.search, _CODE_NAME.search, _INITIALS.search, _CAPTION.match, _LABEL.match)
    return any(pattern(text) for pattern in patterns)


def _is_prose(words: list[str], low: list[str]) -> bool:
    stopwords = sum(word in _STOPWORDS for word in low)
    numbers = sum(bool(_NUMBER.match(word)) for word in words)
    capitals = sum(word[0].isupper() for word in words[1:])
    return (
        stopwords >= _LEAST_STOPWORDS * len(words)
        and numbers <= _MOST_NUMBERS * len(words)
        and capitals <= _MOST_CAPITALS * len(words)
    )


def _read(start: int, end: int, text: str) -> Statement:
    tokens = WORD.findall(text)
    low = tuple(token.lower().replace("\u2019", "'") for token in tokens)
    quantities = tuple(read_quantities(low))
    measured = {place for one in quantities for place in range(one.place, one.end)}
    words = (word for place, word in enumerate(low) if place not in measured)
    return Statement(
        start, end, text, low,
        roots=frozenset(as_root(word) for word in words if is_content_word(word) and word not in _DATE_WORDS),
        names=frozenset(find_names(tokens)),
        values=frozenset(_values(tokens)), labels=frozenset(_labels(tokens)), dates=frozenset(_dates(tokens)),
        quantities=quantities,
    )  # fmt: skip


def find_names(tokens: list[str]) -> Iterator[str]:
    """Find names: words with a capital letter that are not at the beginning of the sentence."""
    for place, token in enumerate(tokens):
        low = token.lower().replace("\u2019", "'").removesuffix("'s")
        opens = place == 0 and not (len(token) > 1 and token.isupper())
        if token[0].isupper() and not opens and low not in _STOPWORDS and low not in _DATE_WORDS and len(low) > 1:
            yield low


def _values(tokens: list[str]) -> Iterator[str]:
    """Find names directly after "is" or "by", as in "the director is Anna Berg" and "founded by Karl Lind"."""
    is_value = False
    for token in tokens:
        is_value = token.lower() in _BEFORE_VALUE or (is_value and token[0].isupper())
        if is_value and token[0].isupper():
            yield token.lower().replace("\u2019", "'").removesuffix("'s")


def _labels(tokens: list[str]) -> Iterator[tuple[str, str]]:
    """Find names and nouns with a number, such as TREC 2002, Section 4.2 and Phase II."""
    for place, token in enumerate(tokens[1:], start=1):
        before = tokens[place - 1]
        is_number = token[0].isdigit() or _ROMAN.fullmatch(token) or token.lower() in NUMBER_WORDS
        is_name = before[0].isupper() and before.lower() not in _STOPWORDS and before.lower() not in _DATE_WORDS
        if is_number and (is_name or before.lower() in _LABELS):
            yield before.lower(), token.lower()


def _dates(tokens: list[str]) -> Iterator[str]:
    """Find years, weekdays, months, and the numbers next to a month."""
    for place, token in enumerate(tokens):
        low = token.lower().removesuffix("s")
        if _YEAR.fullmatch(token):
            yield token
        elif low in _DATE_WORDS and token[0].isupper():
            beside = [one for one in tokens[max(place - 1, 0) : place + 2] if one.isdecimal()]
            if low != "may" or beside:
                yield from (low, *beside)
