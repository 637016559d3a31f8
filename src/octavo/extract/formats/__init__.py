"""The registry of processors. To add a format, write a module with a `PROCESSOR` and list it here."""

from __future__ import annotations

from octavo.extract.extracted import PAGED
from octavo.extract.formats import (
    csv,
    docx,
    eml,
    epub,
    markdown,
    odt,
    paste,
    pptx,
    rtf,
    text,
    web,
    xlsx,
    youtube,
)
from octavo.extract.registry import Processors


def known_processors() -> Processors:
    processors = Processors(paged=PAGED)
    for processor in (csv, docx, eml, epub, markdown, odt, paste, pptx, rtf, text, web, xlsx, youtube):
        processors.add(processor.PROCESSOR)
    return processors
