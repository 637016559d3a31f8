"""Reads reStructuredText.

Also contains code that is shared with the readers of similar markup languages, such as AsciiDoc. All these readers
convert the markup to Markdown.
"""

from __future__ import annotations

import csv
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from octavo.extract.decode import decode
from octavo.extract.detect import Hints, Processor
from octavo.extract.extracted import Extracted, Metadata, SourceType
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
from octavo.extract.markdown.escape import fence
from octavo.extract.markdown.inline import TextRun, inline, safe_link
from octavo.extract.office.assemble import clean_date, clean_language, clean_line, to_extracted

_DEEPEST = 6
_INDENT = re.compile(r"[ \t]*")
_BULLET = re.compile(r"([ \t]*)([-*+\u2022]|(?:\d{1,4}|#|[a-zA-Z])[.)])[ \t]+(?=\S)")


@dataclass(slots=True)
class MarkupReader:
    """Reads lines of markup and collects blocks.

    Contains all lines, the position of the next line, and the blocks read so far.
    """

    lines: Sequence[str]
    about: dict[str, str] = field(default_factory=dict[str, str])
    links: dict[str, str] = field(default_factory=dict[str, str])
    blocks: list[DocumentBlock] = field(default_factory=list[DocumentBlock])
    place: int = 0
    levels: list[str] = field(default_factory=list[str])
    depth: int = 0

    @property
    def line(self) -> str:
        return self.lines[self.place]

    @property
    def following(self) -> str:
        return self.lines[self.place + 1] if self.place + 1 < len(self.lines) else ""

    def take_while(self, wanted: Callable[[str], bool]) -> list[str]:
        first = self.place
        while self.place < len(self.lines) and wanted(self.line):
            self.place += 1
        return list(self.lines[first : self.place])

    def take_until(self, end: Callable[[str], bool]) -> list[str]:
        """Read the lines up to the line that ends a block, and skip that line."""
        taken = self.take_while(lambda line: not end(line))
        self.place += 1
        return taken

    def take_indented(self) -> list[str]:
        """Read the indented block that follows.

        Returns it without indentation and without the empty lines around it.
        """
        taken = self.take_while(lambda line: not line.strip() or line[0] in " \t")
        return (
            textwrap.dedent("\n".join(taken).expandtabs()).strip("\n").split("\n") if any(map(str.strip, taken)) else []
        )

    def code(self, lines: Sequence[str], language: str = "") -> None:
        if any(map(str.strip, lines)):
            self.blocks.append(Paragraph(fence(list(lines), re.sub(r"[^\w+#.-]", "", language)[:30])))

    def nested(self, lines: Sequence[str], convert: Callable[[MarkupReader], None]) -> list[DocumentBlock]:
        """Read lines that are inside another block, such as a quote, and return their blocks.

        Lines that are nested too deeply become one paragraph.
        """
        inner = MarkupReader(lines, self.about, self.links, levels=self.levels, depth=self.depth + 1)
        if inner.depth > _DEEPEST:
            return [Paragraph(inline([TextRun(" ".join(lines))], one_line=True))] if any(lines) else []
        convert(inner)
        return inner.blocks


def extract_with(convert: Callable[[MarkupReader], None]) -> Callable[[Path, Hints], Extracted]:
    def extract(path: Path, hints: Hints) -> Extracted:
        reader = MarkupReader(decode(path.read_bytes()).replace("\f", "\n").split("\n"))
        convert(reader)
        about = reader.about
        metadata = Metadata(
            title=clean_line(about.get("title")),
            author=clean_line(about.get("author")),
            date=clean_date(about.get("date", "").strip("<[ ")),
            language=clean_language(about.get("language") or about.get("lang")),
        )
        return to_extracted(hints.source_type, write_blocks(_non_empty(reader.blocks)), metadata)

    return extract


def _non_empty(blocks: Sequence[DocumentBlock]) -> Iterator[DocumentBlock]:
    return (one for one in blocks if not isinstance(one, Paragraph) or one.text)


def write_inline(text: str, pattern: re.Pattern[str], links: dict[str, str] | None = None) -> str:
    return inline(_runs(" ".join(text.split()), pattern, links or {}), one_line=True)


