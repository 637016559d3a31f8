"""Reads Word files from before 2007: headings, paragraphs, lists, tables, text boxes, notes, comments and pictures."""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from octavo.core.errors import BadInput, NotFound
from octavo.extract.decode import clean, symbols_of
from octavo.extract.detect import Hints, Processor
from octavo.extract.extracted import Extracted, SourceType
from octavo.extract.formats.doc.formatting import CharacterFormat, ParagraphFormat, find_anchored, read_numbering
from octavo.extract.formats.docx import shift_headings
from octavo.extract.formats.docx.styles import Numbering
from octavo.extract.markdown.block_writer import (
    MOST_REPEATED,
    DocumentBlock,
    Heading,
    Item,
    Paragraph,
    Table,
    one_line,
    write_blocks,
    write_comment,
)
from octavo.extract.markdown.inline import TextRun, inline, plain, safe_link
from octavo.extract.office import word_binary as word
from octavo.extract.office.assemble import Figures, to_extracted
from octavo.extract.zips import DAMAGED, Container, find_picture, open_container, reject_deep_nesting

_PARAGRAPH_ENDS = re.compile("[\r\x07\x0c]")
_FIELD_LINK = re.compile(r'\s*HYPERLINK\s+(?:\\[a-z]\s+)*"([^"]{1,2000})"')
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f]")
_CHARACTERS = {"\x0b": "\n", "\x0e": "\n", "\x1e": "\u2011", "\x1f": "", "\t": "\t"}
_HEADINGS, _TITLE, _CONTENTS = range(1, 10), 62, range(19, 28)
_TOLERANCE = 60  # in twentieths of a point; column edges that are closer than this are the same edge
_CELL_BYTES = 20
_MOST_COLUMNS = 200
_MOST_FIELDS = 50
_MOST_INSTRUCTION = 3000
_STYLE = 0x4A30
_MOST_NESTED = 5


def extract(path: Path, _hints: Hints) -> Extracted:
    with open_container(path) as container, reject_deep_nesting():
        file, data = _open(container)
        metadata = container.metadata()
        reader = _Reader(file, data, read_numbering(file))
        try:
            blocks = reader.body()
        except (struct.error, IndexError) as error:
            raise BadInput(f"{DAMAGED}its structure is broken.") from error
    markdown = _joined("\n\n".join(filter(None, [write_blocks(shift_headings(blocks)), "\n".join(reader.notes)])))
    return to_extracted(SourceType.DOC, markdown, metadata, figures=reader.figures)


def _open(container: Container) -> tuple[word.WordFile, bytes]:
    main = container.read("WordDocument")
    try:
        file = word.open_word(main, (container.read("0Table"), container.read("1Table")))
    except struct.error as error:
        raise BadInput(f"{DAMAGED}its structure is broken.") from error
    return file, container.read("Data")


def read_figure(path: Path, member: str) -> bytes:
    """Return the bytes of a picture. `member` is `data:1234` for the picture at offset 1234."""
    number = member.removeprefix("data:")
    with open_container(path) as container:
        data = container.read("Data")
    found = _picture(data, int(number)) if number.isdecimal() and len(number) < 11 else b""  # noqa: PLR2004
    if not found:
        raise NotFound("The file does not contain this picture.")
    return found


def _picture(data: bytes, place: int) -> bytes:
    """Return the picture at this offset. Returns empty bytes if it is not a PNG or JPEG."""
    size = struct.unpack_from("<I", data, place)[0] if place + 4 <= len(data) else 0
    return find_picture(data[place : place + size])


def _joined(text: str) -> str:
    """Join surrogate pairs: the file stores characters above U+FFFF as two separate characters."""
    return clean(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))


@dataclass(slots=True)
class _Field:
    instruction: str = ""
    shows_result: bool = False
    link: str = ""


