"""Reads the records of PowerPoint files from before 2007: the valid records, the list of slides, texts and pictures."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from octavo.core.errors import BadInput, Encrypted, NotSupported
from octavo.extract.zips import DAMAGED, Container, find_picture

_DOCUMENT, _SLIDE_LIST, _SLIDE_PLACE, _DRAWING_GROUP = 0x03E8, 0x0FF0, 0x03F3, 0x040B
_EDIT, _DIRECTORY = 0x0FF5, 0x1772
_TEXT_KIND, _WIDE_TEXT, _NARROW_TEXT, _TEXT_STYLE = 0x0F9F, 0x0FA0, 0x0FA8, 0x0FA1
TAGS, TAG, TAG_DATA, _NUMBERED = 0x1388, 0x138A, 0x138B, 0x0FAC
_PICTURES, _PICTURE = 0xF001, 0xF007
_ENCRYPTED = 0xF3D1C4DF
_NEWER = "PP97_DUALSTORAGE"
_MOST_EDITS = 10_000
_HEADER = struct.Struct("<HHI")
# The fields of a paragraph style, in file order: the bits that announce them, and their sizes in bytes.
_PARAGRAPH_FIELDS = ((0x80, 2), (0x10, 2), (0x40, 2), (0x20, 4), (0x800, 2), (0x1000, 2), (0x2000, 2), (0x4000, 2),
                     (0x100, 2), (0x400, 2), (0x8000, 2))  # fmt: skip
_LAST_FIELDS = ((0x10000, 2), (0xE0000, 2), (0x200000, 2))
_CHARACTER_FIELDS = ((0x10000, 2), (0x200000, 2), (0x400000, 2), (0x800000, 2), (0x20000, 2), (0x40000, 4),
                     (0x80000, 2))  # fmt: skip


class Record(NamedTuple):
    kind: int
    instance: int
    data: bytes


def records(data: bytes) -> Iterator[Record]:
    at = 0
    while at + _HEADER.size <= len(data):
        about, kind, size = _HEADER.unpack_from(data, at)
        at += _HEADER.size
        yield Record(kind, about >> 4, data[at : at + size])
        at += size


def inside(data: bytes, *path: int) -> bytes:
    """Follow a path of record types into nested records.

    Returns the content of the first match. Returns empty bytes if there is no match.
    """
    for kind in path:
        data = next((one.data for one in records(data) if one.kind == kind), b"")
    return data


def all_of(data: bytes, kind: int) -> list[Record]:
    return [one for one in records(data) if one.kind == kind]


# Files --------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class PresentationFile:
    """A presentation file.

    `places` maps the number of each valid record to its offset. `pictures` is the stream that contains the pictures.
    """

    stream: bytes
    pictures: bytes
    places: dict[int, int] = field(default_factory=dict[int, int])
    document: bytes = b""

    def record(self, number: int, kind: int) -> Record | None:
        """Return the record with this number. Returns None if there is no such record or if it has another type."""
        at = self.places.get(number)
        found = next(records(self.stream[at:]), None) if at is not None else None
        return found if found and found.kind == kind else None


def open_presentation(container: Container) -> PresentationFile:
    # A file that was saved for two versions of PowerPoint contains both forms.
    storage = (_NEWER,) if container.read(_NEWER, "PowerPoint Document") else ()
    user = container.read(*storage, "Current User")
    stream = container.read(*storage, "PowerPoint Document")
    if not stream or (not storage and container.read("PersistentStorage Directory")):
        raise NotSupported("PowerPoint files from before 1997 cannot be read. Save the file as PPTX or PDF.")
    _, size, token, at = struct.unpack_from("<8sIII", user)
    if token == _ENCRYPTED:
        raise Encrypted(
            "Octavo cannot open encrypted PowerPoint files from before 2007. Save the file without a password."
        )
    file = PresentationFile(stream, container.read(*storage, "Pictures"))
    document, seen = None, set[int]()
    while size and at not in seen and len(seen) < _MOST_EDITS:
        seen.add(at)
        edit = next(records(stream[at:]), None)
        if edit is None or edit.kind != _EDIT:
            break
        at, directory, main = struct.unpack_from("<8xIII", edit.data)
        document = main if document is None else document
        for number, place in _directory(stream[directory:]):
            file.places.setdefault(number, place)
        if not at:
            break
    found = file.record(document, _DOCUMENT) if document is not None else None
    if found is None:
        raise BadInput(f"{DAMAGED}its list of slides is missing.")
    file.document = found.data
    return file


def _directory(data: bytes) -> Iterator[tuple[int, int]]:
    found = next(records(data), None)
    if found is None or found.kind != _DIRECTORY:
        return
    numbers = iter(struct.unpack_from(f"<{len(found.data) // 4}I", found.data))
    for head in numbers:
        first, count = head & 0xFFFFF, head >> 20
        yield from zip(range(first, first + count), numbers, strict=False)


def read_pictures(file: PresentationFile) -> list[bytes]:
    """Return all pictures of the file, in the order of their numbers.

    The bytes of a picture are empty if its format is not supported.
    """
    entries = all_of(inside(file.document, _DRAWING_GROUP, 0xF000, _PICTURES), _PICTURE)
    return [_picture(file, entry.data) for entry in entries]


def _picture(file: PresentationFile, entry: bytes) -> bytes:
    (at,) = struct.unpack_from("<I", entry, 28) if len(entry) >= 32 else (0,)  # noqa: PLR2004 - the fields before
    found = next(records(file.pictures[at:]), None)
    return find_picture(found.data if found else entry)


# Texts --------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class SlideText:
    kind: int = 4
    text: str = ""
    style: bytes = b""


class SlidePlace(NamedTuple):
    """An entry in the presentation's list of slides.

    Contains the texts that the file stores in this list instead of in the slide.
    """

    number: int
    identifier: int
    texts: list[SlideText]


def list_slides(file: PresentationFile, instance: int) -> Iterator[SlidePlace]:
    found = next((one.data for one in all_of(file.document, _SLIDE_LIST) if one.instance == instance), b"")
    place: SlidePlace | None = None
    for one in records(found):
        if one.kind == _SLIDE_PLACE:
            if place:
                yield place
            number, identifier = struct.unpack_from("<I8xI", one.data)
            place = SlidePlace(number, identifier, [])
        elif place:
            add_text(place.texts, one)
    if place:
        yield place


def add_text(texts: list[SlideText], record: Record) -> None:
    if record.kind == _TEXT_KIND:
        texts.append(SlideText(int.from_bytes(record.data[:4], "little")))
    elif not texts:
        return
    elif record.kind == _WIDE_TEXT:
        texts[-1].text = record.data.decode("utf-16-le", "replace")
    elif record.kind == _NARROW_TEXT:
        texts[-1].text = record.data.decode("latin-1")
    elif record.kind == _TEXT_STYLE:
        texts[-1].style = record.data


class LineStyle(NamedTuple):
    depth: int = 0
    has_bullet: bool | None = None


def read_styles(text: SlideText) -> tuple[list[LineStyle], list[int]]:
    """Return two lists with one entry per character.

    The first contains the style of the character's paragraph. The second contains indexes into the list that
    `read_numbered` returns.
    """
    length, data, at = len(text.text) + 1, text.style, 0
    styles: list[LineStyle] = []
    while len(styles) < length and at + 10 <= len(data):
        count, depth, mask = struct.unpack_from("<IHI", data, at)
        at += 10
        flags = int.from_bytes(data[at : at + 2], "little")
        at += 2 * bool(mask & 0xF) + _size(mask, _PARAGRAPH_FIELDS)
        if mask & 0x100000:
            at += 2 + 4 * int.from_bytes(data[at : at + 2], "little")
        at += _size(mask, _LAST_FIELDS)
        bullet = bool(flags & 1) if mask & 1 else None
        styles += [LineStyle(min(depth, 8), bullet)] * min(count, length - len(styles))
    numbers: list[int] = []
    while len(numbers) < length and at + 8 <= len(data):
        count, mask = struct.unpack_from("<II", data, at)
        at += 8
        flags = int.from_bytes(data[at : at + 2], "little") if mask & 0xFFFF else 0
        at += 2 * bool(mask & 0xFFFF) + _size(mask, _CHARACTER_FIELDS)
        numbers += [flags >> 10 & 0xF] * min(count, length - len(numbers))
    return styles, numbers


def _size(mask: int, fields: tuple[tuple[int, int], ...]) -> int:
    return sum(size for bits, size in fields if mask & bits)


def read_numbered(about: bytes) -> list[int]:
    """Return one number for each additional paragraph style: the start number if the style numbers its paragraphs,
    otherwise 0.
    """
    data = inside(about, TAGS, TAG, TAG_DATA, _NUMBERED)
    found: list[int] = []
    at = 0
    while at + 4 <= len(data):
        (mask,) = struct.unpack_from("<I", data, at)
        at += 4 + 2 * bool(mask & 0x800000)
        is_numbered, start = False, 1
        if mask & 0x2000000:
            is_numbered = int.from_bytes(data[at : at + 2], "little") == 1
            at += 2
        if mask & 0x1000000:
            start = int.from_bytes(data[at + 2 : at + 4], "little")
            at += 4
        for _ in range(2):  # properties of characters, then of languages
            further = int.from_bytes(data[at : at + 4], "little")
            at += 4 + _further_bytes(further, is_first=not _)
        found.append(max(start, 1) if is_numbered else 0)
    return found


def _further_bytes(mask: int, *, is_first: bool) -> int:
    if is_first:
        return 4 * bool(mask & 0x100000)
    return 2 * sum(bool(mask & bit) for bit in (0x1, 0x2, 0x4, 0x40)) + 4 * bool(mask & 0x20)
