"""Settings pages for mappings: list, read and add mappings, and try them on a PDF."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Form, Header, Request, Response
from fastapi import Path as InPath

from octavo.convert.conversions import find_result, list_conversions
from octavo.convert.errors import UnknownMapping
from octavo.convert.mappings.mapping import Mapping
from octavo.convert.mappings.stored_mappings import (
    StoredMapping,
    add_mapping,
    delete_mapping,
    find_mapping,
    list_mappings,
)
from octavo.convert.values import Conversion
from octavo.core.errors import BadInput, NotFound, NotPdf, OctavoError, RateLimited, TooLarge
from octavo.core.formatting import format_number
from octavo.core.texts import gettext as _
from octavo.extract.detect import HEAD_BYTES, detect
from octavo.extract.extracted import SourceType
from octavo.storage import copy_to_file
from octavo.web.context.callers import WriteCaller
from octavo.web.context.intake import LimitsOf, early_limited
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.multipart import FormReader
from octavo.web.rooms.conversions.mapping_api import MappingTrials
from octavo.web.shell.forms import NoFileSelected, Question, ask
from octavo.web.shell.frame import Frame, back_to
from octavo.web.shell.settings import SettingsFrame, show

router = APIRouter(include_in_schema=False, prefix="/settings/mappings")
LABEL = "mapping.yaml"  # shown in error messages
MOST_TEXT = 256 * 1024
TO_TRY_ON = 50
Name = Annotated[str, InPath(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
EXAMPLE = """\
name: membership_v1
title: Membership forms
xml: Membership
fields:
  member:
    type: identifier
    xml: MemberNumber
    required: true
    labels: {en: [member number, member no]}
