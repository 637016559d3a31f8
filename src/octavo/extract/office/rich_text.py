"""Parses RTF control words into paragraphs, lists, tables, notes, comments and pictures."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

from octavo.core.errors import BadInput
from octavo.extract.decode import symbols_of
from octavo.extract.markdown.block_writer import (
    MOST_REPEATED,
    DocumentBlock,
    Heading,
    Item,
    Paragraph,
    Table,
    one_line,
    write_comment,
)
from octavo.extract.markdown.inline import PAGE_BREAK, TextRun, inline, plain, safe_link
from octavo.extract.office.assemble import Figures
from octavo.extract.zips import DAMAGED

_TOKEN = re.compile(
    r"\\(?P<word>[a-zA-Z]{1,32})(?P<number>-?\d{1,10})? ?|\\'(?P<byte>[0-9a-fA-F]{2})|\\(?P<sign>[^a-zA-Z])"
    r"|(?P<brace>[{}])|(?P<text>[^\\{}\r\n]+)"
)
_FIELD_LINK = re.compile(r'\s*HYPERLINK\s+(?:\\[a-z]\s+)?"([^"]{1,2000})"')
_LABEL = re.compile(r"[(]?(?:\d{1,4}|[a-zA-Z]{1,5})(?:\.\d{1,4})*[.)]?")
_MOST_DEPTH = 10_000
SYMBOLS = "symbols"  # instead of the name of an encoding, for fonts without letters

_CHARACTERS = {
    "tab": "\t",
    "line": "\n",
    "lbr": "\n",
    "emspace": " ",
    "enspace": " ",
    "qmspace": " ",
    "bullet": "•",
    "emdash": "—",
    "endash": "\u2013",
    "lquote": "\u2018",
    "rquote": "\u2019",
    "ldblquote": "“",
    "rdblquote": "”",
}
_SIGNS = {"~": "\u00a0", "_": "\u2011", "{": "{", "}": "}", "\\": "\\", "\n": "\n", "\r": "\n"}
_SKIPPED = frozenset(
    {
        *("colortbl", "fonttbl", "stylesheet", "info", "nonesttables", "header", "headerl", "headerr", "headerf"),
        *("footer", "footerl", "footerr", "footerf", "nonshppict", "filetbl", "listtable", "listoverridetable"),
        *("revtbl", "rsidtbl", "generator", "xmlnstbl", "tc", "xe"),
    }
)
_KEPT_STARRED = frozenset(
    {"shppict", "shpinst", "shptxt", "fldinst", "annotation", "atnauthor", "cs", "listtext", "pntext"}
)
_COLLECTED = frozenset({"fldinst", "footnote", "annotation", "atnauthor", "listtext", "pntext", "pict"})
# Windows picture formats. Octavo cannot draw them.
_DRAWINGS = frozenset({"emfblip", "wmetafile", "pmmetafile", "dibitmap", "wbitmap", "macpict", "bin"})


@dataclass(slots=True)
class State:
    """The formatting inside an RTF group.

    If the group does not belong to the body, for example because it is a footnote, its text is collected in
    `collector`.
    """

    bold: bool = False
    italic: bool = False
    struck: bool = False
    hidden: bool = False
    raised: bool = False
    skipped: bool = False
    size: int = 24
    codec: str = "cp1252"
    fallback: int = 1  # the number of characters after \u that replace it in older programs
    link: str = ""
    destination: str = ""
    collector: list[TextRun] | None = None


@dataclass(slots=True)
class ParagraphFormat:
    style: int = 0
    level: int | None = None
    in_table: bool = False
    depth: int = 0
    is_item: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A paragraph with its font size.

    It becomes a heading or an ordinary paragraph after the whole file has been read, when all font sizes are known.
    """

    runs: list[TextRun]
    size: int