def _runs(text: str, pattern: re.Pattern[str], links: dict[str, str]) -> Iterator[TextRun]:
    """Split a text into pieces with uniform formatting. The group names in `pattern` are the types of markup."""
    end = 0
    for found in pattern.finditer(text):
        yield TextRun(text[end : found.start()])
        end = found.end()
        parts = {name: value for name, value in found.groupdict().items() if value is not None}
        if "note" in parts:
            yield TextRun(f"[^{parts['note']}]", is_raw=True)
            continue
        name = parts.get("name") or parts.get("word", "")
        link = safe_link(parts.get("url") or links.get(" ".join(name.lower().split()), ""))
        shown = next(
            (parts[name] for name in ("label", "name", "word", "code", "bold", "italic", "struck") if name in parts), ""
        )
        yield TextRun(
            shown or parts.get("url", ""),
            bold="bold" in parts,
            italic="italic" in parts,
            struck="struck" in parts,
            code="code" in parts,
            link=link,
        )
    yield TextRun(text[end:])


def read_items(reader: MarkupReader, write: Callable[[str], str], bullet: re.Pattern[str] = _BULLET) -> None:
    """Read a list. Items are nested by their indentation.

    An indented line that is not an item continues the item above.
    """
    indents: list[int] = []
    while reader.place < len(reader.lines):
        found = bullet.match(reader.line)
        if not found:
            if reader.line.strip() or not _continues(reader, bullet):
                return
            reader.place += 1
            continue
        indent = len(found[1].expandtabs())
        while indents and indents[-1] > indent:
            indents.pop()
        if not indents or indents[-1] < indent:
            indents.append(indent)
        first = reader.line[found.end() :]
        reader.place += 1
        rest = reader.take_while(
            lambda line: bool(line.strip()) and not bullet.match(line) and len(_indent(line)) > indent  # noqa: B023
        )
        depth = min(len(indents) - 1, _DEEPEST)
        label = "" if found[2] in "-*+\u2022" else _next_label(reader, depth) if found[2][0] == "#" else found[2]
        reader.blocks.append(Item(depth, label, write(" ".join([first, *rest]))))


def _next_label(reader: MarkupReader, depth: int) -> str:
    """Return the label that follows the previous item's number, or "1." for the first item."""
    before = reader.blocks[-1] if reader.blocks else None
    number = before.label.rstrip(".)") if isinstance(before, Item) and before.depth == depth else ""
    return f"{int(number) + 1 if number.isdecimal() else 1}."


def _continues(reader: MarkupReader, bullet: re.Pattern[str]) -> bool:
    following = next((line for line in reader.lines[reader.place + 1 : reader.place + 4] if line.strip()), "")
    return bullet.match(following) is not None


def _indent(line: str) -> str:
    found = _INDENT.match(line)
    return found.group().expandtabs() if found else ""


# reStructuredText ---------------------------------------------------------------------------------------------------

_RST_RULE = re.compile(r"([!-/:-@\[-`{-~])\1{2,}[ \t]*")
_RST_INLINE = re.compile(
    r"``(?P<code>.{1,1000}?)``"
    r"|\[#?(?P<note>\w{1,50})\]_(?!\w)"
    r"|(?<![\w`])`(?P<label>[^`<>]{1,1000}?) ?<(?P<url>[^<>`]{1,2000})>`__?"
    r"|(?<![\w`])`(?P<name>[^`]{1,1000})`__?"
    r"|(?<![\w`./-])(?P<word>[A-Za-z0-9](?:[\w.+-]{0,80}[A-Za-z0-9])?)__?(?=[\s.,;:!?)\]\"'-]|$)"
    r"|(?<![\w*])\*\*(?=\S)(?P<bold>.{1,1000}?)(?<=\S)\*\*(?![\w*])"
    r"|(?<![\w*])\*(?=\S)(?P<italic>[^*]{1,1000}?)(?<=\S)\*(?![\w*])"
)
_RST_ROLE = re.compile(r":([\w:+.-]{1,60}):`(?:([^`<>]{1,1000}?) ?<[^`<>]{0,1000}>|[~!]?([^`]{1,1000}))`")
# A line between paragraphs, and the target of a link without a name.
_RST_NOTHING = re.compile(rf"{_RST_RULE.pattern}|__ .*")
_RST_PLAIN_ROLES = frozenset(
    {"abbr", "abbreviation", "acronym", "dfn", "doc", "download", "guilabel", "menuselection", "numref", "ref", "sub",
     "subscript", "sup", "superscript", "t", "term", "title", "title-reference"}
)  # fmt: skip
_RST_MARKED_ROLES = {"emphasis": "*", "strong": "**"}
_RST_SUBSTITUTION = re.compile(r"\|(\w[^|]{0,200})\|_?")
_RST_DEFAULT_ROLE = re.compile(r"(?<![\w`])`([^`<>]{1,1000})`(?![\w_`])")
_RST_DIRECTIVE = re.compile(r"\.\. +(?:\|[^|]+\| +)?([\w:.+-]+)::[ \t]*(.*)")
_RST_TARGET = re.compile(r"\.\. +_`?([^`:]+)`?:[ \t]*(\S*)")
_RST_FOOTNOTE = re.compile(r"\.\. +\[#?(\w{1,50})\][ \t]+(.*)")
_RST_REPLACED = re.compile(r"\.\. +\|([^|]+)\| +(\w+)::[ \t]*(.*)")
_RST_ROW = re.compile(r"[ \t]*\*[ \t]+-(?:[ \t]+(.*))?")
_RST_CELL = re.compile(r"[ \t]+-(?:[ \t]+(.*))?")
_RST_FIELD = re.compile(r":([\w][\w -]{0,50}):[ \t]*(.*)")
_RST_CODE = frozenset({"code", "code-block", "sourcecode", "prompt", "highlight", "parsed-literal", "math", "doctest"})
_RST_HIDDEN = frozenset(
    {"toctree", "contents", "index", "raw", "include", "meta", "image", "figure", "default-role", "sectnum", "module"}
)
_MOST_GRID_COLUMNS = 100
_RST_BOXES = frozenset({"note", "tip", "warning", "caution", "danger", "important", "hint", "attention", "seealso"})


