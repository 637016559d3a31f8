"""What the styles of a document say about its paragraphs. Names are English inside, whatever language Word speaks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from octavo.extract.office.xml import Element, attribute, child, children

_OFF = frozenset({"0", "false", "off", "none"})
_HEADING = re.compile(
    r"(?:heading|überschrift|titre|título|titolo|kop|rubrik|overskrift|заголовок|nagłówek|标题|見出し)\s*([1-9])",
    re.IGNORECASE,
)
_TITLE = re.compile(r"title|book title|titel", re.IGNORECASE)
_CONTENTS = re.compile(r"(?:toc|verzeichnis|tm)\s*([1-9])", re.IGNORECASE)
_BULLET = re.compile(r"list bullet\s*(\d?)", re.IGNORECASE)
_CODE = re.compile(
    r"(?:source|program|html)?\s*-?(?:code|preformatted|preformatted text|listing|verbatim)", re.IGNORECASE
)
_QUOTE = re.compile(r"(?:intense |block )?(?:quote|quotation|quotations|block text)", re.IGNORECASE)
_MONOSPACED = re.compile(r"courier|consolas|mono|menlo|lucida console|fixedsys|cascadia", re.IGNORECASE)
_BODY_LEVEL = 9
_MOST_ANCESTORS = 30


@dataclass(frozen=True, slots=True)
class Look:
    """How a run looks; None where it says nothing."""

    bold: bool | None = None
    italic: bool | None = None
    struck: bool | None = None
    hidden: bool | None = None
    code: bool | None = None


@dataclass(frozen=True, slots=True)
class Style:
    """`level` is that of a heading, 0 for the title. `numbering` are the list and how deep in it."""

    name: str = ""
    based_on: str = ""
    level: int | None = None
    numbering: tuple[str | None, int | None] = (None, None)
    look: Look = field(default_factory=Look)


def is_on(properties: Element | None, name: str) -> bool | None:
    """A switch: there and not turned off."""
    found = child(properties, name)
    return (attribute(found, "w:val") or "on").lower() not in _OFF if found is not None else None


def read_look(properties: Element | None) -> Look:
    if properties is None:
        return Look()
    fonts = child(properties, "w:rFonts")
    font = attribute(fonts, "w:ascii") or attribute(fonts, "w:hAnsi")
    return Look(
        bold=is_on(properties, "w:b"),
        italic=is_on(properties, "w:i"),
        struck=is_on(properties, "w:strike") or is_on(properties, "w:dstrike"),
        hidden=is_on(properties, "w:vanish"),
        code=_MONOSPACED.search(font) is not None if font else None,
    )


def outline_level(properties: Element | None) -> int | None:
    """1 for the highest; 0 would be a title, and body text has none."""
    written = attribute(child(properties, "w:outlineLvl"), "w:val") or ""
    return int(written) + 1 if written.isdecimal() and int(written) < _BODY_LEVEL else None


def numbering_of(properties: Element | None) -> tuple[str | None, int | None]:
    found = child(properties, "w:numPr")
    depth = attribute(child(found, "w:ilvl"), "w:val") or ""
    return attribute(child(found, "w:numId"), "w:val"), int(depth[:2]) if depth.isdecimal() else None


class Styles:
    """Styles by their ids; each is asked together with those that it is based on."""

    def __init__(self, root: Element | None) -> None:
        self._styles = {attribute(one, "w:styleId") or "": _read(one) for one in children(root, "w:style")}

    def level(self, style: str) -> int | None:
        return next((one.level for one in self._line(style) if one.level is not None), None)

    def numbering(self, style: str) -> tuple[str | None, int | None]:
        line = list(self._line(style))
        number = next((one.numbering[0] for one in line if one.numbering[0] is not None), None)
        return number, next((one.numbering[1] for one in line if one.numbering[1] is not None), None)

    def look(self, style: str) -> Look:
        looks = [one.look for one in self._line(style)]
        values = (
            next((value for look in looks if (value := getattr(look, name)) is not None), None) for name in _LOOKS
        )
        return Look(*values)

    def contents_depth(self, style: str) -> int | None:
        """For a line of the table of contents."""
        return next((int(found[1]) - 1 for one in self._line(style) if (found := _CONTENTS.fullmatch(one.name))), None)

    def bullet_depth(self, style: str) -> int | None:
        """For a bullet by its name alone, where the numbering behind it is missing."""
        found = next(filter(None, (_BULLET.fullmatch(one.name) for one in self._line(style))), None)
        return max(0, int(found[1] or 1) - 1) if found else None

    def is_code(self, style: str) -> bool:
        return any(_CODE.fullmatch(one.name) for one in self._line(style))

    def is_quote(self, style: str) -> bool:
        return any(_QUOTE.fullmatch(one.name) for one in self._line(style))

    def _line(self, style: str) -> Iterator[Style]:
        for _ in range(_MOST_ANCESTORS):
            found = self._styles.get(style)
            if found is None:
                return
            yield found
            style = found.based_on


_LOOKS = ("bold", "italic", "struck", "hidden", "code")


def _read(element: Element) -> Style:
    name = attribute(child(element, "w:name"), "w:val") or ""
    properties = child(element, "w:pPr")
    heading = _HEADING.fullmatch(name.strip())
    level = int(heading[1]) if heading else 0 if _TITLE.fullmatch(name.strip()) else outline_level(properties)
    return Style(
        name=name.strip(),
        based_on=attribute(child(element, "w:basedOn"), "w:val") or "",
        level=level,
        numbering=numbering_of(properties),
        look=read_look(child(element, "w:rPr")),
    )
