"""What happens to an owner's documents and jobs, as it happens."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Header, Query, Request
from pydantic import BaseModel

from octavo.jobs.events import BadCursor, Cursor, latest_cursor, parse_cursor, read_owner_events
from octavo.jobs.views import MOST_LIMIT
from octavo.web.api import Limit, problems
from octavo.web.live import TooFarBehind
from octavo.web.parts import Parts, PartsOf, Reading, still_acts_for
from octavo.web.streams import EventStream, Follower, LiveEvent, public_form

router = APIRouter(prefix="/api/v1", tags=["events"])

STREAM = {
    "description": "Server-sent events: first one named `hello`, whose id is where the stream begins, then one for "
    "each event, with its JSON as data. With `application/json`, one page of them.",
    "content": {"text/event-stream": {"schema": {"type": "string"}}},
}
After = Annotated[
    str | None,
    Query(max_length=100, description="Id of the last event that is known, or a `cursor` that was answered."),
]
Format = Annotated[
    Literal["stream", "json"] | None, Query(description="As the header Accept says when it is not given.")
]
LastEventId = Annotated[str | None, Header(max_length=1000, description="As browsers send it; wins over `after`.")]


class Events(BaseModel):
    """`cursor` is the `after` of the next question."""

    items: list[LiveEvent]
    cursor: str


@router.get("/events", response_model=Events, responses={200: STREAM, **problems(401, 410, 422)})
async def events(
    request: Request,
    parts: PartsOf,
    caller: Reading,
    after: After = None,
    limit: Limit = MOST_LIMIT,
    format: Format = None,  # noqa: A002 - its name outside
    last_event_id: LastEventId = None,
) -> EventStream | Events:
    """What happens to your documents and jobs, in order, nothing twice: a stream that stays open, or what is new."""
    place = parse_cursor(after) if after is not None else None
    if wants_json(format, request.headers.get("accept", "")):
        return await list_new(parts, caller.owner_id, place, limit)
    place = read_header(last_event_id) or place
    return EventStream(parts.live, Follower(caller.owner_id, place, still_acts_for(request, parts, caller)))


def wants_json(format: str | None, accept: str) -> bool:  # noqa: A002 - its name outside
    if format is not None:
        return format == "json"
    return "application/json" in accept.lower() and "text/event-stream" not in accept.lower()


def read_header(last_event_id: str | None) -> Cursor | None:
    """A browser sends back whatever was the last id; what is none of ours says nothing."""
    try:
        return parse_cursor(last_event_id) if last_event_id else None
    except BadCursor:
        return None


async def list_new(parts: Parts, owner: UUID, place: Cursor | None, limit: int) -> Events:
    """What happened after a place; without one, only where to begin."""
    async with parts.database.connection() as connection:
        now = await latest_cursor(connection)
        if place is None:
            return Events(items=[], cursor=str(now))
        if place > now:
            raise TooFarBehind
        found = await read_owner_events(connection, owner, place, limit)
    return Events(items=[public_form(one) for one in found], cursor=str(found[-1].cursor if found else place))
