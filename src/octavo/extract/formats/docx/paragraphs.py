"""Reads the text of a paragraph with its formatting, links, fields, formulas and notes.

Tracked insertions are kept, and tracked deletions are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from octavo.extract.decode import symbols_of
from octavo.extract.formats.docx.styles import Formatting, Styles, read_formatting
from octavo.extract.markdown.inline import PAGE_BREAK, TextRun, safe_link
from octavo.extract.office.assemble import Figures
from octavo.extract.office.formulas import from_office, to_markup
from octavo.extract.office.ooxml import Relation
from octavo.extract.office.xml import Element, attribute, child, children, descendants, local_name, name_of

_SKIPPED = frozenset({"w:del", "w:moveFrom", "w:rPr", "w:pPr", "w:sdtPr", "w:delText", "w:instrText", "w:rt"})
_CHARACTERS = {"w:tab": "\t", "w:ptab": "\t", "w:br": "\n", "w:cr": "\n", "w:noBreakHyphen": "\u2011"}
_SYMBOL_FONTS = re.compile(r"symbol|dings", re.IGNORECASE)
_FIELD_LINK = re.compile(r'\s*HYPERLINK\s+"([^"]{1,2000})"')
_MOST_FIELDS = 50
_SPACER = 40_000  # in 914,400ths of an inch; about four pixels
_MOST_DIGITS = 12
_MOST_BEFORE_NAME = 20


@dataclass(slots=True)
class Field:
    """A Word field, such as a page number or link. It has an instruction and, after a separator, a result."""

    instruction: str = ""
    shows_result: bool = False
    link: str = ""


@dataclass(slots=True)
class Notes:
    """Numbers footnotes and endnotes in the order of their references."""

    order: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])

    def number(self, kind: str, note: str) -> int:
        return self.order.setdefault((kind, note), len(self.order) + 1)


@dataclass(slots=True)
class ParagraphReader:
    """Reads paragraphs in order, because a field can span several paragraphs."""

    styles: Styles
    relations: dict[str, Relation]
    notes: Notes = field(default_factory=Notes)
    figures: Figures = field(default_factory=Figures)
    marks_pages: bool = False
    boxes: list[Element] = field(default_factory=list[Element])
    charts: list[str] = field(default_factory=list[str])
    comments: list[str] = field(default_factory=list[str])
    _fields: list[Field] = field(default_factory=list[Field])

    def read(self, element: Element, link: str = "") -> Iterator[TextRun]:
        """Yield the text of an element, in pieces with uniform formatting.

        Text boxes, charts and comments are not included. They are added to `boxes`, `charts` (names of package parts)
        and `comments` (ids).
        """
        for one in element:
            name = name_of(one)
            if name == "w:r":
                yield from self._run(one, link)
            elif name == "w:hyperlink":
                yield from self.read(one, self._target(one) or link)
            elif name in {"m:oMath", "m:oMathPara"}:
                yield from self._formulas(one)
            elif name == "mc:AlternateContent":
                yield from self._alternative(one, link)
            elif name not in _SKIPPED:
                yield from self.read(one, link)

    def _target(self, element: Element) -> str:
        relation = self.relations.get(attribute(element, "r:id") or "")
        return safe_link(relation.target) if relation and relation.external else ""

    def _formulas(self, element: Element) -> Iterator[TextRun]:
        if name_of(element) == "m:oMath":
            text = to_markup(from_office(element))
            if text:
                yield TextRun(text, is_raw=True)
            return
        formulas = (to_markup(from_office(one), is_block=True) for one in children(element, "m:oMath"))
        text = " ".join(filter(None, formulas))
        if text:
            yield TextRun(text, is_raw=True)

    def _alternative(self, element: Element, link: str) -> Iterator[TextRun]:
        """Read the first alternative that has content. The alternatives are copies for newer and older programs."""
        for one in element:
            boxes = len(self.boxes)
            runs = list(self._drawing(one, link))
            if runs or len(self.boxes) > boxes:
                yield from runs
                return

    def _run(self, element: Element, link: str) -> Iterator[TextRun]:
        properties = child(element, "w:rPr")
        formatting = self._formatting(properties)
        if formatting.hidden:
            return
        for one in element:
            name = name_of(one)
            if name == "w:fldChar":
                yield from self._check_box(one)
                self._field(attribute(one, "w:fldCharType") or "")
            elif name == "w:instrText":
                if self._fields and not self._fields[-1].shows_result:
                    self._fields[-1].instruction += one.text or ""
            elif all(inside.shows_result for inside in self._fields):
                link_here = link or next((inside.link for inside in self._fields if inside.link), "")
                yield from self._content(one, name, formatting, link_here)

    def _formatting(self, properties: Element | None) -> Formatting:
        own = read_formatting(properties)
        style = attribute(child(properties, "w:rStyle"), "w:val")
        if not style:
            return own
        styled = self.styles.formatting(style)
        code = True if self.styles.is_code(style) else styled.code
        return Formatting(
            styled.bold if own.bold is None else own.bold,
            styled.italic if own.italic is None else own.italic,
            styled.struck if own.struck is None else own.struck,
            styled.hidden if own.hidden is None else own.hidden,
            code if own.code is None else own.code,
            styled.raised if own.raised is None else own.raised,
        )

    def _content(self, element: Element, name: str, formatting: Formatting, link: str) -> Iterator[TextRun]:
        text = self._text(element, name)
        if text:
            yield TextRun(
                text,
                bool(formatting.bold),
                bool(formatting.italic),
                bool(formatting.struck),
                bool(formatting.code),
                link,
                raised=bool(formatting.raised),
            )
        elif name in {"w:footnoteReference", "w:endnoteReference"}:
            number = self.notes.number(name[2:-9], attribute(element, "w:id") or "")
            yield TextRun(f"[^{number}]", is_raw=True)
        elif name == "w:commentReference":
            self.comments.append(attribute(element, "w:id") or "")
        elif name in {"w:drawing", "w:pict", "w:object"}:
            yield from self._drawing(element, link)
        elif name == "mc:AlternateContent":
            yield from self._alternative(element, link)
        elif name == "w:ruby":
            yield from self._ruby(element, link)

    def _ruby(self, element: Element, link: str) -> Iterator[TextRun]:
        """Yield ruby text: the base characters, followed by their pronunciation in parentheses."""
        for base in children(element, "w:rubyBase"):
            yield from self.read(base, link)
        reading = "".join(one.text or "" for rt in children(element, "w:rt") for one in descendants(rt, "w:t"))
        if reading.strip():
            yield TextRun(f"({reading.strip()})", link=link)

    def _text(self, element: Element, name: str) -> str:
        if name == "w:t":
            text = element.text or ""
            text = text if text.isascii() else symbols_of(text, _font_of(element))
            return text.replace("\n", " ").replace(PAGE_BREAK, "")
        if name == "w:lastRenderedPageBreak":
            return PAGE_BREAK if self.marks_pages else ""
        if name == "w:sym":
            return _symbol(attribute(element, "w:char") or "", attribute(element, "w:font") or "")
        return _CHARACTERS.get(name, "")

    def _check_box(self, element: Element) -> Iterator[TextRun]:
        """Read a check box in a form. Word stores it as a field without a result."""
        box = next(descendants(element, "w:checkBox"), None)
        if box is not None:
            state = child(box, "w:checked") if child(box, "w:checked") is not None else child(box, "w:default")
            is_checked = state is not None and (attribute(state, "w:val") or "1") not in {"0", "false"}
            yield TextRun("☒ " if is_checked else "☐ ")

    def _field(self, kind: str) -> None:
        if kind == "begin" and len(self._fields) < _MOST_FIELDS:
            self._fields.append(Field())
        elif kind == "separate" and self._fields:
            found = _FIELD_LINK.match(self._fields[-1].instruction)
            self._fields[-1].shows_result = True
            self._fields[-1].link = safe_link(found[1]) if found else ""
        elif kind == "end" and self._fields:
            self._fields.pop()

    def _drawing(self, element: Element, link: str) -> Iterator[TextRun]:
        """Yield the pictures of a drawing. Its text boxes and charts are added to `boxes` and `charts`."""
        boxes = list(_outermost_boxes(element))
        if name_of(element) in {"mc:Choice", "mc:Fallback"} and not boxes:
            runs = list(self.read(element, link))
            if runs:
                yield from runs
                return
        self.boxes.extend(boxes)
        charts = [self._part(attribute(one, "r:id")) for one in descendants(element, "c:chart")]
        self.charts += filter(None, charts)
        pictures = [one for one in descendants(element, "a:blip", "v:imagedata") if not _is_inside(one, element)]
        described = _description(descendants(element, "wp:docPr", "v:shape", "w:docPr"))
        for one in pictures:
            yield from self._picture(one, _own_description(one) or described, link)
        if not pictures and not boxes and not charts and described:
            yield TextRun(f" [Image: {described}] ", link=link)

    def _part(self, identifier: str | None) -> str:
        relation = self.relations.get(identifier or "")
        return relation.target if relation and not relation.external else ""

    def _picture(self, element: Element, described: str, link: str) -> Iterator[TextRun]:
        member = self._part(attribute(element, "r:embed") or attribute(element, "r:id"))
        if member and not _is_spacer(element):
            yield TextRun(" ")
            yield TextRun(self.figures.add(member, described), is_raw=True)
            yield TextRun(" ")
        elif described and not member:
            yield TextRun(f" [Image: {described}] ", link=link)


def _is_inside(picture: Element, drawing: Element) -> bool:
    """Whether a picture is in one of the drawing's text boxes, or in the copy of the drawing for older programs."""
    parent = picture.getparent()
    while parent is not None and parent is not drawing:
        if name_of(parent) in {"w:txbxContent", "mc:Fallback"}:
            return True
        parent = parent.getparent()
    return False


