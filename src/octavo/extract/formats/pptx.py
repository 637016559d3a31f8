"""PowerPoint presentations: each slide is a page, with its title, text by level, tables and speaker notes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

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
)
from octavo.extract.markdown.inline import PAGE_BREAK, TextRun, inline, plain, safe_link
from octavo.extract.office.assemble import join_pages, take_page_breaks, to_extracted
from octavo.extract.office.ooxml import Package, Relation
from octavo.extract.office.xml import Element, attribute, child, children, descendants, name_of
from octavo.extract.registry import Hints, Processor
from octavo.extract.zips import Archive, read_picture, reject_deep_nesting

MAIN = "ppt/presentation.xml"
_TITLES = frozenset({"title", "ctrTitle"})
_LISTS = frozenset({"", "body", "obj"})
_LEFT_OUT = frozenset({"dt", "ftr", "sldNum", "hdr", "sldImg"})
_DEEPEST = 8


def extract(path: Path, _hints: Hints) -> Extracted:
    with Archive(path) as archive, reject_deep_nesting():
        package = Package(archive)
        slides = [take_page_breaks(slide)[0] for slide in convert_slides(package)]
        metadata = package.metadata()
    markdown, pages = join_pages(slides)
    return to_extracted(SourceType.PPTX, markdown, metadata, pages=pages)


def convert_slides(package: Package) -> list[str]:
    """The Markdown of each slide, in presentation order."""
    name, root = package.main(MAIN)
    relations = package.relations(name)
    slides = [relations.get(attribute(one, "r:id") or "") for one in descendants(root, "p:sldId")]
    return [_slide(package, slide, is_first=not place) for place, slide in enumerate(slides)]


def _slide(package: Package, slide: Relation | None, *, is_first: bool) -> str:
    root = package.part(slide.target) if slide and not slide.external else None
    tree = child(root, "p:cSld", "p:spTree")
    if slide is None or tree is None:
        return ""
    reader = _Slide(package, slide.target, title_level=1 if is_first else 2)
    blocks = list(reader.shapes(tree))
    # The title can be the last shape in the file, but comes first in the text.
    blocks.sort(key=lambda block: not isinstance(block, Heading))
    notes = package.part(package.related(slide.target, "notesSlide"))
    spoken = [block for shape in descendants(notes, "p:sp") if _kind(shape) == "body" for block in reader.notes(shape)]
    return write_blocks([*blocks, *spoken])


def _kind(shape: Element) -> str | None:
    """The placeholder type of a shape; None if the shape is not a placeholder."""
    for one in shape:
        found = child(one, "p:nvPr", "p:ph")
        if found is not None:
            return attribute(found, "type") or ""
    return None


@dataclass(frozen=True, slots=True)
class _Slide:
    package: Package
    part: str
    title_level: int

    def shapes(self, tree: Element) -> Iterator[DocumentBlock]:
        for one in tree:
            name = name_of(one)
            if name == "p:sp":
                yield from self._shape(one)
            elif name in {"p:grpSp", "mc:Choice"}:
                yield from self.shapes(one)
            elif name == "mc:AlternateContent":
                yield from next(
                    (blocks for choice in one if (blocks := list(self.shapes(choice)))), list[DocumentBlock]()
                )
            elif name == "p:graphicFrame":
                yield from self._frame(one)
            elif name == "p:pic":
                yield from _picture(one)

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
        # Bullets of a placeholder are defined in its layout; a single line is not a list.
        is_list = kind in _LISTS and sum(bool(plain(self._runs(one))) for one in paragraphs) > 1
        counters: dict[int, int] = {}
        for one in paragraphs:
            yield from self._paragraph(one, counters, is_list=is_list)

    def _paragraph(self, element: Element, counters: dict[int, int], *, is_list: bool) -> Iterator[DocumentBlock]:
        text = inline(self._runs(element))
        if not text:
            return
        properties = child(element, "a:pPr")
        written = attribute(properties, "lvl") or "0"
        depth = min(int(written), _DEEPEST) if written.isdecimal() and len(written) < 3 else 0  # noqa: PLR2004
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
                )
            elif name == "a:br":
                yield TextRun("\n")
            elif name == "mc:AlternateContent":
                yield from (TextRun(text.text or "") for text in descendants(one, "m:t"))

    def _link(self, element: Element | None) -> str:
        relation = (
            self.package.relations(self.part).get(attribute(element, "r:id") or "") if element is not None else None
        )
        return safe_link(relation.target) if relation and relation.external else ""

    def _frame(self, frame: Element) -> Iterator[DocumentBlock]:
        """Convert a graphic frame: a table, or the text of a diagram."""
        for table in descendants(frame, "a:tbl"):
            rows = [self._row(row) for row in children(table, "a:tr")]
            _fill_down(table, rows)
            if any(cell for row in rows for cell in row):
                yield Table(rows)
            return
        for ids in descendants(frame, "dgm:relIds"):
            relation = self.package.relations(self.part).get(attribute(ids, "r:dm") or "")
            data = self.package.part(relation.target) if relation and not relation.external else None
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
    """Repeat short texts of vertically merged cells in every row that they cover."""
    for place, row in enumerate(children(table, "a:tr")):
        for column, cell in enumerate(children(row, "a:tc")):
            if attribute(cell, "vMerge") in {"1", "true"} and place and column < len(rows[place - 1]):
                above = rows[place - 1][column]
                rows[place][column] = above if len(above) <= MOST_REPEATED else ""


def _picture(element: Element) -> Iterator[DocumentBlock]:
    described = next((text for one in descendants(element, "p:cNvPr") if (text := attribute(one, "descr"))), "")
    if described.strip():
        yield Paragraph(inline([TextRun(f"[Image: {' '.join(described.split())}]")], one_line=True))


PROCESSOR = Processor((SourceType.PPTX,), extract, read_picture)
