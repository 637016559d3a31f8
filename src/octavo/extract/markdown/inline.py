"""Converts text runs with formatting, as office programs store them, to inline Markdown."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from octavo.extract.decode import symbols_of
from octavo.extract.markdown.escape import escape_places

# Placeholder for a page break until offsets are known. Unicode reserves this code point for internal use.
PAGE_BREAK = "\ufdd0"
_MOST_LINK = 2000
_POWER = re.compile(r"[-+\u2212]?\d{1,3}")

_SPACES = re.compile("[ \t\r\f\v\x85\xa0\u2028\u2029]+")
_CORE = re.compile(f"([\\s{PAGE_BREAK}]*)(.*?)([\\s{PAGE_BREAK}]*)", re.DOTALL)
_LINK = re.compile(r"(?:https?://|mailto:|ftp://)[^\s\x00-\x1f]+", re.IGNORECASE)
_LINK_ESCAPES = str.maketrans({"(": "%28", ")": "%29", "<": "%3C", ">": "%3E", " ": "%20", "\\": "%5C", "|": "%7C"})


@dataclass(frozen=True, slots=True)
class TextRun:
    """A piece of text with uniform formatting.

    `is_raw` is true if the text is already Markdown, such as a formula or a footnote reference. `raised` is true for
    superscript.
    """

    text: str
    bold: bool = False
    italic: bool = False
    struck: bool = False
    code: bool = False
    link: str = ""
    is_raw: bool = False
    raised: bool = False


def safe_link(target: str | None) -> str:
    """Return the target of a link, escaped for Markdown.

    Returns an empty string if it is too long or is not a web, FTP or mail link.
    """
    target = (target or "").strip()
    return target.translate(_LINK_ESCAPES) if len(target) <= _MOST_LINK and _LINK.fullmatch(target) else ""


def plain(runs: Iterable[TextRun]) -> str:
    return " ".join("".join(run.text for run in runs).replace(PAGE_BREAK, "").split())


def inline(runs: Iterable[TextRun], *, is_plain: bool = False, one_line: bool = False) -> str:
    """Write text runs as Markdown.

    `one_line` turns line breaks into spaces; `is_plain` drops formatting except links.
    """
    if is_plain:
        runs = [run if run.is_raw else TextRun(run.text, link=run.link, raised=run.raised) for run in runs]
    runs = list(_readable(runs))
    is_simple = not any(_is_formatted(run) or PAGE_BREAK in run.text for run in runs)
    lines = _simple_lines(runs) if is_simple else ["".join(_line(line)) for line in _lines(runs)]
    return (" " if one_line else "  \n").join(line for line in lines if line.replace(PAGE_BREAK, "")) or _page_breaks(
        lines
    )


def _readable(runs: Iterable[TextRun]) -> Iterator[TextRun]:
    """Make text runs readable without formatting.

    A superscript after a number gets a caret, so that 10⁵ becomes "10^5" and not "105". Characters of symbol fonts are
    replaced with Unicode characters.
    """
    before = ""
    for run in runs:
        text = run.text if run.is_raw else symbols_of(run.text)
        if run.raised and before.isdigit() and _POWER.fullmatch(text):
            text = f"^{text}"
        before = text[-1:] or before
        yield replace(run, text=text, raised=False) if run.raised or text != run.text else run


def _is_formatted(run: TextRun) -> bool:
    return run.bold or run.italic or run.struck or run.code or run.is_raw or bool(run.link)


def _simple_lines(runs: Iterable[TextRun]) -> list[str]:
    """Write text without any formatting as lines. This is three times as fast as `_lines`."""
    lines = (line.strip(" ") for line in _SPACES.sub(" ", "".join(run.text for run in runs)).split("\n"))
    return [_with_backslashes(line, escape_places(line), 0, len(line)) for line in lines]


def _with_backslashes(text: str, places: Sequence[int], start: int, end: int) -> str:
    """Return `text[start:end]` with a backslash inserted at each of the offsets in `places`."""
    first, last = bisect_left(places, start), bisect_left(places, end)
    return "\\".join(text[left:right] for left, right in pairwise([start, *places[first:last], end]))


def _page_breaks(lines: Iterable[str]) -> str:
    return "".join(lines)


def _lines(runs: Iterable[TextRun]) -> Iterator[list[TextRun]]:
    """Split text runs into lines. Neighbours with equal formatting are merged, and spaces at line ends are removed."""
    line: list[TextRun] = []
    for run in _merged(runs):
        first, *others = run.text.split("\n") if not run.is_raw else [run.text]
        line.append(replace(run, text=first))
        for other in others:
            yield _stripped(line)
            line = [replace(run, text=other)]
    yield _stripped(line)


def _merged(runs: Iterable[TextRun]) -> Iterator[TextRun]:
    for formatting, group in groupby((run for run in runs if run.text), key=lambda run: replace(run, text="")):
        if formatting.is_raw:
            yield from group
        else:
            text = "".join(run.text for run in group)
            yield replace(formatting, text=text if formatting.code else _SPACES.sub(" ", text))


def _stripped(line: list[TextRun]) -> list[TextRun]:
    """Collapse white space between neighbouring text runs to one space, and remove it at both ends of the line."""
    stripped: list[TextRun] = []
    after_space = True
    for run in line:
        text = run.text.lstrip(" ") if after_space and not run.is_raw else run.text
        if not text:
            continue
        after_space = text.replace(PAGE_BREAK, "").endswith(" ") if text.replace(PAGE_BREAK, "") else after_space
        stripped.append(replace(run, text=text))
    while stripped and not stripped[-1].is_raw:
        last = stripped.pop()
        text = last.text.rstrip(" ")
        if text:
            stripped.append(replace(last, text=text))
            break
    return stripped


def _line(line: Sequence[TextRun]) -> Iterator[str]:
    escaped = _escaped(line)
    texts = [run.text for run in line]
    place = 0
    for link, group in groupby(zip(line, escaped, strict=True), key=lambda pair: pair[0].link):
        parts: list[str] = []
        for run, text in group:
            before = texts[place - 1][-1:] if place else ""
            after = texts[place + 1][:1] if place + 1 < len(texts) else ""
            parts.append(_formatted(run, text, before, after))
            place += 1
        yield _linked("".join(parts), link) if link else "".join(parts)


def _escaped(line: Sequence[TextRun]) -> Iterator[str]:
    """Escape the text runs of a line together, because the meaning of a character also depends on the text next
    to it.
    """
    whole = "".join("x" * len(run.text) if run.is_raw or run.code else run.text for run in line)
    marks = len(whole) - len(whole.lstrip(PAGE_BREAK))
    places = [place + marks for place in escape_places(whole[marks:])]
    start = 0
    for run in line:
        end = start + len(run.text)
        if run.is_raw or run.code:
            yield run.text
        else:
            text = _with_backslashes(whole, places, start, end)
            yield _without_brackets(text) if run.link else text
        start = end


def _without_brackets(text: str) -> str:
    return re.sub(r"(?<!\\)[\[\]]", r"\\\g<0>", text)


def _formatted(run: TextRun, text: str, before: str, after: str) -> str:
    if run.is_raw:
        return text
    found = _CORE.fullmatch(text)
    lead, core, trail = found.groups() if found else ("", text, "")
    struck = "~~" * (run.struck and "~" not in core)
    marks = ("**" * run.bold) + ("*" * run.italic) + struck
    if run.code and "`" not in core:
        core = f"`{core}`" if core else core
    elif marks and core and not _would_be_literal(core, before if not lead else " ", after if not trail else " "):
        core = f"{marks}{core}{struck}{'*' * run.italic}{'**' * run.bold}"
    return lead + core + trail


def _would_be_literal(core: str, before: str, after: str) -> bool:
    """Whether Markdown would display the emphasis markers around `core` instead of formatting the text.

    This happens if a marker would be between a letter and punctuation.
    """
    return (_is_punctuation(core[0]) and before.isalnum()) or (_is_punctuation(core[-1]) and after.isalnum())


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


def _linked(text: str, link: str) -> str:
    found = _CORE.fullmatch(text)
    lead, core, trail = found.groups() if found else ("", text, "")
    return f"{lead}[{core}]({link}){trail}" if core else text
