"""The add box of the library: its fields, which are the same for files, links and text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from octavo.core.errors import BadInput, Empty
from octavo.core.types import Extraction
from octavo.intake import NewUpload
from octavo.intake.links import link_source, paste_source
from octavo.intake.links.sources import GivenSource
from octavo.intake.upload_rows import Policy, with_details
from octavo.web.http.multipart import FIELD_BYTES
from octavo.web.http.problems import describe_validation_errors
from octavo.web.shell.forms import LIBRARY

MOST_CHARACTERS = 1_000_000
# Up to four bytes for each character of the text, and the other fields.
BOX_BYTES = 4 * MOST_CHARACTERS + FIELD_BYTES
PLAIN = r"^[^\x00-\x1f\x7f]*$"
_LINK = re.compile(r"https?://\S+", re.IGNORECASE)


class AddOptions(BaseModel):
    """The options for files, links and text. Empty fields are ignored, so that forms can send them all."""

    title: Annotated[str, Field(max_length=500, pattern=PLAIN)] = ""
    source: Annotated[str, Field(max_length=2000, pattern=PLAIN)] = ""
    duplicates: Policy = "reuse"
    extraction: Extraction = Extraction.PLAIN

    def apply(self, upload: NewUpload) -> NewUpload:
        extraction = None if self.extraction is Extraction.PLAIN else self.extraction
        given = with_details(upload, title=self.title.strip(), source=self.source.strip(), extraction=extraction)
        return replace(given, duplicates=self.duplicates)


class AddForm(AddOptions):
    text: Annotated[str, Field(max_length=MOST_CHARACTERS)] = ""
    back: str = LIBRARY

    def as_source(self, allow: frozenset[str]) -> GivenSource:
        """The link or the text in the box."""
        written = self.text.strip()
        if not written:
            raise Empty("Paste a link or text first.")
        title, source = self.title.strip() or None, self.source.strip() or None
        if _LINK.fullmatch(written):
            made = link_source(written, allow=allow, title=title)
        else:
            made = paste_source(self.text, title=title, attribution=source)
        return replace(made, upload=self.apply(made.upload))


def read_box(fields: Mapping[str, str]) -> AddForm:
    try:
        return AddForm.model_validate({name: value for name, value in fields.items() if name in AddForm.model_fields})
    except ValidationError as error:
        raise BadInput(describe_validation_errors(error.errors())) from None
