"""Serves scripts, styles and fonts.

Their URLs contain a hash, so that browsers can cache the files forever. The URLs mirror the folders of `octavo.web`.
The files are few and small, so they are kept in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from gzip import compress
from hashlib import sha256
from mimetypes import guess_type
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from octavo.web.http.compression import accepts_gzip

FOLDER = Path(__file__).parents[1]
SERVED = frozenset({".js", ".css", ".svg", ".woff2"})
FOREVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True)
class Asset:
    content: bytes
    media_type: str

    @cached_property
    def compressed(self) -> bytes:
        """The content compressed with gzip. Fonts are returned unchanged, because they are already compressed."""
        return compress(self.content, mtime=0) if self.media_type.startswith(("text/", "image/svg")) else self.content


def _read(folder: Path) -> dict[str, Asset]:
    paths = sorted(path for path in folder.rglob("*") if path.suffix in SERVED)
    return {
        path.relative_to(folder).as_posix(): Asset(path.read_bytes(), guess_type(path)[0] or "application/octet-stream")
        for path in paths
    }


FILES = _read(FOLDER)
VERSION = sha256(b"".join(name.encode() + one.content for name, one in FILES.items())).hexdigest()[:12]


def asset(name: str) -> str:
    """Return the URL of a script, style or font, for templates.

    Scripts and styles refer to each other by relative URLs instead.
    """
    return f"/static/{VERSION}/{name}"


class Assets:
    """Serves scripts, styles and fonts.

    Any hash in the URL returns the current file, so that pages opened before an update still work.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        if request.method not in {"GET", "HEAD"}:
            raise HTTPException(405, headers={"allow": "GET, HEAD"})
        below = scope["path"].removeprefix(scope.get("root_path", "")).lstrip("/")
        found = FILES.get(below.partition("/")[2])
        if found is None:
            raise HTTPException(404)
        await _answer(found, zipped=accepts_gzip(request.headers))(scope, receive, send)


def _answer(found: Asset, *, zipped: bool) -> Response:
    headers = {"cache-control": FOREVER, "vary": "accept-encoding"}
    content = found.compressed if zipped else found.content
    if content is not found.content:
        headers["content-encoding"] = "gzip"
    return Response(content, media_type=found.media_type, headers=headers)
