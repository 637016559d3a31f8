"""A real WebDAV server (WsgiDAV) for a folder."""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from wsgidav.wsgidav_app import WsgiDAVApp  # pyright: ignore[reportMissingTypeStubs]

USER, PASSWORD = "ann", "correct horse"


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the library
        del format, args


@contextmanager
def running_webdav(folder: Path) -> Generator[int]:
    """Serve a folder. Returns the port."""
    logging.getLogger("wsgidav").setLevel(logging.CRITICAL)
    users = {"user_mapping": {"*": {USER: {"password": PASSWORD}}}}
    basic = {"accept_basic": True, "accept_digest": False, "default_to_digest": False}
    app = WsgiDAVApp(
        {
            "provider_mapping": {"/": {"root": str(folder), "readonly": True}},
            "simple_dc": users,
            "http_authenticator": basic,
            "verbose": 0,
        }
    )
    with make_server("127.0.0.1", 0, app, _Server, _Quiet) as server:  # pyright: ignore[reportArgumentType]
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
