"""Reads RTF files: text with its formatting, headings, lists, tables, notes, comments and pictures.

Headings are recognised by their style. In files without heading styles, short paragraphs in larger or bold type become
headings.
"""

from __future__ import annotations

import re
from binascii import unhexlify
from collections import Counter
from itertools import islice
from pathlib import Path

from octavo.core.errors import NotFound
from octavo.extract.decode import clean
from octavo.extract.detect import Hints, Processor
from octavo.extract.extracted import Extracted, Metadata, SourceType
from octavo.extract.markdown.block_writer import DocumentBlock, Heading, Item, Paragraph, write_blocks
from octavo.extract.markdown.inline import inline, plain
from octavo.extract.office.assemble import Figures, clean_date, clean_line, clean_title, non_empty, to_extracted
from octavo.extract.office.rich_text import SYMBOLS, Line, Reader, finished

# Pictures, written as hexadecimal digits. They can be most of a file.
_HEXADECIMAL = re.compile(r"(?<=[\s}\d])[0-9a-fA-F]{200,}(?:\s+[0-9a-fA-F]+)*")
_PICTURE = re.compile(r"(?<!\\)(?:\\\\)*\\pict(?![a-zA-Z])")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_NOT_DIGITS = re.compile(r"\\[a-zA-Z]+-?\d* ?|\{[^{}]*\}")
_DIGITS = re.compile(r"[0-9a-fA-F\s]+")
_INFO = re.compile(r"\{\\(title|author|subject|keywords)\s((?:[^{}\\]|\\[^{}]){1,2000})\}")
_CREATED = re.compile(r"\{\\creatim\s*\\yr(\d{4})\\mo(\d{1,2})\\dy(\d{1,2})")
_FONT = re.compile(r"\{\\f(\d{1,5})(?!\d)[^{}]{0,200}?\\fcharset(\d{1,3})")
_SYMBOL_FONT = re.compile(
    r"\{\\f(\d{1,5})(?!\d)[^{};]{0,200}(?:\{[^{}]{0,200}\}[^{};]{0,50}){0,3}?(?:Symbol|\w{1,20}dings)\b"
)
_STYLE = re.compile(r"\{\\s(\d{1,5})(?!\d)([^{};]{0,1000});")
_STYLE_LEVEL = re.compile(r"\\outlinelevel([0-8])")
_HEADING_STYLE = re.compile(
    r"(?:heading|überschrift|titre|título|titolo|kop|rubrik|overskrift)\s*([1-9])", re.IGNORECASE
)
_HEAD_CHARACTERS = 1 << 20
_TYPED_ITEM = re.compile(r"(?:[-*•·▪◦]|(\d{1,3}[.)]))\s+(?=\S)")
_MOST_HEADING = 120
_LARGER = 1.15
_MOST_LEVELS = 3
_CHARSETS = {0: "cp1252", 77: "mac_roman", 128: "cp932", 129: "cp949", 134: "cp936", 136: "cp950", 161: "cp1253",
             162: "cp1254", 163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251", 222: "cp874",
             238: "cp1250"}  # fmt: skip


def extract(path: Path, _hints: Hints) -> Extracted:
    source = path.read_bytes().decode("latin-1")
    head = source[:_HEAD_CHARACTERS]
    figures = Figures()
    reader = Reader(figures, styles=_styles(head), fonts=_fonts(head))
    reader.read(_HEXADECIMAL.sub("", source))
    notes = "\n".join(f"[^{number}]: {text}" for number, text in enumerate(reader.notes, 1))
    markdown = "\n\n".join(filter(None, [write_blocks(_with_headings(reader.blocks)), notes]))
    return to_extracted(SourceType.RTF, _joined(markdown), _metadata(head), figures=figures)


def _joined(text: str) -> str:
    """Join surrogate pairs: RTF writes characters above U+FFFF as two code units."""
    return clean(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))


def _fonts(head: str) -> dict[int, str]:
    """Map the number of each font to the text encoding that the font declares. Symbol fonts are mapped to `SYMBOLS`."""
    fonts = {int(font): _CHARSETS[int(charset)] for font, charset in _FONT.findall(head) if int(charset) in _CHARSETS}
    return fonts | {int(font): SYMBOLS for font in _SYMBOL_FONT.findall(head)}


