"""Detects the type of zip-based documents from the file names in their first bytes."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from octavo.extract.extracted import SourceType

_SIGNATURE = b"PK\x03\x04"
_HEADER = struct.Struct("<4s2xH10xIIHH")  # signature, flags, packed size, size, name length, extra length
_SIZES_COME_LATER = 0x08
_SIZES_ARE_ELSEWHERE = 0xFFFFFFFF

_MOST_MIMETYPE = 100
_MIMETYPES = {
    b"application/epub+zip": SourceType.EPUB,
    b"application/vnd.oasis.opendocument.text": SourceType.ODT,
}
_FOLDERS = {b"word/": SourceType.DOCX, b"ppt/": SourceType.PPTX, b"xl/": SourceType.XLSX}
_EPUB_FILE = b"META-INF/container.xml"
_OPEN_DOCUMENT_FILE = b"META-INF/manifest.xml"
_OFFICE_FILES = frozenset({b"[Content_Types].xml", b"_rels/.rels", b"docProps/app.xml", b"docProps/core.xml"})

_CONTAINER = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_LOCKED = "EncryptedPackage".encode("utf-16-le")

_OFFICE = "application/vnd.openxmlformats-officedocument."
_LABELS = {
    ".docx": SourceType.DOCX,
    ".pptx": SourceType.PPTX,
    ".xlsx": SourceType.XLSX,
    _OFFICE + "wordprocessingml.document": SourceType.DOCX,
    _OFFICE + "presentationml.presentation": SourceType.PPTX,
    _OFFICE + "spreadsheetml.sheet": SourceType.XLSX,
}
_OPEN_DOCUMENT_LABELS = {".odt": SourceType.ODT, "application/vnd.oasis.opendocument.text": SourceType.ODT}


class Entry(NamedTuple):
    """A file in the archive.

    `start` is the offset of its content; `packed_bytes` is its compressed size, 0 if unknown.
    """

    name: bytes
    start: int
    packed_bytes: int


def zipped_type(head: bytes, suffix: str, media_type: str) -> SourceType:
    """The type of a zip-based document, from the entries of its archive.

    If the entries are ambiguous, the file name or the media type decides.
    """
    entries = {entry.name: entry for entry in list_entries(head)}
    mimetype = entries.get(b"mimetype")
    declared = _declared(head, mimetype) if mimetype else None
    found = declared or _by_names(entries.keys())
    if found:
        return found
    labels: dict[str, SourceType] = {}
    if entries.keys() & _OFFICE_FILES:
        labels = _LABELS
    elif _OPEN_DOCUMENT_FILE in entries or mimetype:
        labels = _OPEN_DOCUMENT_LABELS
    return labels.get(suffix) or labels.get(media_type) or SourceType.OTHER


def locked_type(head: bytes, suffix: str, media_type: str) -> SourceType | None:
    """The type of an encrypted office document; None for other files.

    Encrypted office documents are stored as OLE containers, not as zip archives.
    """
    if not head.startswith(_CONTAINER) or _LOCKED not in head:
        return None
    return _LABELS.get(suffix) or _LABELS.get(media_type) or SourceType.DOCX


def _declared(head: bytes, mimetype: Entry) -> SourceType | None:
    """The type that the `mimetype` entry declares.

    The entry should be uncompressed, but it is compressed if somebody has zipped the files again.
    """
    try:
        unpacked = zlib.decompressobj(-zlib.MAX_WBITS).decompress(head[mimetype.start :], _MOST_MIMETYPE).strip()
    except zlib.error:
        unpacked = b""
    return _MIMETYPES.get(_content(head, mimetype)) or _MIMETYPES.get(unpacked)


def _by_names(names: AbstractSet[bytes]) -> SourceType | None:
    if _EPUB_FILE in names:
        return SourceType.EPUB
    if not names & _OFFICE_FILES:
        return None
    return next((kind for folder, kind in _FOLDERS.items() if any(name.startswith(folder) for name in names)), None)


def list_entries(head: bytes) -> Iterator[Entry]:
    """The entries whose headers are in `head`, without unpacking anything."""
    start = 0
    while 0 <= start <= len(head) - _HEADER.size:
        signature, flags, packed, _, name_bytes, extra_bytes = _HEADER.unpack_from(head, start)
        if signature != _SIGNATURE:
            return
        name_start = start + _HEADER.size
        content = name_start + name_bytes + extra_bytes
        known = not flags & _SIZES_COME_LATER and packed != _SIZES_ARE_ELSEWHERE
        yield Entry(head[name_start : name_start + name_bytes], content, packed if known else 0)
        start = content + packed if known else head.find(_SIGNATURE, content)


def _content(head: bytes, entry: Entry) -> bytes:
    """The content of an uncompressed entry. If the size is unknown, the content ends at the next header."""
    if entry.packed_bytes:
        return head[entry.start : entry.start + entry.packed_bytes].strip()
    return head[entry.start : head.find(b"PK", entry.start)].strip()
