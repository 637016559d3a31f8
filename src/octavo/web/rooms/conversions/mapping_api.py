"""The API for mappings: list, read, validate, add and delete mappings."""

from __future__ import annotations

import asyncio
import pathlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, TypeVar

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from octavo.convert.errors import UnknownMapping
from octavo.convert.in_sandbox import check_mapping_in_sandbox, convert_pdf_in_sandbox
from octavo.convert.mappings.shipped_mappings import summarise
from octavo.convert.mappings.stored_mappings import (
    StoredMapping,
    add_mapping,
    delete_mapping,
    find_mapping,
    list_mappings,
)
from octavo.convert.values import Conversion
from octavo.core.errors import NotFound
from octavo.core.http import Page
from octavo.extract.ocr.recognition import Recognition
from octavo.extract.pdf.pdf_file import PdfInSandbox
from octavo.intake.upload_rows import clean_filename
from octavo.owners import Caller
from octavo.records.conversions import MappingSummary, MappingView
from octavo.web.context.callers import ReadCaller, WriteCaller, address_of
from octavo.web.context.idempotency import IdempotencyOf
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.limits import Allowance, ConcurrencyLimit
from octavo.web.http.parameters import problems
from octavo.web.live import while_connected

Result = TypeVar("Result")
router = APIRouter(prefix="/api/v1/mappings", tags=["mappings"])
Label = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]


Name = Annotated[str, Path(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]


class NewMapping(BaseModel):
    """A mapping to validate or add.

    `file` is a label for error messages; `text` is YAML or an invoice2data template.
    """

    model_config = ConfigDict(extra="forbid")

    file: Label = "mapping.yaml"
    text: Annotated[str, Field(min_length=1, max_length=256 * 1024, pattern=r"^[^\x00]*$")]


@router.get("", responses=problems(401))
async def mappings(services: ServicesOf, caller: ReadCaller) -> Page[MappingSummary]:
    """List the built-in mappings, then your own. A mapping contains the rules for converting a type of document."""
    async with services.database.connection() as connection:
        return Page(await list_mappings(connection, caller.owner_id), None)


@router.post("", status_code=201, responses=problems(400, 401, 403, 409, 413, 422))
async def add(
    request: Request, services: ServicesOf, caller: WriteCaller, new: NewMapping, idempotency: IdempotencyOf
) -> MappingView:
    """Add a mapping. It is validated first. It cannot be edited later; save changes under a new version instead."""
    label = clean_filename(new.file)
    summary = await services.shared(MappingTrials).check(request, caller, new.text, label)
    async with services.database.transaction() as connection:
        stored = await add_mapping(connection, caller.owner_id, summary, label, new.text)
        return await idempotency.keep(connection, _view(summary, stored))


@router.post("/check", responses=problems(400, 401, 403, 413, 422))
async def check(request: Request, services: ServicesOf, caller: WriteCaller, new: NewMapping) -> MappingSummary:
    """Validate a mapping without adding it."""
    return await services.shared(MappingTrials).check(request, caller, new.text, clean_filename(new.file))


@router.get("/{name}", responses=problems(401, 404, 422))
async def mapping(services: ServicesOf, caller: ReadCaller, name: Name) -> MappingView:
    """Return one mapping with its text."""
    stored = await _find(services, caller, name)
    return _view(summarise(await stored.read_in_thread()), stored)


@router.delete("/{name}", status_code=204, responses=problems(401, 403, 404, 409, 422))
async def delete(services: ServicesOf, caller: WriteCaller, name: Name) -> None:
    """Delete one of your mappings. Conversions keep the text of their mapping. Built-in mappings cannot be deleted."""
    async with services.database.transaction() as connection:
        await delete_mapping(connection, caller.owner_id, name)


@router.get("/{name}/schema", responses=problems(401, 404, 422), response_class=Response)
async def schema(services: ServicesOf, caller: ReadCaller, name: Name) -> Response:
    """Return the XML Schema for results of this mapping."""
    found = await _find(services, caller, name)
    body = await asyncio.to_thread(found.xml_schema)
    return Response(body, media_type="application/xml", headers={"x-content-type-options": "nosniff"})


async def _find(services: Services, caller: Caller, name: str) -> StoredMapping:
    """Find the mapping with this name.

    An unknown name results in a 404 response, because the name is part of the URL path.
    """
    async with services.database.connection() as connection:
        try:
            return await find_mapping(connection, caller.owner_id, name)
        except UnknownMapping:
            raise NotFound from None


def _view(summary: MappingSummary, stored: StoredMapping) -> MappingView:
    dated = summary.model_copy(update={"created_at": stored.created_at})
    return MappingView(**dated.model_dump(), text=stored.text)


MOST_WAITING = 10
VISITORS_WAITING = 4
BUSY_SECONDS = 5.0


class MappingTrials:
    """Validates mappings and tests them on PDFs, in the sandbox, one at a time. Nothing is stored.

    Visitors have a low rate limit and a separate queue. The work is cancelled if the caller disconnects.
    """

    def __init__(self, services: Services) -> None:
        self._sandbox, settings = services.sandbox, services.settings
        self._recognition = Recognition(self._sandbox, settings.ocr_language, settings.ocr_seconds)
        self._people = ConcurrencyLimit(1, MOST_WAITING, BUSY_SECONDS)
        self._visitors = ConcurrencyLimit(1, VISITORS_WAITING, BUSY_SECONDS)
        self._allowances = services.limits.allowances
        self._allowance = Allowance(settings.mapping_checks_per_minute_anonymous)

    async def check(self, request: Request, caller: Caller, text: str, label: str) -> MappingSummary:
        """Check the text of a mapping. Raises `BadMapping` if it is invalid."""
        work = partial(check_mapping_in_sandbox, self._sandbox, text, label)
        return await self._in_turn(request, caller, work)

    async def run(self, request: Request, caller: Caller, path: pathlib.Path, text: str, label: str) -> Conversion:
        """Return the values that the rules of the mapping find in the PDF. No model is used.

        Raises an error if the mapping is invalid or the PDF cannot be read.
        """
        pdf = PdfInSandbox(self._sandbox, path, limits=self._sandbox.limits, recognition=self._recognition)
        return (await self._in_turn(request, caller, partial(convert_pdf_in_sandbox, pdf, text, label))).conversion

    async def _in_turn(self, request: Request, caller: Caller, work: Callable[[], Awaitable[Result]]) -> Result:
        if caller.is_anonymous:
            await self._allowances.take(f"mappings from {address_of(request)}", self._allowance)
        limit = self._visitors if caller.is_anonymous else self._people

        async def wait_and_work() -> Result:
            async with limit.take():
                return await work()

        return await while_connected(request, wait_and_work())
