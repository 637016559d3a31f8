"""Dependencies and checks for routes that add files, and a reader for large JSON bodies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable
from dataclasses import replace
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from pydantic import BaseModel, ValidationError

from octavo.ai.models import uses_remote_model
from octavo.ai.tasks import CLEAN_MARKDOWN, EXTRACT_PAGES
from octavo.core.errors import BadInput, NoModel, NotAllowed, TooLarge
from octavo.core.settings import Settings
from octavo.core.types import Extraction
from octavo.extract.detect import detect
from octavo.fetch import SystemResolver, parse_url, refuse_private_addresses
from octavo.intake import Intake, IntakeLimits, Outcome
from octavo.intake.errors import InvalidExport
from octavo.intake.upload_rows import NewUpload, intake_limits, with_details
from octavo.owners.callers import Caller
from octavo.owners.grants import writable_collections
from octavo.web.context.callers import EditCaller
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.multipart import BESIDE_FILE_BYTES
from octavo.web.http.problems import describe_validation_errors


def intake_of(services: ServicesOf) -> Intake:
    return Intake(services.database, services.bucket, detect)


def limits_of(services: ServicesOf, caller: EditCaller) -> IntakeLimits:
    return intake_limits(services.settings, anonymous=caller.is_anonymous)


async def early_limited(request: Request, limits: IntakeLimits, body: AsyncIterable[bytes]) -> AsyncGenerator[bytes]:
    """Yield the bytes of a request body.

    Raises `TooLarge` before reading anything if the Content-Length header exceeds the limit.
    """
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > limits.upload_bytes + BESIDE_FILE_BYTES:
        raise TooLarge
    async for chunk in body:
        yield chunk


async def as_member(services: Services, caller: Caller, upload: NewUpload) -> NewUpload:
    """Choose the collection for a limited member's upload. The uploads of other callers are returned unchanged.

    An upload that names no collection is put into the member's collection if the member can change only one. The upload
    always becomes a new document, because a document with the same content could be one that the member cannot see.
    """
    if not caller.limited:
        return upload
    named = str(upload.given.get("collection") or "")
    async with services.database.connection() as connection:
        known = await writable_collections(connection, caller)
    if upload.version_of is None and named.lower() not in {name.lower() for name in known}:
        if named or not known:
            raise NotAllowed("You cannot add documents to this collection." if named else "You cannot add documents.")
        if len(known) > 1:
            raise BadInput(f"Choose one of these collections: {', '.join(known)}.")
        named = next(iter(known))
    return replace(with_details(upload, collection=named, by=str(caller.user_id)), duplicates="new")


def as_seen(caller: Caller, outcome: Outcome) -> Outcome:
    """Remove `duplicate_of`, the id of a document with the same content, if the caller is a limited member.

    Limited members cannot see all documents, so the id could reveal a document that is hidden from them.
    """
    return replace(outcome, duplicate_of=None) if caller.limited else outcome


async def check_link(services: Services, upload: NewUpload) -> None:
    """Refuse a link to a private address immediately, before a worker tries to fetch it."""
    if upload.source_type == "web" and upload.source_url:
        allow = frozenset(services.settings.fetch_allow)
        await refuse_private_addresses(parse_url(upload.source_url), allow, services.shared(_make_resolver))


def _make_resolver(services: Services) -> SystemResolver:
    del services
    return SystemResolver()


IntakeOf = Annotated[Intake, Depends(intake_of)]
LimitsOf = Annotated[IntakeLimits, Depends(limits_of)]


def may_rewrite(settings: Settings, caller: Caller) -> bool:
    return _why_not(settings, caller) is None


def check_extraction(settings: Settings, caller: Caller, extraction: object) -> None:
    """Raise `NoModel` if the extraction needs a model, but no model is set up or this caller cannot use models."""
    if extraction not in {None, Extraction.PLAIN} and (why := _why_not(settings, caller)):
        raise NoModel(why)


def _why_not(settings: Settings, caller: Caller) -> str | None:
    if caller.is_anonymous and not settings.anonymous_models:
        return "Visitors cannot use external models. Sign in first."
    if not all(uses_remote_model(settings, task.name) for task in (CLEAN_MARKDOWN, EXTRACT_PAGES)):
        return "This type of extraction needs a model, and none is set up. Choose plain extraction."
    return None


# Records of an export -----------------------------------------------------------------------------------------------

# The largest batch of records, in bytes.
MOST_RECORDS = 32 << 20
Model = TypeVar("Model", bound=BaseModel)
JSON_BODY: dict[str, Any] = {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}


async def read_body(request: Request, model: type[Model], most: int, invalid: type[BadInput] = InvalidExport) -> Model:
    """Read a JSON body of limited size, and check it in a thread.

    Raises an error of the class `invalid` if the body does not match the model.
    """
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > most:
            raise TooLarge(f"The request body is limited to {most:,} bytes here.")
    try:
        return await asyncio.to_thread(model.model_validate_json, bytes(body))
    except ValidationError as error:
        raise invalid(describe_validation_errors(error.errors()[:3])) from None
