"""The text of a paragraph: runs, links, fields, formulas, notes. Insertions count, deletions do not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from octavo.extract.formats.docx.formulas import formula
from octavo.extract.formats.docx.styles import Look, Styles, read_look
from octavo.extract.markdown.inline import MARK, Run, safe_link
from octavo.extract.office.ooxml import Relation
from octavo.extract.office.xml import Element, attribute, child, children, descendants, name_of

_GONE = frozenset({"w:del", "w:moveFrom", "w:rPr", "w:pPr", "w:sdtPr", "w:delText", "w:instrText", "w:rt"})
_SIGNS = {"w:tab": "\t", "w:ptab": "\t", "w:br": "\n", "w:cr": "\n", "w:noBreakHyphen": "\u2011"}
_FIELD_LINK = re.compile(r'\s*HYPERLINK\s+"([^"]{1,2000})"')
_SYMBOL_FONT = range(0xF000, 0xF100)
_MOST_FIELDS = 50


@dataclass(slots=True)
class Field:
    """A field is first an instruction and then, behind a separator, what it shows."""

    instruction: str = ""
    shows: bool = False
    link: str = ""


@dataclass(slots=True)
class Notes:
    """Footnotes and endnotes in the order in which the text refers to them."""

    order: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])

    def number(self, kind: str, note: str) -> int:
        return self.order.setdefault((kind, note), len(self.order) + 1)


@dataclass(slots=True)
class Reader:
    """Reads one paragraph after the other; fields may reach over several."""

    styles: Styles
    relations: dict[str, Relation]
    notes: Notes = field(default_factory=Notes)
    marks_pages: bool = False
    boxes: list[Element] = field(default_factory=list[Element])
    _fields: list[Field] = field(default_factory=list[Field])

    def read(self, element: Element, link: str = "") -> Iterator[Run]:
        """The runs within. Text boxes that are met stay in `boxes` for whoever asked."""
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
            elif name not in _GONE:
                yield from self.read(one, link)

    def _target(self, element: Element) -> str:
        relation = self.relations.get(attribute(element, "r:id") or "")
        return safe_link(relation.target) if relation and relation.external else ""

    def _formulas(self, element: Element) -> Iterator[Run]:
        if name_of(element) == "m:oMath":
            text = formula(element)
            if text:
                yield Run(f"${text}$", is_raw=True)
            return
        formulas = [text for one in children(element, "m:oMath") if (text := formula(one))]
        if formulas:
            yield Run(" ".join(f"$${text}$$" for text in formulas), is_raw=True)

    def _alternative(self, element: Element, link: str) -> Iterator[Run]:
        """The same content twice: for new programs and for old ones."""
        for one in element:
            boxes = len(self.boxes)
            runs = list(self._drawn(one, link))
            if runs or len(self.boxes) > boxes:
                yield from runs
                return

    def _run(self, element: Element, link: str) -> Iterator[Run]:
        properties = child(element, "w:rPr")
        look = self._look(properties)
        if look.hidden:
            return
        for one in element:
            name = name_of(one)
            if name == "w:fldChar":
                self._field(attribute(one, "w:fldCharType") or "")
            elif name == "w:instrText":
                if self._fields and not self._fields[-1].shows:
                    self._fields[-1].instruction += one.text or ""
            elif all(inside.shows for inside in self._fields):
                link_here = link or next((inside.link for inside in self._fields if inside.link), "")
                yield from self._content(one, name, look, link_here)

    def _look(self, properties: Element | None) -> Look:
        own = read_look(properties)
        style = attribute(child(properties, "w:rStyle"), "w:val")
        if not style:
            return own
        given = self.styles.look(style)
        code = True if self.styles.is_code(style) else given.code
        return Look(
            given.bold if own.bold is None else own.bold,
            given.italic if own.italic is None else own.italic,
            given.struck if own.struck is None else own.struck,
            given.hidden if own.hidden is None else own.hidden,
            code if own.code is None else own.code,
        )

    def _content(self, element: Element, name: str, look: Look, link: str) -> Iterator[Run]:
        text = self._text(element, name)
        if text:
            yield Run(text, bool(look.bold), bool(look.italic), bool(look.struck), bool(look.code), link)
        elif name in {"w:footnoteReference", "w:endnoteReference"}:
            number = self.notes.number(name[2:-9], attribute(element, "w:id") or "")
            yield Run(f"[^{number}]", is_raw=True)
        elif name in {"w:drawing", "w:pict", "w:object"}:
            yield from self._drawn(element, link)
        elif name == "mc:AlternateContent":
            yield from self._alternative(element, link)
        elif name == "w:ruby":
            yield from self.read(element, link)

    def _text(self, element: Element, name: str) -> str:
        if name == "w:t":
            return (element.text or "").replace("\n", " ").replace(MARK, "")
        if name == "w:lastRenderedPageBreak":
            return MARK if self.marks_pages else ""
        if name == "w:sym":
            code = int(found, 16) if (found := attribute(element, "w:char") or "").isalnum() and _is_hex(found) else 0
            return "" if code in _SYMBOL_FONT or not code or 0xD800 <= code < 0xE000 else chr(code)  # noqa: PLR2004
        return _SIGNS.get(name, "")

    def _field(self, kind: str) -> None:
        if kind == "begin" and len(self._fields) < _MOST_FIELDS:
            self._fields.append(Field())
        elif kind == "separate" and self._fields:
            found = _FIELD_LINK.match(self._fields[-1].instruction)
            self._fields[-1].shows = True
            self._fields[-1].link = safe_link(found[1]) if found else ""
        elif kind == "end" and self._fields:
            self._fields.pop()

    def _drawn(self, element: Element, link: str) -> Iterator[Run]:
        """A text box, or what a picture says of itself for those who cannot see it."""
        boxes = list(_outermost_boxes(element))
        if boxes:
            self.boxes.extend(boxes)
            return
        if name_of(element) in {"mc:Choice", "mc:Fallback"}:
            runs = list(self.read(element, link))
            if runs:
                yield from runs
                return
        for one in descendants(element, "wp:docPr", "v:shape", "w:docPr"):
            described = attribute(one, "descr") or attribute(one, "alt")
            if described and described.strip():
                yield Run(f" [Image: {' '.join(described.split())}] ", link=link)
                return


def _outermost_boxes(element: Element) -> Iterator[Element]:
    """Once, although each box is there for new programs and again for old ones."""
    for one in element:
        name = name_of(one)
        if name == "w:txbxContent":
            yield one
        elif name == "mc:AlternateContent":
            yield from next((found for choice in one if (found := list(_outermost_boxes(choice)))), list[Element]())
        else:
            yield from _outermost_boxes(one)


def _is_hex(text: str) -> bool:
    return re.fullmatch(r"[0-9A-Fa-f]{1,5}", text) is not None
