"""Lists and unpacks the files in archives (ZIP, TAR, compressed files).

The files in an archive and the attachments of an email become documents. The unpacked bytes are counted and limited,
and names in the archive are never used as paths.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import struct
import tarfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, NamedTuple, Protocol, cast

from octavo.core.errors import BadInput, Defect, Empty, OctavoError, TooLarge
from octavo.core.formatting import format_bytes
from octavo.extract.decode import clean
from octavo.extract.detect import Hints, Processor
from octavo.extract.extracted import Extracted, Metadata, Quality, SourceType
from octavo.extract.formats.mail_files import attachments, is_mail
from octavo.extract.markdown.block_writer import Paragraph, write_blocks
from octavo.extract.markdown.table_grid import Grid
from octavo.extract.office.assemble import to_extracted
from octavo.extract.zips import DAMAGED, MOST_TOTAL, Archive
from octavo.sandbox import Task, sandboxed

MOST_MEMBERS = 10_000
MOST_NAME = 500
_BLOCK = 256 * 1024
_HEADER = struct.Struct("<I")
_MOST_TYPE = 200
_INVALID = "The sandbox returned an invalid list of files."
MOST_HEADER = 16 * 1024
# Files that operating systems add automatically.
_SYSTEM = frozenset({".ds_store", "thumbs.db", "desktop.ini"})
_SYSTEM_FOLDER = "__MACOSX/"
_BROKEN = (tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError, OverflowError)


class _Readable(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Member:
    """A file in an archive. `size` is the size that the archive declares, if any.

    `refused` is the reason why the file cannot be unpacked. `read` returns its content in blocks.
    """

    name: str
    size: int | None
    read: Callable[[], Iterator[bytes]]
    content_type: str = ""
    refused: str | None = None


def extract(path: Path, hints: Hints) -> Extracted:
    """Return a table that lists the files in an archive.

    Files that operating systems add, such as `.DS_Store`, are left out.
    """
    grid = Grid()
    grid.add_rows([["File", "Size"]])
    refused = count = 0
    for member in members(path, hints):
        count += 1
        refused += member.refused is not None
        size = format_bytes(member.size) if member.size is not None else ""
        grid.add_rows([[member.name, f"{size} ({member.refused})" if member.refused else size]])
    if not count:
        raise Empty("The archive contains no files.")
    blocks = [Paragraph(f"Archive with {count:,} {'file' if count == 1 else 'files'}."), *grid.blocks()]
    metadata = Metadata()
    if refused:
        reason = f"{refused:,} of {count:,} files in the archive cannot be unpacked."
        metadata = Metadata(extra={"reason": reason})
    quality = Quality.PARTIAL if refused or grid.is_cut else Quality.FULL
    return to_extracted(SourceType.ARCHIVE, clean(write_blocks(blocks)), metadata, quality=quality, has_title=False)


def members(path: Path, hints: Hints) -> Iterator[Member]:
    """Yield the files in an archive, or the attachments of an email.

    The caller must read the content of each file before it requests the next one.
    """
    found = _attachments(path, hints.source_type) if is_mail(hints.source_type) else _members(path, hints.filename)
    for count, member in enumerate(_shown(found)):
        if count == MOST_MEMBERS:
            raise TooLarge("The archive contains too many files.")
        yield member


def _shown(found: Iterator[Member]) -> Iterator[Member]:
    for member in found:
        name = member.name
        if not name.startswith(_SYSTEM_FOLDER) and PurePosixPath(name).name.lower() not in _SYSTEM:
            yield member


def _attachments(path: Path, source_type: SourceType) -> Iterator[Member]:
    for one in attachments(path, source_type):
        yield Member(_label(one.name), len(one.content), lambda content=one.content: iter([content]), one.content_type)


def _members(path: Path, filename: str) -> Iterator[Member]:
    with path.open("rb") as file:
        head = file.read(6)
    if head.startswith(b"PK"):
        yield from _zip_members(path)
        return
    try:
        yield from _streamed_members(path, filename, head)
    except OctavoError:
        raise
    except _BROKEN as error:
        raise BadInput(f"{DAMAGED}the archive cannot be unpacked.") from error


def _zip_members(path: Path) -> Iterator[Member]:
    with Archive(path) as archive:
        for name in archive:
            refused = "encrypted" if archive.is_encrypted(name) else None
            yield Member(_label(name), archive.size(name), lambda name=name: archive.steps(name), refused=refused)


class _Counted:
    """A compressed file that is unpacked while it is read.

    Limits the number of unpacked bytes, because a small file can unpack to a very large one.
    """

    def __init__(self, file: _Readable) -> None:
        self._file = file
        self._left = MOST_TOTAL

    def read(self, size: int = -1) -> bytes:
        block = self._file.read(min(size, _BLOCK) if size >= 0 else _BLOCK)
        self._left -= len(block)
        if self._left < 0:
            raise TooLarge("The file's decompressed content is much larger than the file itself.")
        return block


def _streamed_members(path: Path, filename: str, head: bytes) -> Iterator[Member]:
    """Yield the files in a tar archive. For any other compressed file, yield its content as the only file."""
    with path.open("rb") as file:
        is_tar = _is_tar(_decompressed(file, head).read(tarfile.BLOCKSIZE))
        file.seek(0)
        stream = _Counted(_decompressed(file, head))
        if is_tar:
            yield from _tar_members(stream)
        else:
            name = PurePosixPath(filename).stem or "content"
            yield Member(_label(name), None, lambda: iter(lambda: stream.read(_BLOCK), b""))


def _decompressed(file: BinaryIO, head: bytes) -> _Readable:
    if head.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=file, mode="rb")
    if head.startswith(b"BZh"):
        return bz2.BZ2File(file)
    return lzma.LZMAFile(file) if head.startswith(b"\xfd7zXZ") else file


def _is_tar(start: bytes) -> bool:
    try:
        tarfile.TarInfo.frombuf(start, "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


def _tar_members(stream: _Counted) -> Iterator[Member]:
    with tarfile.open(fileobj=cast("IO[bytes]", stream), mode="r|", errorlevel=0) as archive:
        for info in archive:
            content = archive.extractfile(info) if info.isreg() else None
            if content is not None:
                yield Member(
                    _label(info.name), info.size, lambda content=content: iter(lambda: content.read(_BLOCK), b"")
                )


def _label(name: str) -> str:
    """Clean the name of a file in an archive for display.

    The result is valid Unicode on one line, and contains no `..`.
    """
    shown = clean(name.encode("utf-8", "replace").decode("utf-8")).replace("\\", "/").replace("\n", " ")
    parts = [part for part in shown.split("/") if part.strip() not in {"", ".", ".."}]
    return "/".join(parts)[-MOST_NAME:] or "untitled"


# Unpacking in the sandbox -------------------------------------------------------------------------------------------


@sandboxed
def unpack(task: Task, *, source_type: str, filename: str, most: int, most_bytes: int, most_total: int) -> int:
    """Unpack the files of an archive into the output file, each after a header with its number, name, type and size.

    Writes at most `most` files and at most `most_total` bytes. Files that are longer than `most_bytes` or cannot be
    unpacked are left out. Returns the number of files that were left out, not counting empty ones.
    """
    left_out = written = count = 0
    for number, member in enumerate(members(Path(task.input_path), Hints(SourceType(source_type), filename))):
        content = _content(member, min(most_bytes, most_total - written)) if count < most else None
        if content:
            about = {"number": number, "name": member.name, "content_type": member.content_type, "bytes": len(content)}
            header = json.dumps(about).encode()
            task.output.write(_HEADER.pack(len(header)) + header + content)
            task.progress(number + 1, None, "files")
            written += len(content)
        count += bool(content)
        left_out += content is None
    return left_out


def _content(member: Member, most_bytes: int) -> bytes | None:
    if member.refused or (member.size or 0) > most_bytes:
        return None
    content = BytesIO()
    for block in member.read():
        content.write(block)
        if content.tell() > most_bytes:
            return None
    return content.getvalue()


class Part(NamedTuple):
    """A file that was unpacked from an archive. `number` is its position in the archive."""

    number: int
    name: str
    content_type: str
    content: bytes


def read_parts(unpacked: BinaryIO) -> Iterator[Part]:
    """Read and validate the unpacked files that `unpack` wrote.

    Validation is needed because a hostile file may have taken over the child process that ran `unpack`. Raises `Defect`
    if the data is invalid.
    """
    last = -1
    while size := unpacked.read(_HEADER.size):
        length = _HEADER.unpack(size)[0] if len(size) == _HEADER.size else MOST_HEADER + 1
        match _about(unpacked.read(length)) if length <= MOST_HEADER else None:
            case {"number": int(number), "name": str(name), "content_type": str(kind), "bytes": int(count)}:
                content = unpacked.read(count) if count > 0 else b""
                if number <= last or len(content) != count or len(name) > MOST_NAME or "\0" in name:
                    raise Defect(_INVALID)
                last = number
                yield Part(number, name, clean(kind)[:_MOST_TYPE], content)
            case _:
                raise Defect(_INVALID)


def _about(header: bytes) -> object:
    try:
        return json.loads(header)
    except (ValueError, RecursionError):
        raise Defect(_INVALID) from None


PROCESSOR = Processor((SourceType.ARCHIVE,), extract)