@dataclass(slots=True)
class Reader:
    """Reads an RTF file token by token."""

    figures: Figures
    state: State = field(default_factory=State)
    stack: list[State] = field(default_factory=list[State])
    format: ParagraphFormat = field(default_factory=ParagraphFormat)
    runs: list[TextRun] = field(default_factory=list[TextRun])
    blocks: list[DocumentBlock | Line] = field(default_factory=list[DocumentBlock | Line])
    cell: list[DocumentBlock | Line] = field(default_factory=list[DocumentBlock | Line])
    row: list[str] = field(default_factory=list[str])
    merges: list[str] = field(default_factory=list[str])
    merge: str = ""
    rows: list[list[str]] = field(default_factory=list[list[str]])
    label: str | None = None
    notes: list[str] = field(default_factory=list[str])
    comments: list[DocumentBlock] = field(default_factory=list[DocumentBlock])
    author: str = ""
    fonts: dict[int, str] = field(default_factory=dict[int, str])
    styles: dict[int, int] = field(default_factory=dict[int, int])
    codec: str = "cp1252"
    pending: bytearray = field(default_factory=bytearray)
    pictures: int = 0
    is_starred: bool = False
    is_drawing: bool = False
    skip: int = 0

    def read(self, source: str) -> list[DocumentBlock | Line]:
        for token in _TOKEN.finditer(source):
            if token["byte"] is not None:
                self.pending += b"" if self.skip else bytes.fromhex(token["byte"])
                self.skip -= self.skip > 0
                continue
            self._flush_bytes()
            if token["text"] is not None:
                self._text(token["text"])
            elif token["word"] is not None:
                self._word(token["word"], int(token["number"]) if token["number"] else None)
            elif token["brace"] is not None:
                self._open() if token["brace"] == "{" else self._close()
            else:
                self._sign(token["sign"])
        self._flush_bytes()
        self._paragraph()
        self._end_table()
        self.blocks += self.comments
        return self.blocks

    def _flush_bytes(self) -> None:
        if self.pending:
            data = bytes(self.pending)
            self.pending.clear()
            self._add(self._decoded(data))

    def _text(self, text: str) -> None:
        skipped = min(self.skip, len(text))
        self.skip -= skipped
        text = text[skipped:]
        is_plain = text.isascii() and self.state.codec != SYMBOLS
        self._add(text if is_plain else self._decoded(text.encode("latin-1", "replace")))

    def _decoded(self, data: bytes) -> str:
        """Decode bytes in the encoding of the current font. Characters of symbol fonts become Unicode."""
        if self.state.codec == SYMBOLS:
            return symbols_of("".join(chr(0xF000 + byte) if byte > 0x20 else chr(byte) for byte in data))  # noqa: PLR2004
        return data.decode(self.state.codec, "replace")

    def _add(self, text: str) -> None:
        state = self.state
        if not text or state.skipped or state.hidden:
            return
        run = TextRun(
            text.replace(PAGE_BREAK, ""), state.bold, state.italic, state.struck, link=state.link, raised=state.raised
        )
        (self.runs if state.collector is None else state.collector).append(run)

    def _sign(self, sign: str) -> None:
        if sign == "*":
            self.is_starred = True
        elif self.skip:
            self.skip -= 1
        else:
            self._add(_SIGNS.get(sign, ""))

    def _open(self) -> None:
        self.skip = 0
        if len(self.stack) > _MOST_DEPTH:
            raise BadInput(f"{DAMAGED}it is nested too deeply.")
        self.stack.append(self.state)
        self.state = replace(self.state, destination="")

    def _close(self) -> None:
        self.skip = 0
        ended = self.state
        if self.stack:
            self.state = self.stack.pop()
        if ended.destination and not self.state.skipped:
            self._end_destination(ended.destination, ended.collector or [])

    def _end_destination(self, name: str, runs: list[TextRun]) -> None:
        text = plain(runs)
        match name:
            case "listtext" | "pntext":
                # A lone "o" is the bullet of the second level in Word.
                self.label = text if _LABEL.fullmatch(text) and text != "o" else ""
            case "fldinst":
                found = _FIELD_LINK.match(text)
                self.state.link = safe_link(found[1]) if found else ""
            case "footnote" if text:
                self.notes.append(inline(runs, one_line=True))
                self._mark(f"[^{len(self.notes)}]")
            case "annotation":
                self.comments += write_comment(self.author, text)
            case "atnauthor":
                self.author = text
            case "pict":
                member = None if self.is_drawing else f"pict:{self.pictures}"
                self._mark(self.figures.add(member))
                self.is_drawing = False
            case _:
                pass

    def _mark(self, markup: str) -> None:
        if self.state.collector is None:
            self.runs.append(TextRun(markup, is_raw=True))

    def _word(self, word: str, number: int | None) -> None:
        is_starred, self.is_starred = self.is_starred, False
        self.pictures += word == "pict"
        if word in _COLLECTED and not self.state.skipped:
            self.state.destination, self.state.collector = word, []
            self.state.link = ""
        elif word in _SKIPPED or (is_starred and word not in _KEPT_STARRED):
            self.state.skipped = True
        elif word in _CHARACTERS:
            self._add(_CHARACTERS[word])
        elif word == "u" and number is not None:
            self._unicode(number)
        elif word in _ACTIONS:
            _ACTIONS[word](self, 1 if number is None else number)
        elif word in _DRAWINGS:
            self.is_drawing = True
        elif word in _SWITCHES:
            setattr(self.state, _SWITCHES[word], number != 0)
        elif word in _NUMBERS:
            setattr(self.state, _NUMBERS[word], min(max(number or 0, 0), 1000))
        elif self.state.collector is None:
            self._format(word, 1 if number is None else number)

    def _format(self, word: str, number: int) -> None:
        match word:
            case "s":
                self.format.style = number
            case "outlinelevel":
                self.format.level = number + 1 if 0 <= number < 9 else None  # noqa: PLR2004 - 9 is body text
            case "ls":
                self.format.is_item = number > 0
            case "ilvl":
                self.format.depth = min(max(number, 0), 8)
            case "intbl" | "itap":
                self.format.in_table = number > 0
            case "clmrg" | "clvmrg":
                self.merge = "across" if word == "clmrg" else "down"
            case "trowd":
                self.merges, self.merge = [], ""
            case "cellx":
                self.merges.append(self.merge)
                self.merge = ""
            case "pard":
                self.format = ParagraphFormat()
            case _:
                pass

    def _unicode(self, number: int) -> None:
        if abs(number) < 1 << 17:
            self._add(chr(number % (1 << 16) if number < 1 << 16 else number))
        self.skip = self.state.fallback

    def set_font(self, number: int) -> None:
        self.state.codec = self.fonts.get(number, self.codec)

    def set_code_page(self, number: int) -> None:
        with suppress(LookupError):
            self.codec = self.state.codec = codecs.lookup(f"cp{number}").name

    def _paragraph(self) -> None:
        runs, self.runs = self.runs, []
        label, self.label = self.label, None
        if self.state.collector is not None or not any(run.text.strip() for run in runs):
            return
        block = self._block(runs, label)
        if self.format.in_table:
            self.cell.append(block)
            return
        self._end_table()
        self.blocks.append(block)
        if self.comments and not isinstance(block, Item):
            self.blocks += self.comments
            self.comments = []

    def _block(self, runs: list[TextRun], label: str | None) -> DocumentBlock | Line:
        level = self.format.level if self.format.level is not None else self.styles.get(self.format.style)
        if level is not None and not self.format.in_table:
            return Heading(max(level, 1), inline(runs, is_plain=True, one_line=True))
        if label is not None or self.format.is_item:
            return Item(self.format.depth, label or "", inline(runs))
        return Line(runs, self.state.size)

    def lower_characters(self, _number: int = 0) -> None:
        self.state.raised = False

    def end_paragraph(self, _number: int = 0) -> None:
        if self.state.skipped or self.state.collector is not None:
            self._add("\n")
        else:
            self._paragraph()

    def reset_characters(self, _number: int = 0) -> None:
        state = self.state
        state.bold = state.italic = state.struck = state.hidden = state.raised = False
        state.size = 24

    def end_cell(self, _number: int = 0) -> None:
        self.format.in_table = True
        self._paragraph()
        self.row.append(one_line(finished(one) for one in self.cell))
        self.cell = []

    def end_row(self, _number: int = 0) -> None:
        cells = list(self.row)
        above = self.rows[-1] if self.rows else []
        for place, merge in enumerate(self.merges[: len(cells)]):
            across = cells[place - 1] if merge == "across" and place else ""
            source = above[place] if merge == "down" and place < len(above) else across
            cells[place] = cells[place] or (source if len(source) <= MOST_REPEATED else "")
        self.rows += [cells] if cells else []
        self.row = []
        self.format.in_table = False

    def _end_table(self) -> None:
        if self.row or self.cell:
            self.end_cell()
            self.end_row()
        if any(cell for row in self.rows for cell in row):
            self.blocks.append(Table(self.rows))
        self.rows = []


def finished(block: DocumentBlock | Line) -> DocumentBlock:
    return Paragraph(inline(block.runs)) if isinstance(block, Line) else block


_SWITCHES = {
    "super": "raised",
    "b": "bold",
    "i": "italic",
    "strike": "struck",
    "striked": "struck",
    "v": "hidden",
    "deleted": "hidden",
}
_NUMBERS = {"fs": "size", "uc": "fallback"}
_ACTIONS: dict[str, Callable[[Reader, int], None]] = {
    "ansicpg": Reader.set_code_page,
    "cell": Reader.end_cell,
    "f": Reader.set_font,
    "nestcell": Reader.end_paragraph,
    "nosupersub": Reader.lower_characters,
    "par": Reader.end_paragraph,
    "plain": Reader.reset_characters,
    "row": Reader.end_row,
    "sect": Reader.end_paragraph,
}