"""


@dataclass(frozen=True, slots=True)
class MappingRow:
    stored: StoredMapping
    read: Mapping


@dataclass(frozen=True, slots=True)
class TrialResult:
    """The values that a mapping found, or the reason why it failed."""

    mapping: str = ""
    found: Conversion | None = None
    error: OctavoError | None = None


@router.get("")
async def list_page(request: Request, services: ServicesOf, frame: SettingsFrame) -> Response:
    return await _show_list(request, services, frame)


@router.post("")
async def add(
    request: Request,
    services: ServicesOf,
    caller: WriteCaller,
    frame: SettingsFrame,
    text: Annotated[str, Form(max_length=MOST_TEXT)] = "",
) -> Response:
    """Validate and add a mapping. If it is invalid, the form is shown again with the text and the error."""
    written = _as_written(text)
    try:
        summary = await services.shared(MappingTrials).check(request, caller, written, LABEL)
        async with services.database.transaction() as connection:
            stored = await add_mapping(connection, caller.owner_id, summary, LABEL, written)
    except (BadInput, RateLimited) as error:
        return await _show_list(request, services, frame, error.status, text=written, tried=TrialResult(error=error))
    return back_to(f"/settings/mappings/{stored.name}?said=mapping")


@router.post("/try")
async def try_out(
    request: Request,
    services: ServicesOf,
    caller: WriteCaller,
    frame: SettingsFrame,
    limits: LimitsOf,
    content_type: Annotated[str, Header()] = "",
) -> Response:
    """Try a mapping on a PDF.

    The mapping is a stored one (`name`) or a new `text`; the PDF is an uploaded `file` or the file of a `conversion`.
    """
    fields: dict[str, str] = {}
    try:
        async with services.limits.transfers.one(caller.owner_id, limits.concurrent):
            form = await FormReader(content_type, request.stream(), field_bytes=MOST_TEXT).read()
            fields = form.fields
            with tempfile.TemporaryDirectory(prefix="octavo-") as folder:
                path = Path(folder, "source")
                sent = await _keep(early_limited(request, limits, form.file), path, limits.upload_bytes)
                text, label = await _text_of(services, caller.owner_id, fields)
                trials = services.shared(MappingTrials)
                mapping = await trials.check(request, caller, text, label)
                if not sent:
                    await _copy_source(services, caller.owner_id, fields.get("conversion", ""), path)
                tried = TrialResult(mapping.name, await trials.run(request, caller, path, text, label))
    except NotFound:
        raise
    except OctavoError as error:
        tried = TrialResult(error=error)
    status = tried.error.status if tried.error else 200
    if name := fields.get("name"):
        return await _show_one(request, services, frame, name, status, tried=tried)
    return await _show_list(request, services, frame, status, text=_as_written(fields.get("text", "")), tried=tried)


@router.get("/{name}")
async def show_page(
    request: Request, services: ServicesOf, frame: SettingsFrame, name: Name, said: str = ""
) -> Response:
    return await _show_one(request, services, frame, name, said=said)


@router.post("/{name}/delete")
async def delete(
    request: Request,
    services: ServicesOf,
    caller: WriteCaller,
    frame: SettingsFrame,
    name: Name,
    sure: Annotated[bool, Form()] = False,  # noqa: FBT002 - a form field
) -> Response:
    """Delete a mapping. Requires confirmation."""
    if not sure:
        text = _("The mapping will no longer be available. Existing conversions keep a copy of it.")
        back = f"/settings/mappings/{name}"
        question = Question(
            _("Delete the mapping %(name)s?", name=name), text, request.url.path, _("Delete"), back, (("sure", "true"),)
        )
        return ask(request, question, frame)
    async with services.database.transaction() as connection:
        await delete_mapping(connection, caller.owner_id, name)
    return back_to("/settings/mappings")


async def _show_list(
    request: Request,
    services: Services,
    frame: Frame,
    status: int = 200,
    *,
    text: str | None = None,
    tried: TrialResult | None = None,
) -> Response:
    async with services.database.connection() as connection:
        listed = await list_mappings(connection, frame.caller.owner_id)
    values: dict[str, Any] = {"listed": listed, "one": None, "text": EXAMPLE if text is None else text, "tried": tried}
    return show(request, "mappings", frame, status, **values, converted=await _to_try_on(services, frame))


async def _show_one(
    request: Request,
    services: Services,
    frame: Frame,
    name: str,
    status: int = 200,
    *,
    tried: TrialResult | None = None,
    said: str = "",
) -> Response:
    try:
        async with services.database.connection() as connection:
            stored = await find_mapping(connection, frame.caller.owner_id, name)
    except UnknownMapping:
        raise NotFound from None
    one = MappingRow(stored, await stored.read_in_thread())
    values: dict[str, Any] = {"one": one, "tried": tried, "said": said}
    return show(request, "mappings", frame, status, **values, converted=await _to_try_on(services, frame))


async def _to_try_on(services: Services, frame: Frame) -> dict[str, str]:
    """List recent conversions whose files can be used to try a mapping. Some of the files may have been deleted."""
    async with services.database.connection() as connection:
        page = await list_conversions(connection, frame.caller.owner_id, status=None, cursor=None, limit=TO_TRY_ON)
    return {str(one.id): one.filename for one in page.items if one.sha256 and not one.archived_at}


def _as_written(text: str) -> str:
    """Normalise the line endings of a submitted text and remove NUL characters."""
    return text.replace("\r\n", "\n").replace("\0", "")


async def _text_of(services: Services, owner: UUID, fields: dict[str, str]) -> tuple[str, str]:
    if name := fields.get("name"):
        async with services.database.connection() as connection:
            stored = await find_mapping(connection, owner, name)
        return stored.text, stored.file
    return _as_written(fields.get("text", "")), LABEL


async def _keep(body: AsyncIterable[bytes], path: Path, most: int) -> bool:
    """Write the uploaded PDF to `path`, so that a mapping can be tried on it. Returns false if the form contained no
    file.
    """
    taken = 0
    with path.open("wb") as file:
        async for chunk in body:
            taken += len(chunk)
            if taken > most:
                raise TooLarge(_("The size limit for conversions is %(most)s bytes.", most=format_number(most)))
            await asyncio.to_thread(file.write, chunk)
    if taken and detect(await asyncio.to_thread(_head, path), path.name) is not SourceType.PDF:
        raise NotPdf
    return taken > 0


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(HEAD_BYTES)


async def _copy_source(services: Services, owner: UUID, conversion: str, path: Path) -> None:
    try:
        wanted = UUID(conversion)
    except ValueError:
        raise NoFileSelected(_("You can also choose an earlier conversion.")) from None
    async with services.database.connection() as connection:
        source = await find_result(connection, owner, wanted, "source")
    await copy_to_file(services.bucket, source.key, path)
