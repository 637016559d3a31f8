"""Finds fields by patterns in the text in columns, after the mapping's replacements. Characters keep their places."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from difflib import SequenceMatcher

from octavo.convert.mappings.dates import read_date
from octavo.convert.mappings.field_types import read_number
from octavo.convert.mappings.mapping import Field, Group, Mapping, Options
from octavo.convert.rules.layout import PageText
from octavo.convert.values import Notation, Place, enclosing_box

_NOT_A_NUMBER = re.compile(r"[^\d.,'\u2019-]")
CONFIDENCE = 0.95
_MOST_FINDINGS = 200


@dataclass(frozen=True, slots=True)
class Finding:
    value: str
    place: Place | None


def prepare(text: PageText, options: Options) -> PageText:
    """Apply the text changes of the mapping's options."""
    if options.remove_whitespace:
        kept = [index for index, letter in enumerate(text.text) if letter not in " \t"]
        text = replace(
            text, text="".join(text.text[index] for index in kept), origins=tuple(text.origins[index] for index in kept)
        )
    if options.remove_accents:
        text = _by_letter(text, lambda letter: unicodedata.normalize("NFKD", letter)[0])
    if options.lowercase:
        text = _by_letter(text, lambda letter: letter.lower()[0])
    for pattern, new in options.replace:
        text = _replaced(text, pattern, new)
    return text


def _by_letter(text: PageText, change: Callable[[str], str]) -> PageText:
    return replace(text, text="".join(map(change, text.text)))


def _replaced(text: PageText, pattern: re.Pattern[str], new: str) -> PageText:
    """Replace matches of a pattern. Unchanged characters keep their place on the page; new characters have none."""
    parts: list[str] = []
    origins: list[int] = []
    end = 0
    for match in pattern.finditer(text.text):
        made = match.expand(new)
        parts += text.text[end : match.start()], made
        origins += text.origins[end : match.start()]
        own = [-1] * len(made)
        for before, after, size in SequenceMatcher(None, match[0], made, autojunk=False).get_matching_blocks():
            own[after : after + size] = text.origins[match.start() + before : match.start() + before + size]
        origins += own
        end = match.end()
    parts.append(text.text[end:])
    return replace(text, text="".join(parts), origins=(*origins, *text.origins[end:]))


def fits(mapping: Mapping, text: PageText) -> bool:
    """Whether the mapping is meant for this document.

    The text must contain all keywords and none of the excluded ones, before it is changed by the mapping's options.
    """
    return all(word.search(text.text) for word in mapping.keywords) and not any(
        word.search(text.text) for word in mapping.exclude_keywords
    )


def find_by_patterns(text: PageText, field: Field, notation: Notation) -> Finding | None:
    """Find a value with the first pattern that matches, or with all patterns if their matches are joined."""
    findings: list[Finding] = []
    for pattern in field.patterns:
        findings += _findings(text, pattern, field, notation)
        if findings and field.group is not Group.JOIN:
            break
    return _one(findings, field.group) if findings else None


def _findings(text: PageText, pattern: re.Pattern[str], field: Field, notation: Notation) -> Iterator[Finding]:
    for number, match in enumerate(pattern.finditer(text.text)):
        if number >= _MOST_FINDINGS:
            return
        group = next((index for index in range(1, (pattern.groups or 0) + 1) if match[index]), 0)
        value = as_type(match[group] or "", field.type, notation)
        if value:
            yield Finding(value, text.place(*match.span(group)))


def as_type(text: str, kind: str, notation: Notation) -> str | None:
    """Convert matched text to the canonical form of its type."""
    text = " ".join(text.split())
    match kind:
        case "amount" | "number":
            plain = _NOT_A_NUMBER.sub("", text)
            value = read_number(plain.lstrip("-"), notation.decimal)
            return f"-{value}" if value and plain.startswith("-") else value
        case "date":
            return read_date(text, notation)
        case _:
            return text


def _one(findings: Sequence[Finding], group: Group) -> Finding:
    by_value = {Group.MIN: min, Group.MAX: max}
    match group:
        case Group.JOIN:
            return Finding(" ".join(one.value for one in findings), _places(findings))
        case Group.SUM:
            return Finding(str(sum(Decimal(one.value) for one in findings)), _places(findings))
        case Group.MIN | Group.MAX:
            return by_value[group](findings, key=lambda one: Decimal(one.value))
        case Group.LAST:
            return findings[-1]
        case Group.FIRST:
            return findings[0]


def _places(findings: Sequence[Finding]) -> Place | None:
    places = [one.place for one in findings if one.place]
    if not places:
        return None
    own = [place for place in places if place.page == places[0].page]
    return Place(own[0].page, enclosing_box(place.box for place in own), "\n".join(place.quote for place in own))
