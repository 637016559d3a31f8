"""Finds fields by matching patterns against the page text.

The text is first normalised according to the mapping's options. Unchanged characters keep their positions on the page.
"""

from __future__ import annotations

import re
import signal
import threading
import unicodedata
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from decimal import Decimal
from difflib import SequenceMatcher

from octavo.convert.errors import SlowPattern
from octavo.convert.mappings.mapping import Field, Group, Mapping, Options, UserPattern
from octavo.facts.dates import read_date
from octavo.facts.layout import PageText
from octavo.facts.typed_values import read_number
from octavo.facts.words import Notation, Place, enclosing_box

_NOT_A_NUMBER = re.compile(r"[^\d.,'\u2019-]")
CONFIDENCE = 0.95
_MOST_FINDINGS = 200
_MOST_GROWTH = 4  # times the length of the text, for all replacements together
_MOST_REPLACEMENT = 10_000  # the most characters of one match whose places are kept
# Limits the processor time for one step with a user's patterns. Unlike elapsed time, it does not depend on the load.
STEP_SECONDS = 1.0
_KILL_SECONDS = 2.0
_kills: ContextVar[bool] = ContextVar("kills", default=False)


@contextmanager
def kill_stuck_patterns() -> Generator[None]:
    """Kill this process if a pattern ignores its time limit. Use this only in a sandbox process.

    Python can interrupt a pattern only at certain points. On a long text, it can take minutes to reach the next one.
    """
    token = _kills.set(True)
    try:
        yield
    finally:
        _kills.reset(token)


@contextmanager
def limit_time(where: str) -> Generator[None]:
    """Raise `SlowPattern` with the name of the field if a pattern takes more than a second of CPU time."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread can handle signals
        yield
        return

    def stop(*_: object) -> None:
        raise SlowPattern(f"{where}: more than {STEP_SECONDS:g} second of processor time on this document.")

    before = signal.signal(signal.SIGVTALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, STEP_SECONDS)
        signal.setitimer(signal.ITIMER_PROF, _KILL_SECONDS if _kills.get() else 0)  # SIGPROF ends the process
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@dataclass(frozen=True, slots=True)
class Finding:
    value: str
    place: Place | None


def prepare(text: PageText, options: Options) -> PageText:
    """Normalise white space, accents and case, and make replacements, according to the mapping's options."""
    if options.remove_whitespace:
        kept = [index for index, letter in enumerate(text.text) if letter not in " \t"]
        text = replace(
            text, text="".join(text.text[index] for index in kept), origins=tuple(text.origins[index] for index in kept)
        )
    if options.remove_accents:
        text = _by_letter(text, lambda letter: unicodedata.normalize("NFKD", letter)[0])
    if options.lowercase:
        text = _by_letter(text, lambda letter: letter.lower()[0])
    most = _MOST_GROWTH * len(text.text) + _MOST_REPLACEMENT
    for pattern, new in options.replace:
        with limit_time("options.replace"):
            text = _replaced(text, pattern.compiled, new, most)
    return text


def _by_letter(text: PageText, change: Callable[[str], str]) -> PageText:
    return replace(text, text="".join(map(change, text.text)))


def _replaced(text: PageText, pattern: re.Pattern[str], new: str, most: int) -> PageText:
    """Replace matches of a pattern. Unchanged characters keep their position on the page. New characters have none.

    Raises `SlowPattern` if the text becomes longer than `most` characters.
    """
    parts: list[str] = []
    origins: list[int] = []
    end = 0
    for match in pattern.finditer(text.text):
        made = match.expand(new)
        parts += text.text[end : match.start()], made
        origins += text.origins[end : match.start()]
        if len(origins) + len(made) > most:
            raise SlowPattern("options.replace: the text of this document becomes too long.")
        own = [-1] * len(made)
        for before, after, size in _unchanged(match[0], made):
            own[after : after + size] = text.origins[match.start() + before : match.start() + before + size]
        origins += own
        end = match.end()
    parts.append(text.text[end:])
    return replace(text, text="".join(parts), origins=(*origins, *text.origins[end:]))


def _unchanged(old: str, new: str) -> Sequence[tuple[int, int, int]]:
    """Return the text ranges that a replacement left unchanged.

    The result is empty if the texts are too long to compare.
    """
    if max(len(old), len(new)) > _MOST_REPLACEMENT:
        return ()
    return SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()


def fits(mapping: Mapping, text: PageText) -> bool:
    """Whether the original text contains all keywords of the mapping and none of its excluded keywords."""
    with limit_time("keywords"):
        return all(word.compiled.search(text.text) for word in mapping.keywords) and not any(
            word.compiled.search(text.text) for word in mapping.exclude_keywords
        )


def find_by_patterns(text: PageText, field: Field, notation: Notation) -> Finding | None:
    """Find a value with the first pattern that matches. If `group` is `JOIN`, join the matches of all patterns."""
    findings: list[Finding] = []
    for pattern in field.patterns:
        with limit_time(f"{field.name}: {pattern.text[:60]!r}"):
            findings += _findings(text, pattern, field, notation)
        if findings and field.group is not Group.JOIN:
            break
    return _one(findings, field.group) if findings else None


def _findings(text: PageText, pattern: UserPattern, field: Field, notation: Notation) -> Iterator[Finding]:
    compiled = pattern.compiled
    for number, match in enumerate(compiled.finditer(text.text)):
        if number >= _MOST_FINDINGS:
            return
        group = next((index for index in range(1, (compiled.groups or 0) + 1) if match[index]), 0)
        value = as_type(match[group] or "", field.type, notation)
        if value:
            yield Finding(value, text.place(*match.span(group)))


def as_type(text: str, kind: str, notation: Notation) -> str | None:
    """Convert matched text to the standard form of the field's type, such as 2024-08-15 for a date.

    Returns None if that is impossible.
    """
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
