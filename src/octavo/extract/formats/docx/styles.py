"""Reads the styles and list numbering of a Word document.

Word stores the names of built-in styles in English, for documents in any language. It stores numbering rules instead of
numbers. The numbers are computed here, so that a reference such as "see 2.3" still makes sense.
"""

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
_LIST = re.compile(r"list(?: bullet| number)?\s*([2-5])", re.IGNORECASE)
_CODE = re.compile(
    r"(?:source|program|html)?\s*-?(?:code|preformatted|preformatted text|listing|verbatim)", re.IGNORECASE
)
_QUOTE = re.compile(r"(?:intense |block )?(?:quote|quotation|quotations|block text)", re.IGNORECASE)
_MONOSPACED = re.compile(r"courier|consolas|mono|menlo|lucida console|fixedsys|cascadia", re.IGNORECASE)
_BODY_LEVEL = 9
_MOST_ANCESTORS = 30
_FORMATTING_FIELDS = ("bold", "italic", "struck", "hidden", "code", "raised")
_LEVELS = 9
_PLACE = re.compile(r"%([1-9])")
_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"),
          (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))  # fmt: skip
_MOST = 4000
_ALPHABET = 26


@dataclass(frozen=True, slots=True)
class Formatting:
    """The formatting of a piece of text. A property is None if it is not specified."""

    bold: bool | None = None
    italic: bool | None = None
    struck: bool | None = None
    hidden: bool | None = None
    code: bool | None = None
    raised: bool | None = None


@dataclass(frozen=True, slots=True)
class Style:
    """A style of a Word document.

    `level` is the heading level. It is 0 for the title. `numbering` is a list id and the depth in that list.
    """

    name: str = ""
    based_on: str = ""
    level: int | None = None
    numbering: tuple[str | None, int | None] = (None, None)
    formatting: Formatting = field(default_factory=Formatting)


def is_on(properties: Element | None, name: str) -> bool | None:
    """Return whether an on/off property such as bold is on. Returns None if the property is absent."""
    found = child(properties, name)
    return (attribute(found, "w:val") or "on").lower() not in _OFF if found is not None else None


def read_formatting(properties: Element | None) -> Formatting:
    if properties is None:
        return Formatting()
    fonts = child(properties, "w:rFonts")
    font = attribute(fonts, "w:ascii") or attribute(fonts, "w:hAnsi")
    return Formatting(
        bold=is_on(properties, "w:b"),
        italic=is_on(properties, "w:i"),
        struck=is_on(properties, "w:strike") or is_on(properties, "w:dstrike"),
        hidden=is_on(properties, "w:vanish"),
        code=_MONOSPACED.search(font) is not None if font else None,
        raised=aligned == "superscript" if (aligned := attribute(child(properties, "w:vertAlign"), "w:val")) else None,
    )


def outline_level(properties: Element | None) -> int | None:
    """Return the heading level, which is 1 for a main heading. Returns None for body text."""
    written = attribute(child(properties, "w:outlineLvl"), "w:val") or ""
    return int(written) + 1 if written.isdecimal() and int(written) < _BODY_LEVEL else None


def numbering_of(properties: Element | None) -> tuple[str | None, int | None]:
    found = child(properties, "w:numPr")
    depth = attribute(child(found, "w:ilvl"), "w:val") or ""
    return attribute(child(found, "w:numId"), "w:val"), int(depth[:2]) if depth.isdecimal() else None


class Styles:
    """The styles of a document by id. A style inherits from the style that it is based on."""

    def __init__(self, root: Element | None) -> None:
        self._styles = {attribute(one, "w:styleId") or "": _read(one) for one in children(root, "w:style")}

    def level(self, style: str) -> int | None:
        return next((one.level for one in self._ancestry(style) if one.level is not None), None)

    def numbering(self, style: str) -> tuple[str | None, int | None]:
        ancestry = list(self._ancestry(style))
        number = next((one.numbering[0] for one in ancestry if one.numbering[0] is not None), None)
        return number, next((one.numbering[1] for one in ancestry if one.numbering[1] is not None), None)

    def formatting(self, style: str) -> Formatting:
        formattings = [one.formatting for one in self._ancestry(style)]
        values = (
            next((value for formatting in formattings if (value := getattr(formatting, name)) is not None), None)
            for name in _FORMATTING_FIELDS
        )
        return Formatting(*values)

    def contents_depth(self, style: str) -> int | None:
        """Return the depth of a table-of-contents style, such as 1 for "toc 2". Returns None for other styles."""
        return next(
            (int(found[1]) - 1 for one in self._ancestry(style) if (found := _CONTENTS.fullmatch(one.name))), None
        )

    def bullet_depth(self, style: str) -> int | None:
        """Return the list depth of a bullet style, from its name. Returns None for other styles.

        Used for documents that do not define the numbering of the style.
        """
        found = next(filter(None, (_BULLET.fullmatch(one.name) for one in self._ancestry(style))), None)
        return max(0, int(found[1] or 1) - 1) if found else None

    def list_depth(self, style: str) -> int:
        """Return the list depth from the name of a list style, such as "List Number 2".

        The depth is 0 for other styles.
        """
        found = next(filter(None, (_LIST.fullmatch(one.name) for one in self._ancestry(style))), None)
        return int(found[1]) - 1 if found else 0

    def is_code(self, style: str) -> bool:
        return any(_CODE.fullmatch(one.name) for one in self._ancestry(style))

    def is_quote(self, style: str) -> bool:
        return any(_QUOTE.fullmatch(one.name) for one in self._ancestry(style))

    def _ancestry(self, style: str) -> Iterator[Style]:
        for _ in range(_MOST_ANCESTORS):
            found = self._styles.get(style)
            if found is None:
                return
            yield found
            style = found.based_on


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
        formatting=read_formatting(child(element, "w:rPr")),
    )


