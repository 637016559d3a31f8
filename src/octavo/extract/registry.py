"""The registry of processors: which processor reads which type of file. Each processor declares its types."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from octavo.core.errors import NotSupported
from octavo.extract.extracted import Extracted, SourceType

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

    `url` is the address of a web page, and `password` opens a password-protected file.
    """

    source_type: SourceType
    filename: str = ""
    content_type: str = ""
    url: str = ""
    password: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Processor:
    """Reads files of the types in `source_types`.

    `extract` depends only on the file: it uses no database, network or clock. It raises errors from
    `octavo.core.errors`, including `Empty`, for documents that cannot be read. `read_figure` returns the bytes of a
    picture inside the file, named by `Figure.member`.
    """

    source_types: tuple[SourceType, ...]
    extract: Callable[[Path, Hints], Extracted]
    read_figure: Callable[[Path, str], bytes] | None = None


class Processors:
    """Finds the processor for a file type.

    There is at most one for each type. The error for an unsupported type lists the supported types. `paged` lists types
    that are read page by page, without a processor.
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
            raise NotSupported(f"Its type is {source_type}. Octavo reads {readable}.") from None

    def add(self, processor: Processor) -> None:
        for source_type in processor.source_types:
            if source_type in self._processors:
                raise ValueError(f"there is already a processor for {source_type}")
            self._processors[source_type] = processor

    @property
    def source_types(self) -> list[SourceType]:
        return sorted(self._processors)
