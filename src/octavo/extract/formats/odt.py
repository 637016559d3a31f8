"""Reads OpenDocument text files (ODT)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from octavo.extract.detect import Hints, Processor
from octavo.extract.extracted import Extracted, SourceType
from octavo.extract.markdown.block_writer import (
    MOST_REPEATED,
    Code,
    DocumentBlock,
    Heading,
    Item,
    Paragraph,
    Quote,
    Table,
    one_line,
    write_blocks,
    write_comment,
)
from octavo.extract.markdown.inline import PAGE_BREAK, TextRun, inline, safe_link
from octavo.extract.office.assemble import (
    Figures,
    pages_between,
    take_page_breaks,
    to_extracted,
)
from octavo.extract.office.formulas import from_mathml, to_markup
from octavo.extract.office.ooxml import Styles, number, page_count, read_metadata, reject_encrypted
from octavo.extract.office.xml import (
    Element,
    attribute,
    child,
    descendants,
    local_name,
    name_of,
    parse,
    text_of,
)
from octavo.extract.zips import Archive, read_picture, reject_deep_nesting

_LEFT_OUT = frozenset(
    {
        "office:annotation-end",
        "office:forms",
        "text:index-title-template",
        "text:note",
        "text:sequence-decls",
        "text:tracked-changes",
    }
)
_CHARACTERS = {"text:s": " ", "text:tab": "\t", "text:line-break": "\n"}
_CODE_STYLES = ("preformatted", "source code", "code")
_QUOTE_STYLES = ("quotation", "quote")
_MOST_SPACES = 100
_MOST_REPEATED_CELLS = 100
_DEEPEST = 8


def extract(path: Path, _hints: Hints) -> Extracted:
    figures = Figures()
    with Archive(path) as archive, reject_deep_nesting():
        markdown, breaks = take_page_breaks(convert(archive, figures))
        metadata = read_metadata(archive)
    pages = pages_between(breaks, len(markdown)) if breaks else ()
    return to_extracted(SourceType.ODT, markdown, metadata, pages=pages, figures=figures)


def convert(archive: Archive, figures: Figures) -> str:
    """Convert the document to Markdown.

    Page breaks are included only if they produce as many pages as the document's metadata states.
    """
    reject_encrypted(archive)
    root = parse(archive.read("content.xml"))
    styles = Styles()
    for part in (archive.find("styles.xml"), None):
        styles.read(parse(part) if part else root)
    body = child(root, "office:body", "office:text")
    breaks = sum(1 for _ in descendants(body, "text:soft-page-break"))
    body_reader = _BodyReader(styles, archive, figures, marks_pages=breaks > 0 and page_count(archive) == breaks + 1)
    blocks = list(body_reader.blocks(body)) if body is not None else []
    has_title = any(isinstance(block, Heading) and block.level == 0 for block in blocks)
    shifted = [
        Heading(block.level + has_title, block.text) if isinstance(block, Heading) else block for block in blocks
    ]
    body_reader.marks_pages = False
    notes = "\n".join(f"[^{number}]: {text}" for number, text in enumerate(body_reader.notes, 1))
    return "\n\n".join(filter(None, [write_blocks(shifted), notes]))


@dataclass(slots=True)
class _BodyReader:
    """Reads the blocks of the document body.

    `depth` is the number of lists, tables and notes around the current block. `boxes` and `comments` contain the text
    boxes and comments of the current block, and are written after it.
    """

    styles: Styles
    archive: Archive
    figures: Figures
    marks_pages: bool
    notes: list[str] = field(default_factory=list[str])
    boxes: list[Element] = field(default_factory=list[Element])
    comments: list[DocumentBlock] = field(default_factory=list[DocumentBlock])
    pending: str = ""
    depth: int = 0

    def blocks(self, element: Element) -> Iterator[DocumentBlock]:
        for one in element:
            name = name_of(one)
            if name in {"text:p", "text:h"}:
                yield from self._paragraph(one)
            elif name == "text:list":
                yield from self._inside(self._list(one, 0, ""))
            elif name == "table:table":
                yield from self._inside(self._table(one))
            elif name == "text:soft-page-break":
                self.pending += PAGE_BREAK if self.marks_pages else ""
            elif name == "office:annotation":
                self._comment(one)
            elif name not in _LEFT_OUT:  # sections, indexes, frames
                yield from self.blocks(one)
            if not self.depth:
                comments, self.comments = self.comments, []
                yield from comments

    def _inside(self, blocks: Iterator[DocumentBlock]) -> list[DocumentBlock]:
        self.depth += 1
        found = list(blocks)
        self.depth -= 1
        return found

    def _comment(self, element: Element) -> None:
        text = " ".join(text_of(one) for one in descendants(element, "text:p"))
        self.comments += write_comment(text_of(child(element, "dc:creator")), text)

    def _paragraph(self, element: Element) -> Iterator[DocumentBlock]:
        runs = list(self._runs(element, TextRun("")))
        boxes, self.boxes = self.boxes, []
        if any(run.text.replace(PAGE_BREAK, "").strip() for run in runs):
            runs.insert(0, TextRun(self.pending))
            self.pending = ""
            yield self._block(element, runs)
        else:
            self.pending += PAGE_BREAK * sum(run.text.count(PAGE_BREAK) for run in runs)
        for box in boxes:
            yield from self.blocks(box)

    def _block(self, element: Element, runs: list[TextRun]) -> DocumentBlock:
        style = attribute(element, "text:style-name") or ""
        if name_of(element) == "text:h":
            level = number(attribute(element, "text:outline-level"), 1)
            return Heading(max(level, 1), inline(runs, is_plain=True, one_line=True))
        if any(name == "Title" for name, _ in self.styles.ancestry(style)):
            return Heading(0, inline(runs, is_plain=True, one_line=True))
        if self.styles.is_named(style, *_CODE_STYLES):
            return Code("".join(run.text for run in runs).rstrip())
        return Quote(inline(runs)) if self.styles.is_named(style, *_QUOTE_STYLES) else Paragraph(inline(runs))

    def _runs(self, element: Element, formatting: TextRun) -> Iterator[TextRun]:
        """Yield the text in document order, in pieces with uniform formatting.

        The formatting comes from the elements around the text.
        """
        yield self._run(element.text, formatting)
        for one in element:
            name = name_of(one)
            if name in _CHARACTERS:
                count = min(number(attribute(one, "text:c"), 1), _MOST_SPACES)
                yield replace(formatting, text=_CHARACTERS[name] * count)
            elif name == "text:soft-page-break":
                yield replace(formatting, text=PAGE_BREAK if self.marks_pages else "")
            elif name == "text:note":
                yield from self._note(one)
            elif name == "office:annotation":
                self._comment(one)
            elif name in {"draw:frame", "draw:custom-shape", "draw:g"}:
                yield from self._frame(one)
            elif name == "text:ruby-text":
                reading = text_of(one)
                yield replace(formatting, text=f"({reading})" if reading else "")
            elif name not in _LEFT_OUT:
                yield from self._runs(one, self._formatting(one, name, formatting))
            yield self._run(one.tail, formatting)

    def _run(self, text: str | None, formatting: TextRun) -> TextRun:
        return replace(formatting, text=(text or "").replace("\n", " ").replace(PAGE_BREAK, ""))

    def _formatting(self, element: Element, name: str, formatting: TextRun) -> TextRun:
        if name == "text:a":
            return replace(formatting, link=safe_link(attribute(element, "xlink:href")))
        if name != "text:span":
            return formatting
        styles = [style for _, style in self.styles.ancestry(attribute(element, "text:style-name") or "")]
        bold = next((style.bold for style in styles if style.bold is not None), formatting.bold)
        italic = next((style.italic for style in styles if style.italic is not None), formatting.italic)
        struck = next((style.struck for style in styles if style.struck is not None), formatting.struck)
        raised = next((style.raised for style in styles if style.raised is not None), formatting.raised)
        return TextRun("", bold, italic, struck, link=formatting.link, raised=raised)

    def _note(self, element: Element) -> Iterator[TextRun]:
        body = child(element, "text:note-body")
        place = len(self.notes)
        self.notes.append("")
        self.notes[place] = (
            one_line(self._inside(self.blocks(body))).replace(PAGE_BREAK, "") if body is not None else ""
        )
        yield TextRun(f"[^{place + 1}]", is_raw=True)

    def _frame(self, element: Element) -> Iterator[TextRun]:
        """Read a frame, which contains a formula, a picture, a chart or a text box."""
        boxes = list(descendants(element, "draw:text-box"))
        if name_of(element) == "draw:custom-shape":
            boxes = [element]
        self.boxes.extend(boxes)
        described = next((text for one in descendants(element, "svg:desc", "svg:title") if (text := text_of(one))), "")
        content = self._object(next(descendants(element, "draw:object"), None))
        if content is not None and local_name(content) == "math":
            yield TextRun(to_markup(from_mathml(content)), is_raw=True)
        elif content is not None:
            self.boxes += descendants(content, "office:chart", "office:spreadsheet")
        elif not boxes:
            yield from self._picture(element, described)

    def _object(self, element: Element | None) -> Element | None:
        """Return the formula or chart in an embedded object, which is stored in a separate file or inside the text."""
        inside = next((one for one in element if local_name(one) == "math"), None) if element is not None else None
        folder = (attribute(element, "xlink:href") or "").removeprefix("./")
        data = self.archive.find(f"{folder}/content.xml") if folder and inside is None else None
        return parse(data) if data else inside

    def _picture(self, element: Element, described: str) -> Iterator[TextRun]:
        image = next(descendants(element, "draw:image"), None)
        member = (attribute(image, "xlink:href") or "").removeprefix("./")
        if member in self.archive:
            yield from (TextRun(" "), TextRun(self.figures.add(member, described), is_raw=True), TextRun(" "))
        elif described:
            yield TextRun(f" [Image: {described}] ")

    def _list(self, element: Element, depth: int, style: str) -> Iterator[DocumentBlock]:
        style = attribute(element, "text:style-name") or style
        is_numbered = depth in self.styles.numbered.get(style, set())
        count = 0
        for item in element:
            if name_of(item) not in {"text:list-item", "text:list-header"}:
                continue
            count = number(attribute(item, "text:start-value"), count + 1)
            label = f"{count}." if is_numbered else ""
            for one in item:
                if name_of(one) == "text:list":
                    yield from self._list(one, min(depth + 1, _DEEPEST), style)
                    continue
                for block in self._paragraph(one) if name_of(one) in {"text:p", "text:h"} else self.blocks(one):
                    yield Item(depth, label, block.text) if isinstance(block, Paragraph) else block
                    label = label if not isinstance(block, Paragraph) else ""

    def _table(self, element: Element) -> Iterator[DocumentBlock]:
        rows: list[list[str]] = []
        spans: dict[int, tuple[int, str]] = {}
        for row in descendants(element, "table:table-row"):
            if _table_of(row) is not element:
                continue
            cells = self._row(row, spans)
            copies = number(attribute(row, "table:number-rows-repeated"), 1) if any(cells) else 1
            rows += [cells] * min(copies, _MOST_REPEATED_CELLS)
        filled = [number for number, row in enumerate(rows) if any(row)]
        if filled:
            rows = rows[filled[0] : filled[-1] + 1]
            rows[0] = [self.pending + rows[0][0], *rows[0][1:]]
            self.pending = ""
            yield Table(rows)

    def _row(self, row: Element, spans: dict[int, tuple[int, str]]) -> list[str]:
        """Read the cells of a table row.

        `spans` contains the cells that extend down from earlier rows: for each column, the number of remaining rows and
        the text.
        """
        cells: list[str] = []
        is_marked = any(name_of(cell) == "table:covered-table-cell" for cell in row)
        for cell in row:
            name = name_of(cell)
            copies = min(number(attribute(cell, "table:number-columns-repeated"), 1), _MOST_REPEATED_CELLS)
            if name == "table:covered-table-cell":
                for _ in range(copies):
                    self._cover(cells, spans)
            elif name == "table:table-cell":
                # Some programs leave out the cells that a cell above covers.
                while not is_marked and spans.get(len(cells), (0, ""))[0]:
                    self._cover(cells, spans)
                text = one_line(self.blocks(cell))
                repeated = text if len(text) <= MOST_REPEATED else ""
                down = number(attribute(cell, "table:number-rows-spanned"), 1) - 1
                spans[len(cells)] = (down, repeated)
                cells += [text] * (copies if text else 1)
                cells += [""] * (copies - 1 if not text else 0)
                if not _is_covered(cell.getnext()):
                    across = min(number(attribute(cell, "table:number-columns-spanned"), 1), _MOST_REPEATED_CELLS)
                    spans |= {len(cells) + place: (down, repeated) for place in range(across - 1)}
                    cells += [repeated] * (across - 1)
        while not is_marked and spans.get(len(cells), (0, ""))[0]:
            self._cover(cells, spans)
        while cells and not cells[-1]:
            cells.pop()
        return cells

    def _cover(self, cells: list[str], spans: dict[int, tuple[int, str]]) -> None:
        """Append a cell that is covered by a larger cell. Its text is copied from the cell above it or to its left."""
        left, text = spans.get(len(cells), (0, ""))
        if left:
            spans[len(cells)] = (left - 1, text)
        cells.append(text if left else cells[-1] if cells and len(cells[-1]) <= MOST_REPEATED else "")


def _is_covered(cell: Element | None) -> bool:
    return cell is not None and name_of(cell) == "table:covered-table-cell"


def _table_of(row: Element) -> Element | None:
    parent = row.getparent()
    while parent is not None and name_of(parent) != "table:table":
        parent = parent.getparent()
    return parent


PROCESSOR = Processor((SourceType.ODT,), extract, read_picture)
