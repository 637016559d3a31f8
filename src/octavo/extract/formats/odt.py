"""OpenDocument texts, as LibreOffice writes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from octavo.core.errors import Encrypted
from octavo.extract.extracted import Extracted, Metadata, SourceType
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
)
from octavo.extract.markdown.inline import PAGE_BREAK, TextRun, inline, safe_link
from octavo.extract.office.assemble import (
    clean_date,
    clean_language,
    clean_line,
    clean_title,
    non_empty,
    pages_between,
    take_page_breaks,
    to_extracted,
)
from octavo.extract.office.xml import Element, attribute, child, children, descendants, name_of, parse, text_of
from octavo.extract.registry import Hints, Processor
from octavo.extract.zips import Archive, read_picture, reject_deep_nesting

_LEFT_OUT = frozenset(
    {
        "office:annotation",
        "office:annotation-end",
        "office:forms",
        "text:index-title-template",
        "text:note",
        "text:sequence-decls",
        "text:tracked-changes",
    }
)
_CODE_STYLES = ("preformatted", "source code", "code")
_QUOTE_STYLES = ("quotation", "quote")
_MOST_SPACES = 100
_MOST_REPEATED_CELLS = 100
_MOST_ANCESTORS = 30
_DEEPEST = 8


def extract(path: Path, _hints: Hints) -> Extracted:
    with Archive(path) as archive, reject_deep_nesting():
        markdown, breaks = take_page_breaks(convert(archive))
        metadata = read_metadata(archive)
    pages = pages_between(breaks, len(markdown)) if breaks else ()
    return to_extracted(SourceType.ODT, markdown, metadata, pages=pages)


@dataclass(frozen=True, slots=True)
class Style:
    parent: str = ""
    bold: bool | None = None
    italic: bool | None = None
    struck: bool | None = None


@dataclass(slots=True)
class Styles:
    """Text styles by name, and the depths at which each list style has numbers."""

    texts: dict[str, Style] = field(default_factory=dict[str, Style])
    numbered: dict[str, set[int]] = field(default_factory=dict[str, set[int]])

    def read(self, root: Element | None) -> None:
        for one in descendants(root, "style:style"):
            properties = child(one, "style:text-properties")
            line = attribute(properties, "style:text-line-through-style")
            weight = attribute(properties, "fo:font-weight")
            slant = attribute(properties, "fo:font-style")
            self.texts[attribute(one, "style:name") or ""] = Style(
                attribute(one, "style:parent-style-name") or "",
                weight not in {"normal", "400"} if weight else None,
                slant != "normal" if slant else None,
                line != "none" if line else None,
            )
        for one in descendants(root, "text:list-style"):
            levels = children(one, "text:list-level-style-number")
            shown = [level for level in levels if attribute(level, "style:num-format")]
            depths = {_number(attribute(level, "text:level"), 1) - 1 for level in shown}
            self.numbered[attribute(one, "style:name") or ""] = depths

    def ancestry(self, name: str) -> Iterator[tuple[str, Style]]:
        """The style and its ancestors, with their names."""
        for _ in range(_MOST_ANCESTORS):
            style = self.texts.get(name)
            if style is None:
                if name:
                    yield name, Style()
                return
            yield name, style
            name = style.parent

    def is_named(self, name: str, *words: str) -> bool:
        names = (one.replace("_20_", " ").replace("_", " ").lower() for one, _ in self.ancestry(name))
        return any(one.startswith(words) for one in names)


def convert(archive: Archive) -> str:
    """Convert the document to Markdown, with page breaks if the document stores them reliably."""
    _reject_encrypted(archive)
    root = parse(archive.read("content.xml"))
    styles = Styles()
    for part in (archive.find("styles.xml"), None):
        styles.read(parse(part) if part else root)
    body = child(root, "office:body", "office:text")
    breaks = sum(1 for _ in descendants(body, "text:soft-page-break"))
    body_reader = _BodyReader(styles, marks_pages=breaks > 0 and _page_count(archive) == breaks + 1)
    blocks = list(body_reader.blocks(body)) if body is not None else []
    has_title = any(isinstance(block, Heading) and block.level == 0 for block in blocks)
    shifted = [
        Heading(block.level + has_title, block.text) if isinstance(block, Heading) else block for block in blocks
    ]
    body_reader.marks_pages = False
    notes = "\n".join(f"[^{number}]: {text}" for number, text in enumerate(body_reader.notes, 1))
    return "\n\n".join(filter(None, [write_blocks(shifted), notes]))


def _reject_encrypted(archive: Archive) -> None:
    manifest = archive.find("META-INF/manifest.xml")
    if manifest and any(True for _ in descendants(parse(manifest), "manifest:encryption-data")):
        raise Encrypted("Octavo cannot open encrypted ODT files yet. Save the file without a password.")


def read_metadata(archive: Archive) -> Metadata:
    data = archive.find("meta.xml")
    about = child(parse(data), "office:meta") if data else None
    fields = {name_of(one): text_of(one) for one in about} if about is not None else {}
    return Metadata(
        title=clean_title(fields.get("dc:title")),
        author=clean_line(fields.get("meta:initial-creator") or fields.get("dc:creator")),
        date=clean_date(fields.get("meta:creation-date")) or clean_date(fields.get("dc:date")),
        language=clean_language(fields.get("dc:language")),
        extra=non_empty(
            subject=fields.get("dc:subject"),
            keywords=fields.get("meta:keyword"),
            description=fields.get("dc:description"),
        ),
    )


def _page_count(archive: Archive) -> int | None:
    data = archive.find("meta.xml")
    found = next(descendants(parse(data), "meta:document-statistic"), None) if data else None
    return _number(attribute(found, "meta:page-count"), 0) or None


def _number(written: str | None, default: int) -> int:
    return int(written) if written and written.isdecimal() and len(written) < 7 else default  # noqa: PLR2004


@dataclass(slots=True)
class _BodyReader:
    styles: Styles
    marks_pages: bool
    notes: list[str] = field(default_factory=list[str])
    boxes: list[Element] = field(default_factory=list[Element])
    pending: str = ""

    def blocks(self, element: Element) -> Iterator[DocumentBlock]:
        for one in element:
            name = name_of(one)
            if name in {"text:p", "text:h"}:
                yield from self._paragraph(one)
            elif name == "text:list":
                yield from self._list(one, 0, "")
            elif name == "table:table":
                yield from self._table(one)
            elif name == "text:soft-page-break":
                self.pending += PAGE_BREAK if self.marks_pages else ""
            elif name not in _LEFT_OUT:  # sections, indexes, frames
                yield from self.blocks(one)

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
            level = _number(attribute(element, "text:outline-level"), 1)
            return Heading(max(level, 1), inline(runs, is_plain=True, one_line=True))
        if any(name == "Title" for name, _ in self.styles.ancestry(style)):
            return Heading(0, inline(runs, is_plain=True, one_line=True))
        if self.styles.is_named(style, *_CODE_STYLES):
            return Code("".join(run.text for run in runs).rstrip())
        return Quote(inline(runs)) if self.styles.is_named(style, *_QUOTE_STYLES) else Paragraph(inline(runs))

    def _runs(self, element: Element, formatting: TextRun) -> Iterator[TextRun]:
        """Yield the text in document order, as runs with the formatting of their enclosing spans."""
        yield self._run(element.text, formatting)
        for one in element:
            name = name_of(one)
            if name == "text:s":
                yield self._run(" " * min(_number(attribute(one, "text:c"), 1), _MOST_SPACES), formatting)
            elif name in {"text:tab", "text:line-break"}:
                yield TextRun(
                    "\t" if name == "text:tab" else "\n",
                    formatting.bold,
                    formatting.italic,
                    formatting.struck,
                    link=formatting.link,
                )
            elif name == "text:soft-page-break":
                yield TextRun(
                    PAGE_BREAK if self.marks_pages else "",
                    formatting.bold,
                    formatting.italic,
                    formatting.struck,
                    link=formatting.link,
                )
            elif name == "text:note":
                yield from self._note(one)
            elif name in {"draw:frame", "draw:custom-shape", "draw:g"}:
                yield from self._frame(one)
            elif name == "text:ruby":
                yield from self._runs(one, formatting)
            elif name not in _LEFT_OUT:
                yield from self._runs(one, self._formatting(one, name, formatting))
            yield self._run(one.tail, formatting)

    def _run(self, text: str | None, formatting: TextRun) -> TextRun:
        text = (text or "").replace("\n", " ").replace(PAGE_BREAK, "")
        return TextRun(text, formatting.bold, formatting.italic, formatting.struck, link=formatting.link)

    def _formatting(self, element: Element, name: str, formatting: TextRun) -> TextRun:
        if name == "text:a":
            return TextRun(
                "",
                formatting.bold,
                formatting.italic,
                formatting.struck,
                link=safe_link(attribute(element, "xlink:href")),
            )
        if name != "text:span":
            return formatting
        styles = [style for _, style in self.styles.ancestry(attribute(element, "text:style-name") or "")]
        bold = next((style.bold for style in styles if style.bold is not None), formatting.bold)
        italic = next((style.italic for style in styles if style.italic is not None), formatting.italic)
        struck = next((style.struck for style in styles if style.struck is not None), formatting.struck)
        return TextRun("", bold, italic, struck, link=formatting.link)

    def _note(self, element: Element) -> Iterator[TextRun]:
        body = child(element, "text:note-body")
        place = len(self.notes)
        self.notes.append("")
        self.notes[place] = one_line(self.blocks(body)).replace(PAGE_BREAK, "") if body is not None else ""
        yield TextRun(f"[^{place + 1}]", is_raw=True)

    def _frame(self, element: Element) -> Iterator[TextRun]:
        boxes = list(descendants(element, "draw:text-box"))
        if name_of(element) == "draw:custom-shape":
            boxes = [element]
        self.boxes.extend(boxes)
        described = next((text for one in descendants(element, "svg:desc", "svg:title") if (text := text_of(one))), "")
        if described and not boxes:
            yield TextRun(f" [Image: {described}] ")

    def _list(self, element: Element, depth: int, style: str) -> Iterator[DocumentBlock]:
        style = attribute(element, "text:style-name") or style
        is_numbered = depth in self.styles.numbered.get(style, set())
        number = 0
        for item in element:
            if name_of(item) not in {"text:list-item", "text:list-header"}:
                continue
            number = _number(attribute(item, "text:start-value"), number + 1)
            label = f"{number}." if is_numbered else ""
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
            copies = _number(attribute(row, "table:number-rows-repeated"), 1) if any(cells) else 1
            rows += [cells] * min(copies, _MOST_REPEATED_CELLS)
        filled = [number for number, row in enumerate(rows) if any(row)]
        if filled:
            rows = rows[filled[0] : filled[-1] + 1]
            rows[0] = [self.pending + rows[0][0], *rows[0][1:]]
            self.pending = ""
            yield Table(rows)

    def _row(self, row: Element, spans: dict[int, tuple[int, str]]) -> list[str]:
        """Read the cells of a row.

        For each column, `spans` contains how many more rows a cell above covers, and the text of that cell.
        """
        cells: list[str] = []
        for cell in row:
            name = name_of(cell)
            if name == "table:covered-table-cell":
                left, text = spans.get(len(cells), (0, ""))
                if left:
                    spans[len(cells)] = (left - 1, text)
                cells.append(text if left else cells[-1] if cells and len(cells[-1]) <= MOST_REPEATED else "")
            elif name == "table:table-cell":
                text = one_line(self.blocks(cell))
                down = _number(attribute(cell, "table:number-rows-spanned"), 1) - 1
                spans[len(cells)] = (down, text if len(text) <= MOST_REPEATED else "")
                copies = min(_number(attribute(cell, "table:number-columns-repeated"), 1), _MOST_REPEATED_CELLS)
                cells += [text] * (copies if text else 1)
                cells += [""] * (copies - 1 if not text else 0)
        while cells and not cells[-1]:
            cells.pop()
        return cells


def _table_of(row: Element) -> Element | None:
    parent = row.getparent()
    while parent is not None and name_of(parent) != "table:table":
        parent = parent.getparent()
    return parent


PROCESSOR = Processor((SourceType.ODT,), extract, read_picture)
