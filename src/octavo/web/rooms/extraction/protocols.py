"""The protocols of docling-serve and Open WebUI, which return the text of a file to a program.

With the protocol of docling-serve, `POST /v1/convert/file` and `POST /v1/convert/source` return one file as Markdown or
plain text. Options that choose docling's models have no effect. With the protocol of Open WebUI's external document
loader, `PUT /process` with a file returns its text.

The file is read in the sandbox, with the same limits as in a worker. Nothing is stored, and no model is called. The
work stops if the program disconnects.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal
from urllib.parse import unquote, urlsplit

from fastapi import APIRouter, Header, Request
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from octavo.core.errors import BadInput, Empty, StorageFailed, TooLarge
from octavo.core.formatting import format_bytes
from octavo.extract.extracted import Extracted, Page, Quality
from octavo.fetch import FetchLimits
from octavo.intake.links import check_status
from octavo.intake.upload_rows import clean_filename, intake_limits
from octavo.ops.instance import fetch_client_of
from octavo.owners import Caller
from octavo.web.context.callers import KeyCaller
from octavo.web.context.intake import early_limited, read_body
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.limits import ConcurrencyLimit, TooFast
from octavo.web.http.multipart import FormReader
from octavo.web.http.parameters import read_name
from octavo.web.http.problems import describe_validation_errors
from octavo.web.live import while_connected

# In each web process: how many files are read in parallel, how many are read or wait, and when to retry.
PARALLEL, MOST_WAITING, BUSY_SECONDS = 4, 40, 5.0
# How many files of one account are received or read at the same time, in all web processes together.
MOST_PER_OWNER = 8


def take_slot(services: Services, caller: Caller) -> AbstractAsyncContextManager[None]:
    """Count a request of this account while its file is being received and read.

    Raises `TooFast` if the account has too many such requests.
    """
    return services.limits.slots.hold(f"extractions {caller.owner_id}", MOST_PER_OWNER, TooFast(BUSY_SECONDS))


async def read_text(
    request: Request, services: Services, caller: Caller, filename: str, body: AsyncIterable[bytes]
) -> Extracted:
    """Receive a file of limited size and return its text. Raises the same errors as `FileReader.read`.

    The caller must hold a slot (see `take_slot`).
    """
    limits = intake_limits(services.settings, anonymous=caller.is_anonymous)
    with tempfile.TemporaryDirectory(prefix="octavo-") as folder:
        path = Path(folder, "file")
        await _save(path, early_limited(request, limits, body), limits.upload_bytes)
        return await while_connected(request, _read(services, path, clean_filename(filename)))


async def _save(path: Path, body: AsyncIterable[bytes], most: int) -> None:
    size = 0
    try:
        with path.open("wb") as file:
            async for part in body:
                size += len(part)
                if size > most:
                    raise TooLarge(f"The limit is {format_bytes(most)}.")
                await asyncio.to_thread(file.write, part)
    except OSError as error:
        raise StorageFailed(error.strerror) from None


async def _read(services: Services, path: Path, filename: str) -> Extracted:
    async with services.shared(_make_limit).take():
        return await services.reader.read(path, filename=filename)


def _make_limit(services: Services) -> ConcurrencyLimit:
    del services
    return ConcurrencyLimit(PARALLEL, MOST_WAITING, BUSY_SECONDS)


# Text ---------------------------------------------------------------------------------------------------------------


def page_markdown(extracted: Extracted, pages: list[Page]) -> list[str]:
    """Return the Markdown of each of these pages.

    Each picture is replaced with its description or, if it has none, with a comment.
    """
    return [without_pictures(extracted, page.start, page.end).strip() for page in pages]


def without_pictures(extracted: Extracted, start: int = 0, end: int | None = None) -> str:
    """Return a part of the Markdown. Each picture is replaced with its description or a comment."""
    end = len(extracted.markdown) if end is None else end
    parts, place = list[str](), start
    for figure in sorted(extracted.figures, key=lambda one: one.start):
        address = f"](figures/{figure.number}.png)"
        after = extracted.markdown.find(address, figure.start, end)
        if figure.start < place or after < 0:
            continue
        parts += [extracted.markdown[place : figure.start], figure.alternative or PICTURE]
        place = after + len(address)
    return "".join([*parts, extracted.markdown[place:end]])


# The placeholder that docling writes.
PICTURE = "<!-- image -->"


# Not in the API reference: the protocol belongs to another project.
router = APIRouter(prefix="/v1/convert", include_in_schema=False)
# The largest JSON body in bytes. It can contain a file in base64. Larger files are sent to `/v1/convert/file`.
MOST_SOURCE_BYTES = 32 << 20
LISTS = frozenset({"to_formats", "page_range"})


def _as_list(value: object) -> object:
    """Accept a single format instead of a list, as docling-serve does."""
    return [value] if isinstance(value, str) else value


class Options(BaseModel):
    """The options that have an effect. All other options of docling-serve are accepted and ignored.

    `to_formats` must contain `md` or `text`. The response contains null for all other formats.
    """

    model_config = ConfigDict(extra="ignore")

    to_formats: Annotated[list[str], Field(max_length=20), BeforeValidator(_as_list)] = ["md"]
    page_range: tuple[Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1)]] | None = None
    md_page_break_placeholder: Annotated[str, Field(max_length=200)] = ""
    target_type: Literal["inbody"] = "inbody"

    @model_validator(mode="after")
    def _is_possible(self) -> Options:
        if not {"md", "text"} & set(self.to_formats):
            raise ValueError("to_formats: Octavo returns the formats md and text")
        return self


class Source(BaseModel):
    """A file in base64, or a URL to fetch."""

    model_config = ConfigDict(extra="ignore")

    kind: Literal["file", "http"]
    filename: Annotated[str, Field(max_length=1000)] = ""
    base64_string: str = ""
    url: Annotated[str, Field(max_length=4000)] = ""
    headers: Annotated[dict[str, Any], Field(max_length=0)] = {}


class SourceRequest(BaseModel):
    """A request to convert one source, with the options for the conversion."""

    model_config = ConfigDict(extra="ignore")

    sources: Annotated[list[Source], Field(min_length=1, max_length=1)]
    options: Options = Options()
    target: dict[str, Any] = {"kind": "inbody"}

    @model_validator(mode="after")
    def _is_in_the_body(self) -> SourceRequest:
        if self.target.get("kind") != "inbody":
            raise ValueError("target: must be inbody")
        return self


@router.post("/file")
async def convert_file(
    request: Request, services: ServicesOf, caller: KeyCaller, content_type: Annotated[str, Header()] = ""
) -> dict[str, Any]:
    """Return the text of a file that was uploaded in a multipart form."""
    begun = time.monotonic()
    async with take_slot(services, caller):
        form = await FormReader(content_type, request.stream()).read()
        extracted = await read_text(request, services, caller, form.filename, form.file)
    lists = {name: values for name, values in form.repeated.items() if name in LISTS}
    return describe(extracted, form.filename, parse_options(form.fields | lists), begun)


@router.post("/source")
async def convert_source(request: Request, services: ServicesOf, caller: KeyCaller) -> dict[str, Any]:
    """Return the text of a file that the request contains in base64, or that is fetched from a URL."""
    begun = time.monotonic()
    # The slot is taken before the body is read, because the body and the fetched file are held in memory.
    async with take_slot(services, caller):
        wanted = await read_body(request, SourceRequest, MOST_SOURCE_BYTES, BadInput)
        (source,) = wanted.sources
        filename, body = await open_source(services, source)
        extracted = await read_text(request, services, caller, filename, in_parts(body))
    return describe(extracted, filename, wanted.options, begun)


def parse_options(fields: dict[str, Any]) -> Options:
    try:
        return Options.model_validate(fields)
    except ValidationError as error:
        named = [{**one, "loc": ("form", *one["loc"])} for one in error.errors()]
        raise BadInput(describe_validation_errors(named)) from None


async def open_source(services: Services, source: Source) -> tuple[str, bytes]:
    """Return the name and the bytes of a source.

    Private addresses are not fetched, even after a redirect, unless OCTAVO_FETCH_ALLOW allows them.
    """
    if source.kind == "file":
        try:
            return source.filename, base64.b64decode(source.base64_string, validate=True)
        except (binascii.Error, ValueError):
            raise BadInput("base64_string: must be valid base64") from None
    settings = services.settings
    async with aclosing(fetch_client_of(settings)) as client:
        found = await client.get(source.url, FetchLimits(settings.fetch_bytes, settings.fetch_seconds))
    check_status(found)
    return unquote(PurePosixPath(urlsplit(found.url).path).name), found.body


async def in_parts(body: bytes) -> AsyncGenerator[bytes]:
    yield body


# The response -------------------------------------------------------------------------------------------------------


def describe(extracted: Extracted, filename: str, options: Options, begun: float) -> dict[str, Any]:
    """Return the extracted text in the format of a docling-serve response.

    `status` is `partial_success` if some text is missing or may be wrong. `begun` is the time when the request arrived.
    """
    lacks = describe_lacks(extracted)
    return {
        "document": {
            "filename": filename,
            "md_content": to_markdown(extracted, options) if "md" in options.to_formats else None,
            "text_content": to_text(extracted, options) if "text" in options.to_formats else None,
            "json_content": None,
            "html_content": None,
            "doctags_content": None,
        },
        "status": "partial_success" if lacks else "success",
        "errors": [
            {"component_type": "document_backend", "module_name": "octavo", "error_message": lack} for lack in lacks
        ],
        "processing_time": time.monotonic() - begun,
        "timings": {},
    }


def to_markdown(extracted: Extracted, options: Options) -> str:
    if not extracted.pages or not (options.page_range or options.md_page_break_placeholder):
        return ended(without_pictures(extracted))
    pages = [page for page in extracted.pages if _is_wanted(page.number, options.page_range)]
    mark = options.md_page_break_placeholder
    between = f"\n\n{mark}\n\n" if mark else "\n\n"
    return ended(between.join(page_markdown(extracted, pages)))


def ended(text: str) -> str:
    """Return the text with exactly one line break at its end, unless it is empty."""
    kept = text.rstrip()
    return f"{kept}\n" if kept else ""


def to_text(extracted: Extracted, options: Options) -> str:
    texts = (one.text for one in extracted.blocks if one.page is None or _is_wanted(one.page, options.page_range))
    return "\n\n".join(text for text in texts if text)


def _is_wanted(page: int, wanted: tuple[int, int] | None) -> bool:
    return wanted is None or wanted[0] <= page <= wanted[1]


def describe_lacks(extracted: Extracted) -> Sequence[str]:
    """Return one sentence for each problem with the text: parts that are missing or may be wrong."""
    doubts = [f"Page {page.number}: {page.unsure}" for page in extracted.pages if page.unsure]
    if extracted.quality is Quality.EMPTY:
        return ["The file contains no text.", *doubts]
    if extracted.quality is Quality.PARTIAL:
        missing = len(extracted.pages) - extracted.pages_with_text
        return [f"{missing} of {len(extracted.pages)} pages have no text." if missing else "Text is missing.", *doubts]
    return []


# Not in the API reference: the protocol belongs to another project.
open_webui_router = APIRouter(include_in_schema=False)


@open_webui_router.put("/process")
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
    about = {"source": filename} | describe_for_open_webui(extracted)
    texts = page_markdown(extracted, list(extracted.pages))
    entries = [
        {"page_content": text, "metadata": about | {"page": page.number - 1, "page_label": page.label}}
        for page, text in zip(extracted.pages, texts, strict=True)
    ] or [{"page_content": without_pictures(extracted).strip(), "metadata": about}]
    return [one for one in entries if one["page_content"]]


def describe_for_open_webui(extracted: Extracted) -> dict[str, str | int]:
    """Return the metadata of a file without nested values, because Open WebUI stores it in a vector database."""
    found = extracted.metadata
    named = {"title": found.title, "author": found.author, "date": found.date, "language": found.language}
    pages = {"total_pages": len(extracted.pages)} if extracted.pages else {}
    return {name: value for name, value in named.items() if value} | pages
