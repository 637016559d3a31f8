"""Small files of Office before 2007, written by hand: containers, Word documents and presentations."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

SECTOR, LEAST = 512, 4096
_END, _FREE, _FAT = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD


def container(streams: Mapping[str, bytes]) -> bytes:
    """An OLE container. Streams are filled up to 4,096 bytes, because shorter ones are stored in another way."""
    padded = {name: data.ljust(LEAST, b"\0") for name, data in streams.items()}
    sizes = {name: -(-len(data) // SECTOR) for name, data in padded.items()}
    directory_sectors = -(-(len(padded) + 1) // 4)
    starts = dict(zip(padded, accumulate(sizes.values(), initial=1 + directory_sectors), strict=False))
    fat = [_FAT, *_chain(1, directory_sectors)]
    for name, count in sizes.items():
        fat += _chain(starts[name], count)
    assert len(fat) <= SECTOR // 4, "one sector of the table is enough for tests"
    names = list(padded)
    entries = [_entry("Root Entry", 5, _END, 0, child=1 if names else _FREE)]
    for number, name in enumerate(names, 1):
        right = number + 1 if number < len(names) else _FREE
        entries.append(_entry(name, 2, starts[name], len(padded[name]), right=right))
    directory = b"".join(entries).ljust(directory_sectors * SECTOR, b"\0")
    table = struct.pack(f"<{len(fat)}I", *fat).ljust(SECTOR, b"\xff")
    body = b"".join(data.ljust(sizes[name] * SECTOR, b"\0") for name, data in padded.items())
    head = struct.pack("<8s16xHHHHH6xIIIIIIIII", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 0x3E, 3, 0xFFFE, 9, 6, 0, 1, 1, 0,
                       LEAST, _END, 0, _END, 0)  # fmt: skip
    return head + struct.pack("<109I", 0, *[_FREE] * 108) + table + directory + body


def _chain(start: int, count: int) -> list[int]:
    return [*range(start + 1, start + count), _END]


def _entry(name: str, kind: int, start: int, size: int, *, right: int = _FREE, child: int = _FREE) -> bytes:
    letters = name.encode("utf-16-le") + b"\0\0"
    about = struct.pack("<HBBIII", len(letters), kind, 1, _FREE, right, child)
    return letters.ljust(64, b"\0") + about + bytes(36) + struct.pack("<IQ", start, size)


# Word ---------------------------------------------------------------------------------------------------------------

LISTS = 73
IN_TABLE, ROW_END = b"\x16\x24\x01", b"\x16\x24\x01\x17\x24\x01"
BOLD, HIDDEN, SPECIAL = b"\x35\x08\x01", b"\x3c\x08\x01", b"\x55\x08\x01"


def item(use: int, depth: int = 0) -> bytes:
    return struct.pack("<HBHH", 0x260A, depth, 0x460B, use)


def row_end(edges: Sequence[int], merged: Sequence[int] = ()) -> bytes:
    """The properties of the mark at the end of a row; `merged` cells continue the ones above."""
    cells = b"".join(bytes([0x20 if number in merged else 0]) + bytes(19) for number in range(len(edges) - 1))
    content = bytes([len(edges) - 1]) + struct.pack(f"<{len(edges)}h", *edges) + cells
    return ROW_END + struct.pack("<HH", 0xD608, len(content) + 1) + content


@dataclass(slots=True)
class WordDocument:
    """`runs` are texts with the properties of their characters; a paragraph ends at its mark.

    `paragraphs` are the style and the properties of each paragraph, `styles` the numbers of built-in styles,
    `levels` the levels of lists, which follow the part for lists without being counted.
    """

    runs: Sequence[tuple[str, bytes]]
    paragraphs: Sequence[tuple[int, bytes]]
    styles: Sequence[int] = (0, 1, 2)
    parts: dict[int, bytes] = field(default_factory=dict[int, bytes])
    levels: bytes = b""
    lengths: tuple[int, ...] = ()
    flags: int = 0x0200
    version: int = 0xC1

    def write(self) -> bytes:
        text = "".join(one for one, _ in self.runs)
        start = 0x400
        letters = text.encode("utf-16-le")
        ends = [place + 1 for place, one in enumerate(text) if one in "\r\x07"]
        assert len(ends) == len(self.paragraphs)
        paragraph_pages = _pages([start + 2 * end for end in ends], list(self.paragraphs), start, 5)
        bounds = [start + 2 * end for end in accumulate(len(one) for one, _ in self.runs)]
        character_pages = _pages(bounds, [form for _, form in self.runs], start, 20)
        first = (start + len(letters) + SECTOR - 1) // SECTOR
        pages = [page for page, _ in paragraph_pages + character_pages]
        parts = {
            1: _styles(self.styles),
            12: _bins(character_pages, first + len(paragraph_pages), bounds[-1]),
            13: _bins(paragraph_pages, first, bounds[-1]),
            33: b"\x02" + struct.pack("<IIIHIH", 16, 0, len(text), 0, start, 0),
            **self.parts,
        }
        table, places = b"", [(0, 0)] * 93
        for number, data in sorted(parts.items()):
            places[number] = len(table), len(data)
            table += data + (self.levels if number == LISTS else b"")
        main = self._head(len(text)) + b"".join(struct.pack("<II", *one) for one in places)
        main = main.ljust(start, b"\0") + letters
        return container({"WordDocument": main.ljust(first * SECTOR, b"\0") + b"".join(pages), "1Table": table})

    def _head(self, length: int) -> bytes:
        lengths = (self.lengths or (length,)) + (0,) * 8
        head = struct.pack("<HH6xH", 0xA5EC, self.version, self.flags).ljust(0x20, b"\0")
        head += struct.pack("<H28xH12x8i", 14, 22, *lengths[:8]).ljust(0x98 - 0x20, b"\0")
        return head + struct.pack("<H", 93)


def _pages(
    ends: Sequence[int], forms: Sequence[bytes | tuple[int, bytes]], start: int, most: int
) -> list[tuple[bytes, int]]:
    """Pages of properties, each with the first byte it is about."""
    pages: list[tuple[bytes, int]] = []
    for first in range(0, len(ends), most):
        group = list(ends[first : first + most])
        page = bytearray(SECTOR)
        bounds = [start if not first else ends[first - 1], *group]
        struct.pack_into(f"<{len(bounds)}I", page, 0, *bounds)
        at = SECTOR - 1
        for number, form in enumerate(forms[first : first + most]):
            if isinstance(form, tuple):
                content = struct.pack("<H", form[0]) + form[1]
                content += b"\0" * (1 - len(content) % 2)
                content = bytes([(len(content) + 1) // 2]) + content
                entry = 4 * len(bounds) + 13 * number
            else:
                content, entry = bytes([len(form)]) + form, 4 * len(bounds) + number
            at = (at - len(content)) // 2 * 2
            page[at : at + len(content)] = content
            page[entry] = at // 2
        page[-1] = len(group)
        pages.append((bytes(page), bounds[0]))
    return pages


def _bins(pages: Sequence[tuple[bytes, int]], first: int, end: int) -> bytes:
    starts = [start for _, start in pages]
    return struct.pack(f"<{len(starts) + 1}I{len(starts)}I", *starts, end, *range(first, first + len(starts)))


def _styles(builtin: Sequence[int]) -> bytes:
    data = struct.pack("<HHH", 18, len(builtin), 10).ljust(20, b"\0")
    for number in builtin:
        name = f"Stil {number}".encode("utf-16-le")
        style = struct.pack("<HHHHH", number, 0xFFF1, 2, 0, 0) + struct.pack("<H", len(name) // 2) + name + b"\0\0"
        style += struct.pack("<HHH", 2, 0, 0)
        data += struct.pack("<H", len(style)) + style
    return data


def lists(*levels: tuple[int, str]) -> tuple[dict[int, bytes], bytes]:
    """Lists of one level: the kind of number, and the text around the number, which is U+0000."""
    heads = b"".join(struct.pack("<ii18xBx", number, 0, 1) for number, _ in enumerate(levels, 1))
    content = b"".join(
        struct.pack("<iB23x", 1, kind) + struct.pack("<H", len(text)) + text.encode("utf-16-le")
        for kind, text in levels
    )
    uses = b"".join(struct.pack("<i12x", number) for number, _ in enumerate(levels, 1))
    counted = struct.pack("<H", len(levels)) + heads, struct.pack("<I", len(levels)) + uses
    return dict(zip((LISTS, LISTS + 1), counted, strict=True)), content


# PowerPoint ---------------------------------------------------------------------------------------------------------


def record(kind: int, content: bytes, instance: int = 0, version: int = 0) -> bytes:
    return struct.pack("<HHI", instance << 4 | version, kind, len(content)) + content


def group(kind: int, *contents: bytes, instance: int = 0) -> bytes:
    return record(kind, b"".join(contents), instance, 15)


def shape(kind: int, text: str, area: tuple[int, int, int, int] = (0, 0, 10, 10), style: bytes = b"") -> bytes:
    """A shape with text; the area is left, top, right, bottom."""
    left, top, right, bottom = area
    box = group(0xF00D, record(0x0F9F, struct.pack("<I", kind)), record(0x0FA0, text.encode("utf-16-le")),
                record(0x0FA1, style))  # fmt: skip
    return group(0xF004, record(0xF010, struct.pack("<4h", top, left, right, bottom)), box)


def cell(text: str, area: tuple[int, int, int, int]) -> bytes:
    box = group(0xF00D, record(0x0F9F, struct.pack("<I", 4)), record(0x0FA0, text.encode("utf-16-le")))
    return group(0xF004, record(0xF00F, struct.pack("<4i", *area)), box)


def grid(*cells: bytes) -> bytes:
    first = group(0xF004, record(0xF122, struct.pack("<HI", 0x039F, 1), instance=1))
    return group(0xF003, first, *cells)


def presentation(slides: Sequence[Sequence[bytes]], *, token: int = 0xE391C05F) -> bytes:
    stream = b""
    places: list[int] = []
    for shapes in slides:
        places.append(len(stream))
        drawing = group(0x040C, group(0xF002, group(0xF003, group(0xF004), *shapes)))
        stream += group(0x03EE, record(0x03EF, bytes(24)), drawing)
    places.append(len(stream))
    entries = (record(0x03F3, struct.pack("<I8xII", number, 255 + number, 0)) for number in range(1, len(slides) + 1))
    stream += group(0x03E8, group(0x0FF0, *entries))
    directory = len(stream)
    stream += record(0x1772, struct.pack(f"<I{len(places)}I", len(places) << 20 | 1, *places))
    edit = len(stream)
    stream += record(0x0FF5, struct.pack("<IIIIIII", 0, 0, 0, directory, len(places), 0, 0))
    user = record(0x0FF6, struct.pack("<III", 20, token, edit))
    return container({"PowerPoint Document": stream, "Current User": user})
