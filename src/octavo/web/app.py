"""Creates and serves the web application. It keeps no state that would be lost if the process were killed."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager, closing, suppress
from functools import cache
from itertools import takewhile
from typing import Any

import uvicorn
from fastapi import APIRouter, FastAPI
from fastapi.routing import iter_route_contexts
from starlette.types import Receive, Scope, Send

from octavo import __version__
from octavo.ai.gateway_setup import LiveModels
from octavo.convert import PRELOAD as CONVERT_PRELOAD
from octavo.core.instruments import stop_tracing
from octavo.core.settings import Settings
from octavo.extract.pdf.pdf_file import UNLOCK_PRELOAD
from octavo.extract.pictures.page_images import PRELOAD
from octavo.extract.pictures.quotes import PRELOAD as QUOTE_PRELOAD
from octavo.ops.instance import bucket_of, open_database, open_reader_of, sandbox_of, wait_for_schema
from octavo.ops.metrics import COUNTS
from octavo.web.context.callers import CREDENTIALS
from octavo.web.context.idempotency import Repeated, answer_again
from octavo.web.context.page_pictures import PagePictures
from octavo.web.context.services import Services
from octavo.web.http.assets import Assets, Compression
from octavo.web.http.languages import Languages
from octavo.web.http.limits import Clock, make_limits
from octavo.web.http.openapi import describe_api, operation_id
from octavo.web.http.parameters import problems
from octavo.web.http.problems import handle_problems
from octavo.web.http.protocol import Timing, protocol_for
from octavo.web.http.security import (
    HEADERS,
    BodyLimit,
    HostCheck,
    Interruption,
    SameSite,
    SecurityHeaders,
    SessionHeaders,
)
from octavo.web.live import Hub, StreamIntervals
from octavo.web.rooms import (
    account,
    analyses,
    ask,
    automation,
    budgets,
    connections,
    conversions,
    extraction,
    library,
    notifications,
    operations,
    reader,
    search,
    sharing,
    system,
)
from octavo.web.shell import settings as settings_pages
from octavo.web.shell.frame import as_page

ROOMS = (
    system,
    library,
    search,
    ask,
    reader,
    connections,
    analyses,
    conversions,
    extraction,
    notifications,
    automation,
    account,
    sharing,
    budgets,
    operations,
)
GRACE_SECONDS = 10
# Longer than proxies and clients keep idle connections, so that they do not send a request while the server closes one.
KEEP_ALIVE_SECONDS = 75


def create_app(
    settings: Settings,
    *,
    clock: Clock = time.monotonic,
    pace: StreamIntervals | None = None,
    is_supervised: bool = False,
) -> FastAPI:
    """Create the web application for one process. Its services are opened when the application starts.

    If `is_supervised` is true, another process may still be migrating the database, and startup waits for it.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        async with (
            open_database(settings) as database,
            aclosing(bucket_of(settings)) as bucket,
            # Started when first needed: for a page picture, a password or a mapping trial. People wait for these, so it
            # runs with normal priority.
            aclosing(
                sandbox_of(settings, (*PRELOAD, *QUOTE_PRELOAD, *UNLOCK_PRELOAD, *CONVERT_PRELOAD), niceness=0)
            ) as sandbox,
            # Started when a program first requests the text of a file.
            open_reader_of(settings) as reader,
            aclosing(LiveModels(settings, database)) as models,
        ):
            if is_supervised:
                await wait_for_schema(database)
            limits = make_limits(settings, database, clock)
            live = Hub(database, pace, limits.slots, settings.streams)
            with closing(PagePictures(database, bucket, sandbox, clock)) as drawn:
                app.state.services = Services(settings, database, bucket, sandbox, limits, live, drawn, models, reader)
                counting = asyncio.create_task(COUNTS.keep_adding(database))
                try:
                    yield
                finally:
                    counting.cancel()
                    with suppress(asyncio.CancelledError):
                        await counting
                    await limits.slots.aclose()
                    await asyncio.to_thread(stop_tracing)

    app = FastAPI(
        title="Octavo",
        version=__version__,
        lifespan=lifespan,
        openapi_url="/api/openapi.json",
        docs_url=None,  # the framework's page loads its scripts from another site; ours is in the room `system`
        redoc_url=None,
    )
    handle_problems(app, as_page, HEADERS)
    app.add_exception_handler(Repeated, answer_again)
    # Innermost first: the middleware added last sees a request first.
    app.add_middleware(Languages)
    app.add_middleware(Compression)
    app.add_middleware(BodyLimit)
    app.add_middleware(SessionHeaders)
    app.add_middleware(SameSite, origins=settings.origins)
    app.add_middleware(HostCheck, settings=settings)
    app.add_middleware(Interruption)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(Timing)
    app.mount("/static", Assets(), name="static")  # requested most often, so matched first
    app.router.routes.extend(load_routes().routes)
    app.router.middleware_stack = PathIndex(app.router)
    app.openapi = _description
    return app


