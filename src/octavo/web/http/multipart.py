"""Reads multipart forms as they arrive. Small fields are buffered; the file is streamed."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from octavo.core.errors import BadInput, TooLarge

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

FIELD_BYTES = 64 << 10
MOST_PARTS = 100
# Limits everything except the file: fields, headers and boundaries.
BESIDE_FILE_BYTES = 1 << 20


class BrokenMultipart(BadInput):
    """The form is incomplete or cannot be read. Send it again."""

    code = "BROKEN_MULTIPART"
    status = 400


class SeveralFiles(BadInput):
    """The form has more than one file. Send each file in a separate form."""

    code = "SEVERAL_FILES"


@dataclass(slots=True)
class Form:
    """A multipart form.

    `fields` contains the fields before the file. The fields after the file are added once `file` has been read. If a
    field is repeated, `fields` has its last value, and `repeated` has all values.
    """

    fields: dict[str, str]
    filename: str
    content_type: str
    file: AsyncGenerator[bytes]
    repeated: dict[str, list[str]]


@dataclass(slots=True)
class _Part:
    headers: dict[str, str] = field(default_factory=dict[str, str])
    name: str = ""
    filename: str | None = None
    data: bytearray = field(default_factory=bytearray)


class FormReader:
    """Reads one multipart form. The file is the first field with a file name."""

    def __init__(self, content_type: str, body: AsyncIterator[bytes], *, field_bytes: int = FIELD_BYTES) -> None:
        kind, options = parse_options_header(content_type)
        boundary = options.get(b"boundary")
        if kind != b"multipart/form-data" or not boundary:
            raise BrokenMultipart("The multipart boundary is missing.")
        self._body = body
        self._most_field_bytes = field_bytes
        self._fields: dict[str, str] = {}
        self._repeated: dict[str, list[str]] = {}
        self._part = _Part()
        self._header: tuple[bytearray, bytearray] = (bytearray(), bytearray())
        self._file: _Part | None = None
        self._pieces: deque[bytes] = deque()
        self._in_file = self._ended = False
        self._parts = self._field_bytes = self._beside_file = 0
        try:
            self._parser = MultipartParser(boundary, self._callbacks())
        except FormParserError:
            raise BrokenMultipart("The multipart boundary is too long.") from None

    def _callbacks(self) -> MultipartCallbacks:
        return {
            "on_part_begin": self._begin_part,
            "on_header_begin": self._begin_header,
            "on_header_field": lambda data, start, end: self._header[0].extend(data[start:end]),
            "on_header_value": lambda data, start, end: self._header[1].extend(data[start:end]),
            "on_header_end": self._end_header,
            "on_headers_finished": self._end_headers,
            "on_part_data": self._take,
            "on_part_end": self._end_part,
            "on_end": self._end,
        }

    async def read(self) -> Form:
        """Read the fields before the file, and return the form. The caller then reads the file through the form's
        `file`.
        """
        while self._file is None:
            if not await self._more():
                raise BadInput("The form has no file.")
        name = self._file.headers.get("content-type", "")
        content_type = name if 0 < len(name) <= 200 else "application/octet-stream"  # noqa: PLR2004
        return Form(self._fields, self._file.filename or "", content_type, self._chunks(), self._repeated)

    async def _chunks(self) -> AsyncGenerator[bytes]:
        while True:
            while self._pieces:
                yield self._pieces.popleft()
            if not await self._more():
                return

    async def _more(self) -> bool:
        """Parse the next chunk of the request body. Returns False at the end of a complete form."""
        async for data in self._body:
            try:
                self._parser.write(data)
            except FormParserError:
                raise BrokenMultipart from None
            self._beside_file += len(data)
            if self._beside_file > BESIDE_FILE_BYTES:
                raise TooLarge("The form has too much data besides its file.")
            return True
        if not self._ended:
            raise BrokenMultipart
        return False

    # Callbacks of the parser, in the order in which it calls them.

    def _begin_part(self) -> None:
        self._part = _Part()
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise TooLarge("The form has too many fields.")

    def _begin_header(self) -> None:
        self._header = (bytearray(), bytearray())

    def _end_header(self) -> None:
        # Latin-1 keeps every byte; names are decoded as UTF-8 later.
        name, value = (part.decode("latin-1") for part in self._header)
        self._part.headers[name.strip().lower()] = value.strip()

    def _end_headers(self) -> None:
        _, options = parse_options_header(self._part.headers.get("content-disposition", ""))
        self._part.name = options.get(b"name", b"").decode("utf-8", "replace")
        filename = options.get(b"filename")
        if filename is not None:
            if self._file is not None:
                raise SeveralFiles
            self._part.filename = filename.decode("utf-8", "replace")
            self._file, self._in_file = self._part, True

    def _take(self, data: bytes, start: int, end: int) -> None:
        if self._in_file:
            self._beside_file -= end - start
            self._pieces.append(data[start:end])
            return
        self._field_bytes += end - start
        if self._field_bytes > self._most_field_bytes:
            raise TooLarge("The form fields are too long.")
        self._part.data.extend(data[start:end])

    def _end_part(self) -> None:
        if self._in_file:
            self._in_file = False
        elif self._part.name:
            self._fields[self._part.name] = value = self._part.data.decode("utf-8", "replace")
            self._repeated.setdefault(self._part.name, []).append(value)

    def _end(self) -> None:
        self._ended = True