@dataclass(slots=True)
class _Row:
    """The cells of a table row.

    `edges` are the horizontal positions of the cell borders. `merged` contains the indexes of the cells that continue
    the cell above them.
    """

    cells: list[list[DocumentBlock]]
    edges: list[int] = field(default_factory=list[int])
    merged: set[int] = field(default_factory=set[int])


class _Reader:
    def __init__(self, file: word.WordFile, data: bytes, numbering: Numbering) -> None:
        self.file, self.data, self.numbering = file, data, numbering
        self.figures = Figures()
        self.notes: list[str] = []
        self.comments: list[DocumentBlock] = []
        self.fields: list[_Field] = []
        self.boxes: list[tuple[int, int]] = []
        self.nested = 0
        self.anchored = find_anchored(file)
        self.styled = lru_cache(maxsize=4096)(self._styled)
        self.formatted = lru_cache(maxsize=4096)(self._formatted)

    def body(self) -> list[DocumentBlock]:
        blocks = list(self.blocks(0, self.file.counts.text))
        # Text boxes inside groups have no position in the text.
        for box in self.anchored.others:
            blocks += self.blocks(*box)
        return [*blocks, *self.comments]

    def blocks(self, start: int, end: int) -> Iterator[DocumentBlock]:
        """Yield the blocks between two positions. Comments follow the paragraph, list or table that they belong to."""
        table = _TableParts()
        for first, last in self._paragraphs(start, end):
            earlier, self.comments = self.comments, []
            form = self._paragraph_format(last)
            found = list(self._paragraph(first, last, form))
            if form.in_table:
                self.comments = earlier + self.comments
                table.add(found, form, is_cell=self.file.text[last : last + 1] == "\x07")
                continue
            yield from table.finish()
            waits = bool(found) and isinstance(found[0], Item)
            own, self.comments = self.comments, earlier + self.comments if waits else []
            yield from found if waits else [*earlier, *found, *own]
        yield from table.finish()

    def _paragraphs(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the start of each paragraph, and the position of the character that ends it."""
        end = min(end, len(self.file.text))
        while start < end:
            found = _PARAGRAPH_ENDS.search(self.file.text, start, end)
            last = found.start() if found else end
            yield start, last
            start = last + 1

    def _paragraph_format(self, position: int) -> ParagraphFormat:
        run = self.file.paragraph_at(position)
        form = ParagraphFormat()
        if run is None:
            return form
        for style in reversed(list(self.file.ancestry(run.style))):
            if style.builtin in _HEADINGS or style.builtin == _TITLE:
                form.level = style.builtin if style.builtin != _TITLE else 0
            form.contents = style.builtin - _CONTENTS.start if style.builtin in _CONTENTS else form.contents
            for change in word.modifiers(style.paragraph):
                form.change(*change)
        for what, value in word.modifiers(run.modifiers):
            if what in {0x6645, 0x6646}:  # long properties are stored elsewhere
                at = int.from_bytes(value, "little")
                size = int.from_bytes(self.data[at : at + 2], "little")
                for change in word.modifiers(self.data[at + 2 : at + 2 + size]):
                    form.change(*change)
            form.change(what, value)
        return form

    def _paragraph(self, first: int, last: int, form: ParagraphFormat) -> Iterator[DocumentBlock]:
        run = self.file.paragraph_at(last)
        boxes, self.boxes = self.boxes, []
        runs = list(self._runs(first, last, run.style if run else 0))
        own, self.boxes = self.boxes, boxes
        if plain(runs):
            yield self._block(runs, form)
        for box in own if self.nested < _MOST_NESTED else ():
            self.nested += 1
            yield from self.blocks(*box)
            self.nested -= 1

    def _block(self, runs: list[TextRun], form: ParagraphFormat) -> DocumentBlock:
        label = self.numbering.next_label(str(form.use), form.depth) if form.use else None
        is_picture = all(run.is_raw or not run.text.strip() for run in runs)
        if form.level is not None and not form.in_table and not is_picture:
            text = inline(runs, is_plain=True, one_line=True)
            return Heading(form.level, f"{label} {text}" if label else text)
        if label is not None:
            return Item(form.depth, label, inline(runs))
        if form.contents is not None:
            return Item(form.contents, "", inline(runs, is_plain=True, one_line=True))
        return Paragraph(inline(runs))

    def _styled(self, style: int) -> CharacterFormat:
        """Return the character format of a style, including the styles that it is based on."""
        found = CharacterFormat()
        for one in reversed(list(self.file.ancestry(style))):
            for change in word.modifiers(one.characters):
                found.change(*change, found)
        return found

    def _formatted(self, style: int, modifiers: bytes) -> CharacterFormat:
        changes = list(word.modifiers(modifiers))
        of_characters = next((int.from_bytes(value, "little") for what, value in changes if what == _STYLE), None)
        styled = replace(self.styled(style))
        for one in reversed(list(self.file.ancestry(of_characters)) if of_characters is not None else []):
            for change in word.modifiers(one.characters):
                styled.change(*change, styled)
        found = replace(styled)
        for change in changes:
            found.change(*change, styled)
        return found

    def _runs(self, first: int, last: int, style: int) -> Iterator[TextRun]:
        for start, stop, modifiers in self.file.runs_between(first, last):
            form = self.formatted(style, modifiers)
            if form.hidden:
                continue
            if form.symbol:
                yield from self._text(_symbol(form.symbol), form)
                continue
            text = self.file.text[start:stop]
            done = 0
            for control in _CONTROLS.finditer(text):
                yield from self._text(text[done : control.start()], form)
                done = control.end()
                yield from self._control(control.group(), start + control.start(), form)
            yield from self._text(text[done:], form)

    def _text(self, text: str, form: CharacterFormat) -> Iterator[TextRun]:
        inner = next((one for one in reversed(self.fields) if not one.shows_result), None)
        if inner is not None:
            inner.instruction = (inner.instruction + text)[:_MOST_INSTRUCTION]
        elif text:
            link = next((one.link for one in reversed(self.fields) if one.link), "")
            yield TextRun(text.replace("\x0b", "\n"), form.bold, form.italic, form.struck, link=link)

    def _control(self, sign: str, position: int, form: CharacterFormat) -> Iterator[TextRun]:
        """Handle a control character.

        A control character marks the position of a field, note, comment, picture or text box, or it represents a
        special character.
        """
        match sign:
            case "\x13" | "\x14" | "\x15":
                self._field(sign)
            case "\x01" | "\x08" if form.special and not form.is_data:
                yield from self._drawing(position, form)
            case "\x02" if position in self.anchored.notes:
                place = self.anchored.notes.pop(position)
                number = len(self.notes) + 1
                self.notes.append("")
                self.notes[number - 1] = f"[^{number}]: {self._line(*place)}"
                yield TextRun(f"[^{number}]", is_raw=True)
            case "\x05" if position in self.anchored.comments:
                start, end, author = self.anchored.comments.pop(position)
                self.comments += write_comment(author, self._line(start, end))
            case _:
                yield from self._text(_CHARACTERS.get(sign, ""), form)

    def _line(self, start: int, end: int) -> str:
        """Return the text of a footnote or comment as a single line, without the comments attached to that text."""
        waiting, self.comments = self.comments, []
        fields, self.fields = self.fields, []
        text = one_line(self.blocks(start, end))
        self.comments, self.fields = waiting + self.comments, fields
        return text

    def _field(self, sign: str) -> None:
        if sign == "\x13" and len(self.fields) < _MOST_FIELDS:
            self.fields.append(_Field())
        elif sign == "\x14" and self.fields:
            found = _FIELD_LINK.match(self.fields[-1].instruction)
            self.fields[-1].shows_result = True
            self.fields[-1].link = safe_link(found[1]) if found else ""
        elif sign == "\x15" and self.fields:
            self.fields.pop()

    def _drawing(self, position: int, form: CharacterFormat) -> Iterator[TextRun]:
        box = self.anchored.boxes.pop(position, None)
        if box is not None:
            self.boxes.append(box)
        elif form.picture is not None:
            member = f"data:{form.picture}" if _picture(self.data, form.picture) else None
            yield TextRun(self.figures.add(member), is_raw=True)
        elif position in self.anchored.shapes:
            yield TextRun(self.figures.add(None), is_raw=True)


def _symbol(code: int) -> str:
    """Convert a character code of a symbol font to a Unicode character."""
    return symbols_of(chr(code)) if code and not 0xD800 <= code < 0xE000 else ""  # noqa: PLR2004


# Tables -------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _TableParts:
    """Collects the paragraphs of a table until the table ends."""

    rows: list[_Row] = field(default_factory=list[_Row])
    row: list[list[DocumentBlock]] = field(default_factory=list[list[DocumentBlock]])
    cell: list[DocumentBlock] = field(default_factory=list[DocumentBlock])

    def add(self, blocks: list[DocumentBlock], form: ParagraphFormat, *, is_cell: bool) -> None:
        if form.ends_row and form.nesting < 2:  # noqa: PLR2004 - a table inside a cell
            self.rows.append(_Row(self.row, *_columns(form.columns)))
            self.row, self.cell = [], []
            return
        self.cell += blocks
        if is_cell:
            self.row.append(self.cell)
            self.cell = []

    def finish(self) -> Iterator[DocumentBlock]:
        rows = [*self.rows, _Row([*self.row, self.cell])] if self.row or self.cell else self.rows
        self.rows, self.row, self.cell = [], [], []
        cells = [cell for row in rows for cell in row.cells]
        if len(cells) == 1:  # a one-cell table is only a frame around text
            yield from cells[0]
            return
        texts = _grid(rows)
        if any(map(any, texts)):
            yield Table(texts)


def _columns(definition: bytes) -> tuple[list[int], set[int]]:
    """Return the column edges of a table row, and the indexes of the cells that continue the cell above."""
    count = min(definition[2], _MOST_COLUMNS) if len(definition) > 2 else 0  # noqa: PLR2004 - the size comes first
    cells = 3 + 2 * (count + 1)
    if not count or len(definition) < cells:
        return [], set()
    edges = list(struct.unpack_from(f"<{count + 1}h", definition, 3))
    flags = (definition[cells + _CELL_BYTES * number : cells + _CELL_BYTES * number + 1] for number in range(count))
    return edges, {number for number, flag in enumerate(flags) if flag and flag[0] & 0x60 == 0x20}  # noqa: PLR2004


def _grid(rows: list[_Row]) -> list[list[str]]:
    """Return the texts of all cells as rows of equal length.

    If a cell covers several columns or rows and its text is short, the text is repeated in all of them.
    """
    edges: list[int] = []
    for edge in sorted({edge for row in rows for edge in row.edges}):
        if not edges or edge - edges[-1] > _TOLERANCE:
            edges.append(edge)
    grid: list[list[str]] = []
    for row in rows:
        texts = [one_line(cell) for cell in row.cells[:_MOST_COLUMNS]]
        above = grid[-1] if grid else []
        if len(row.edges) != len(texts) + 1:
            grid.append(texts)
            continue
        written = [""] * _column(edges, row.edges[0])
        for number, own in enumerate(texts):
            place = len(written)
            continued = above[place] if number in row.merged and place < len(above) else ""
            text = own or (continued if len(continued) <= MOST_REPEATED else "")
            span = max(_column(edges, row.edges[number + 1]) - _column(edges, row.edges[number]), 1)
            written += [text, *[text if len(text) <= MOST_REPEATED else ""] * (span - 1)]
        grid.append(written[:_MOST_COLUMNS])
    return grid


def _column(edges: list[int], edge: int) -> int:
    return max(bisect_right(edges, edge) - 1, 0)


PROCESSOR = Processor((SourceType.DOC,), extract, read_figure)
