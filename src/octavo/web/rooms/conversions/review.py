"""The review page of a conversion: a page of the file next to its values, corrections, and earlier revisions."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, replace
from math import isfinite
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlencode
from uuid import UUID

from fastapi import APIRouter, Depends, Form, Query, Request, Response

from octavo.convert.conversions import (
    Revision,
    StoredConversion,
    delete_conversion,
    find_result,
    kept_history,
    list_revisions,
    show_conversion,
    show_model_cost,
    summarise_confidence,
)
from octavo.convert.corrections import FORMS, Correction, RowChange, original_value
from octavo.convert.errors import Expired
from octavo.convert.mappings.mapping import Mapping
from octavo.convert.mappings.stored_mappings import list_mappings, mapping_of_conversion
from octavo.convert.results import render_xml
from octavo.convert.values import Conversion, Value, conversion_from_json
from octavo.core.errors import BadInput, NotFound, OctavoError
from octavo.core.texts import gettext as _
from octavo.core.types import JobStatus
from octavo.database import Connection
from octavo.facts.words import Box
from octavo.jobs.views import find_jobs
from octavo.library.documents import find_documents
from octavo.owners import Caller
from octavo.web.context.callers import WriteCaller
from octavo.web.context.intake import LimitsOf
from octavo.web.context.services import Services, ServicesOf
from octavo.web.rooms.conversions.api import conversion_intake, corrections_of, person_without_account
from octavo.web.rooms.conversions.fields import (
    Cell,
    EarlierCorrection,
    ReviewFields,
    arrange_fields,
    changes_between,
    describe_changes,
    describe_earlier,
    describe_model,
    marks_on,
    normal_form,
)
from octavo.web.rooms.conversions.pages import ConversionsFrame, Selection, describe_conversion
from octavo.web.shell.forms import Question, ask, read_number
from octavo.web.shell.frame import Frame, back_to, render

router = APIRouter(include_in_schema=False, prefix="/conversions")
MOST_XML = 200_000
SIDES = 4
CELL = "cell."
View = Literal["fields", "xml", "history", "mapping"]
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
    text: str
    revisions: list[Revision]
    number: int
    conversion: Conversion

    def found_value(self, cell: Cell) -> Value | None:
        """Return the value of a field before any correction. Returns None if it equals the current value."""
        return original_value(self.revisions, self.conversion, self.mapping, cell.path)

    def of(self, number: int) -> Conversion | None:
        record = next((one.record for one in self.revisions if one.number == number), None)
        return conversion_from_json(record.encode(), self.mapping) if record else None


@dataclass(frozen=True, slots=True)
class RejectedCorrection:
    """A correction that was rejected, and the reason. The form is shown again with both."""

    value: str
    error: OctavoError


@router.get("/{conversion}")
async def show_page(
    request: Request, services: ServicesOf, frame: ConversionsFrame, conversion: UUID, asked: ReviewParameters
) -> Response:
    """Show the review page. `field` is highlighted on the page that contains it, unless `page` selects another page."""
    return render(request, "conversion.html", frame, **await _shown(services, frame, conversion, asked))


@router.get("/{conversion}/pieces")
async def show_pieces(
    request: Request, services: ServicesOf, frame: ConversionsFrame, conversion: UUID, asked: ReviewParameters
) -> Response:
    """Return the content of the review page as a fragment, for scripts."""
    return render(request, "conversion_pieces.html", frame, **await _shown(services, frame, conversion, asked))


@router.post("/{conversion}/correct")
async def correct(  # noqa: PLR0917 - fields of the form
    request: Request,
    services: ServicesOf,
    caller: WriteCaller,
    frame: ConversionsFrame,
    conversion: UUID,
    name: Name,
    value: Annotated[str, Form(max_length=2000)] = "",
    page: Annotated[str, Form(max_length=20)] = "",
    box: Annotated[str, Form(max_length=100)] = "",
) -> Response:
    """Correct a value, or clear it if `value` is empty. A rejected correction is shown again with the reason.

    `page` is the page that contains the value. Scripts also send the `box` that the person selected.
    """
    given = value.replace("\0", "").strip()
    place = _read_box(box) if read_number(page) else None
    try:
        wanted = Correction(name, given or None, read_number(page), place)
        if place and given:
            wanted = replace(wanted, value=await _as_typed(services, caller.owner_id, conversion, wanted))
        await _correct(services, caller, conversion, [wanted])
    except NotFound:
        raise
    except BadInput as error:
        shown = await _shown(services, frame, conversion, ReviewQuery(field=name))
        return render(request, "conversion.html", frame, error.status, **shown, wrong=RejectedCorrection(value, error))
    return back_to(f"/conversions/{conversion}?{urlencode({'field': name})}#field")


async def _correct(
    services: Services,
    caller: Caller,
    conversion: UUID,
    values: list[Correction],
    rows: list[RowChange] | None = None,
    accept: list[str] | None = None,
    restore: list[str] | None = None,
) -> None:
    await corrections_of(services).correct(
        caller.owner_id,
        conversion,
        caller.user_id,
        values,
        rows=rows or [],
        accept=accept or [],
        restore=restore or [],
        person=person_without_account(caller),
    )


def _read_box(text: str) -> Box | None:
    """Parse the box that a script sent: four numbers, separated by spaces. Returns None if the box is invalid."""
    try:
        sides = [float(side) for side in text.split()]
    except ValueError:
        return None
    if len(sides) != SIDES or not all(map(isfinite, sides)) or sides[0] >= sides[2] or sides[1] >= sides[3]:
        return None
    return Box(*(max(side, 0.0) for side in sides))


async def _as_typed(services: Services, owner: UUID, conversion: UUID, wanted: Correction) -> str | None:
    """Convert text selected on the page to the format of its field, such as 1.234,50 to 1234.50.

    Ambiguous text is returned unchanged.
    """
    async with services.database.connection() as connection:
        found = await show_conversion(connection, owner, conversion)
        mapping = await mapping_of_conversion(connection, owner, conversion, found.mapping)
    return normal_form(await mapping.read_in_thread(), wanted.name, wanted.value or "")


@router.post("/{conversion}/rows")
async def change_rows(
    request: Request,
    services: ServicesOf,
    caller: WriteCaller,
    frame: ConversionsFrame,
    conversion: UUID,
    table: Name,
    action: Annotated[Literal["add", "remove", "up", "down"], Form()],
    row: Annotated[str, Form(max_length=20)] = "",
) -> Response:
    """Add or remove a row of a table, or move it up or down. The `cell.NAME` fields contain the values of a new row."""
    sent = (await request.form()).items()
    cells = {
        name.removeprefix(CELL): str(text).replace("\0", "").strip() for name, text in sent if name.startswith(CELL)
    }
    number = read_number(row)
    if action == "add" or action == "remove":  # noqa: PLR1714 - narrows the type
        change = RowChange(table, action, number, values=cells)
    else:
        change = RowChange(table, "move", number, (number or 1) + (1 if action == "down" else -1))
    try:
        await _correct(services, caller, conversion, [], [change])
    except NotFound:
        raise
    except BadInput as error:
        shown = await _shown(services, frame, conversion, ReviewQuery())
        return render(request, "conversion.html", frame, error.status, **shown, wrong=RejectedCorrection("", error))
    return back_to(f"/conversions/{conversion}#table-{table}")


@router.post("/{conversion}/accept")
async def accept_check(
    services: ServicesOf, caller: WriteCaller, conversion: UUID, check: Annotated[str, Form(max_length=2000)]
) -> Response:
    """Accept values although one of their checks failed. The check is still shown as failed."""
    await _correct(services, caller, conversion, [], accept=[check])
    return back_to(f"/conversions/{conversion}#checks-head")


@router.post("/{conversion}/restore")
async def restore(services: ServicesOf, caller: WriteCaller, conversion: UUID, name: Name) -> Response:
    """Reset a corrected value to the value that was extracted from the file."""
    await _correct(services, caller, conversion, [], restore=[name])
    return back_to(f"/conversions/{conversion}?{urlencode({'field': name})}#field")


@router.get("/{conversion}/again")
async def choose_mapping(request: Request, services: ServicesOf, frame: ConversionsFrame, conversion: UUID) -> Response:
    """Show the page for choosing a mapping and converting the file again with it."""
    return await _show_again(request, services, frame, conversion)


@router.post("/{conversion}/again")
async def convert_again(
    request: Request,
    services: ServicesOf,
    caller: WriteCaller,
    frame: ConversionsFrame,
    limits: LimitsOf,
    conversion: UUID,
    mapping: Name,
) -> Response:
    """Convert the file again. The earlier conversion is kept."""
    try:
        begun = await conversion_intake(services, limits).convert_again(caller.owner_id, conversion, mapping)
    except NotFound:
        raise
    except OctavoError as error:
        return await _show_again(request, services, frame, conversion, error)
    return back_to(f"/conversions/{begun.id}")


async def _show_again(
    request: Request, services: Services, frame: Frame, conversion: UUID, wrong: OctavoError | None = None
) -> Response:
    async with services.database.connection() as connection:
        found = await show_conversion(connection, frame.caller.owner_id, conversion)
        mappings = await list_mappings(connection, frame.caller.owner_id)
    shown: dict[str, Any] = {
        "again": found,
        "wanted": Selection(frozenset(), None, []),
        "count": 1,
        "mappings": {one.name: one.title for one in mappings if not one.error},
        "chosen": found.mapping,
        "wrong": wrong,
    }
    return render(request, "conversion_new.html", frame, wrong.status if wrong else 200, **shown)


@router.post("/{conversion}/delete")
async def delete(
    request: Request,
    services: ServicesOf,
    caller: WriteCaller,
    frame: ConversionsFrame,
    conversion: UUID,
    sure: Annotated[bool, Form()] = False,  # noqa: FBT002 - a form field
) -> Response:
    """Delete a conversion. Requires confirmation."""
    async with services.database.transaction() as connection:
        if not sure:
            found = await show_conversion(connection, caller.owner_id, conversion)
            kept = (
                _("The document stays in the library.") if found.document_id else _("The uploaded file is deleted too.")
            )
            text = _(
                "The values, corrections and XML of the conversion are deleted. %(kept)s This cannot be undone.",
                kept=kept,
            )
            title, back = (
                _("Delete the conversion of “%(filename)s”?", filename=found.filename),
                f"/conversions/{conversion}",
            )
            return ask(request, Question(title, text, request.url.path, _("Delete"), back, (("sure", "true"),)), frame)
        keys = await delete_conversion(connection, caller.owner_id, conversion)
    await services.bucket.delete(keys)
    return back_to("/conversions")


@router.post("/{conversion}/undo")
async def undo(services: ServicesOf, caller: WriteCaller, conversion: UUID) -> Response:
    """Undo the last correction by adding a new revision."""
    person = person_without_account(caller)
    undone = await corrections_of(services).undo(caller.owner_id, conversion, caller.user_id, person)
    names = [str(one["name"]) for one in undone if "name" in one]
    return back_to(f"/conversions/{conversion}" + (f"?field={quote(names[0])}#field" if names else ""))


async def _shown(services: Services, frame: Frame, conversion: UUID, asked: ReviewQuery) -> dict[str, Any]:
    owner = frame.caller.owner_id
    async with services.database.connection() as connection:
        found = await show_conversion(connection, owner, conversion)
        job = (await find_jobs(connection, owner, [conversion])).get(conversion)
        sure = (await summarise_confidence(connection, owner, [conversion])).get(conversion)
        values = await _values(connection, owner, found, asked.revision)
        cost = await show_model_cost(connection, owner, conversion)
        earlier = await kept_history(connection, owner, conversion) if asked.view == "history" else []
        document = (await find_documents(connection, owner, [found.document_id]))[:1] if found.document_id else []
    shown: dict[str, Any] = {
        "found": found,
        "words": describe_conversion(found, job, sure, frame.now),
        "asked": asked,
        "forms": FORMS,
        "values": values,
        "document": document[0] if document else None,
    }
    if values:
        laid = arrange_fields(values.conversion, values.mapping)
        shown |= _fields(laid, asked) | await _sheets(services, owner, found)
        shown |= _page(laid, asked, shown["sheets"])
        shown["model"] = describe_model(values.conversion.model_lookup, laid, cost)
        shown["is_latest"] = values.number == found.revision
        shown["history"] = _history(values) if asked.view == "history" else []
        shown["earlier"] = _earlier(earlier, values)
        shown["xml"] = await asyncio.to_thread(_xml, values) if asked.view == "xml" else ""
    return shown


async def _values(connection: Connection, owner: UUID, found: StoredConversion, number: int | None) -> Values | None:
    """Return the values of a revision.

    Returns None if the conversion is not complete or its values are no longer stored.
    """
    if found.status != JobStatus.COMPLETE or found.archived_at or found.record is None:
        return None
    stored = await mapping_of_conversion(connection, owner, found.id, found.mapping)
    mapping = await stored.read_in_thread()
    revisions = await list_revisions(connection, owner, found.id)
    number = number or found.revision
    record = next((one.record for one in revisions if one.number == number), None)
    if record is None:
        raise NotFound
    return Values(mapping, stored.text, revisions, number, conversion_from_json(record.encode(), mapping))


def _fields(laid: ReviewFields, asked: ReviewQuery) -> dict[str, Any]:
    unsettled = [one for one in laid.every if not one.is_settled]
    following = laid.next_unsettled(asked.field)
    return {"laid": laid, "current": laid.find(asked.field), "unsettled": len(unsettled), "following": following}


async def _sheets(services: Services, owner: UUID, found: StoredConversion) -> dict[str, Any]:
    """Return the sizes of the pages, which are needed to mark values. If they are unknown, return the reason."""
    try:
        async with services.database.connection() as connection:
            source = await find_result(connection, owner, found.id, "source")
        return {"sheets": await services.pictures.measure_file(source.key), "no_sheets": None}
    except Expired:
        return {"sheets": [], "no_sheets": _("The file is no longer stored. The values extracted from it are kept.")}
    except OctavoError as error:
        return {"sheets": [], "no_sheets": f"{error.line} ({error.code})"}


def _page(laid: ReviewFields, asked: ReviewQuery, sheets: list[tuple[float, float]]) -> dict[str, Any]:
    current = laid.find(asked.field)
    wanted = asked.page or (current.page if current else None) or 1
    page = min(wanted, len(sheets)) if sheets else wanted
    return {"page": page, "marks": marks_on(laid, page, asked.field)}


def _history(values: Values) -> list[dict[str, Any]]:
    """List all revisions with their changes, newest first.

    Earlier versions of Octavo did not store the changes of a revision. If they are not stored, they are computed.
    """
    made = {one.number: values.of(one.number) for one in values.revisions if not one.changes}
    return [
        {
            "revision": one,
            "changes": describe_changes(json.loads(one.changes))
            if one.changes
            else changes_between(values.of(one.number - 1), made[one.number]),
        }
        for one in reversed(values.revisions)
    ]


def _earlier(kept: list[dict[str, Any]], values: Values) -> list[EarlierCorrection]:
    """List the corrections that were copied from earlier conversions of the same file, newest first.

    `kept` contains all corrections, oldest first: those from earlier conversions, then those of this conversion. The
    corrections of this conversion are left out.
    """
    own = sum(one.made_by == "person" for one in values.revisions)
    return [one for one in map(describe_earlier, reversed(kept[: max(len(kept) - own, 0)])) if one]


def _xml(values: Values) -> str:
    return render_xml(values.conversion, values.mapping, plain=True).decode()[:MOST_XML]
