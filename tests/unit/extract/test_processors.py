"""Processors are found by the type of the source."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.core.errors import NotSupported
from octavo.extract.detect import READABLE, Hints, Processor, Processors
from octavo.extract.extracted import PAGED, Extracted, SourceType
from octavo.extract.formats import known_processors


def refuse(_path: Path, _hints: Hints) -> Extracted:
    raise NotImplementedError


def test_two_for_one_type_are_refused() -> None:
    processors = Processors()
    processors.add(Processor((SourceType.PDF,), refuse))
    with pytest.raises(ValueError, match="already a processor for pdf"):
        processors.add(Processor((SourceType.EPUB, SourceType.PDF), refuse))


def test_a_missing_one_lists_the_known() -> None:
    processors = Processors()
    processors.add(Processor((SourceType.PDF, SourceType.EPUB), refuse))
    with pytest.raises(NotSupported, match=r"type is image\. Octavo reads epub, pdf"):
        processors[SourceType.IMAGE]


def test_each_known_type_has_its_processor() -> None:
    processors = known_processors()
    assert {SourceType.MARKDOWN, SourceType.TEXT} <= set(processors.source_types)
    for source_type in processors.source_types:
        assert source_type in processors[source_type].source_types


def test_what_is_called_readable_is_what_processors_are_known_for() -> None:
    assert {*known_processors().source_types, *PAGED} == READABLE
