"""Renders pages on the server. They work without scripts; scripts add live updates."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.templating import Jinja2Templates

from octavo import __version__
from octavo.core import formatting
from octavo.core.texts import current_catalogue, gettext, ngettext, translate_sentences
from octavo.web.http.assets import asset
from octavo.web.http.languages import LANGUAGES
from octavo.web.shell.frame import Frame

THEME_COOKIE = "octavo_theme"
THEMES = ("light", "dark")


def common_values(request: Request) -> dict[str, str | None]:
    """Return the values that every template needs."""
    theme = request.cookies.get(THEME_COOKIE)
    catalogue = current_catalogue()
    return {
        "version": __version__,
        "theme": theme if theme in THEMES else None,
        "lang": catalogue.language,
        "dir": catalogue.direction,
    }


WEB = Path(__file__).parents[1]
FOLDERS = (WEB / "shell" / "html", *sorted(path for path in (WEB / "rooms").iterdir() if path.is_dir()))
templates = Jinja2Templates(FOLDERS, context_processors=[common_values])
templates.env.trim_blocks = templates.env.lstrip_blocks = True
# Messages of `{% trans %}` may contain tags, so their values are escaped. Results of `_` are escaped as a whole.
templates.env.add_extension("jinja2.ext.i18n")
templates.env.policies["ext.i18n.trimmed"] = True
cast("dict[str, object]", templates.env.globals).update(
    {"asset": asset, "_": gettext, "gettext": gettext, "ngettext": ngettext, "languages": LANGUAGES}
)
cast("dict[str, object]", templates.env.filters).update(
    ago=formatting.format_ago,
    bytes=formatting.format_bytes,
    date=formatting.format_short_date,
    day=formatting.format_day,
    dollars=formatting.format_dollars,
    mid_sentence=formatting.mid_sentence,
    moment=formatting.format_moment,
    number=formatting.format_number,
    sentences=translate_sentences,
)


def render(request: Request, template: str, frame: Frame | None, status: int = 200, **values: object) -> HTMLResponse:
    """Render a whole page or a fragment of a page. Browsers must not cache it."""
    headers = {"cache-control": "no-store", "vary": "accept-language, cookie"}
    return templates.TemplateResponse(request, template, values | {"frame": frame}, status, headers=headers)


def back_to(address: str) -> RedirectResponse:
    """Redirect after a change, so that reloading the page does not repeat it."""
    return RedirectResponse(address, 303)
