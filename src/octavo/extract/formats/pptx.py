"""Reads PowerPoint presentations. Each slide is a page with its title, text, tables, charts, notes and comments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from octavo.extract.detect import Hints, Processor
from octavo.extract.extracted import Extracted, SourceType
from octavo.extract.markdown.block_writer import (
    MOST_REPEATED,
    DocumentBlock,
    Heading,
    Item,
    Paragraph,
    Quote,
    Table,
    write_blocks,
    write_comment,
)
from octavo.extract.markdown.inline import PAGE_BREAK, TextRun, inline, plain, safe_link
from octavo.extract.office.assemble import Figures, join_pages, take_page_breaks, to_extracted
from octavo.extract.office.formulas import from_office, to_markup
from octavo.extract.office.ooxml import Package, read_chart
from octavo.extract.office.xml import Element, attribute, child, children, descendants, local_name, name_of, text_of
from octavo.extract.zips import Archive, read_picture, reject_deep_nesting

MAIN = "ppt/presentation.xml"
_TITLES = frozenset({"title", "ctrTitle"})
_LISTS = frozenset({"", "body", "obj"})
_LEFT_OUT = frozenset({"dt", "ftr", "sldNum", "hdr", "sldImg"})
_BULLETS = frozenset({"a:buChar", "a:buAutoNum", "a:buBlip"})
_KINDS_OF_BODY = {"": "body", "obj": "body", "body": "body", "ctrTitle": "title"}
_MOST_ORDERED = 200
_SPACER = 40_000  # in 914,400ths of an inch; about four pixels
_DEEPEST = 8


def extract(path: Path, _hints: Hints) -> Extracted:
    figures = Figures()
    with Archive(path) as archive, reject_deep_nesting():
        package = Package(archive)
        slides = [take_page_breaks(slide)[0] for slide in convert_slides(package, figures)]
        metadata = package.metadata()
    markdown, pages = join_pages(slides)
    return to_extracted(SourceType.PPTX, markdown, metadata, pages=pages, figures=figures)


def convert_slides(package: Package, figures: Figures) -> list[str]:
    """Return the Markdown of each slide, in presentation order."""
    name, root = package.main(MAIN)
    authors = _authors(package, name)
    slides = [package.target(name, attribute(one, "r:id")) for one in descendants(root, "p:sldId")]
    return [_slide(package, slide, authors, figures, is_first=not place) for place, slide in enumerate(slides)]


def _slide(package: Package, part: str | None, authors: dict[str, str], figures: Figures, *, is_first: bool) -> str:
    slide = package.part(part)
    tree = child(slide, "p:cSld", "p:spTree")
    if part is None or tree is None:
        return ""
    layout = package.related(part, "slideLayout")
    master = package.related(layout, "slideMaster") if layout else None
    roots = tuple(package.part(one) for one in (layout, master))
    reader = _Slide(package, part, 1 if is_first else 2, figures, tuple(map(_placeholders, roots)), roots[-1])
    blocks = list(reader.shapes(tree))
    # The title comes first in the text, even if it is the last shape in the file.
    blocks.sort(key=lambda block: not isinstance(block, Heading))
    if attribute(slide, "show") in {"0", "false"}:
        blocks = _hidden(blocks)
    notes = package.part(package.related(part, "notesSlide"))
    spoken = [block for shape in descendants(notes, "p:sp") if _kind(shape) == "body" for block in reader.notes(shape)]
    return write_blocks([*blocks, *spoken, *_comments(package, part, authors)])


def _hidden(blocks: list[DocumentBlock]) -> list[DocumentBlock]:
    """Add "(hidden)" to the title of a slide that is not shown in the presentation."""
    first = blocks[0] if blocks else None
    if isinstance(first, Heading):
        return [replace(first, text=f"{first.text} (hidden)"), *blocks[1:]]
    return [Paragraph("(hidden)"), *blocks] if blocks else []


def _authors(package: Package, presentation: str) -> dict[str, str]:
    """Map the ids of comment authors to their names. Reads both the older and the newer format of this list."""
    roots = (package.part(package.related(presentation, kind)) for kind in ("commentAuthors", "authors"))
    return {one.get("id") or "": one.get("name") or "" for root in roots if root is not None for one in root}


def _comments(package: Package, part: str, authors: dict[str, str]) -> Iterator[DocumentBlock]:
    root = package.part(package.related(part, "comments"))
    for one in root.iter() if root is not None else ():
        if local_name(one) in {"cm", "reply"}:
            texts = (
                text_of(text)
                for inside in one
                if local_name(inside) in {"text", "txBody"}
                for text in inside.iter()
                if local_name(text) in {"text", "t"}
            )
            yield from write_comment(authors.get(one.get("authorId") or "", ""), " ".join(filter(None, texts)))


def _placeholder(shape: Element) -> Element | None:
    return next((found for one in shape if (found := child(one, "p:nvPr", "p:ph")) is not None), None)


def _identity(mark: Element | None) -> tuple[str | None, str | None]:
    """Return the number and the type of a placeholder.

    Both are needed to find the layout placeholder from which this placeholder inherits: it has the same number and, if
    possible, the same type.
    """
    kind = attribute(mark, "type") or ""
    return attribute(mark, "idx"), _KINDS_OF_BODY.get(kind, kind)


def _placeholders(root: Element | None) -> dict[tuple[str | None, str | None], Element]:
    """Return the placeholders of a slide layout or master.

    Each can be found by two keys: `(number, type)` and `(number, None)`.
    """
    found: dict[tuple[str | None, str | None], Element] = {}
    for one in descendants(root, "p:sp"):
        mark = _placeholder(one)
        if mark is not None:
            number, kind = _identity(mark)
            found.setdefault((number, kind), one)
            found.setdefault((number, None), one)
    return found


def _kind(shape: Element) -> str | None:
    """Return the placeholder type of a shape. Returns None if the shape is not a placeholder."""
    found = _placeholder(shape)
    return (attribute(found, "type") or "") if found is not None else None


def _depth(properties: Element | None) -> int:
    written = attribute(properties, "lvl") or "0"
    return min(int(written), _DEEPEST) if written.isdecimal() and len(written) < 3 else 0  # noqa: PLR2004


Area = tuple[int, int, int, int]  # left, top, right, bottom


def in_order(areas: list[Area | None]) -> list[int]:
    """Return the indexes of the shapes in reading order.

    This is the order in the file, except that a shape comes after all shapes above it and all shapes to its left in the
    same row.
    """
    if len(areas) > _MOST_ORDERED:
        return list(range(len(areas)))
    above = [
        [other for other, area in enumerate(areas) if _is_above(area, own) or _is_left(area, own)] for own in areas
    ]
    order: list[int] = []
    left = list(range(len(areas)))
    while left:
        ready = next((one for one in left if not any(other in left for other in above[one])), left[0])
        order.append(ready)
        left.remove(ready)
    return order


def _is_above(area: Area | None, own: Area | None) -> bool:
    return area is not None and own is not None and area[3] <= own[1] and area[0] < own[2] and own[0] < area[2]


def _is_left(area: Area | None, own: Area | None) -> bool:
    """Whether a shape with the bounds `area` is left of a shape with the bounds `own`, in the same row of the slide.

    Two shapes are in the same row if they overlap vertically by at least half the height of the smaller one.
    """
    if area is None or own is None or area[2] > own[0]:
        return False
    shared = min(area[3], own[3]) - max(area[1], own[1])
    return shared > 0 and 2 * shared >= min(area[3] - area[1], own[3] - own[1])


@dataclass(frozen=True, slots=True)
class _Slide:
    """Reads one slide. `parents` are its layout and master, from which placeholders inherit position and bullets."""

    package: Package
    part: str
    title_level: int
    figures: Figures
    parents: tuple[dict[tuple[str | None, str | None], Element], ...] = ()
    master: Element | None = None

    def shapes(self, tree: Element) -> Iterator[DocumentBlock]:
        shapes = list(tree)
        for place in in_order([self._area(one) for one in shapes]):
            one = shapes[place]
            name = name_of(one)
            if name == "p:sp":
                yield from self._shape(one)
            elif name in {"p:grpSp", "mc:Choice", "mc:Fallback"}:
                yield from self.shapes(one)
            elif name == "mc:AlternateContent":
                yield from next(
                    (blocks for choice in one if (blocks := list(self.shapes(choice)))), list[DocumentBlock]()
                )
            elif name == "p:graphicFrame":
                yield from self._frame(one)
            elif name == "p:pic":
                yield from self._picture(one)

    def _area(self, shape: Element) -> Area | None:
        """Return the positions of the four edges of a shape on the slide.

        A placeholder without a position inherits it from the layout or master. Returns None if the position is unknown.
        """
        for one in (shape, *self._inherited(shape)):
            frame = next(descendants(one, "a:xfrm", "p:xfrm"), None)
            numbers = [
                attribute(child(frame, name), key) or ""
                for name, keys in (("a:off", "xy"), ("a:ext", ("cx", "cy")))
                for key in keys
            ]
            if all(number.lstrip("-").isdecimal() and len(number) < 15 for number in numbers):  # noqa: PLR2004
                left, top, width, height = map(int, numbers)
                return left, top, left + width, top + height
        return None

    def _inherited(self, shape: Element) -> Iterator[Element]:
        """Yield the placeholders from which a placeholder inherits, first in the layout and then in the master."""
        mark = _placeholder(shape)
        if mark is None:
            return
        identity = _identity(mark)
        for parent in self.parents:
            found = parent.get(identity)
            if found is None and identity[0]:
                found = parent.get((identity[0], None))
            if found is not None:
                yield found

    def _bullets(self, shape: Element, depth: int) -> bool | None:
        """Whether the styles of a shape give its text a bullet at this depth.

        Returns None if the styles do not specify it.
        """
        kind = _kind(shape)
        lists = [child(one, "p:txBody", "a:lstStyle") for one in (shape, *self._inherited(shape))]
        if kind is not None:
            style = "p:bodyStyle" if kind in _LISTS else "p:otherStyle"
            lists.append(child(self.master, "p:txStyles", style))
        for one in lists:
            level = child(one, f"a:lvl{depth + 1}pPr")
            marks = {name_of(mark) for mark in level} if level is not None else set[str]()
            if marks & _BULLETS:
                return True
            if "a:buNone" in marks:
                return False
        return None

    def _picture(self, element: Element) -> Iterator[DocumentBlock]:
        about = next(descendants(element, "p:cNvPr"), None)
        described = attribute(about, "descr") or ""
        blip = next(descendants(element, "a:blip"), None)
        member = self.package.target(self.part, attribute(blip, "r:embed"))
        area = self._area(element)
        is_spacer = area is not None and min(area[2] - area[0], area[3] - area[1]) < _SPACER
        if member and not is_spacer:
            yield Paragraph(self.figures.add(member, described))
        elif described.strip():
            yield Paragraph(inline([TextRun(f"[Image: {' '.join(described.split())}]")], one_line=True))

    def notes(self, shape: Element) -> Iterator[DocumentBlock]:
        texts = [inline(self._runs(one)) for one in descendants(shape, "a:p")]
        text = "\n\n".join(filter(None, texts))
        if text:
            yield Quote(f"Notes: {text}")

    def _shape(self, shape: Element) -> Iterator[DocumentBlock]:
        kind = _kind(shape)
        body = child(shape, "p:txBody")
        if body is None or kind in _LEFT_OUT:
            return
        paragraphs = list(children(body, "a:p"))
        if kind in _TITLES:
            text = inline(
                (run for one in paragraphs for run in [*self._runs(one), TextRun(" ")]), is_plain=True, one_line=True
            )
            if text:
                yield Heading(self.title_level, text)
            return
        is_several = sum(bool(plain(self._runs(one))) for one in paragraphs) > 1
        bullets: dict[int, bool] = {}
        counters: dict[int, int] = {}
        for one in paragraphs:
            depth = _depth(child(one, "a:pPr"))
            if depth not in bullets:
                styled = self._bullets(shape, depth)
                # A single line is not a list, even if the layout gives it a bullet.
                bullets[depth] = is_several and (kind in _LISTS if styled is None else styled)
            yield from self._paragraph(one, counters, is_list=bullets[depth])

    def _paragraph(self, element: Element, counters: dict[int, int], *, is_list: bool) -> Iterator[DocumentBlock]:
        text = inline(self._runs(element))
        if not text:
            return
        properties = child(element, "a:pPr")
        depth = _depth(properties)
        marks = {name_of(one) for one in properties} if properties is not None else set[str]()
        for deeper in [level for level in counters if level > depth]:
            del counters[deeper]
        if "a:buAutoNum" in marks:
            start = attribute(child(properties, "a:buAutoNum"), "startAt") or "1"
            counters[depth] = counters.get(depth, int(start) - 1 if start.isdecimal() and len(start) < 6 else 0) + 1  # noqa: PLR2004
            yield Item(depth, f"{counters[depth]}.", text)
        elif "a:buChar" in marks or (is_list and "a:buNone" not in marks):
            yield Item(depth, "", text)
        else:
            counters.clear()
            yield Paragraph(text)

    def _runs(self, paragraph: Element) -> Iterator[TextRun]:
        for one in paragraph:
            name = name_of(one)
            if name in {"a:r", "a:fld"}:
                properties = child(one, "a:rPr")
                text = child(one, "a:t")
                yield TextRun(
                    ((text.text if text is not None else None) or "").replace("\v", "\n").replace(PAGE_BREAK, ""),
                    bold=attribute(properties, "b") in {"1", "true"},
                    italic=attribute(properties, "i") in {"1", "true"},
                    struck=(attribute(properties, "strike") or "noStrike") != "noStrike",
                    link=self._link(child(properties, "a:hlinkClick")),
                    raised=(attribute(properties, "baseline") or "-").strip("0%")[:1].isdigit(),
                )
            elif name == "a:br":
                yield TextRun("\n")
            elif name in {"mc:AlternateContent", "?:m"}:
                formulas = (to_markup(from_office(formula)) for formula in descendants(one, "m:oMath"))
                yield from (TextRun(formula, is_raw=True) for formula in formulas if formula)

    def _link(self, element: Element | None) -> str:
        relation = (
            self.package.relations(self.part).get(attribute(element, "r:id") or "") if element is not None else None
        )
        return safe_link(relation.target) if relation and relation.external else ""

    def _frame(self, frame: Element) -> Iterator[DocumentBlock]:
        """Convert a graphic frame: a table, a chart, or the text of a diagram."""
        for table in descendants(frame, "a:tbl"):
            rows = [self._row(row) for row in children(table, "a:tr")]
            _fill_down(table, rows)
            if any(cell for row in rows for cell in row):
                yield Table(rows)
            return
        for chart in descendants(frame, "c:chart"):
            yield from read_chart(self.package.part(self.package.target(self.part, attribute(chart, "r:id"))))
        for ids in descendants(frame, "dgm:relIds"):
            data = self.package.part(self.package.target(self.part, attribute(ids, "r:dm")))
            for one in descendants(data, "a:p"):
                text = inline(self._runs(one), one_line=True)
                if text:
                    yield Item(0, "", text)

    def _row(self, row: Element) -> list[str]:
        cells: list[str] = []
        for cell in children(row, "a:tc"):
            runs = [run for one in descendants(cell, "a:p") for run in [*self._runs(one), TextRun(" ")]]
            text = inline(runs, one_line=True)
            if attribute(cell, "hMerge") in {"1", "true"} and cells:
                text = cells[-1] if len(cells[-1]) <= MOST_REPEATED else ""
            cells.append(text)
        return cells


def _fill_down(table: Element, rows: list[list[str]]) -> None:
    """If the text of a vertically merged cell is short, repeat it in every row that the cell covers."""
    for place, row in enumerate(children(table, "a:tr")):
        for column, cell in enumerate(children(row, "a:tc")):
            if attribute(cell, "vMerge") in {"1", "true"} and place and column < len(rows[place - 1]):
                above = rows[place - 1][column]
                rows[place][column] = above if len(above) <= MOST_REPEATED else ""


PROCESSOR = Processor((SourceType.PPTX,), extract, read_picture)