def _styles(head: str) -> dict[int, int]:
    """Map the number of each heading style to its heading level."""
    levels: dict[int, int] = {}
    start = head.find("{\\stylesheet")
    for number, content in _STYLE.findall(head, start) if start >= 0 else ():
        name = content.rpartition("\\")[2].partition(" ")[2].strip()
        by_name, written = _HEADING_STYLE.fullmatch(name), _STYLE_LEVEL.search(content)
        if by_name or written or name.lower() == "title":
            levels[int(number)] = int(by_name[1]) if by_name else int(written[1]) + 1 if written else 1
    return levels


def _with_headings(blocks: list[DocumentBlock | Line]) -> list[DocumentBlock]:
    """Convert all paragraphs to blocks.

    If the file has no heading styles, short paragraphs in larger or bold type become headings.
    """
    if any(isinstance(block, Heading) for block in blocks):
        return [_typed(block) for block in blocks]
    sizes = Counter[int]()
    for block in blocks:
        if isinstance(block, Line):
            sizes[block.size] += sum(len(run.text) for run in block.runs)
    body = sizes.most_common(1)[0][0] if sizes else 0
    larger = sorted((size for size in sizes if size >= body * _LARGER), reverse=True)[:_MOST_LEVELS]
    levels = {size: level for level, size in enumerate(larger, 1)}
    return [_heading(block, levels) or _typed(block) for block in blocks]


def _heading(block: DocumentBlock | Line, levels: dict[int, int]) -> Heading | None:
    if not isinstance(block, Line):
        return None
    text = plain(block.runs)
    is_marked = text.isupper() or all(run.bold or not run.text.strip() for run in block.runs)
    is_short = len(text) <= _MOST_HEADING and any(map(str.isalpha, text)) and text[-1] not in ".,;:!?"
    if not is_short or not (block.size in levels or is_marked) or any(run.is_raw for run in block.runs):
        return None
    return Heading(levels.get(block.size, len(levels) + 1), inline(block.runs, is_plain=True, one_line=True))


def _typed(block: DocumentBlock | Line) -> DocumentBlock:
    """Convert a paragraph to a block.

    If it starts with a bullet or number that the author typed, it becomes a list item.
    """
    found = _TYPED_ITEM.match(plain(block.runs)) if isinstance(block, Line) else None
    if not isinstance(block, Line) or not found:
        return finished(block)
    text = inline(block.runs)
    rest = text.partition(" ")[2].strip()
    return Item(0, found[1] or "", rest) if rest and not text.startswith("**") else Paragraph(text)


def read_figure(path: Path, member: str) -> bytes:
    """Return the bytes of a picture. `member` identifies it: `pict:2` is the second picture in the file."""
    number = member.removeprefix("pict:")
    source = path.read_bytes().decode("latin-1")
    place = int(number) if number.isdecimal() and len(number) < 7 else 0  # noqa: PLR2004 - no file has more
    found = next(islice(_PICTURE.finditer(source), place - 1, None), None) if place else None
    content = source[found.end() : _group_end(source, found.end())] if found else ""
    letters = "".join(max(_DIGITS.findall(_NOT_DIGITS.sub("|", content)), key=len, default="").split())
    if not letters:
        raise NotFound("The file does not contain this picture.")
    return unhexlify(letters[: len(letters) // 2 * 2])


def _group_end(source: str, start: int) -> int:
    """Return the position of the closing brace of the RTF group that contains the position `start`."""
    depth = 0
    for found in _BRACE.finditer(source, start):
        depth += {"{": 1, "}": -1}.get(found.group(), 0)
        if depth < 0:
            return found.start()
    return len(source)


def _metadata(source: str) -> Metadata:
    fields = {name: _plain(text) for name, text in reversed(_INFO.findall(source))}
    created = _CREATED.search(source)
    date = f"{created[1]}-{int(created[2]):02}-{int(created[3]):02}" if created else None
    return Metadata(
        title=clean_title(fields.get("title")),
        author=clean_line(fields.get("author")),
        date=clean_date(date),
        extra=non_empty(subject=fields.get("subject"), keywords=fields.get("keywords")),
    )


def _plain(text: str) -> str:
    blocks = Reader(Figures()).read(text)
    return _joined(" ".join(plain(block.runs) for block in blocks if isinstance(block, Line)))


PROCESSOR = Processor((SourceType.RTF,), extract, read_figure)
