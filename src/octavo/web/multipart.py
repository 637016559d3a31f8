"""Reads multipart forms as they arrive: small fields are kept, the file's bytes go straight through."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field

from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header

from octavo.model.errors import BadInput, TooLarge

FIELD_BYTES = 64 << 10
MOST_FIELDS = 100


class BrokenMultipart(BadInput):
    """The form broke off or cannot be read. Send it again."""

    code = "BROKEN_MULTIPART"
    status = 400


@dataclass(slots=True)
class Form:
    """`fields` holds those that came before the file; read `file` to its end, then it holds the others too."""

    fields: dict[str, str]
    filename: str
    content_type: str
    file: AsyncGenerator[bytes]


@dataclass(slots=True)
class _Part:
    headers: dict[str, str] = field(default_factory=dict[str, str])
    name: str = ""
    filename: str | None = None
    data: bytearray = field(default_factory=bytearray)


class FormReader:
    """One form. The file is the first part that has a file name."""

    def __init__(self, content_type: str, body: AsyncIterator[bytes]) -> None:
        kind, options = parse_options_header(content_type)
        boundary = options.get(b"boundary")
        if kind != b"multipart/form-data" or not boundary:
            raise BrokenMultipart("Its boundary is missing.")
        self._body = body
        self._fields: dict[str, str] = {}
        self._part = _Part()
        self._header: tuple[bytearray, bytearray] = (bytearray(), bytearray())
        self._file: _Part | None = None
        self._pieces: deque[bytes] = deque()
        self._in_file = self._ended = False
        self._field_bytes = 0
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin_part,
                "on_header_begin": self._begin_header,
                "on_header_field": lambda data, start, end: self._header[0].extend(data[start:end]),
                "on_header_value": lambda data, start, end: self._header[1].extend(data[start:end]),
                "on_header_end": self._end_header,
                "on_headers_finished": self._end_headers,
                "on_part_data": self._take,
                "on_part_end": self._end_part,
                "on_end": self._end,
            },
        )

    async def read(self) -> Form:
        """Everything before the file's first byte."""
        while self._file is None:
            if not await self._more():
                raise BadInput("The form has no file.")
        name = self._file.headers.get("content-type", "")
        content_type = name if 0 < len(name) <= 200 else "application/octet-stream"  # noqa: PLR2004
        return Form(self._fields, self._file.filename or "", content_type, self._chunks())

    async def _chunks(self) -> AsyncGenerator[bytes]:
        while True:
            while self._pieces:
                yield self._pieces.popleft()
            if not await self._more():
                return

    async def _more(self) -> bool:
        """Parse what comes next; false at the end of a whole form."""
        async for data in self._body:
            try:
                self._parser.write(data)
            except MultipartParseError:
                raise BrokenMultipart from None
            return True
        if not self._ended:
            raise BrokenMultipart
        return False

    # The parser tells in order what it finds.

    def _begin_part(self) -> None:
        self._part = _Part()

    def _begin_header(self) -> None:
        self._header = (bytearray(), bytearray())

    def _end_header(self) -> None:
        name, value = (bytes(part).decode("utf-8", "replace") for part in self._header)
        self._part.headers[name.strip().lower()] = value.strip()

    def _end_headers(self) -> None:
        _, options = parse_options_header(self._part.headers.get("content-disposition", ""))
        self._part.name = options.get(b"name", b"").decode("utf-8", "replace")
        filename = options.get(b"filename")
        if filename is not None and self._file is None:
            self._part.filename = filename.decode("utf-8", "replace")
            self._file, self._in_file = self._part, True

    def _take(self, data: bytes, start: int, end: int) -> None:
        if self._in_file:
            self._pieces.append(data[start:end])
            return
        self._field_bytes += end - start
        if self._field_bytes > FIELD_BYTES:
            raise TooLarge("The fields beside the file are too long.")
        self._part.data.extend(data[start:end])

    def _end_part(self) -> None:
        if self._in_file:
            self._in_file = False
        elif self._part.name:
            if len(self._fields) >= MOST_FIELDS:
                raise TooLarge("The form has too many fields.")
            self._fields[self._part.name] = self._part.data.decode("utf-8", "replace")

    def _end(self) -> None:
        self._ended = True
