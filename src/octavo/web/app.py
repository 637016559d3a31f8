"""Puts the web application together; it holds no state that a kill could lose."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles

from octavo import __version__
from octavo.model.settings import Settings
from octavo.ops.instance import bucket_of, open_database
from octavo.web import health, objects
from octavo.web.api import admin, jobs
from octavo.web.pages import home, sign_in
from octavo.web.parts import Parts
from octavo.web.problems import handle_problems
from octavo.web.security import SecurityHeaders

STATIC = Path(__file__).with_name("static")


def create_app(settings: Settings) -> FastAPI:
    """The application of one process; its parts are opened when it starts to serve."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        async with open_database(settings) as database, aclosing(bucket_of(settings)) as bucket:
            app.state.parts = Parts(settings, database, bucket)
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
    app.add_middleware(SecurityHeaders)
    for router in (health.router, objects.router, home.router, sign_in.router, jobs.router, admin.router):
        app.include_router(router)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    return app
