"""One chapter to Markdown, with marks where the table of contents points to, and headings as deep as it says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from octavo.extract.epub.contents import Entry
from octavo.extract.office.html import body_of, read_page, to_markdown
from octavo.extract.office.xml import Element, attribute

# A number between two characters that Unicode keeps free for such uses.
MARK = re.compile("\ufdd0(\\d{1,7})\ufdd1")
_LONE_MARKS = re.compile("^((?:[ \t>]*\ufdd0\\d{1,7}\ufdd1)+)[ \t]*\n+", re.MULTILINE)
_HEADING = re.compile(r"h[1-6]")
_HOLDS_TEXT = re.compile(r"h[1-6]|p|li|td|th|dt|dd|a|span|em|strong|i|b|blockquote|figcaption|cite|small|sup|sub|code")
_LINES = frozenset({"p", "li", "td"})
_DEEPEST = 6
_NOT_A_WORD = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Target:
    """A place that somebody points to. `entry` is what the table of contents says there, if that points to it."""

    number: int
    fragment: str
    entry: Entry | None = None


def convert_chapter(data: bytes, targets: Sequence[Target]) -> str:
    """The Markdown, with the number of each target where it is."""
    body = body_of(read_page(data))
    places = _places(body, {target.fragment for target in targets})
    starts = {target: places.get(target.fragment, body) for target in targets}
    _set_levels(body, {starts[target]: target.entry for target in targets if target.entry})
    _remove_lists(body)
    marks: dict[Element, list[str]] = {}
    for target, element in starts.items():
        marks.setdefault(element, []).append(f"\ufdd0{target.number}\ufdd1")
    for element, numbers in marks.items():
        _mark(element, "".join(numbers))
    return _LONE_MARKS.sub(r"\1", to_markdown(body))


def _places(body: Element, fragments: set[str]) -> dict[str, Element]:
    found: dict[str, Element] = {}
    for element in body.iter():
        for name in (element.get("id"), element.get("name")):
            if name and name in fragments:
                found.setdefault(name, element)
    return found


def _remove_lists(body: Element) -> None:
    """Of pages and of landmarks, which only programs read."""
    for element in list(body.iter("nav")):
        parent = element.getparent()
        if attribute(element, "epub:type") in {"page-list", "landmarks"} and parent is not None:
            parent.remove(element)


def _set_levels(body: Element, entries: Mapping[Element, Entry]) -> None:
    """Headings that the table of contents names get its level, and those between them keep their distance."""
    named = dict(_named_headings(body, entries))
    own, given = 0, 0
    for element in list(body.iter()):
        is_heading = _HEADING.fullmatch(element.tag) is not None
        level = int(element.tag[1]) if is_heading else own or 1
        if element in named:
            own, given = level, named[element].level
            element.tag = f"h{min(given, _DEEPEST)}"
        elif own and is_heading:
            element.tag = f"h{min(max(given + level - own, given + 1), _DEEPEST)}"


def _named_headings(body: Element, entries: Mapping[Element, Entry]) -> Iterator[tuple[Element, Entry]]:
    """The heading at or behind each place; a paragraph that says the same as the table of contents is one too."""
    waiting: Entry | None = None
    for element in body.iter():
        waiting = entries.get(element, waiting)
        if waiting is None:
            continue
        text = _words("".join(element.itertext())) if element.tag in _LINES else ""
        if _HEADING.fullmatch(element.tag) or (text and text == _words(waiting.title)):
            yield element, waiting
            waiting = None
        elif text:
            waiting = None


def _words(text: str) -> str:
    return _NOT_A_WORD.sub("", text).casefold()


def _mark(element: Element, mark: str) -> None:
    """Where text may stand: not in a list or a table itself, but in what comes first in it."""
    inner = next((one for one in element.iter() if _HOLDS_TEXT.fullmatch(one.tag)), None)
    if inner is None and len(element):
        inner = element
    if inner is not None:
        inner.text = mark + (inner.text or "")
        return
    parent = element.getparent()
    if parent is None or element.tag in {"div", "section", "body", "p"}:
        element.text = mark + (element.text or "")
        return
    before = element.getprevious()
    if before is not None:
        before.tail = (before.tail or "") + mark
    else:
        parent.text = (parent.text or "") + mark
