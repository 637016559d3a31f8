"""Reads untrusted zip archives without trusting their headers: bytes are counted as they are inflated.

Nothing is written to disk, and names in the archive are never used as paths.

Also reads OLE containers, the file format of Outlook and of Office before 2007.
"""

from __future__ import annotations

import codecs
import errno
import stat
import struct
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Self

from octavo.core.errors import BadInput, Encrypted, NotSupported, TooLarge
from octavo.extract.extracted import Metadata
from octavo.extract.office.assemble import clean_date, clean_line, clean_title, is_picture, non_empty

MEBIBYTE = 1 << 20
MOST_TOTAL = 512 * MEBIBYTE
# An XML tree takes ten times the memory of its text.
MOST_MEMBER = 64 * MEBIBYTE
MOST_MEMBERS = 50_000
# Text written by programs compresses to a thirtieth, at best a hundredth. A higher ratio means pure repetition.
MOST_RATIO = 250
RATIO_COUNTS_FROM = 16 * MEBIBYTE

_STEP = 256 * 1024
_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_IS_ENCRYPTED = 0x01
_END = b"PK\x05\x06"
_END_RECORD = struct.Struct("<4s4x2xHI")  # signature, number of members, size of the directory
_END_SEARCHED = 66_000
_BYTES_IN_LIST = 1024  # size of the entry of one member, including its longest reasonable name
_OLE = b"\xd0\xcf\x11\xe0"
_OLE_PASSWORD = "EncryptedPackage".encode("utf-16-le")
DAMAGED = "The file is damaged: "