@dataclass(frozen=True, slots=True)
class Level:
    start: int = 1
    kind: str = "decimal"
    text: str = ""
    style: str = ""


@dataclass(slots=True)
class Counters:
    """The current numbers of a numbered list.

    In Word, several lists can share one definition (an abstract list). Such lists also share these numbers.
    """

    levels: dict[int, Level]
    values: dict[int, int] = field(default_factory=dict[int, int])


class Numbering:
    def __init__(self, root: Element | None) -> None:
        abstract = {attribute(one, "w:abstractNumId") or "": one for one in children(root, "w:abstractNum")}
        by_style = {attribute(child(one, "w:styleLink"), "w:val"): key for key, one in abstract.items()}
        self._counters: dict[str, Counters] = {}
        self._kinds: dict[str, str] = {}
        self._changes: dict[str, dict[int, int]] = {}
        for one in children(root, "w:num"):
            number = attribute(one, "w:numId") or ""
            kind = attribute(child(one, "w:abstractNumId"), "w:val") or ""
            link = attribute(child(abstract.get(kind), "w:numStyleLink"), "w:val")
            kind = by_style.get(link, kind) if link else kind
            self._add_list(number, kind, one, abstract.get(kind))

    @classmethod
    def of_levels(
        cls, lists: dict[str, dict[int, Level]], uses: dict[str, str], starts: dict[str, dict[int, int]]
    ) -> Numbering:
        """Make the list numbering from levels that were already parsed.

        `uses` maps the id of a list to its key in `lists`. `starts` maps the id of a list to the numbers at which its
        levels restart.
        """
        numbering = cls(None)
        numbering._counters = {kind: Counters(levels) for kind, levels in lists.items()}
        numbering._kinds, numbering._changes = uses, starts
        return numbering

    def _add_list(self, number: str, kind: str, element: Element, abstract: Element | None) -> None:
        levels = _read_levels(abstract)
        overrides: dict[int, Level] = {}
        for change in children(element, "w:lvlOverride"):
            place = _number(attribute(change, "w:ilvl"))
            start = attribute(child(change, "w:startOverride"), "w:val")
            if start is not None:
                self._changes.setdefault(number, {})[place] = _number(start, 1)
            if (level := child(change, "w:lvl")) is not None:
                overrides[place] = _read_level(level)
        # A list that overrides levels is counted separately.
        self._kinds[number] = key = f"{kind}/{number}" if overrides else kind
        if key not in self._counters:
            self._counters[key] = Counters(levels | overrides)

    def depth_of_style(self, number: str, style: str) -> int | None:
        """Return the depth of the list level that is linked to this style. Returns None if there is no such level."""
        counters = self._counters.get(self._kinds.get(number, ""))
        levels = counters.levels if counters else {}
        return next((depth for depth, level in levels.items() if level.style and level.style == style), None)

    def next_label(self, number: str, depth: int) -> str | None:
        """Advance the counter of a list to its next item, and return the item's label, such as "2.".

        Returns "" for a bullet, and None if the list is unknown.
        """
        counters = self._counters.get(self._kinds.get(number, ""))
        if counters is None or number == "0":
            return None
        level = counters.levels.get(depth, Level(kind="bullet"))
        start = self._changes.get(number, {}).pop(depth, None)
        values = counters.values
        values[depth] = start if start is not None else values.get(depth, level.start - 1) + 1
        for deeper in [place for place in values if place > depth]:
            del values[deeper]
        if level.kind == "bullet":
            return ""
        return _PLACE.sub(lambda found: _format_level(counters, int(found[1]) - 1, level.kind), level.text).strip()


def _format_level(counters: Counters, depth: int, kind: str) -> str:
    level = counters.levels.get(depth, Level())
    value = counters.values.setdefault(depth, level.start)
    return format_number(value, level.kind if kind != "bullet" else "decimal")


def format_number(value: int, kind: str) -> str:
    if not 0 < value < _MOST:
        return str(value)
    if kind.endswith("Letter"):
        text = chr(ord("a") + (value - 1) % _ALPHABET) * ((value - 1) // _ALPHABET + 1)
    elif kind.endswith("Roman"):
        text = _roman(value)
    elif kind == "none":
        return ""
    else:
        return f"{value:02}" if kind == "decimalZero" else str(value)
    return text.upper() if kind.startswith("upper") else text


def _roman(value: int) -> str:
    text = ""
    for worth, sign in _ROMAN:
        text += sign * (value // worth)
        value %= worth
    return text


def _read_levels(abstract: Element | None) -> dict[int, Level]:
    return {_number(attribute(one, "w:ilvl")): _read_level(one) for one in children(abstract, "w:lvl")}


def _read_level(element: Element) -> Level:
    return Level(
        start=_number(attribute(child(element, "w:start"), "w:val"), 1),
        kind=attribute(child(element, "w:numFmt"), "w:val") or "decimal",
        text=(attribute(child(element, "w:lvlText"), "w:val") or "")[:100],
        style=attribute(child(element, "w:pStyle"), "w:val") or "",
    )


def _number(written: str | None, default: int = 0) -> int:
    return int(written) if written and written.isdecimal() and len(written) < _LEVELS else default
