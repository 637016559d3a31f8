"""How the text of a document is made, as whoever adds it wants it."""

from __future__ import annotations

from enum import StrEnum


class Extraction(StrEnum):
    """`PLAIN`: as the file has it. `CLEAN`: a model puts that text in order. `PAGES`: a model looks at the pages.

    What has no pages that could be looked at is put in order instead.
    """

    PLAIN = "plain"
    CLEAN = "clean"
    PAGES = "pages"
