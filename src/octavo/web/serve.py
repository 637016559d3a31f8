"""Runs the web server of one process until it is asked to stop."""

from __future__ import annotations

import socket

import uvicorn

from octavo.model.settings import Settings
from octavo.web.app import create_app
from octavo.web.protocol import PatientProtocol

GRACE_SECONDS = 10


def serve(settings: Settings, listener: socket.socket) -> None:
    """Serve on a socket that already listens; the caller decides where that is."""
    config = uvicorn.Config(
        create_app(settings),
        http=PatientProtocol,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.proxies),
        forwarded_allow_ips=list(settings.proxies),
        lifespan="on",
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    uvicorn.Server(config).run(sockets=[listener])
