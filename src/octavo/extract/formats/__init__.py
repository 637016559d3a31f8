"""The registry of processors.

A processor reads one or more file formats. To add a format, write a module with a `PROCESSOR` and list it here.
Extensions can add formats, too: see `text.py`.
"""

from __future__ import annotations

from pathlib import Path

from octavo.core.errors import NotFound
from octavo.extract.detect import Processors
from octavo.extract.extracted import PAGED, SourceType
from octavo.extract.formats import (
    archive,
    data,
    doc,
    docx,
    eml,
    epub,
    latex,
    mail_files,
    markup,
    odt,
    org,
    ppt,
    pptx,
    related_office,
    rtf,
    text,
    web,
    xlsx,
    xml_documents,
)


def known_processors() -> Processors:
    processors = Processors(paged=PAGED)
    for module in (
        data,
        doc,
        docx,
        eml,
        epub,
        latex,
        markup,
        odt,
        ppt,
        pptx,
        related_office,
        rtf,
        text,
        web,
        xlsx,
    ):
        processors.add(module.PROCESSOR)
    for processor in (
        archive.PROCESSOR,
        data.CSV,
        data.NOTEBOOK,
        mail_files.PROCESSOR,
        mail_files.SAVED_PAGE,
        org.ORG,
        org.ASCIIDOC,
        related_office.SLIDES,
        text.MARKDOWN,
        text.PASTE,
        text.CAPTIONS,
        text.EXTENSION,
        text.TRANSCRIPT,
        xml_documents.PROCESSOR,
    ):
        processors.add(processor)
    return processors


def read_figure(path: Path, source_type: SourceType, member: str) -> bytes:
    """Return the bytes of a picture inside a file.

    `member` names the picture and comes from `Figure.member`. Runs in the sandbox. The size is limited. The bytes are
    not checked and can be in any image format.
    """
    reader = known_processors()[source_type].read_figure
    if reader is None:
        raise NotFound("Files of this type contain no pictures.")
    return reader(path, member)
