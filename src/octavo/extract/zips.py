"""Reads untrusted zip archives without trusting their headers: bytes are counted while they are inflated.

Nothing is written to disk, and names in the archive are never used as paths.
"""

from __future__ import annotations

import errno
import stat
import struct
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Self

from octavo.core.errors import BadInput, Encrypted, NotSupported, TooLarge

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
    """The files in a zip archive, by name. At most `MOST_TOTAL` bytes can be read from all of them together."""

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
        """Return the bytes of a file in the archive, or None if there is no such file."""
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
        """Return the exact name of a file in the archive, or None.

        Upper and lower case and the direction of slashes may differ, because some programs mix them up.
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
    """Raise `BadInput` if the code in the `with` block exceeds the recursion limit, because a document is nested too
    deeply.
    """
    try:
        yield
    except RecursionError:
        raise BadInput(f"{DAMAGED}it is nested too deeply.") from None
