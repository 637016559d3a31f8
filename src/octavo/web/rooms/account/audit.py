"""The API and the page that list the actions of people and programs in an account."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import AsyncGenerator
from datetime import UTC, date, datetime, timedelta
from typing import Annotated
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse

from octavo.core.errors import NotAllowed
from octavo.core.http import Page
from octavo.core.texts import Texts
from octavo.core.texts import gettext as _
from octavo.jobs.views import DEFAULT_LIMIT
from octavo.owners import Caller, members
from octavo.owners.audit import AuditFilter, list_actions
from octavo.records.account import AuditEntry
from octavo.web.context.callers import KnownCaller
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.parameters import Cursor, Date, Limit, problems
from octavo.web.shell.settings import SettingsFrame, show

router = APIRouter(prefix="/api/v1/audit", tags=["account"])
pages_router = APIRouter(include_in_schema=False, prefix="/settings/audit")
CSV_BATCH, CSV_MOST = 500, 100_000
HEAD = ("time", "person", "via", "action", "object", "document_id", "detail")
NO_NULL = r"^[^\x00]*$"
# Groups of actions, by the first part of their names.
ACTIONS = Texts(
    {
        "": "All",
        "account": "Signing in and accounts",
        "member": "Members",
        "invitation": "Invitations",
        "key": "API keys",
        "session": "Sessions",
        "share": "Shared links",
        "group": "Groups",
        "grant": "Granted collections",
        "source": "Sources",
        "rule": "Rules",
        "field": "Custom fields",
        "recipient": "Recipients",
        "created": "Added documents and jobs",
        "edited": "Edited documents",
        "trashed": "Deleted documents",
        "downloaded": "Downloads",
    }
)

ROLES = Texts({"owner": "Owner", "member": "Member", "reader": "Reader"})
# What each action is called on the page. Other actions are shown by their names in the API.
ACTION_NAMES = Texts(
    {
        "account.sign_in": "Signed in",
        "account.sign_out": "Signed out",
        "account.sign_up": "Created an account",
        "account.password": "Changed the password",
        "account.reset_link": "Created a password reset link",
        "account.second_factor": "Changed the second factor",
        "account.identity": "Connected or disconnected a sign-in provider",
        "session.revoke": "Signed out another session",
        "member.add": "Added a member",
        "member.role": "Changed the role of a member",
        "member.limit": "Limited a member to granted collections, or removed the limit",
        "member.remove": "Removed a member",
        "invitation.add": "Invited a person",
        "invitation.withdraw": "Withdrew an invitation",
        "key.add": "Created an API key",
        "key.revoke": "Revoked an API key",
        "share.add": "Created a shared link",
        "share.revoke": "Revoked a shared link",
        "group.add": "Created a group",
        "group.delete": "Deleted a group",
        "group.join": "Added a person to a group",
        "group.leave": "Removed a person from a group",
        "grant.add": "Granted access to a collection",
        "grant.withdraw": "Withdrew access to a collection",
        "source.add": "Added a source",
        "source.edit": "Changed a source",
        "source.pause": "Paused a source",
        "source.resume": "Resumed a source",
        "source.delete": "Deleted a source",
        "rule.add": "Added a rule",
        "rule.edit": "Changed a rule",
        "rule.enable": "Enabled a rule",
        "rule.disable": "Disabled a rule",
        "rule.apply": "Applied a rule",
        "rule.undo": "Undid a rule",
        "rule.delete": "Deleted a rule",
        "field.add": "Added a custom field",
        "field.edit": "Changed a custom field",
        "field.delete": "Deleted a custom field",
        "recipient.add": "Added a recipient",
        "recipient.edit": "Changed a recipient",
        "recipient.delete": "Deleted a recipient",
        "created": "Added a document or a job",
        "edited": "Edited a document",
        "trashed": "Moved a document to the trash",
        "restored": "Restored a document from the trash",
        "downloaded": "Downloaded a document",
        "rejected": "Tried to add a file, but it was rejected",
        "queued": "Queued a job",
        "cancelled": "Cancelled a job",
        "prioritised": "Moved a job up in the queue",
        "analysis.queued": "Started an analysis",
        "conversion.deleted": "Deleted a conversion",
        "collection": "Changed a collection",
        "budgets": "Changed budgets",
        "models": "Changed model settings",
    }
)


def wanted_actions(
    person: Annotated[UUID | None, Query(description="Only actions by this person.")] = None,
    action: Annotated[
        str | None, Query(max_length=100, pattern=NO_NULL, description="Only this action, or this group of actions.")
    ] = None,
    since: Annotated[Date | None, Query(description="Only from this day on.")] = None,
    until: Annotated[Date | None, Query(description="Only up to this day.")] = None,
) -> AuditFilter:
    # No time is after the last possible day.
    last = until + timedelta(days=1) if until and until < date.max else None
    return AuditFilter(person, action, _begin(since), _begin(last))


def _begin(day: date | None) -> datetime | None:
    return datetime(day.year, day.month, day.day, tzinfo=UTC) if day else None


Wanted = Annotated[AuditFilter, Depends(wanted_actions)]


@router.get("", responses=problems(400, 401, 403, 422))
async def list_audit(
    services: ServicesOf, caller: KnownCaller, wanted: Wanted, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> Page[AuditEntry]:
    """List the actions of people and programs in the current account, newest first. Requires the role `owner`."""
    _require_manager(caller)
    async with services.database.connection() as connection:
        return await list_actions(connection, caller.owner_id, wanted, cursor=cursor, limit=limit)


@router.get("/csv", responses=problems(401, 403, 422), response_class=Response)
async def export_audit(services: ServicesOf, caller: KnownCaller, wanted: Wanted) -> Response:
    """Download up to 100,000 actions as CSV, newest first."""
    _require_manager(caller)
    headers = {"content-disposition": 'attachment; filename="audit.csv"', "cache-control": "no-store"}
    return StreamingResponse(_as_csv(services, caller, wanted), media_type="text/csv; charset=utf-8", headers=headers)


def _require_manager(caller: Caller) -> None:
    if not caller.may_manage:
        raise NotAllowed


async def _as_csv(services: Services, caller: Caller, wanted: AuditFilter) -> AsyncGenerator[str]:
    yield _line(HEAD)
    cursor: str | None = None
    for _batch in range(CSV_MOST // CSV_BATCH):
        async with services.database.connection() as connection:
            page = await list_actions(connection, caller.owner_id, wanted, cursor=cursor, limit=CSV_BATCH)
        yield "".join(_line(_cells(one)) for one in page.items)
        cursor = page.next_cursor
        if cursor is None:
            return


def _cells(one: AuditEntry) -> tuple[str, ...]:
    detail = " ".join(f"{name}={value}" for name, value in one.detail.items())
    cells = (one.actor or "visitor", one.via or "", one.action, one.thing or "", str(one.document_id or ""))
    return one.at.isoformat(), *cells, detail


def _line(cells: tuple[str, ...]) -> str:
    """Return a row of the CSV file. Text that a spreadsheet would run as a formula is preceded by an apostrophe."""
    written = io.StringIO()
    csv.writer(written).writerow([f"'{one}" if one[:1] in {"=", "+", "-", "@", "\t", "\r"} else one for one in cells])
    return written.getvalue()


@pages_router.get("")
async def audit_page(
    request: Request,
    services: ServicesOf,
    frame: SettingsFrame,
    person: str = "",
    action: str = "",
    since: str = "",
    until: str = "",
    cursor: Cursor = None,
) -> Response:
    """Show the actions, with filters. Invalid filters are ignored."""
    _require_manager(frame.caller)
    known = action if re.fullmatch(NO_NULL, action) else ""
    wanted = wanted_actions(_as_id(person), known or None, _as_day(since), _as_day(until))
    async with services.database.connection() as connection:
        page = await list_actions(connection, frame.caller.owner_id, wanted, cursor=cursor)
        people = await members.list_members(connection, frame.caller.owner_id)
    given = {"person": person, "action": known, "since": since, "until": until}
    query = {name: value for name, value in given.items() if value}
    names = {"": _("Everybody"), **{str(one.user_id): one.email for one in people}}
    more = f"/settings/audit?{urlencode({**query, 'cursor': page.next_cursor})}" if page.next_cursor else None
    export = f"/api/v1/audit/csv?{urlencode(query)}"
    values = {"entries": page.items, "more": more, "given": given, "people": names, "actions": ACTIONS}
    values |= {"action_names": ACTION_NAMES, "roles": ROLES}
    return show(request, "audit", frame, 200, export=export, **values)


def _as_id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _as_day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None
