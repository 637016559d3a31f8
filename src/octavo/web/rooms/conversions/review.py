"""The review of a conversion: the page next to its values, corrections, and earlier revisions."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlencode
from uuid import UUID

from fastapi import APIRouter, Depends, Form, Query, Request, Response

from octavo.convert.conversion_json import conversion_from_json
from octavo.convert.conversions import (
    Revision,
    StoredConversion,
    find_result,
    list_revisions,
    show_conversion,
    show_model_cost,
    summarise_confidence,
)
from octavo.convert.errors import Expired
from octavo.convert.mappings.mapping import Mapping
from octavo.convert.mappings.stored_mappings import find_mapping
from octavo.convert.results import FORMS, Correction, Corrections, render_xml
from octavo.convert.values import Conversion
from octavo.core.errors import BadInput, NotFound, OctavoError
from octavo.core.types import JobStatus
from octavo.database import Connection
from octavo.jobs.views import find_jobs
from octavo.web.context.callers import WriteCaller
from octavo.web.context.services import Services, ServicesOf
from octavo.web.rooms.conversions.fields import ReviewFields, arrange_fields, changes_between, describe_model, marks_on
from octavo.web.rooms.conversions.pages import ConversionsFrame
from octavo.web.rooms.conversions.texts import describe_conversion
from octavo.web.shell.frame import Frame
from octavo.web.shell.templates import back_to, render

router = APIRouter(include_in_schema=False, prefix="/conversions")
MOST_XML = 200_000
View = Literal["fields", "xml", "history"]
Name = Annotated[str, Form(min_length=1, max_length=200)]


@dataclass(frozen=True, slots=True)
class ReviewQuery:
    """Query parameters of the review page: the view, field, page and revision to show."""

    view: View = "fields"
    field: str | None = None
    page: int | None = None
    revision: int | None = None


def review_query(
    view: View = "fields",
    field: Annotated[str | None, Query(max_length=200)] = None,
    page: Annotated[int | None, Query(ge=1, le=1_000_000)] = None,
    revision: Annotated[int | None, Query(ge=1, le=1_000_000)] = None,
) -> ReviewQuery:
    return ReviewQuery(view, field, page, revision)


ReviewParameters = Annotated[ReviewQuery, Depends(review_query)]


@dataclass(frozen=True, slots=True)
class Values:
    """The values of one revision, and the list of all revisions."""

    mapping: Mapping
    revisions: list[Revision]
    number: int
    conversion: Conversion

    def of(self, number: int) -> Conversion | None:
        record = next((one.record for one in self.revisions if one.number == number), None)
        return conversion_from_json(record.encode(), self.mapping) if record else None


@dataclass(frozen=True, slots=True)
class RejectedCorrection:
    """A rejected correction and the reason."""

    value: str
    error: OctavoError


@router.get("/{conversion}")
async def show_page(
    request: Request, services: ServicesOf, frame: ConversionsFrame, conversion: UUID, asked: ReviewParameters
) -> Response:
    """Show the review page. `field` is marked on its page; `page` shows another page instead."""
    return render(request, "conversion.html", frame, **await _shown(services, frame, conversion, asked))


@router.get("/{conversion}/pieces")
async def show_pieces(
    request: Request, services: ServicesOf, frame: ConversionsFrame, conversion: UUID, asked: ReviewParameters
) -> Response:
    """The content of the review page as a fragment, for scripts."""
    return render(request, "conversion_pieces.html", frame, **await _shown(services, frame, conversion, asked))


@router.post("/{conversion}/correct")
async def correct(
    request: Request,
    services: ServicesOf,
    caller: WriteCaller,
    frame: ConversionsFrame,
    conversion: UUID,
    name: Name,
    value: Annotated[str, Form(max_length=2000)] = "",
) -> Response:
    """Correct a value; an empty text clears it. A rejected correction is shown again with the reason."""
    given = value.replace("\0", "").strip()
    corrections = Corrections(services.database, services.bucket, services.settings.conversion_result_days)
    try:
        await corrections.correct(caller.owner_id, conversion, caller.user_id, [Correction(name, given or None)])
    except NotFound:
        raise
    except BadInput as error:
        shown = await _shown(services, frame, conversion, ReviewQuery(field=name))
        return render(request, "conversion.html", frame, error.status, **shown, wrong=RejectedCorrection(value, error))
    return back_to(f"/conversions/{conversion}?{urlencode({'field': name})}#field")


@router.post("/{conversion}/undo")
async def undo(services: ServicesOf, caller: WriteCaller, conversion: UUID) -> Response:
    """Undo the last correction by adding a new revision."""
    async with services.database.connection() as connection:
        found = await show_conversion(connection, caller.owner_id, conversion)
        values = await _values(connection, caller.owner_id, found, None)
    before = values.of(found.revision - 1) if values else None
    if values is None or before is None:
        raise BadInput("Nothing to undo.")
    old = {one.path: one.value for one in before.values}
    new = {one.path: one.value for one in values.conversion.values}
    changed = [
        Correction(path, old.get(path)) for path in dict.fromkeys([*old, *new]) if old.get(path) != new.get(path)
    ]
    if changed:
        corrections = Corrections(services.database, services.bucket, services.settings.conversion_result_days)
        await corrections.correct(caller.owner_id, conversion, caller.user_id, changed)
    return back_to(f"/conversions/{conversion}" + (f"?field={quote(changed[0].name)}#field" if changed else ""))


async def _shown(services: Services, frame: Frame, conversion: UUID, asked: ReviewQuery) -> dict[str, Any]:
    owner = frame.caller.owner_id
    async with services.database.connection() as connection:
        found = await show_conversion(connection, owner, conversion)
        job = (await find_jobs(connection, owner, [conversion])).get(conversion)
        sure = (await summarise_confidence(connection, owner, [conversion])).get(conversion)
        values = await _values(connection, owner, found, asked.revision)
        cost = await show_model_cost(connection, owner, conversion)
    shown: dict[str, Any] = {
        "found": found,
        "words": describe_conversion(found, job, sure, frame.now),
        "asked": asked,
        "forms": FORMS,
        "values": values,
    }
    if values:
        laid = arrange_fields(values.conversion, values.mapping, values.of(1))
        shown |= _fields(laid, asked) | await _sheets(services, owner, found)
        shown |= _page(laid, asked, shown["sheets"])
        shown["model"] = describe_model(values.conversion.model_lookup, laid, cost)
        shown["is_latest"] = values.number == found.revision
        shown["history"] = _history(values) if asked.view == "history" else []
        shown["xml"] = await asyncio.to_thread(_xml, values) if asked.view == "xml" else ""
    return shown


async def _values(connection: Connection, owner: UUID, found: StoredConversion, number: int | None) -> Values | None:
    """The values of a revision; None if the conversion is not complete or its values are no longer stored."""
    if found.status != JobStatus.COMPLETE or found.archived_at or found.record is None:
        return None
    mapping = await (await find_mapping(connection, owner, found.mapping)).read_in_thread()
    revisions = await list_revisions(connection, owner, found.id)
    number = number or found.revision
    record = next((one.record for one in revisions if one.number == number), None)
    if record is None:
        raise NotFound
    return Values(mapping, revisions, number, conversion_from_json(record.encode(), mapping))


def _fields(laid: ReviewFields, asked: ReviewQuery) -> dict[str, Any]:
    unsettled = [one for one in laid.every if not one.is_settled]
    following = laid.next_unsettled(asked.field)
    return {"laid": laid, "current": laid.find(asked.field), "unsettled": len(unsettled), "following": following}


async def _sheets(services: Services, owner: UUID, found: StoredConversion) -> dict[str, Any]:
    """The sizes of the pages, which are needed to mark values, or the reason why they are unknown."""
    try:
        async with services.database.connection() as connection:
            source = await find_result(connection, owner, found.id, "source")
        return {"sheets": await services.pictures.measure_file(source.key), "no_sheets": None}
    except Expired:
        return {"sheets": [], "no_sheets": "The file is no longer stored. The values extracted from it are kept."}
    except OctavoError as error:
        return {"sheets": [], "no_sheets": f"{error.line} ({error.code})"}


def _page(laid: ReviewFields, asked: ReviewQuery, sheets: list[tuple[float, float]]) -> dict[str, Any]:
    current = laid.find(asked.field)
    wanted = asked.page or (current.page if current else None) or 1
    page = min(wanted, len(sheets)) if sheets else wanted
    return {"page": page, "marks": marks_on(laid, page, asked.field)}


def _history(values: Values) -> list[dict[str, Any]]:
    """All revisions, newest first, each with its changes."""
    made = {one.number: values.of(one.number) for one in values.revisions}
    return [
        {"revision": one, "changes": changes_between(made.get(one.number - 1), after)}
        for one in reversed(values.revisions)
        if (after := made[one.number])
    ]


def _xml(values: Values) -> str:
    return render_xml(values.conversion, values.mapping, plain=True).decode()[:MOST_XML]
