"""Pages for people, rendered on the server."""

from pathlib import Path

from fastapi.templating import Jinja2Templates

from octavo import __version__

templates = Jinja2Templates(Path(__file__).parent.parent / "templates")
templates.env.globals["version"] = __version__  # pyright: ignore[reportUnknownMemberType]
