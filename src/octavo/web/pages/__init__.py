"""Pages for people, rendered on the server."""

from pathlib import Path

from fastapi import Request
from fastapi.templating import Jinja2Templates

from octavo import __version__


def common_values(_request: Request) -> dict[str, str]:
    """What every page shows."""
    return {"version": __version__}


templates = Jinja2Templates(Path(__file__).parent.parent / "templates", context_processors=[common_values])