def _own_description(picture: Element) -> str:
    """Return the alternative text of one picture in a drawing with several pictures."""
    parent = picture.getparent()
    outer = parent.getparent() if parent is not None else None
    if parent is not None and name_of(parent) == "v:shape":
        return _description([parent])
    named = islice(outer.iter(), _MOST_BEFORE_NAME) if outer is not None and local_name(outer) == "pic" else ()
    return _description(one for one in named if local_name(one) == "cNvPr")


def _description(named: Iterable[Element]) -> str:
    texts = ((attribute(one, "descr") or attribute(one, "alt") or "") for one in named)
    return next((" ".join(text.split()) for text in texts if text.strip()), "")


def _is_spacer(picture: Element) -> bool:
    """Whether a picture is displayed only a few pixels wide or high."""
    parent = picture.getparent()
    while parent is not None and name_of(parent) not in {"wp:inline", "wp:anchor", "w:p"}:
        parent = parent.getparent()
    extent = child(parent, "wp:extent")
    sizes = [attribute(extent, name) or "" for name in ("cx", "cy")] if extent is not None else []
    return any(size.isdecimal() and len(size) < _MOST_DIGITS and int(size) < _SPACER for size in sizes)


def _outermost_boxes(element: Element) -> Iterator[Element]:
    """Yield the text boxes in an element, without duplicates.

    Files store two copies of a text box, for newer and for older programs.
    """
    for one in element:
        name = name_of(one)
        if name == "w:txbxContent":
            yield one
        elif name == "mc:AlternateContent":
            yield from next((found for choice in one if (found := list(_outermost_boxes(choice)))), list[Element]())
        else:
            yield from _outermost_boxes(one)


def _symbol(code: str, font: str) -> str:
    """Convert a hexadecimal character code to a character. In a symbol font, the code is a position in the font."""
    if not re.fullmatch(r"[0-9A-Fa-f]{1,4}", code):
        return ""
    place = int(code, 16)
    if place < 0x100 and _SYMBOL_FONTS.search(font):  # noqa: PLR2004 - a place in the font
        place += 0xF000
    return "" if not place or 0xD800 <= place < 0xE000 else symbols_of(chr(place), font)  # noqa: PLR2004


def _font_of(text: Element) -> str:
    fonts = child(text.getparent(), "w:rPr", "w:rFonts")
    return attribute(fonts, "w:ascii") or attribute(fonts, "w:hAnsi") or ""
