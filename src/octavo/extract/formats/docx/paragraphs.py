"""The text of a paragraph: runs, links, fields, formulas, notes. Tracked insertions are kept, deletions dropped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from octavo.extract.formats.docx.styles import Formatting, Styles, read_formatting
from octavo.extract.markdown.inline import PAGE_BREAK, TextRun, safe_link
from octavo.extract.office.formulas import from_office, to_markup
from octavo.extract.office.ooxml import Relation
from octavo.extract.office.xml import Element, attribute, child, children, descendants, name_of

_SKIPPED = frozenset({"w:del", "w:moveFrom", "w:rPr", "w:pPr", "w:sdtPr", "w:delText", "w:instrText", "w:rt"})
_CHARACTERS = {"w:tab": "\t", "w:ptab": "\t", "w:br": "\n", "w:cr": "\n", "w:noBreakHyphen": "\u2011"}
_FIELD_LINK = re.compile(r'\s*HYPERLINK\s+"([^"]{1,2000})"')
_SYMBOL_FONT = range(0xF000, 0xF100)
_MOST_FIELDS = 50


@dataclass(slots=True)
class Field:
    """A Word field: an instruction and, after a separator, its result."""

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
    marks_pages: bool = False
    boxes: list[Element] = field(default_factory=list[Element])
    _fields: list[Field] = field(default_factory=list[Field])

    def read(self, element: Element, link: str = "") -> Iterator[TextRun]:
        """Read the text runs of an element. Text boxes in the element are added to `boxes`."""
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
        """Read the first alternative that has content.

        The alternatives contain the same content, for newer and for older programs.
        """
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
            )
        elif name in {"w:footnoteReference", "w:endnoteReference"}:
            number = self.notes.number(name[2:-9], attribute(element, "w:id") or "")
            yield TextRun(f"[^{number}]", is_raw=True)
        elif name in {"w:drawing", "w:pict", "w:object"}:
            yield from self._drawing(element, link)
        elif name == "mc:AlternateContent":
            yield from self._alternative(element, link)
        elif name == "w:ruby":
            yield from self.read(element, link)

    def _text(self, element: Element, name: str) -> str:
        if name == "w:t":
            return (element.text or "").replace("\n", " ").replace(PAGE_BREAK, "")
        if name == "w:lastRenderedPageBreak":
            return PAGE_BREAK if self.marks_pages else ""
        if name == "w:sym":
            code = int(found, 16) if (found := attribute(element, "w:char") or "").isalnum() and _is_hex(found) else 0
            return "" if code in _SYMBOL_FONT or not code or 0xD800 <= code < 0xE000 else chr(code)  # noqa: PLR2004
        return _CHARACTERS.get(name, "")

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
        """Add the text boxes of a drawing to `boxes`. For a picture, yield its alternative text."""
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
                yield TextRun(f" [Image: {' '.join(described.split())}] ", link=link)
                return


def _outermost_boxes(element: Element) -> Iterator[Element]:
    """Yield each text box once. Files store two copies of a text box, for newer and for older programs."""
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