def _rst(reader: MarkupReader) -> None:
    if not reader.depth:
        for line in reader.lines:
            found = _RST_TARGET.fullmatch(line)
            if found:
                reader.links[found[1].lower()] = found[2]
            replaced = _RST_REPLACED.fullmatch(line)
            if replaced:
                reader.links[f"|{replaced[1]}|"] = replaced[3] if replaced[2] == "replace" else replaced[1]
    while reader.place < len(reader.lines):
        _rst_block(reader)


def _rst_text(reader: MarkupReader, text: str) -> str:
    text = _RST_ROLE.sub(_rst_role, text)
    text = _RST_SUBSTITUTION.sub(lambda found: reader.links.get(f"|{found[1]}|", found[1]), text)
    return write_inline(_RST_DEFAULT_ROLE.sub(r"*\1*", text), _RST_INLINE, reader.links)


def _rst_role(found: re.Match[str]) -> str:
    """Convert text with a role, such as `:abbr:` or `:ref:`, to Markdown."""
    role, text = found[1].lower().rpartition(":")[2], found[2] or found[3]
    if role in {"pep", "rfc"}:
        return f"{role.upper()} {text}"
    mark = "" if role in _RST_PLAIN_ROLES else _RST_MARKED_ROLES.get(role, "``")
    return f"{mark}{text}{mark}"


def _rst_block(reader: MarkupReader) -> None:
    line = reader.line
    if line.strip() and _rst_title(reader):
        return
    if not line.strip() or _RST_NOTHING.fullmatch(line):
        reader.place += 1
    elif line.startswith(".. ") or line.strip() == "..":
        _rst_explicit(reader)
    elif line.startswith(("+-", "+=")) or re.match(r"=+(?: +=+)+\s*$", line):
        _rst_table(reader)
    elif line.startswith("| "):
        lines = _line_block(reader.take_while(lambda line: bool(line.strip())))
        reader.blocks.append(Paragraph("  \n".join(_rst_text(reader, one) for one in lines if one)))
    elif _BULLET.match(line) and not line[0].isspace():
        read_items(reader, lambda text: _rst_text(reader, text))
    elif line[0] in " \t":
        reader.blocks += [Quote(text) for text in [write_blocks(reader.nested(reader.take_indented(), _rst))] if text]
    elif found := _RST_FIELD.match(line):
        reader.place += 1
        text = " ".join([found[2], *reader.take_indented()]).strip()
        reader.about.setdefault(found[1].lower(), text)
        reader.blocks += [Paragraph(f"**{found[1]}:** {_rst_text(reader, text)}")] if text and reader.blocks else []
    else:
        _rst_paragraph(reader)


