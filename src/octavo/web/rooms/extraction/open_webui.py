"""The protocol of Open WebUI's external document loader: `PUT /process` with a file returns its text."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Request

from octavo.core.errors import Empty
from octavo.extract.extracted import Extracted
from octavo.intake.upload_rows import clean_filename
from octavo.web.context.callers import KeyCaller
from octavo.web.context.services import ServicesOf
from octavo.web.http.parameters import read_name
from octavo.web.rooms.extraction.stateless import page_markdown, read_text, take_slot, without_pictures

# Not in the API reference: the protocol belongs to another project.
router = APIRouter(include_in_schema=False)


@router.put("/process")
async def process(
    request: Request, services: ServicesOf, caller: KeyCaller, x_filename: Annotated[str, Header()] = ""
) -> list[dict[str, Any]]:
    """Return the text of a file: one entry for each page that has text, or one entry if the file has no pages."""
    filename = clean_filename(read_name(x_filename))
    async with take_slot(services, caller):
        extracted = await read_text(request, services, caller, filename, request.stream())
    entries = as_entries(extracted, filename)
    if not entries:
        raise Empty("No extractable text.")
    return entries


def as_entries(extracted: Extracted, filename: str) -> list[dict[str, Any]]:
    """Return the text in the format of Open WebUI, in which page numbers start at 0."""
    about = {"source": filename} | describe(extracted)
    texts = page_markdown(extracted, list(extracted.pages))
    entries = [
        {"page_content": text, "metadata": about | {"page": page.number - 1, "page_label": page.label}}
        for page, text in zip(extracted.pages, texts, strict=True)
    ] or [{"page_content": without_pictures(extracted).strip(), "metadata": about}]
    return [one for one in entries if one["page_content"]]


def describe(extracted: Extracted) -> dict[str, str | int]:
    """Return the metadata of a file without nested values, because Open WebUI stores it next to vectors."""
    found = extracted.metadata
    named = {"title": found.title, "author": found.author, "date": found.date, "language": found.language}
    pages = {"total_pages": len(extracted.pages)} if extracted.pages else {}
    return {name: value for name, value in named.items() if value} | pages
