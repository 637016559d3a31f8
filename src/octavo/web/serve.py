"""Runs the web server of one process until it is stopped."""

from __future__ import annotations

import socket

import uvicorn
from fastapi import FastAPI

from octavo.core.settings import Settings
from octavo.web.app import create_app
from octavo.web.context.services import Services
from octavo.web.http.protocol import protocol_for

GRACE_SECONDS = 10


class Server(uvicorn.Server):
    """Ends open event streams before waiting for requests to finish, because streams would otherwise never finish."""

    def __init__(self, app: FastAPI, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        services = getattr(self._app.state, "services", None)
        if isinstance(services, Services):
            services.live.close()
        await super().shutdown(sockets)


def serve(settings: Settings, listener: socket.socket) -> None:
    """Serve requests on a listening socket that the caller has opened."""
    server_of(create_app(settings), settings).run(sockets=[listener])


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
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    return Server(app, config)
