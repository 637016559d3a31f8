"""Reads Org (Emacs) and AsciiDoc files. In both formats, repeated characters mark headings, and delimiters
mark blocks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from octavo.extract.detect import Processor
from octavo.extract.extracted import SourceType
from octavo.extract.formats.markup import MarkupReader, extract_with, read_items, write_inline
from octavo.extract.markdown.block_writer import Heading, Item, Paragraph, Quote, Table, write_blocks

# Org ----------------------------------------------------------------------------------------------------------------

_ORG_HEADING = re.compile(
    r"(\*+)[ \t]+(?:(?:TODO|DONE|NEXT|WAITING)[ \t]+)?(?:\[#\w\][ \t]+)?(.*?)(?:[ \t]+:[\w@#%:]+:)?"
)
_ORG_KEYWORD = re.compile(r"[ \t]*#\+(\w+):[ \t]*(.*)", re.IGNORECASE)
_ORG_BEGIN = re.compile(r"[ \t]*#\+begin_(\w+)[ \t]*(\S*).*", re.IGNORECASE)
_ORG_DRAWER = re.compile(r"[ \t]*:[\w-]+:[ \t]*")
_ORG_PLANNING = re.compile(r"[ \t]*(?:CLOSED|SCHEDULED|DEADLINE):[ \t]")
_ORG_BULLET = re.compile(r"([ \t]*)([-+]|\d{1,4}[.)])[ \t]+(?=\S)")


def _emphasis(sign: str, name: str) -> str:
    escaped = re.escape(sign)
    return rf"(?<![\w{escaped}]){escaped}(?=\S)(?P<{name}>[^\n]{{1,1000}}?)(?<=\S){escaped}(?![\w{escaped}])"


_ORG_INLINE = re.compile(
    "|".join(
        (
            r"\[\[(?:file:|id:)?(?P<url>[^\[\]]{1,2000})\](?:\[(?P<label>[^\[\]]{1,1000})\])?\]",
            r"\[fn:(?P<note>[\w-]{1,50})\]",
            r"(?<![\w=~])[=~](?=\S)(?P<code>[^\n]{1,1000}?)(?<=\S)[=~](?![\w=~])",
            _emphasis("*", "bold"),
            _emphasis("/", "italic"),
            _emphasis("+", "struck"),
        )
    )
)
_ORG_FOOTNOTE = re.compile(r"\[fn:([\w-]{1,50})\][ \t]+(.*)")
_ORG_CODE = frozenset({"src", "example", "export"})


def _org(reader: MarkupReader) -> None:
    while reader.place < len(reader.lines):
        _org_block(reader)


def _org_text(text: str) -> str:
    return write_inline(text, _ORG_INLINE)


def _org_block(reader: MarkupReader) -> None:
    line = reader.line
    if line.startswith("*") and (heading := _ORG_HEADING.fullmatch(" ".join(line.split()))):
        reader.place += 1
        reader.blocks.append(Heading(len(heading[1]), _org_text(heading[2])))
    elif begin := _ORG_BEGIN.fullmatch(line):
        _org_delimited(reader, begin[1].lower(), begin[2])
    elif keyword := _ORG_KEYWORD.fullmatch(line):
        reader.place += 1
        reader.about.setdefault(keyword[1].lower(), keyword[2])
        if keyword[1].lower() == "caption":
            reader.blocks.append(Paragraph(_org_text(keyword[2])))
    elif _ORG_DRAWER.fullmatch(line) and ":" in line:
        reader.take_until(lambda one: one.strip().upper() == ":END:" or one.startswith("*"))
    elif not line.strip() or line.lstrip().startswith(("# ", "#+")) or line.strip() == "#" or _ORG_PLANNING.match(line):
        reader.place += 1
    elif line.lstrip().startswith("|"):
        _org_table(reader)
    elif re.match(r"[ \t]*: ?", line):
        reader.code(
            [one.strip()[1:].removeprefix(" ") for one in reader.take_while(lambda one: one.lstrip()[:1] == ":")]
        )
    elif _ORG_BULLET.match(line):
        read_items(reader, _org_text, _ORG_BULLET)
    else:
        note = _ORG_FOOTNOTE.fullmatch(line)
        reader.place += 1
        text = _org_text(" ".join([note[2] if note else line, *reader.take_while(_is_org_prose)]))
        reader.blocks.append(Paragraph(f"[^{note[1]}]: {text}" if note else text))


def _is_org_prose(line: str) -> bool:
    starts = line.lstrip()[:1]
    return (
        bool(line.strip())
        and starts not in {"|", ":"}
        and not line.startswith("*")
        and not line.lstrip().startswith(("# ", "#+"))
        and not _ORG_FOOTNOTE.match(line)
        and not _ORG_BULLET.match(line)
    )


def _org_delimited(reader: MarkupReader, name: str, language: str) -> None:
    reader.place += 1
    body = reader.take_until(lambda one: one.strip().lower() == f"#+end_{name}")
    if name in _ORG_CODE:
        reader.code(body, language if name == "src" else "")
    elif name != "comment":
        inner = write_blocks(reader.nested(body, _org))
        reader.blocks += [Quote(inner) if name in {"quote", "verse"} else Paragraph(inner)] if inner else []


def _org_table(reader: MarkupReader) -> None:
    lines = reader.take_while(lambda one: one.lstrip().startswith("|"))
    rows = [one.strip().strip("|").split("|") for one in lines if not re.match(r"[ \t]*\|[-+]", one)]
    reader.blocks.append(Table([[_org_text(cell) for cell in row] for row in rows]))


# AsciiDoc -----------------------------------------------------------------------------------------------------------

_ADOC_HEADING = re.compile(r"(={1,6}|#{1,6})[ \t]+(\S.*)")
_ADOC_ATTRIBUTE = re.compile(r":!?([\w-]+)!?:[ \t]*(.*)")
_ADOC_BLOCK_ATTRIBUTES = re.compile(r"\[([^\]\n]*)\][ \t]*")
_ADOC_DELIMITER = re.compile(r"(-{4,}|\.{4,}|={4,}|\*{4,}|_{4,}|/{4,}|\+{4,}|--|`{3})([\w+-]*)[ \t]*")
_ADOC_TABLE = re.compile(r"[|,:!]={3,}[ \t]*")
_ADOC_MACRO = re.compile(r"(image|video|audio|include|toc|ifdef|ifndef|endif|ifeval)::([^\[\]]*)\[(.*?)\][ \t]*")
_ADOC_NOTE = re.compile(r"(NOTE|TIP|IMPORTANT|WARNING|CAUTION): ")
_ADOC_BULLET = re.compile(r"([ \t]*)(\*{1,6}|-|\.{1,6}|\d{1,4}\.)[ \t]+(?=\S)(?:\[[ xX*]\][ \t]+)?")
_ADOC_TERM = re.compile(r"(\S.*?):{2,4}(?:[ \t]+(.*))?")
_ADOC_AUTHOR = re.compile(r"([^\W\d_][\w .'-]{1,200}?)[ \t]*<[^<>\s]{3,200}>(?:;.*)?[ \t]*")
_ADOC_VERSION = re.compile(r"v?\d[\w.-]{0,30}(?:,[ \t]*(\d{4}-\d{2}-\d{2})?.*)?")
_ADOC_BUTTON = re.compile(r"\b(?:btn|kbd):\[([^\]]+)\]")
_ADOC_CAPTION = re.compile(r"\.([^\s.].*)")
_ADOC_INLINE = re.compile(
    r"(?:link:|(?=https?://))(?P<url>[^\s\[\]]{1,2000})\[(?P<label>[^\]]{0,1000})\]"
    r"|<<(?:[^,<>]{1,200},[ ]?)?(?P<name>[^,<>]{1,1000})>>"
    r"|(?<![\w`])`\+?(?=\S)(?P<code>[^`\n]{1,1000}?)(?<=\S)\+?`(?![\w`])"
    r"|(?<![\w*])\*{1,2}(?=[^\s*])(?P<bold>[^*\n]{1,1000}?)(?<=\S)\*{1,2}(?![\w*])"
    r"|(?<![\w_])_{1,2}(?=[^\s_])(?P<italic>[^\n]{1,1000}?)(?<=\S)_{1,2}(?![\w_])"
)


def _adoc(reader: MarkupReader) -> None:
    style = ""
    while reader.place < len(reader.lines):
        attributes = _ADOC_BLOCK_ATTRIBUTES.fullmatch(reader.line)
        if attributes:
            style = attributes[1]
            reader.place += 1
        else:
            is_empty = not reader.line.strip()
            _adoc_block(reader, style)
            style = style if is_empty else ""


def _adoc_text(text: str) -> str:
    return write_inline(_ADOC_BUTTON.sub(r"*\1*", text), _ADOC_INLINE)


def _adoc_block(reader: MarkupReader, style: str) -> None:
    line = reader.line
    if heading := _ADOC_HEADING.fullmatch(line):
        _adoc_heading(reader, heading[1], heading[2].rstrip())
    elif attribute := _ADOC_ATTRIBUTE.fullmatch(line):
        reader.place += 1
        reader.about.setdefault(attribute[1].lower(), attribute[2])
    elif _ADOC_TABLE.fullmatch(line):
        _adoc_table(reader, style)
    elif delimiter := _ADOC_DELIMITER.fullmatch(line):
        _adoc_delimited(reader, delimiter[1], style, delimiter[2])
    elif macro := _ADOC_MACRO.fullmatch(line):
        _adoc_macro(reader, macro[1], macro[3])
    elif caption := _ADOC_CAPTION.fullmatch(line):
        reader.place += 1
        reader.blocks.append(Paragraph(_adoc_text(caption[1])))
    elif _ADOC_BULLET.match(line):
        _adoc_items(reader)
    elif line.lstrip().startswith("|") and line.count("|") > 1:
        _adoc_pipe_rows(reader)
    elif not line.strip() or line.startswith("//") or line.strip() in {"'''", "<<<", "+"}:
        reader.place += 1
    else:
        _adoc_paragraph(reader, style)


def _adoc_heading(reader: MarkupReader, signs: str, title: str) -> None:
    """Read a heading. If it is the document title, also read the author and version from the lines below it."""
    reader.place += 1
    reader.blocks.append(Heading(len(signs), _adoc_text(title.removesuffix(f" {signs}"))))
    if len(signs) > 1 or len(reader.blocks) > 1 or reader.depth:
        return
    if reader.place < len(reader.lines) and (author := _ADOC_AUTHOR.fullmatch(reader.line)):
        reader.about.setdefault("author", author[1])
        reader.place += 1
        version = _ADOC_VERSION.fullmatch(reader.line) if reader.place < len(reader.lines) else None
        if version:
            reader.about.setdefault("date", version[1] or "")
            reader.place += 1


def _adoc_macro(reader: MarkupReader, name: str, given: str) -> None:
    reader.place += 1
    shown = given.partition(",")[0].strip().strip('"')
    if name == "image" and shown and "=" not in shown:
        reader.blocks.append(Paragraph(write_inline(f"[Image: {shown}]", _ADOC_INLINE)))


def _adoc_paragraph(reader: MarkupReader, style: str) -> None:
    first = reader.line
    reader.place += 1
    lines = [first, *reader.take_while(lambda line: _is_adoc_prose(line) and not _ADOC_BULLET.match(line))]
    note, term = _ADOC_NOTE.match(lines[0]), _ADOC_TERM.fullmatch(lines[0])
    if style.partition(",")[0] in {"source", "listing", "literal"} or (lines[0][0] in " \t" and not note):
        reader.code(lines, _adoc_language(style))
    elif term:
        rest = _adoc_text(" ".join([term[2] or "", *lines[1:]]))
        reader.blocks += [Paragraph(f"**{_adoc_text(term[1])}**"), Paragraph(rest)]
    else:
        text = _adoc_text(" ".join(line.removesuffix(" +") for line in lines))
        quoted = note or style.partition(",")[0].lower() in {"quote", "verse", "note", "tip", "warning"}
        reader.blocks.append(Quote(text) if quoted else Paragraph(text))


def _is_adoc_prose(line: str) -> bool:
    ends = (_ADOC_DELIMITER, _ADOC_TABLE, _ADOC_ATTRIBUTE)
    return bool(line.strip()) and line != "+" and not any(end.fullmatch(line) for end in ends)


def _is_adoc_item(line: str) -> bool:
    return _ADOC_BULLET.match(line) is not None or _ADOC_TERM.fullmatch(line) is not None


def _adoc_language(style: str) -> str:
    parts = [part.strip() for part in style.split(",")]
    return parts[1] if parts[0] == "source" and len(parts) > 1 else ""


def _adoc_delimited(reader: MarkupReader, mark: str, style: str, language: str) -> None:
    end = "```" if mark == "```" else mark
    reader.place += 1
    body = reader.take_until(lambda line: line.rstrip() == end)
    if mark[0] in "-.`" and mark != "--":
        reader.code(body, language or _adoc_language(style))
    elif mark[0] not in "/+":
        inner = write_blocks(reader.nested(body, _adoc))
        reader.blocks += [Quote(inner) if mark[0] in "_*" or style[:1].isupper() else Paragraph(inner)] if inner else []


def _adoc_items(reader: MarkupReader) -> None:
    """Read a list. Items are nested by their markers, such as `**` inside `*`, and by their indentation.

    A line with only a plus sign attaches the next block to the item. The list continues after that block.
    """
    markers: list[tuple[int, str]] = []
    numbers: list[int] = []
    while reader.place < len(reader.lines):
        found = _ADOC_BULLET.match(reader.line)
        if not found:
            if not _adoc_list_goes_on(reader):
                return
            continue
        marker = (len(found[1].expandtabs()), re.sub(r"\d+", "1", found[2]))
        while markers and marker not in markers and markers[-1][0] > marker[0]:
            markers.pop()
        markers = markers[: markers.index(marker) + 1] if marker in markers else [*markers, marker]
        depth = len(markers) - 1
        numbers = [*numbers[:depth], (numbers[depth] if depth < len(numbers) else 0) + 1]
        first = reader.line[found.end() :]
        reader.place += 1
        rest = reader.take_while(lambda line: _is_adoc_prose(line) and not _is_adoc_item(line))
        label = "" if found[2][0] in "*-" else f"{numbers[-1]}." if found[2][0] == "." else found[2]
        reader.blocks.append(Item(depth, label, _adoc_text(" ".join([first, *rest]))))


def _adoc_list_goes_on(reader: MarkupReader) -> bool:
    """Skip the lines between two list items, and read a block that is attached to the first item, if any.

    Returns whether the list continues.
    """
    line = reader.line.strip()
    reader.place += line in {"", "+"}
    if line == "+" and reader.place < len(reader.lines) and reader.line.strip():
        _adoc_block(reader, "")
        return True
    return line in {"", "+"} and reader.place < len(reader.lines) and _ADOC_BULLET.match(reader.line) is not None


def _adoc_table(reader: MarkupReader, style: str) -> None:
    end = reader.line.strip()
    reader.place += 1
    body = reader.take_until(lambda line: line.strip() == end)
    declared = re.search(r'cols="?([^"\]]+)"?', style)
    first = next((line for line in body if line.strip()), "")
    columns = _declared_columns(declared[1]) if declared else max(1, _cell_count(first))
    cells = [cell for line in body for cell in _adoc_cells(line)]
    rows = [cells[place : place + columns] for place in range(0, len(cells), columns)]
    if declared is None and not all(_cell_count(line) in {0, columns} for line in body):
        rows = [_adoc_cells(line) for line in body if line.strip()]  # keep one row per line
    reader.blocks.append(Table([[_adoc_text(cell) for cell in row] for row in rows if any(row)]))


def _declared_columns(declared: str) -> int:
    repeated = re.match(r"(\d{1,2})\*", declared.strip())
    return int(repeated[1]) if repeated else declared.count(",") + 1


def _cell_count(line: str) -> int:
    return len(_adoc_cells(line))


def _adoc_cells(line: str) -> list[str]:
    """Return the cells of a table line. Text before the first separator is a cell format and is left out."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.rstrip().removesuffix("|"))[1:]]


def _adoc_pipe_rows(reader: MarkupReader) -> None:
    rows: Sequence[str] = reader.take_while(lambda line: line.lstrip().startswith("|"))
    reader.blocks.append(Table([[_adoc_text(cell) for cell in _adoc_cells(row)] for row in rows]))


ORG = Processor((SourceType.ORG,), extract_with(_org))
ASCIIDOC = Processor((SourceType.ASCIIDOC,), extract_with(_adoc))
