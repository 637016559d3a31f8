"""The API for mappings: list, read, validate and add mappings."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, ConfigDict, Field

from octavo.convert.errors import UnknownMapping
from octavo.convert.mappings.shipped_mappings import mapping_from_text
from octavo.convert.mappings.stored_mappings import StoredMapping, add_mapping, find_mapping, list_mappings
from octavo.core.errors import NotFound
from octavo.core.pagination import Page
from octavo.intake.names import clean_filename
from octavo.owners import Caller
from octavo.records.conversions import MappingSummary, MappingView
from octavo.web.context.callers import ReadCaller, WriteCaller
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.parameters import problems

router = APIRouter(prefix="/api/v1/mappings", tags=["mappings"])
Label = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]


Name = Annotated[str, Path(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]


class NewMapping(BaseModel):
    """`file` is a label for error messages; `text` is YAML or an invoice2data template."""

    model_config = ConfigDict(extra="forbid")

    file: Label = "mapping.yaml"
    text: Annotated[str, Field(min_length=1, max_length=256 * 1024, pattern=r"^[^\x00]*$")]


@router.get("", responses=problems(401))
async def mappings(services: ServicesOf, caller: ReadCaller) -> Page[MappingSummary]:
    """Built-in mappings, then your own."""
    async with services.database.connection() as connection:
        found = await list_mappings(connection, caller.owner_id)
    return Page(await asyncio.to_thread(lambda: [_summary(one) for one in found]), None)


@router.post("", status_code=201, responses=problems(400, 401, 403, 409, 422))
async def add(services: ServicesOf, caller: WriteCaller, new: NewMapping) -> MappingView:
    """Add a mapping. It is validated first and cannot be edited later: save changes under a new version."""
    async with services.database.transaction() as connection:
        return _view(await add_mapping(connection, caller.owner_id, new.file, new.text))


@router.post("/check", responses=problems(400, 401, 403, 422))
async def check(caller: WriteCaller, new: NewMapping) -> MappingSummary:
    """Validate a mapping without adding it."""
    del caller
    label = clean_filename(new.file)
    mapping = await asyncio.to_thread(mapping_from_text, new.text, label)
    return _summary(StoredMapping(mapping.name, label, new.text))


@router.get("/{name}", responses=problems(401, 404, 422))
async def mapping(services: ServicesOf, caller: ReadCaller, name: Name) -> MappingView:
    """One mapping with its text."""
    return _view(await _find(services, caller, name))


@router.get("/{name}/schema", responses=problems(401, 404, 422), response_class=Response)
async def schema(services: ServicesOf, caller: ReadCaller, name: Name) -> Response:
    """The XML Schema for results of this mapping."""
    found = await _find(services, caller, name)
    body = await asyncio.to_thread(found.xml_schema)
    return Response(body, media_type="application/xml", headers={"x-content-type-options": "nosniff"})


async def _find(services: Services, caller: Caller, name: str) -> StoredMapping:
    """Find the mapping with this name. Returns 404 for an unknown name, because the name is part of the path."""
    async with services.database.connection() as connection:
        try:
            return await find_mapping(connection, caller.owner_id, name)
        except UnknownMapping:
            raise NotFound from None


def _summary(stored: StoredMapping) -> MappingSummary:
    read = stored.read()
    return MappingSummary(
        name=stored.name,
        title=read.title,
        fields=[field.name for field in read.fields],
        required=[field.name for field in read.fields if field.required],
        created_at=stored.created_at,
    )


def _view(stored: StoredMapping) -> MappingView:
    return MappingView(**_summary(stored).model_dump(), text=stored.text)
