"""The processors of this version. A new one is a file of its own and a line here."""

from __future__ import annotations

from octavo.extract.formats import markdown, text
from octavo.extract.registry import Processors


def known_processors() -> Processors:
    processors = Processors()
    for processor in (markdown.PROCESSOR, text.PROCESSOR):
        processors.add(processor)
    return processors