def _rst_title(reader: MarkupReader) -> bool:
    line, below = reader.line, reader.following
    over = _RST_RULE.fullmatch(line)
    third = reader.lines[reader.place + 2] if reader.place + 2 < len(reader.lines) else ""
    if over and below.strip() and third.strip() == line.strip():
        title, style, used = below.strip(), f"over {over[1]}", 3
    elif (
        not over and line[0] not in " \t" and (under := _RST_RULE.fullmatch(below)) and len(below) >= min(len(line), 4)
    ):
        title, style, used = line.strip(), under[1], 2
    else:
        return False
    if style not in reader.levels:
        reader.levels.append(style)
    reader.blocks.append(Heading(reader.levels.index(style) + 1, _rst_text(reader, title)))
    reader.place += used
    return True


def _rst_explicit(reader: MarkupReader) -> None:
    """Read a directive, footnote, link target or comment, together with its indented block."""
    line = reader.line
    directive, footnote = _RST_DIRECTIVE.match(line), _RST_FOOTNOTE.match(line)
    reader.place += 1
    body = reader.take_indented()
    if footnote:
        text = _rst_text(reader, " ".join([footnote[2], *body]))
        reader.blocks.append(Paragraph(f"[^{footnote[1]}]: {text}"))
    elif directive and not _RST_REPLACED.match(line):
        _rst_directive(reader, directive[1].rpartition(":")[2], directive[2], body)


def _rst_directive(reader: MarkupReader, name: str, argument: str, body: list[str]) -> None:
    options = {found[1]: found[2] for line in body if (found := _RST_FIELD.match(line))}
    content = body[next((place for place, line in enumerate(body) if not _RST_FIELD.match(line)), len(body)) :]
    if name in _RST_CODE:
        reader.code(textwrap.dedent("\n".join(content)).strip("\n").split("\n"), "math" if name == "math" else argument)
        return
    if name == "csv-table":
        rows = [*csv.reader([options.get("header", "")]), *csv.reader(content)]
        reader.blocks += [Table([[_rst_text(reader, cell) for cell in row] for row in rows if row])]
        return
    if name == "list-table":
        shown = [Paragraph(_rst_text(reader, argument))] if argument else []
        reader.blocks += [*shown, Table([[_rst_text(reader, cell) for cell in row] for row in _listed_rows(content)])]
        return
    if name in {"image", "figure"} and options.get("alt"):
        reader.blocks.append(Paragraph(inline([TextRun(f"[Image: {options['alt']}]")])))
    inner = reader.nested(content, _rst) if name not in _RST_HIDDEN or name == "figure" else []
    heading = argument if name not in _RST_HIDDEN and name not in _RST_CODE else ""
    shown = [Paragraph(_rst_text(reader, heading))] if heading else []
    reader.blocks += [Quote(write_blocks([*shown, *inner]))] if name in _RST_BOXES else [*shown, *inner]


def _listed_rows(lines: Sequence[str]) -> list[list[str]]:
    """Return the rows of a reStructuredText table that is written as a list of lists."""
    rows: list[list[str]] = []
    for line in lines:
        row, cell = _RST_ROW.fullmatch(line), _RST_CELL.fullmatch(line)
        if row:
            rows.append([row[1] or ""])
        elif cell and rows:
            rows[-1].append(cell[1] or "")
        elif rows and line.strip():
            rows[-1][-1] = f"{rows[-1][-1]} {line.strip()}"
    return rows


def _line_block(lines: Sequence[str]) -> list[str]:
    """Read a line block, in which lines begin with a vertical bar. Text without a bar continues the line above."""
    found: list[str] = []
    for line in lines:
        if line.startswith("|") or not found:
            found.append(line.lstrip("|").strip())
        else:
            found[-1] = f"{found[-1]} {line.strip()}"
    return found


def _rst_table(reader: MarkupReader) -> None:
    is_grid = reader.line[0] == "+"
    lines = reader.take_while(lambda line: bool(line.strip()) or (not is_grid and _simple_table_continues(reader)))
    rows = _grid_rows(lines) if is_grid else _simple_rows(lines)
    reader.blocks.append(Table([[_rst_text(reader, cell) for cell in row] for row in rows if any(row)]))


