"""Reads OLE containers, the file format of Outlook and of Office before 2007."""

from __future__ import annotations

import codecs
import struct
from collections.abc import Generator
from contextlib import contextmanager
from datetime import date, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

from octavo.core.errors import BadInput
from octavo.extract.extracted import Metadata
from octavo.extract.office.assemble import clean_date, clean_line, clean_title, is_picture, non_empty
from octavo.extract.zips import DAMAGED

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
        """Return the bytes of a stream, or empty bytes if the container has no such stream."""
        return self.ole.openstream(list(name)).read() if self.ole.exists(list(name)) else b""

    def metadata(self) -> Metadata:
        """Return the metadata from the document's summary stream.

        olefile is not used for this, because it trusts the number of properties given in the file.
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
    """Return the first PNG or JPEG picture in the bytes of a drawing, or empty bytes if there is none."""
    found = min(((place, head) for head in _PICTURES if (place := data.find(head)) >= 0), default=None)
    if found is None:
        return b""
    end = data.rfind(_PICTURES[found[1]]) + len(_PICTURES[found[1]])
    picture = data[found[0] : end] if end > found[0] else b""
    return picture if is_picture(picture) else b""
