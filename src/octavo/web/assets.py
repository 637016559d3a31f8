"""Scripts, styles and fonts under an address that changes with them, so that browsers keep them for ever."""

from __future__ import annotations

from hashlib import sha256
from os import PathLike, stat_result
from pathlib import Path, PurePosixPath

from fastapi.staticfiles import StaticFiles
from starlette.responses import Response
from starlette.types import Scope

FOLDER = Path(__file__).with_name("static")
FOREVER = "public, max-age=31536000, immutable"


def _digest(folder: Path) -> str:
    digest = sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:12]


VERSION = _digest(FOLDER)


def asset(name: str) -> str:
    """Where a file of the folder is served. Modules and styles name each other relative to it."""
    return f"/static/{VERSION}/{name}"


class Assets(StaticFiles):
    """Any version leads to the files of this one: a page that was open over an update still works."""

    def __init__(self) -> None:
        super().__init__(directory=FOLDER)

    def get_path(self, scope: Scope) -> str:
        _, *rest = PurePosixPath(super().get_path(scope)).parts or ("",)
        return str(PurePosixPath(*rest))

    def file_response(
        self, full_path: str | PathLike[str], stat_result: stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers["cache-control"] = FOREVER
        return response
