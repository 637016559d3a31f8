"""Puts the web application together; it holds no state that a kill could lose."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager, closing
from functools import cache

from fastapi import APIRouter, FastAPI

from octavo import __version__
from octavo.convert import PRELOAD as CONVERT_PRELOAD
from octavo.core.settings import Settings
from octavo.extract.pictures.quote_steps import PRELOAD as QUOTE_PRELOAD
from octavo.extract.pictures.steps import PRELOAD
from octavo.extract.unlocking import PRELOAD as UNLOCK_PRELOAD
from octavo.ops.instance import bucket_of, open_database, sandbox_of
from octavo.web import health, objects
from octavo.web.api import (
    account,
    admin,
    analyses,
    ask,
    budgets,
    collections,
    connections,
    conversion_pictures,
    conversions,
    documents,
    embeddings,
    events,
    exports,
    jobs,
    keys,
    mappings,
    members,
    notifications,
    pictures,
    problems,
    prompts,
    search,
    uploads,
    usage,
    versions,
    webhooks,
)
from octavo.web.api import settings as published
from octavo.web.assets import Assets
from octavo.web.bodies import SmallBodies
from octavo.web.limits import Clock, make_limits
from octavo.web.live import Hub, Pace
from octavo.web.models import Models
from octavo.web.pages.problems import as_page
from octavo.web.pages.routes import PAGES
from octavo.web.parts import CREDENTIALS, Parts
from octavo.web.pictures import PagePictures
from octavo.web.problems import handle_problems
from octavo.web.security import AnswerHeaders, KnownHosts, SameSite, SecurityHeaders
from octavo.web.trying import Trials
from octavo.web.unlocking import Unlocking


def create_app(settings: Settings, *, clock: Clock = time.monotonic, pace: Pace | None = None) -> FastAPI:
    """The application of one process; its parts are opened when it starts to serve."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        async with (
            open_database(settings) as database,
            aclosing(bucket_of(settings)) as bucket,
            # Started by the first picture, password or trial; people wait for all of them.
            aclosing(
                sandbox_of(settings, (*PRELOAD, *QUOTE_PRELOAD, *UNLOCK_PRELOAD, *CONVERT_PRELOAD), patience=0)
            ) as sandbox,
            aclosing(Models(settings, database)) as models,
        ):
            limits, live = make_limits(settings, clock), Hub(database, pace)
            unlocking, trials = Unlocking(database, bucket, sandbox), Trials(settings, sandbox)
            with closing(PagePictures(database, bucket, sandbox, clock)) as drawn:
                app.state.parts = Parts(settings, database, bucket, limits, live, drawn, unlocking, trials, models)
                yield

    app = FastAPI(
        title="Octavo",
        version=__version__,
        lifespan=lifespan,
        openapi_url="/api/openapi.json",
        docs_url=None,  # the built-in page loads its scripts from elsewhere
        redoc_url=None,
    )
    handle_problems(app, as_page)
    # From the inside out: what is added last sees a request first.
    app.add_middleware(SmallBodies)
    app.add_middleware(AnswerHeaders)
    app.add_middleware(SameSite, origins=settings.origins)
    app.add_middleware(KnownHosts, settings=settings)
    app.add_middleware(SecurityHeaders)
    app.mount("/static", Assets(), name="static")  # asked for most, and found first
    app.router.routes.extend(_routes().routes)
    return app


@cache
def _routes() -> APIRouter:
    """Made once a process: what each of them takes and answers is worked out when it is first asked for."""
    routes = APIRouter()
    routes.include_router(health.router)
    library = (
        uploads,
        documents,
        exports,
        versions,
        embeddings,
        pictures,
        collections,
        search,
        ask,
        jobs,
        events,
        published,
        budgets,
        usage,
        connections,
    )
    asked = (prompts, analyses, conversions, conversion_pictures, mappings)
    for part in (objects, *PAGES, *library, *asked, account, keys, members, webhooks, notifications, admin):
        routes.include_router(part.router, dependencies=CREDENTIALS, responses=problems(429))
    return routes
