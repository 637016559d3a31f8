"""Renders pages on the server. They work without scripts; scripts add live updates."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.templating import Jinja2Templates

from octavo import __version__
from octavo.core.formatting import format_ago, format_bytes, format_day, format_dollars, format_moment, format_number
from octavo.web.http.assets import asset
from octavo.web.shell.frame import Frame

THEME_COOKIE = "octavo_theme"
THEMES = ("light", "dark")


def common_values(request: Request) -> dict[str, str | None]:
    """Return the values that every template needs."""
    theme = request.cookies.get(THEME_COOKIE)
    return {"version": __version__, "theme": theme if theme in THEMES else None}


WEB = Path(__file__).parents[1]
FOLDERS = (WEB / "shell" / "html", *sorted(path for path in (WEB / "rooms").iterdir() if path.is_dir()))
templates = Jinja2Templates(FOLDERS, context_processors=[common_values])
templates.env.trim_blocks = templates.env.lstrip_blocks = True
cast("dict[str, object]", templates.env.globals)["asset"] = asset
cast("dict[str, object]", templates.env.filters).update(bytes=format_bytes, day=format_day, number=format_number)
cast("dict[str, object]", templates.env.filters).update(ago=format_ago, dollars=format_dollars, moment=format_moment)


def render(request: Request, template: str, frame: Frame | None, status: int = 200, **values: object) -> HTMLResponse:
    """Render a whole page or a fragment of a page. Browsers must not cache it."""
    return templates.TemplateResponse(
        request, template, values | {"frame": frame}, status, headers={"cache-control": "no-store"}
    )


def back_to(address: str) -> RedirectResponse:
    """Redirect after a change, so that reloading the page does not repeat it."""
    return RedirectResponse(address, 303)
