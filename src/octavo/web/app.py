"""Puts the web application together; it holds no state that a kill could lose."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles

from octavo import __version__
from octavo.model.settings import Settings
from octavo.ops.instance import bucket_of, open_database
from octavo.web import health, objects
from octavo.web.api import account, admin, collections, documents, jobs, keys, members, problems, uploads
from octavo.web.api import settings as published
from octavo.web.bodies import SmallBodies
from octavo.web.limits import Clock, make_limits
from octavo.web.pages import home, sign_in
from octavo.web.parts import CREDENTIALS, Parts
from octavo.web.problems import handle_problems
from octavo.web.security import AnswerHeaders, KnownHosts, SameSite, SecurityHeaders

STATIC = Path(__file__).with_name("static")


def create_app(settings: Settings, *, clock: Clock = time.monotonic) -> FastAPI:
    """The application of one process; its parts are opened when it starts to serve."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        async with open_database(settings) as database, aclosing(bucket_of(settings)) as bucket:
            app.state.parts = Parts(settings, database, bucket, make_limits(settings, clock))
            yield

    app = FastAPI(
        title="Octavo",
        version=__version__,
        lifespan=lifespan,
        openapi_url="/api/openapi.json",
        docs_url=None,  # the built-in page loads its scripts from elsewhere
        redoc_url=None,
    )
    handle_problems(app)
    # From the inside out: what is added last sees a request first.
    app.add_middleware(SmallBodies)
    app.add_middleware(AnswerHeaders)
    app.add_middleware(SameSite, origins=settings.origins)
    app.add_middleware(KnownHosts, settings=settings)
    app.add_middleware(SecurityHeaders)
    app.include_router(health.router)
    library = (uploads, documents, collections, jobs, published)
    for part in (objects, home, sign_in, *library, account, keys, members, admin):
        app.include_router(part.router, dependencies=CREDENTIALS, responses=problems(429))
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    return app
