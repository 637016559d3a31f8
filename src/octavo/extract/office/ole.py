"""OLE containers, in which Office before 2007 and Outlook store their files."""

from __future__ import annotations

import struct
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from octavo.core.errors import BadInput
from octavo.extract.extracted import Metadata
from octavo.extract.office.assemble import clean_date, clean_line, clean_title, is_picture, non_empty
from octavo.extract.zips import DAMAGED

# What olefile raises for damaged containers.
FAULTS = (OSError, ValueError, IndexError, KeyError, AttributeError, TypeError, OverflowError, struct.error)
_PICTURES = {b"\x89PNG\r\n\x1a\n": b"IEND\xaeB`\x82", b"\xff\xd8\xff": b"\xff\xd9"}
_UTF8 = 65001
_NO_YEAR = 1601  # the date of files without one


class Container:
    """The streams of a container."""

    def __init__(self, ole: Any) -> None:  # noqa: ANN401 - an untyped library
        self.ole = ole

    def read(self, *name: str) -> bytes:
        """The bytes of a stream; empty if the container has no such stream."""
        return self.ole.openstream(list(name)).read() if self.ole.exists(list(name)) else b""

    def metadata(self) -> Metadata:
        try:
            found: Any = self.ole.get_metadata()
        except FAULTS:
            return Metadata()
        code_page = found.codepage if isinstance(found.codepage, int) else 0
        codec = "utf-8" if code_page in {0, _UTF8, _UTF8 - (1 << 16)} else f"cp{code_page % (1 << 16)}"
        created = found.create_time
        return Metadata(
            title=clean_title(_decoded(found.title, codec)),
            author=clean_line(_decoded(found.author, codec)),
            date=clean_date(created.date().isoformat()) if getattr(created, "year", 0) > _NO_YEAR else None,
            extra=non_empty(subject=_decoded(found.subject, codec), keywords=_decoded(found.keywords, codec)),
        )


def _decoded(value: object, codec: str) -> str | None:
    if not isinstance(value, bytes):
        return value if isinstance(value, str) else None
    try:
        return value.decode(codec, "replace").rstrip("\0")
    except LookupError:
        return value.decode("cp1252", "replace").rstrip("\0")


@contextmanager
def open_container(path: Path) -> Generator[Container]:
    olefile: Any = import_module("olefile")  # untyped; imported late, because only the sandbox needs it
    try:
        with olefile.OleFileIO(str(path)) as ole:
            yield Container(ole)
    except FAULTS as error:
        raise BadInput(f"{DAMAGED}its container cannot be read.") from error


def find_picture(data: bytes) -> bytes:
    """The first PNG or JPEG picture in the bytes of a drawing; empty if there is none."""
    found = min(((place, head) for head in _PICTURES if (place := data.find(head)) >= 0), default=None)
    if found is None:
        return b""
    end = data.rfind(_PICTURES[found[1]]) + len(_PICTURES[found[1]])
    picture = data[found[0] : end] if end > found[0] else b""
    return picture if is_picture(picture) else b""
