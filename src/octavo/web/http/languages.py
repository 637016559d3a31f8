"""The languages of pages: which one a request gets, and the catalogues with their texts.

A catalogue is read from its `.po` file when the language is first used, so nothing has to be compiled.
"""

from __future__ import annotations

from functools import cache
from gettext import GNUTranslations
from io import BytesIO
from pathlib import Path
from types import MappingProxyType

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from octavo.core.texts import ENGLISH, Catalogue, texts_from

FOLDER = Path(__file__).parents[1] / "locale"
LANGUAGE_COOKIE = "octavo_language"
# Each in its own language, in the order in which they are offered.
LANGUAGES = MappingProxyType({"en": "English", "de": "Deutsch", "es": "Español", "fr": "Français", "zh": "简体中文"})
LOCALES = {"en": "en", "zh": "zh_Hans_CN"}
RIGHT_TO_LEFT = frozenset({"ar", "fa", "he", "ur"})
# These addresses are for programs, whose texts are always English.
FOR_PROGRAMS = (
    "/api/",
    "/healthz",
    "/mcp",
    "/metrics",
    "/objects",
    "/process",
    "/readyz",
    "/static/",
    "/v1/",
)


def choose_language(chosen: str | None, accepted: str) -> str:
    """Return the chosen language or, if it is none of ours, the first one that the browser accepts, or English."""
    if chosen and chosen in LANGUAGES:
        return chosen
    return next((found for name in _by_preference(accepted) if (found := _known(name))), ENGLISH)


def _known(name: str) -> str | None:
    """Return our language for a name such as `de-AT`. Chinese is only written in simplified characters here."""
    primary, *rest = name.lower().split("-")
    if primary == "zh" and {"hant", "tw", "hk", "mo"} & set(rest):
        return None
    return primary if primary in LANGUAGES else None


def _by_preference(accepted: str) -> list[str]:
    """Return the names in an Accept-Language header, the preferred ones first. Names with a weight of 0 are refused."""
    weighed: list[tuple[float, str]] = []
    for part in accepted[:500].split(","):
        name, _, parameter = part.strip().partition(";")
        weight = parameter.strip().removeprefix("q=").strip() if parameter else "1"
        if name and (value := float(weight) if weight.replace(".", "", 1).isdecimal() else 0) > 0:
            weighed.append((-value, name.strip()))
    return [name for _, name in sorted(weighed, key=lambda pair: pair[0])]


@cache
def catalogue_of(language: str) -> Catalogue:
    if language == ENGLISH:
        return Catalogue()
    from babel.messages.mofile import write_mo
    from babel.messages.pofile import read_po

    compiled = BytesIO()
    with (FOLDER / language / "LC_MESSAGES" / "octavo.po").open("rb") as file:
        write_mo(compiled, read_po(file, locale=language))
    compiled.seek(0)
    direction = "rtl" if language in RIGHT_TO_LEFT else "ltr"
    return Catalogue(language, LOCALES.get(language, language), direction, GNUTranslations(compiled))


class Languages:
    """Sets the language of pages for the time of a request: the one in the cookie, or one that the browser accepts."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(FOR_PROGRAMS):
            return await self._app(scope, receive, send)
        headers = Headers(scope=scope)
        language = choose_language(language_cookie(headers), headers.get("accept-language", ""))
        if language == ENGLISH:
            return await self._app(scope, receive, send)
        with texts_from(catalogue_of(language)):
            return await self._app(scope, receive, send)


def language_cookie(headers: Headers) -> str | None:
    pairs = (part.partition("=") for part in headers.get("cookie", "").split(";"))
    return next((value.strip() for name, _, value in pairs if name.strip() == LANGUAGE_COOKIE), None)