class Archive:
    """The files in a zip archive, by name.

    No more than `MOST_TOTAL` bytes can be read in total.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        try:
            self._zip = _open(self._file)
        except BaseException:
            self._file.close()
            raise
        self._members = {_plain(info.filename): info for info in self._zip.infolist() if _is_file(info)}
        self._folded = {name.casefold(): name for name in self._members}
        self._left = MOST_TOTAL

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()
        self._file.close()

    def __contains__(self, name: str) -> bool:
        return self._name(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def read(self, name: str) -> bytes:
        content = self.find(name)
        if content is None:
            raise BadInput(f"{DAMAGED}a required part is missing.")
        return content

    def find(self, name: str, most: int = MOST_MEMBER) -> bytes | None:
        """Return the bytes of a file in the archive. Returns None if there is no such file.

        Raises `TooLarge` if the file unpacks to more than `most` bytes.
        """
        known = self._name(name)
        return b"".join(self._inflate(self._members[known], most)) if known is not None else None

    def steps(self, name: str, most: int = MOST_TOTAL) -> Iterator[bytes]:
        """Yield the content of a file in the archive, block by block. The file must exist."""
        yield from self._inflate(self._members[self._name(name) or ""], most)

    def size(self, name: str) -> int:
        """Return the unpacked size that the archive declares for a file, which may be wrong."""
        return self._members[self._name(name) or ""].file_size

    def is_encrypted(self, name: str) -> bool:
        return bool(self._members[self._name(name) or ""].flag_bits & _IS_ENCRYPTED)

    def _name(self, name: str) -> str | None:
        """Return the exact name of a file in the archive. Returns None if there is no such file.

        Case and the direction of slashes are ignored, because some programs mix them up.
        """
        name = _plain(name)
        return name if name in self._members else self._folded.get(name.casefold())

    def _inflate(self, info: zipfile.ZipInfo, most: int) -> Iterator[bytes]:
        if info.flag_bits & _IS_ENCRYPTED:
            raise Encrypted
        if info.compress_type not in _METHODS:
            raise NotSupported("The compression method of the file is not supported.")
        most = min(most, max(RATIO_COUNTS_FROM, info.compress_size * MOST_RATIO))
        try:
            with self._zip.open(info) as member:
                while block := member.read(_STEP):
                    most -= len(block)
                    self._left -= len(block)
                    if min(most, self._left) < 0:
                        raise TooLarge("The file's decompressed content is much larger than the file itself.")
                    yield block
        except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, OverflowError, RuntimeError) as error:
            raise BadInput(f"{DAMAGED}a part of it cannot be unpacked.") from error
        except OSError as error:
            if error.errno != errno.EINVAL:  # EINVAL means an offset before the start of the file
                raise
            raise BadInput(f"{DAMAGED}a part of it is outside the file.") from error


def read_picture(path: Path, member: str) -> bytes:
    """Return the bytes of a picture inside a zip archive."""
    with Archive(path) as archive:
        return archive.read(member)


def _open(file: BinaryIO) -> zipfile.ZipFile:
    _refuse_others(file)
    try:
        opened = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, struct.error, ValueError, OverflowError, NotImplementedError) as error:
        raise BadInput(f"{DAMAGED}its directory cannot be read. The file may be incomplete.") from error
    if len(opened.infolist()) > MOST_MEMBERS:
        raise TooLarge("The file contains too many parts.")
    return opened


def _refuse_others(file: BinaryIO) -> None:
    """Reject encrypted files, old office files and archives with far too many entries, before the archive is opened."""
    if file.read(len(_OLE)) == _OLE:
        file.seek(0)
        if _OLE_PASSWORD in file.read(64 * MEBIBYTE):
            raise Encrypted("Passwords are not supported for this type of file yet. Save the file without a password.")
        raise NotSupported("This is an office format from before 2007. Save the file in a newer format.")
    size = file.seek(0, 2)
    file.seek(max(0, size - _END_SEARCHED))
    tail = file.read()
    found = tail.rfind(_END)
    if 0 <= found <= len(tail) - _END_RECORD.size:
        _, _, list_bytes = _END_RECORD.unpack_from(tail, found)
        if list_bytes > MOST_MEMBERS * _BYTES_IN_LIST:
            raise TooLarge("The file contains too many parts.")
    file.seek(0)


def _plain(name: str) -> str:
    return name.replace("\\", "/").lstrip("/")


def _is_file(info: zipfile.ZipInfo) -> bool:
    """Whether an entry is a file and not a folder or symbolic link."""
    return info.filename[-1:] not in {"", "/"} and not stat.S_ISLNK(info.external_attr >> 16)


@contextmanager
def reject_deep_nesting() -> Generator[None]:
    """Raise `BadInput` if the code in the `with` block exceeds the recursion limit.

    This happens if a document is nested too deeply.
    """
    try:
        yield
    except RecursionError:
        raise BadInput(f"{DAMAGED}it is nested too deeply.") from None


# The exceptions that olefile raises for damaged containers.
FAULTS = (OSError, ValueError, IndexError, KeyError, AttributeError, TypeError, OverflowError, struct.error)
_PICTURES = {b"\x89PNG\r\n\x1a\n": b"IEND\xaeB`\x82", b"\xff\xd8\xff": b"\xff\xd9"}
# Property sets: the offset of the first section, limits, the ids of properties, and the ids of their types.
_SECTION_AT, _MOST_PROPERTIES, _MOST_VALUE = 44, 100, 4096
_CODE_PAGE, _TITLE, _SUBJECT, _AUTHOR, _KEYWORDS, _CREATED = 1, 2, 3, 4, 5, 12
_NARROW, _WIDE, _TIME = 30, 31, 64
_UTF8 = 65001
_EPOCH, _TICKS_OF_DAY, _LAST_DAY = date(1601, 1, 1), 864_000_000_000, 220_000


class Container:
    """An OLE container, which consists of named streams."""

    def __init__(self, ole: Any) -> None:  # noqa: ANN401 - an untyped library
        self.ole = ole

    def read(self, *name: str) -> bytes:
        """Return the bytes of a stream. Returns empty bytes if the container has no such stream."""
        return self.ole.openstream(list(name)).read() if self.ole.exists(list(name)) else b""

    def metadata(self) -> Metadata:
        """Return the metadata from the document's summary stream.

        olefile is not used for this, because it trusts the number of properties that the file declares, which can be
        very large in a hostile file.
        """
        try:
            found = _summary(self.read("\x05SummaryInformation"))
        except struct.error:
            return Metadata()
        return Metadata(
            title=clean_title(found.get(_TITLE)),
            author=clean_line(found.get(_AUTHOR)),
            date=clean_date(found.get(_CREATED)),
            extra=non_empty(subject=found.get(_SUBJECT), keywords=found.get(_KEYWORDS)),
        )


def _summary(data: bytes) -> dict[int, str]:
    """Return the texts and dates in the first section of an OLE property set, keyed by property id."""
    if len(data) < _SECTION_AT + 4:
        return {}
    (start,) = struct.unpack_from("<I", data, _SECTION_AT)
    section = data[start:]
    _, count = struct.unpack_from("<II", section)
    places = [struct.unpack_from("<II", section, 8 + 8 * number) for number in range(min(count, _MOST_PROPERTIES))]
    values = {name: section[place : place + _MOST_VALUE] for name, place in places}
    codec = _codec(int.from_bytes(values.get(_CODE_PAGE, b"")[4:6], "little"))
    return {name: text for name, value in values.items() if (text := _value(value, codec))}


def _codec(code_page: int) -> str:
    name = "utf-8" if code_page in {0, _UTF8} else f"cp{code_page}"
    try:
        return codecs.lookup(name).name
    except LookupError:
        return "cp1252"


def _value(data: bytes, codec: str) -> str:
    kind, size = struct.unpack_from("<II", data) if len(data) >= 8 else (0, 0)  # noqa: PLR2004 - two numbers
    if kind == _NARROW:
        return data[8 : 8 + size].decode(codec, "replace").partition("\0")[0]
    if kind == _WIDE:
        return data[8 : 8 + 2 * size].decode("utf-16-le", "replace").partition("\0")[0]
    if kind == _TIME and len(data) >= 12:  # noqa: PLR2004 - the kind and the time
        days = struct.unpack_from("<Q", data, 4)[0] // _TICKS_OF_DAY
        return (_EPOCH + timedelta(days)).isoformat() if 0 < days < _LAST_DAY else ""
    return ""


@contextmanager
def open_container(path: Path) -> Generator[Container]:
    olefile: Any = import_module("olefile")  # untyped; imported late, because only the sandbox needs it
    try:
        with olefile.OleFileIO(str(path)) as ole:
            yield Container(ole)
    except FAULTS as error:
        raise BadInput(f"{DAMAGED}its container cannot be read.") from error


def find_picture(data: bytes) -> bytes:
    """Return the first PNG or JPEG picture in the bytes of a drawing. Returns empty bytes if there is none."""
    found = min(((place, head) for head in _PICTURES if (place := data.find(head)) >= 0), default=None)
    if found is None:
        return b""
    end = data.rfind(_PICTURES[found[1]]) + len(_PICTURES[found[1]])
    picture = data[found[0] : end] if end > found[0] else b""
    return picture if is_picture(picture) else b""
