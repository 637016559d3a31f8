"""Reads Word documents: headings, paragraphs, lists, tables, charts, text boxes and comments.

Footnotes and endnotes are placed at the end. Styles and numbering decide whether a paragraph is a heading or a list
item.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from octavo.extract.detect import Hints, Processor
from octavo.extract.extracted import Extracted, SourceType
from octavo.extract.formats.docx.paragraphs import ParagraphReader
from octavo.extract.formats.docx.styles import Numbering, Styles, numbering_of, outline_level
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
from octavo.extract.markdown.inline import PAGE_BREAK, TextRun, inline
from octavo.extract.office.assemble import Figures, pages_between, take_page_breaks, to_extracted
from octavo.extract.office.ooxml import Package, read_chart
from octavo.extract.office.xml import Element, attribute, child, children, descendants, name_of
from octavo.extract.zips import Archive, read_picture, reject_deep_nesting

_MAIN = "word/document.xml"
_TRANSPARENT = frozenset(
    {"w:sdt", "w:sdtContent", "w:customXml", "w:ins", "w:moveTo", "w:smartTag", "w:body", "mc:Choice", "mc:Fallback"}
)
_SIGNS_OF_CODE = frozenset("(){}[];=<>")
_NOTES = {"footnote": "footnotes", "endnote": "endnotes"}
_FORMULA = re.compile(r'<math(?: display="block")?>([^<>]*)</math>')
_ONLY_FORMULAS = re.compile(r'(?:<math(?: display="block")?>[^<>]*</math>\s*)+')
MOST_COLUMNS = 200
Cell = list[DocumentBlock]


def extract(path: Path, _hints: Hints) -> Extracted:
    with Archive(path) as archive, reject_deep_nesting():
        package = Package(archive)
        figures = Figures()
        markdown, breaks = take_page_breaks(convert(package, figures))
        metadata = package.metadata()
    pages = pages_between(breaks, len(markdown)) if breaks else ()
    return to_extracted(SourceType.DOCX, markdown, metadata, pages=pages, figures=figures)


def convert(package: Package, figures: Figures) -> str:
    """Convert the document to Markdown.

    Page breaks are included only if they produce as many pages as the document's metadata states.
    """
    name, root = package.main(_MAIN)
    styles = Styles(package.part(package.related(name, "styles")))
    numbering = Numbering(package.part(package.related(name, "numbering")))
    breaks = sum(1 for _ in descendants(root, "w:lastRenderedPageBreak"))
    reader = ParagraphReader(
        styles,
        package.relations(name),
        figures=figures,
        marks_pages=breaks > 0 and package.page_count() == breaks + 1,
    )
    body = _BodyReader(reader, numbering, package, _comments(package, name))
    blocks = [*body.blocks(root), *body.take_comments()]
    text = write_blocks(shift_headings(blocks)) + body.pending
    reader.marks_pages = False
    notes = "\n".join(_notes(package, name, body))
    return f"{text}\n\n{notes}" if notes else text


def shift_headings(blocks: list[DocumentBlock]) -> list[DocumentBlock]:
    """If the document has a title, add one to the level of each heading, so that only the title has level 1."""
    has_title = any(isinstance(block, Heading) and block.level == 0 for block in blocks)
    if not has_title:
        return blocks
    return [replace(block, level=block.level + 1) if isinstance(block, Heading) else block for block in blocks]


def _notes(package: Package, part: str, body: _BodyReader) -> Iterator[str]:
    roots = {kind: package.part(package.related(part, name)) for kind, name in _NOTES.items()}
    found = {
        (kind, attribute(one, "w:id") or ""): one for kind, root in roots.items() for one in children(root, f"w:{kind}")
    }
    for key, number in list(body.reader.notes.order.items()):
        text = one_line(body.blocks(found[key])) if key in found else ""
        if text:
            yield f"[^{number}]: {text}"


def _comments(package: Package, part: str) -> dict[str, tuple[str, str]]:
    """Return the author and the text of each comment, by id."""
    root = package.part(package.related(part, "comments"))
    found: dict[str, tuple[str, str]] = {}
    for one in children(root, "w:comment"):
        texts = ("".join(text.text or "" for text in descendants(p, "w:t")) for p in descendants(one, "w:p"))
        found[attribute(one, "w:id") or ""] = attribute(one, "w:author") or "", " ".join(" ".join(texts).split())
    return found


@dataclass(slots=True)
class _BodyReader:
    """Reads the blocks of the document body.

    `pending` holds the page breaks in empty paragraphs until the next block with text. `depth` is the number of tables
    around the current block. Comments inside a table or list are added after the outermost table or the whole list.
    """

    reader: ParagraphReader
    numbering: Numbering
    package: Package
    comments: dict[str, tuple[str, str]]
    pending: str = ""
    last_was_code: bool = False
    depth: int = 0

    def take_comments(self) -> Iterator[DocumentBlock]:
        """Yield the comments on the text read so far, and clear the list of pending comments."""
        for one in self.reader.comments:
            yield from write_comment(*self.comments.pop(one, ("", "")))
        self.reader.comments = []

    def blocks(self, element: Element) -> Iterator[DocumentBlock]:
        for one in element:
            name = name_of(one)
            if name in {"w:p", "w:tbl"}:
                yield from self._with_comments(self._paragraph(one) if name == "w:p" else self._table(one))
            elif name == "mc:AlternateContent":
                yield from next(
                    (blocks for choice in one if (blocks := list(self.blocks(choice)))), list[DocumentBlock]()
                )
            elif name in _TRANSPARENT:
                yield from self.blocks(one)

    def _with_comments(self, blocks: Iterator[DocumentBlock]) -> Iterator[DocumentBlock]:
        """Add the comments on a block after that block. Comments on list items are added after the whole list."""
        earlier, self.reader.comments = self.reader.comments, []
        found = list(blocks)
        if self.depth or not found or isinstance(found[-1], Item):
            self.reader.comments = earlier + self.reader.comments
            yield from found
            return
        own, self.reader.comments = self.reader.comments, earlier
        yield from self.take_comments()
        yield from found
        self.reader.comments = own
        yield from self.take_comments()

    def _table(self, element: Element) -> Iterator[DocumentBlock]:
        self.depth += 1
        rows = read_table(element, lambda cell: list(self.blocks(cell)))
        self.depth -= 1
        cells = [cell for row in rows for cell in row]
        self.last_was_code = False
        if len(cells) == 1:  # a one-cell table is only a frame around text
            yield from cells[0]
            return
        texts = [[one_line(cell) for cell in row] for row in rows]
        if any(text.replace(PAGE_BREAK, "") for row in texts for text in row):
            texts[0][0], self.pending = self.pending + texts[0][0], ""
            yield Table(texts)

    def _paragraph(self, element: Element) -> Iterator[DocumentBlock]:
        properties = child(element, "w:pPr")
        style = attribute(child(properties, "w:pStyle"), "w:val") or "Normal"
        runs = list(self.reader.read(element))
        boxes, self.reader.boxes = self.reader.boxes, []
        charts, self.reader.charts = self.reader.charts, []
        block = self._block(runs, properties, style)
        if block is not None:
            self.last_was_code = isinstance(block, Code)
            yield self._with_page_breaks(block)
        else:
            self.pending += PAGE_BREAK * sum(run.text.count(PAGE_BREAK) for run in runs)
        for chart in charts:
            yield from read_chart(self.package.part(chart))
        for box in boxes:
            yield from self.blocks(box)

    def _with_page_breaks(self, block: DocumentBlock) -> DocumentBlock:
        pending, self.pending = self.pending, ""
        if not pending or isinstance(block, Table):
            return block
        return (
            replace(block, line=pending + block.line)
            if isinstance(block, Code)
            else replace(block, text=pending + block.text)
        )

    def _block(self, runs: list[TextRun], properties: Element | None, style: str) -> DocumentBlock | None:
        styles = self.reader.styles
        level = outline_level(properties)
        level = styles.level(style) if level is None else level
        depth, label = self._label(properties, style)
        if not any(run.text.replace(PAGE_BREAK, "").strip() for run in runs):
            return None
        if level is not None:
            text = inline(runs, is_plain=True, one_line=True)
            return Heading(level, f"{label} {text}" if label else text)
        code = self._code(runs, style)
        if code is not None:
            return Code(code)
        runs = [replace(run, code=False) for run in runs] if all(run.code for run in runs) else runs
        if label is not None:
            return Item(depth, label, inline(runs))
        contents = styles.contents_depth(style)
        if contents is not None:
            return Item(contents, "", inline(runs, is_plain=True, one_line=True))
        return Quote(inline(runs)) if styles.is_quote(style) else Paragraph(_separate_formulas(inline(runs)))

    def _label(self, properties: Element | None, style: str) -> tuple[int, str | None]:
        """Return the depth of a paragraph in a list, and its label, such as "2.". The label is None outside lists."""
        number, depth = numbering_of(properties)
        styled_number, styled_depth = self.reader.styles.numbering(style)
        number = styled_number if number is None else number
        if number is not None:
            by_style = self.numbering.depth_of_style(number, style)
            depth = next(one for one in (depth, by_style, styled_depth, 0) if one is not None)
            label = self.numbering.next_label(number, depth)
            if label is not None or number == "0":
                return max(depth, self.reader.styles.list_depth(style)), label
        bullet = self.reader.styles.bullet_depth(style)
        return bullet or 0, None if bullet is None else ""

    def _code(self, runs: list[TextRun], style: str) -> str | None:
        """Return the text of a line of code. Returns None if the text is not code.

        Code is recognised by its style. Text in a monospaced font is code only if it also looks like code.
        """
        text = "".join(run.text for run in runs).rstrip()
        if self.reader.styles.is_code(style):
            return text
        if not all(run.code or not run.text.strip() for run in runs):
            return None
        looks_like_code = self.last_was_code or text.startswith((" ", "\t")) or not _SIGNS_OF_CODE.isdisjoint(text)
        return text if looks_like_code else None


def _separate_formulas(text: str) -> str:
    """If the text consists only of formulas, put each formula into a separate paragraph."""
    if not _ONLY_FORMULAS.fullmatch(text):
        return text
    return "\n\n".join(f'<math display="block">{line}</math>' for line in _FORMULA.findall(text))


def read_table(element: Element, read: Callable[[Element], Cell]) -> list[list[Cell]]:
    """Read the rows of a table. Short text in a merged cell is repeated in every cell that the merged cell covers."""
    table = _TableReader(read)
    return [row for one in _inside(element, "w:tr") if (row := table.row(one))]


@dataclass(slots=True)
class _TableReader:
    """Reads the rows of a table. `above` maps columns to the cells of the previous row, for vertically merged cells."""

    read: Callable[[Element], Cell]
    above: dict[int, Cell] = field(default_factory=dict[int, Cell])

    def row(self, element: Element) -> list[Cell]:
        properties = child(element, "w:trPr")
        if child(properties, "w:del") is not None:
            return []
        cells: list[Cell] = [[] for _ in range(_count(child(properties, "w:gridBefore"), 0))]
        for one in _inside(element, "w:tc"):
            about = child(one, "w:tcPr")
            content = self._content(one, about, len(cells))
            span = _count(child(about, "w:gridSpan"), 1)
            cells.append(content)
            if span > 1:
                cells += [content if len(one_line(content)) <= MOST_REPEATED else []] * (span - 1)
        self.above = dict(enumerate(cells))
        return cells[:MOST_COLUMNS]

    def _content(self, element: Element, about: Element | None, column: int) -> Cell:
        merged = child(about, "w:vMerge")
        is_further = merged is not None and attribute(merged, "w:val") != "restart"
        content = self.read(element)
        if content or not is_further:
            return content
        above = self.above.get(column, [])
        return above if len(one_line(above)) <= MOST_REPEATED else []


def _inside(element: Element, name: str) -> Iterator[Element]:
    """Yield the rows or cells in an element, including those inside content controls and tracked insertions."""
    for one in element:
        if name_of(one) == name:
            yield one
        elif name_of(one) in {"w:sdt", "w:sdtContent", "w:ins", "w:moveTo", "w:customXml"}:
            yield from _inside(one, name)


def _count(element: Element | None, default: int) -> int:
    written = attribute(element, "w:val") or ""
    return min(int(written), MOST_COLUMNS) if written.isdecimal() and len(written) < 7 else default  # noqa: PLR2004


PROCESSOR = Processor((SourceType.DOCX,), extract, read_picture)
