"""Routes for programs and monitoring: live events, health, metrics, signed downloads, limits, and AI agents."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from importlib import import_module
from typing import Annotated, Any, Literal
from uuid import UUID

import httpx
from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel
from starlette.types import Message, Receive, Scope, Send

from octavo import __version__
from octavo.ai.ledger import Budgets
from octavo.client import Client
from octavo.client.transport import RetryPolicy
from octavo.core.errors import NotFound, Unauthenticated
from octavo.core.types import Extraction
from octavo.database import read_clock
from octavo.jobs.views import MOST_LIMIT, BadCursor, Cursor, is_known, latest_cursor, parse_cursor, read_owner_events
from octavo.ops.metrics import COUNTS, MEDIA_TYPE, read_metrics, render_metrics
from octavo.records.account import Limits, Published
from octavo.records.jobs import LiveEvent
from octavo.web.context.callers import KeyCaller, ReadCaller, still_acts_for
from octavo.web.context.intake import intake_limits, may_rewrite
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.downloads import attachment
from octavo.web.http.parameters import Limit, problems
from octavo.web.http.security import bearer_key, may_monitor
from octavo.web.live import EventStream, Follower, TooFarBehind, first_of, public_form, wait_for_leaving

router = APIRouter(prefix="/api/v1", tags=["events"])

STREAM = {
    "description": "A stream of server-sent events. The first is `hello`; its id is the start of the stream. "
    "Each later one contains an event as JSON. With `application/json`, the response is one page of events.",
    "content": {"text/event-stream": {"schema": {"type": "string"}}},
}
After = Annotated[
    str | None,
    Query(max_length=100, description="Id of the last known event, or a `cursor` from an earlier response."),
]
Format = Annotated[
    Literal["stream", "json"] | None, Query(description="Default: the format requested by the Accept header.")
]
LastEventId = Annotated[
    str | None, Header(max_length=1000, description="Sent by browsers; takes precedence over `after`.")
]


class Events(BaseModel):
    """One page of events. Send `cursor` as `after` in the next request."""

    items: list[LiveEvent]
    cursor: str


@router.get("/events", response_model=Events, responses={200: STREAM, **problems(401, 410, 422)})
async def events(
    request: Request,
    services: ServicesOf,
    caller: ReadCaller,
    after: After = None,
    limit: Limit = MOST_LIMIT,
    format: Format = None,  # noqa: A002 - the name of the query parameter
    last_event_id: LastEventId = None,
) -> EventStream | Events:
    """Return the events of your documents and jobs, as an open stream or as one page.

    They are in order, and each event is returned only once.
    """
    place = parse_cursor(after) if after is not None else None
    if wants_json(format, request.headers.get("accept", "")):
        return await list_new(services, caller.owner_id, place, limit)
    place = read_header(last_event_id) or place
    follower = Follower(caller.owner_id, place, still_acts_for(request, services, caller), limited=caller.limited)
    return EventStream(services.live, follower)


def wants_json(format: str | None, accept: str) -> bool:  # noqa: A002 - the name of the query parameter
    if format is not None:
        return format == "json"
    return "application/json" in accept.lower() and "text/event-stream" not in accept.lower()


def read_header(last_event_id: str | None) -> Cursor | None:
    """Return the cursor in the Last-Event-ID header, which browsers send when they reconnect.

    Returns None if there is no valid cursor.
    """
    try:
        return parse_cursor(last_event_id) if last_event_id else None
    except BadCursor:
        return None


async def list_new(services: Services, owner: UUID, place: Cursor | None, limit: int) -> Events:
    """Return one page of events after a cursor. Without a cursor, return no events and the current cursor."""
    async with services.database.connection() as connection:
        if place is None:
            return Events(items=[], cursor=str(await latest_cursor(connection)))
        if not await is_known(connection, place):
            raise TooFarBehind
        found = await read_owner_events(connection, owner, place, limit)
    return Events(items=[public_form(one) for one in found], cursor=str(found[-1].cursor if found else place))


health_router = APIRouter(tags=["health"])


@health_router.get("/healthz")
@health_router.get("/health", include_in_schema=False)  # the address that clients of docling-serve use
async def healthz() -> dict[str, str]:
    """Report that this server is running."""
    return {"status": "ok"}


@health_router.get("/readyz")
async def readyz(request: Request, services: ServicesOf, response: Response) -> dict[str, Any]:
    """Report whether this server can serve requests.

    Only programs on this machine and callers that send the metrics token get the details.
    """
    checks = await services.readiness()
    ready = all(check.ok for check in checks)
    response.status_code = 200 if ready else 503
    status = {"status": "ready" if ready else "not ready"}
    if not may_monitor(request.scope, services.settings.metrics_token):
        return status
    return status | {"checks": [asdict(check) for check in checks]}


@health_router.get("/metrics", response_class=Response, responses=problems(401))
async def metrics(request: Request, services: ServicesOf) -> Response:
    """Return the metrics of all processes in the Prometheus format.

    From another machine, send the token set in OCTAVO_METRICS_TOKEN as a bearer token.
    """
    if not may_monitor(request.scope, services.settings.metrics_token):
        raise Unauthenticated("Send the token set in OCTAVO_METRICS_TOKEN.")
    await COUNTS.add(services.database)
    async with services.database.connection() as connection:
        found = await read_metrics(connection, Budgets.of(services.settings))
    return Response(render_metrics(found), media_type=MEDIA_TYPE)


objects_router = APIRouter(include_in_schema=False)


@objects_router.get("/objects/{key:path}")
async def download(request: Request, key: str, services: ServicesOf) -> StreamingResponse:
    async with services.database.connection() as connection:
        now = await read_clock(connection)
    link = await services.bucket.verify_link(request.method, key, request.query_params, now=now)
    stream = await services.bucket.stream(link.key)
    return attachment(stream, link.filename, link.content_type)


settings_router = APIRouter(prefix="/api/v1", tags=["settings"])


@settings_router.get("/settings", responses=problems(401))
async def settings(services: ServicesOf, caller: ReadCaller) -> Published:
    """Return the limits and options that apply to you."""
    allowed = intake_limits(services.settings, anonymous=caller.is_anonymous)
    limits = Limits(
        upload_bytes=allowed.upload_bytes, stored_bytes=allowed.stored_bytes, concurrent_uploads=allowed.concurrent
    )
    chosen = services.settings
    return Published(
        version=__version__,
        limits=limits,
        trash_days=chosen.trash_days,
        sign_up=chosen.sign_up,
        extraction=[*Extraction] if may_rewrite(chosen, caller) else [Extraction.PLAIN],
    )


# AI agents -----------------------------------------------------------------------------------------------------------

agents_router = APIRouter(include_in_schema=False)
OWN_ADDRESS = "http://localhost"
# Requests to this process are not retried. The agent gets the error, and can call the tool again.
NO_RETRIES = RetryPolicy(pauses=(), longest_wait=0)


@agents_router.post("/mcp")
async def agents(request: Request, services: ServicesOf, caller: KeyCaller) -> AgentResponse:
    """Serve an AI agent with the Model Context Protocol (MCP). The agent's tools call the API with its API key."""
    if not services.settings.mcp:
        raise NotFound
    key = bearer_key(request.headers) or ""
    address = request.client.host if request.client else ""
    http = httpx.ASGITransport(request.app, raise_app_exceptions=False, client=(address, 0))
    client = Client(OWN_ADDRESS, key=key, retry_policy=NO_RETRIES, http=http)
    return AgentResponse(client, await request.body(), may_write=caller.may_write)


class AgentResponse(Response):
    """Answers one message of an agent. If the agent disconnects, the tool is cancelled."""

    def __init__(self, client: Client, body: bytes, *, may_write: bool) -> None:
        super().__init__()
        self._client, self._body, self._may_write = client, body, may_write

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.to_thread(import_module, "octavo.mcp.server")  # loads the SDK while other requests are served
        from octavo.mcp.server import make_server, serve_request

        messages: list[Message] = [{"type": "http.request", "body": self._body, "more_body": False}]
        leaving = asyncio.create_task(wait_for_leaving(receive))

        async def receive_again() -> Message:
            if messages:
                return messages.pop()
            await asyncio.wait([leaving])
            return {"type": "http.disconnect"}

        try:
            async with self._client as client:
                server = make_server(client, may_write=self._may_write)
                await first_of(leaving, serve_request(server, scope, receive_again, send))
        finally:
            leaving.cancel()
