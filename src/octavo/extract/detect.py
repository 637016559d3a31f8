"""Detects the type of a file from its first bytes.

The file name and media type are used only if the bytes are ambiguous.

Also contains the registry that finds the processor for a type of file. Each processor declares its types.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import NamedTuple, cast

import filetype

from octavo.core.errors import NotSupported
from octavo.core.extensions import ExtensionKind, extension_names
from octavo.extract.decode import encoding_of
from octavo.extract.extracted import Extracted, SourceType
from octavo.extract.text_kinds import text_kind

HEAD_BYTES = 64 * 1024

# PDF readers accept a header anywhere in the first kilobyte, but a text that quotes a PDF header is not a PDF.
_PDF_AT_START = re.compile(rb"\s*(?:\xef\xbb\xbf)?%PDF-")
_PDF_OBJECT = re.compile(rb"\d+\s+\d+\s+obj\b")
_PDF_LEAD_BYTES = 1024
_PDF_LABELS = frozenset({".pdf", "application/pdf"})

# Supported archives besides zip: tar files, and files compressed with gzip, bzip2 or xz.
_COMPRESSED = re.compile(rb"\x1f\x8b\x08[\x00-\x1f]|BZh[1-9](?:1AY&SY|\x17rE8P\x90)|\xfd7zXZ\x00")
_TAR_AT, _TAR = 257, b"ustar"

_IMAGES = frozenset(
    {
        "image/avif",
        "image/bmp",
        "image/gif",
        "image/heic",
        "image/heif",
        "image/jpeg",
        "image/png",
        "image/tiff",
        "image/webp",
    }
)
# High Efficiency Image Format. `filetype` does not know all of its brands.
_HEIF = re.compile(rb".{4}ftyp(?:hei[cxms]|hev[cxms]|mif[12]|msf1|avi[fs])", re.DOTALL)
_SOUND_BRANDS = re.compile(rb".{4}ftypM4[AB]", re.DOTALL)
_MEDIA_GROUPS = {"audio": SourceType.AUDIO, "video": SourceType.VIDEO}

_DJVU = b"AT&TFORM"
_MOBI_AT, _MOBI = 60, frozenset({b"BOOKMOBI", b"TEXtREAd"})

# Types that say little about the content. Extensions can read such files in another way.
_GENERAL = frozenset({SourceType.TEXT, SourceType.XML, SourceType.JSON, SourceType.ARCHIVE, SourceType.OTHER})

# Control characters allowed in text besides tab and newlines: form feed, escape, backspace, and the CP/M end mark.
_CONTROL = re.compile("[\x00-\x07\x0e-\x19\x1c-\x1f\x7f]")
_MOST_CONTROL = 0.01


def detect(head: bytes, filename: str = "", content_type: str = "") -> SourceType:
    """Detect the type of a file. `head` contains the first `HEAD_BYTES` bytes, or all bytes of a shorter file.

    Returns `EXTENSION` if the bytes show only a general type, such as text, and an installed extension reads files with
    the suffix of `filename`.
    """
    suffix = _suffix(filename)
    found = _built_in_type(head, suffix, _media_type(content_type))
    is_extension = suffix and found in _GENERAL and suffix in extension_names(ExtensionKind.FORMAT)
    return SourceType.EXTENSION if is_extension else found


def _built_in_type(head: bytes, suffix: str, media_type: str) -> SourceType:
    if head.startswith(_SIGNATURE):
        return zipped_type(head, suffix, media_type)
    if _is_pdf(head, labelled=bool({suffix, media_type} & _PDF_LABELS)):
        return SourceType.PDF
    if head.lstrip().startswith(b"{\\rtf"):
        return SourceType.RTF
    if head.startswith(_CONTAINER):
        return container_type(head, suffix, media_type)
    if _COMPRESSED.match(head) or head[_TAR_AT:].startswith(_TAR):
        return SourceType.ARCHIVE
    text = readable_text(head)
    return text_kind(text, suffix, media_type) if text is not None else _binary_type(head)


def readable_text(head: bytes) -> str | None:
    """Decode the first bytes of a file. Returns None if they are not text.

    A character cut off at the end is dropped.
    """
    text = head.decode(encoding_of(head), errors="ignore")
    strange = sum(1 for _ in _CONTROL.finditer(text))
    return None if "\0" in text or strange > _MOST_CONTROL * len(text) else text


def _is_pdf(head: bytes, *, labelled: bool) -> bool:
    if _PDF_AT_START.match(head):
        return True
    lead = head[:_PDF_LEAD_BYTES]
    if b"%PDF-" in lead:
        return _PDF_OBJECT.search(head) is not None
    return labelled and _PDF_OBJECT.search(lead) is not None


def _binary_type(head: bytes) -> SourceType:
    guess = cast("Callable[[bytes], str | None]", filetype.guess_mime)  # pyright: ignore[reportUnknownMemberType]
    found = guess(head) or ""
    if _HEIF.match(head) or found in _IMAGES:
        return SourceType.IMAGE
    if head.startswith(_DJVU):
        return SourceType.DJVU
    if head[_MOBI_AT : _MOBI_AT + 8] in _MOBI:
        return SourceType.MOBI
    if _SOUND_BRANDS.match(head):
        return SourceType.AUDIO
    return _MEDIA_GROUPS.get(found.partition("/")[0], SourceType.OTHER)


def _suffix(filename: str) -> str:
    return PurePosixPath(filename.lower()).suffix


def _media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


# OLE containers: old office files, encrypted new ones, and Outlook messages -----------------------------------------

_CONTAINER = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_LOCKED = "EncryptedPackage".encode("utf-16-le")
# Names of streams in the directory of the container. The directory is not always among the first bytes.
_STREAMS = {
    "__properties_version1.0": SourceType.MSG,
    "WordDocument": SourceType.DOC,
    "PowerPoint Document": SourceType.PPT,
    "Workbook": SourceType.XLS,
    "Book": SourceType.XLS,
}
_STREAM_NAMES = {name.encode("utf-16-le") + b"\0\0": kind for name, kind in _STREAMS.items()}
_CONTAINER_LABELS = {
    ".doc": SourceType.DOC,
    ".dot": SourceType.DOC,
    ".msg": SourceType.MSG,
    ".pot": SourceType.PPT,
    ".pps": SourceType.PPT,
    ".ppt": SourceType.PPT,
    ".xls": SourceType.XLS,
    ".xlt": SourceType.XLS,
    "application/msword": SourceType.DOC,
    "application/vnd.ms-excel": SourceType.XLS,
    "application/vnd.ms-outlook": SourceType.MSG,
    "application/vnd.ms-powerpoint": SourceType.PPT,
}


def container_type(head: bytes, suffix: str, media_type: str) -> SourceType:
    """Detect the type of an OLE container, the format of Office files before 2007 and of encrypted newer ones."""
    if _LOCKED in head:
        return _LABELS.get(suffix) or _LABELS.get(media_type) or SourceType.DOCX
    label = _CONTAINER_LABELS.get(suffix) or _CONTAINER_LABELS.get(media_type)
    found = [kind for name, kind in _STREAM_NAMES.items() if name in head]
    # A document can contain documents of other types, so several names may be found.
    return label if label and label in found else next(iter(found), label or SourceType.OTHER)


# Zip archives and the documents that are zip archives ---------------------------------------------------------------

_SIGNATURE = b"PK\x03\x04"
_HEADER = struct.Struct("<4s2xH10xIIHH")  # signature, flags, packed size, size, name length, extra length
_SIZES_COME_LATER = 0x08
_SIZES_ARE_ELSEWHERE = 0xFFFFFFFF

_MOST_MIMETYPE = 100
_OPEN = "application/vnd.oasis.opendocument."
_MIMETYPES = {
    b"application/epub+zip": SourceType.EPUB,
    f"{_OPEN}text".encode(): SourceType.ODT,
    f"{_OPEN}spreadsheet".encode(): SourceType.ODS,
    f"{_OPEN}presentation".encode(): SourceType.ODP,
}
_FOLDERS = {b"word/": SourceType.DOCX, b"ppt/": SourceType.PPTX, b"xl/": SourceType.XLSX}
_BINARY_WORKBOOK = b"xl/workbook.bin"
_EPUB_FILE = b"META-INF/container.xml"
_OPEN_DOCUMENT_FILE = b"META-INF/manifest.xml"
_OFFICE_FILES = frozenset({b"[Content_Types].xml", b"_rels/.rels", b"docProps/app.xml", b"docProps/core.xml"})
_IWORK_FILES = frozenset({b"Index/Document.iwa", b"buildVersionHistory.plist", b"QuickLook/Thumbnail.jpg"})
# Programs and their libraries. Nobody wants to read their files.
_PROGRAM_FILES = frozenset({b"META-INF/MANIFEST.MF", b"AndroidManifest.xml", b"classes.dex", b"Payload/"})
_IWORK_LABELS = frozenset({".pages", ".numbers", ".key"})

_OFFICE = "application/vnd.openxmlformats-officedocument."
_LABELS = {
    ".docx": SourceType.DOCX,
    ".pptx": SourceType.PPTX,
    ".xlsx": SourceType.XLSX,
    ".xlsb": SourceType.XLSB,
    _OFFICE + "wordprocessingml.document": SourceType.DOCX,
    _OFFICE + "presentationml.presentation": SourceType.PPTX,
    _OFFICE + "spreadsheetml.sheet": SourceType.XLSX,
}
_OPEN_DOCUMENT_LABELS = {
    ".odt": SourceType.ODT,
    ".ods": SourceType.ODS,
    ".odp": SourceType.ODP,
    f"{_OPEN}text": SourceType.ODT,
    f"{_OPEN}spreadsheet": SourceType.ODS,
    f"{_OPEN}presentation": SourceType.ODP,
}


class Entry(NamedTuple):
    """A file in a zip archive.

    `start` is the offset of its content. `packed_bytes` is its compressed size. It is 0 if the size is unknown.
    """

    name: bytes
    start: int
    packed_bytes: int


def zipped_type(head: bytes, suffix: str, media_type: str) -> SourceType:
    """Detect the type of a zip-based document from the entries of its archive.

    If the entries show only a family of formats, such as Microsoft Office, the file name or the media type decides. A
    program, such as a JAR or APK file, has the type `OTHER`. All other zip files are archives.
    """
    entries = {entry.name: entry for entry in list_entries(head)}
    mimetype = entries.get(b"mimetype")
    declared = _declared(head, mimetype) if mimetype else None
    found = declared or _by_names(entries.keys(), suffix)
    if found:
        return found
    if not entries:
        return SourceType.OTHER
    if entries.keys() & _OFFICE_FILES:
        labels = _LABELS
    elif _OPEN_DOCUMENT_FILE in entries or mimetype:
        labels = _OPEN_DOCUMENT_LABELS
    else:
        return SourceType.OTHER if entries.keys() & _PROGRAM_FILES else SourceType.ARCHIVE
    return labels.get(suffix) or labels.get(media_type) or SourceType.OTHER


def _declared(head: bytes, mimetype: Entry) -> SourceType | None:
    """Return the document type that the `mimetype` file in the archive declares. Returns None if the type is unknown.

    The `mimetype` file should be uncompressed. It is also read if it is compressed, because documents are sometimes
    unzipped and zipped again.
    """
    try:
        unpacked = zlib.decompressobj(-zlib.MAX_WBITS).decompress(head[mimetype.start :], _MOST_MIMETYPE).strip()
    except zlib.error:
        unpacked = b""
    return _MIMETYPES.get(_content(head, mimetype)) or _MIMETYPES.get(unpacked)


def _by_names(names: AbstractSet[bytes], suffix: str) -> SourceType | None:
    if _EPUB_FILE in names:
        return SourceType.EPUB
    if b"Index/Document.iwa" in names or (suffix in _IWORK_LABELS and names & _IWORK_FILES):
        return SourceType.IWORK
    if not names & _OFFICE_FILES:
        return None
    if _BINARY_WORKBOOK in names:
        return SourceType.XLSB
    return next((kind for folder, kind in _FOLDERS.items() if any(name.startswith(folder) for name in names)), None)


def list_entries(head: bytes) -> Iterator[Entry]:
    """Yield the files whose headers are in `head`, the first bytes of a zip archive.

    Nothing is unpacked.
    """
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
    """Return the content of an uncompressed file in a zip archive.

    If its size is unknown, the content ends at the next header.
    """
    if entry.packed_bytes:
        return head[entry.start : entry.start + entry.packed_bytes].strip()
    return head[entry.start : head.find(b"PK", entry.start)].strip()


# Types that are stored without being read, with the reason and a suggestion.
STORED_ONLY = {
    SourceType.IWORK: "Pages, Numbers and Keynote files cannot be read. Export the file as PDF, DOCX, XLSX or PPTX.",
    SourceType.MOBI: "Kindle books cannot be read. Convert the book to EPUB.",
    SourceType.DJVU: "DjVu files cannot be read. Convert the file to PDF.",
    SourceType.AUDIO: "Octavo cannot transcribe recordings. Add a transcript, for example as VTT or SRT.",
    SourceType.VIDEO: "Octavo cannot transcribe videos. Add a transcript, for example as VTT or SRT.",
    SourceType.OTHER: "Text cannot be extracted from this file type. If it is a document, save it as PDF.",
}
# All types that can be read. They are listed here so that a check does not import the processors.
READABLE = frozenset[str](set(SourceType) - set(STORED_ONLY))


@dataclass(frozen=True, slots=True)
class Hints:
    """Information about a file besides its bytes. The file name and content type are not trusted.

    `url` is the URL of a web page, and `password` opens a password-protected file.
    """

    source_type: SourceType
    filename: str = ""
    content_type: str = ""
    url: str = ""
    password: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Processor:
    """Reads files of the types in `source_types`.

    `extract` uses no database, network or clock, so its result depends only on the file. For documents that cannot be
    read, it raises errors from `octavo.core.errors`, including `Empty`. `read_figure` takes a path and a
    `Figure.member`, and returns the bytes of this picture inside the file.
    """

    source_types: tuple[SourceType, ...]
    extract: Callable[[Path, Hints], Extracted]
    read_figure: Callable[[Path, str], bytes] | None = None


class Processors:
    """Finds the processor for a file type. Each type has at most one processor.

    `paged` lists the types that are read page by page, without a processor. The error for an unsupported type lists all
    supported types, including those in `paged`.
    """

    def __init__(self, paged: Iterable[SourceType] = ()) -> None:
        self._processors: dict[SourceType, Processor] = {}
        self._paged = tuple(paged)

    def __getitem__(self, source_type: SourceType) -> Processor:
        try:
            return self._processors[source_type]
        except KeyError:
            if source_type in STORED_ONLY and source_type is not SourceType.OTHER:
                raise NotSupported(STORED_ONLY[source_type]) from None
            readable = ", ".join(sorted({*self._processors, *self._paged}))
            raise NotSupported(f"The file's type is {source_type}. Octavo reads {readable}.") from None

    def add(self, processor: Processor) -> None:
        for source_type in processor.source_types:
            if source_type in self._processors:
                raise ValueError(f"there is already a processor for {source_type}")
            self._processors[source_type] = processor

    @property
    def source_types(self) -> list[SourceType]:
        return sorted(self._processors)
