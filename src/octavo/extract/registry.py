"""The registry of processors: which one reads which type of file. Each processor declares its own types."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from octavo.core.errors import NotSupported
from octavo.extract.extracted import Extracted, SourceType


@dataclass(frozen=True, slots=True)
class Hints:
    """Information about a file besides its bytes. Its name and content type are not trusted.

    `url` is where a web page came from, `password` opens the file.
    """

    source_type: SourceType
    filename: str = ""
    content_type: str = ""
    url: str = ""
    password: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Processor:
    """`extract` reads the file and nothing else: no database, no network, no clock.

    It raises errors of `octavo.core.errors` for documents that cannot be read, including `Empty`.
    """

    source_types: tuple[SourceType, ...]
    extract: Callable[[Path, Hints], Extracted]


class Processors:
    """The processors by type. There is at most one for each type; the error for other types lists the known ones.

    `paged` lists types that are read page by page, without a processor.
    """

    def __init__(self, paged: Iterable[SourceType] = ()) -> None:
        self._processors: dict[SourceType, Processor] = {}
        self._paged = tuple(paged)

    def __getitem__(self, source_type: SourceType) -> Processor:
        try:
            return self._processors[source_type]
        except KeyError:
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