def _grid_rows(lines: Sequence[str]) -> list[list[str]]:
    """Return the rows of a table that is drawn with characters such as `+---+`.

    If a cell covers several columns or rows, its text is repeated in all of them.
    """
    edges = sorted({place for line in lines if line.startswith("+") for place, sign in enumerate(line) if sign == "+"})
    columns = list(pairwise(edges))[:_MOST_GRID_COLUMNS]
    cells: list[list[str]] = []
    rows: list[list[int]] = []
    for line in lines:
        borders = [bool(part := line[left + 1 : right]) and set(part) <= set("-=+") for left, right in columns]
        if any(borders):
            above = rows[-1] if rows else []
            cells += [[] for _ in columns]
            fresh = range(len(cells) - len(columns), len(cells))
            kept = above or list(fresh)
            rows.append([own if new else old for own, old, new in zip(fresh, kept, borders, strict=True)])
        for first, last in _spans(line, columns, borders):
            owner = rows[-1][first]
            rows[-1][first : last + 1] = [owner] * (last + 1 - first)
            cells[owner].append(line[columns[first][0] + 1 : columns[last][1]].strip())
    texts = [" ".join(filter(None, cell)) for cell in cells]
    return [
        [_repeated(texts[cell], is_first=not n or cell != row[n - 1]) for n, cell in enumerate(row)] for row in rows
    ]


def _spans(line: str, columns: Sequence[tuple[int, int]], borders: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Yield the first and last column of each cell in one text line of a table. Cells can cover several columns."""
    first = 0
    for number, (_, right) in enumerate(columns):
        if borders[number]:
            first = number + 1
        elif line[right : right + 1] in {"|", "+", ""}:
            yield first, number
            first = number + 1


def _repeated(text: str, *, is_first: bool) -> str:
    return text if is_first or len(text) <= MOST_REPEATED else ""


def _simple_rows(lines: Sequence[str]) -> list[list[str]]:
    """Return the rows of a simple table, which has lines of `=` characters above and below.

    Short text that crosses the gap between two columns is repeated in both.
    """
    edges = [found.span() for found in re.finditer(r"=+", lines[0].rstrip())]
    edges[-1] = (edges[-1][0], max(map(len, lines)))
    rows: list[list[str]] = [[]]
    for line in lines[1:]:
        is_border = set(line) <= set("-= ") and ("--" in line or "==" in line)
        cells = [] if is_border else _simple_cells(line, edges)
        if is_border or cells[0]:
            rows.append([])
        if cells:
            before = rows[-1] or [""] * len(cells)
            rows[-1] = [" ".join(filter(None, pair)) for pair in zip(before, cells, strict=True)]
    return rows


def _simple_cells(line: str, edges: Sequence[tuple[int, int]]) -> list[str]:
    cells: list[str] = []
    first = 0
    for number, (_, end) in enumerate(edges):
        following = edges[number + 1][0] if number + 1 < len(edges) else end
        if not line[end:following].strip():
            text = line[edges[first][0] : end].strip()
            cells += [_repeated(text, is_first=not place) for place in range(number + 1 - first)]
            first = number + 1
    return cells


def _simple_table_continues(reader: MarkupReader) -> bool:
    """Whether a simple table continues after an empty line.

    It does if another line of `=` characters follows before the next empty line.
    """
    rest = reader.lines[reader.place + 1 : reader.place + 40]
    until = next((place for place, line in enumerate(rest) if not line.strip()), len(rest))
    return any(re.match(r"=+(?: +=+)+\s*$", line) for line in rest[:until])


def _rst_paragraph(reader: MarkupReader) -> None:
    first = reader.line
    if reader.following[:1] in {" ", "\t"} and reader.following.strip() and not first.rstrip().endswith("::"):
        reader.place += 1
        reader.blocks += [Paragraph(f"**{_rst_text(reader, first)}**"), *reader.nested(reader.take_indented(), _rst)]
        return
    is_start = reader.place
    lines = reader.take_while(
        lambda line: bool(line.strip()) and (reader.place == is_start or not line.startswith(".. "))
    )
    text = " ".join(lines).rstrip()
    is_code = text.endswith("::")
    shown = text[:-2].rstrip() if is_code and text[-3:-2] in {" ", ""} else text[:-1] if is_code else text
    if lines[0].startswith(">>> "):
        reader.code(lines, "python")
    elif shown.strip(" :"):
        reader.blocks.append(Paragraph(_rst_text(reader, shown)))
    if is_code:
        reader.code(reader.take_indented())


PROCESSOR = Processor((SourceType.RST,), extract_with(_rst))