@cache
def load_routes() -> APIRouter:
    """Build all routes. Cached, because FastAPI inspects every parameter and response, which takes a while."""
    routes = APIRouter(generate_unique_id_function=operation_id)
    for router in system.OPEN:
        routes.include_router(router)
    for router in (settings_pages.router, *(router for room in ROOMS for router in room.ROUTERS)):
        routes.include_router(router, dependencies=CREDENTIALS, responses=problems(429))
    return routes


class PathIndex:
    """Tries only the routes that can match a request, instead of comparing its path with all 400 routes one by one.

    Routers are indexed by the fixed segments at the start of their paths, such as `("api", "v1", "jobs")` for
    `/api/v1/jobs/{id}`. For a request, only the routers indexed under the first segments of its path are tried, in
    their original order.
    """

    LONGEST = 3

    def __init__(self, router: APIRouter) -> None:
        self._all = router
        self._indexed = 0
        self._places: dict[tuple[str, ...], list[int]] = {(): []}
        self._routers: dict[tuple[str, ...], APIRouter] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        router = self.router_for(scope["path"]) if scope["type"] == "http" else self._all
        await router.app(scope, receive, send)

    def router_for(self, path: str) -> APIRouter:
        if self._indexed < len(self._all.routes):
            self._index_new_routes()
        start = tuple(path.strip("/").split("/", self.LONGEST)[: self.LONGEST])
        while start not in self._places:
            start = start[:-1]
        if start not in self._routers:
            places = {place for length in range(len(start) + 1) for place in self._places.get(start[:length], ())}
            self._routers[start] = APIRouter(routes=[self._all.routes[place] for place in sorted(places)])
        return self._routers[start]

    def _index_new_routes(self) -> None:
        for place, route in enumerate(self._all.routes[self._indexed :], self._indexed):
            for start in {self._start_of(one.path or "") for one in iter_route_contexts([route])}:
                self._places.setdefault(start, []).append(place)
        self._indexed = len(self._all.routes)
        self._routers.clear()

    def _start_of(self, path: str) -> tuple[str, ...]:
        segments = path.strip("/").split("/")[: self.LONGEST]
        return tuple(takewhile(lambda segment: "{" not in segment, segments))


@cache
def _description() -> dict[str, Any]:
    """Build the OpenAPI description. Cached, and built only when it is requested, because building it is slow."""
    return describe_api(load_routes().routes, [*library.SOURCES, conversions.DocumentToConvert])


class Server(uvicorn.Server):
    """A web server that ends open event streams when it stops, because streams would otherwise never finish."""

    def __init__(self, app: FastAPI, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        services = getattr(self._app.state, "services", None)
        if isinstance(services, Services):
            services.live.close()
        await super().shutdown(sockets)


def serve(settings: Settings, listener: socket.socket, *, is_supervised: bool = False) -> None:
    """Serve requests on a listening socket that the caller has opened."""
    server_of(create_app(settings, is_supervised=is_supervised), settings).run(sockets=[listener])


def server_of(app: FastAPI, settings: Settings) -> Server:
    config = uvicorn.Config(
        app,
        http=protocol_for(settings.request_header_seconds, settings.request_body_seconds),
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.proxies),
        forwarded_allow_ips=list(settings.proxies),
        lifespan="on",
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    return Server(app, config)
