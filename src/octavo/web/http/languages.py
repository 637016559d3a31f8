"""Chooses the language of pages for each request."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from octavo.core.texts import ENGLISH, LANGUAGES, catalogue_of, texts_from, use_catalogue

LANGUAGE_COOKIE = "octavo_language"
# Paths for programs. Their texts are always English.
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
    """Return the chosen language if it is supported.

    Otherwise, return the first supported language that the browser accepts. If there is none, return English.
    """
    if chosen and chosen in LANGUAGES:
        return chosen
    return next((found for name in _by_preference(accepted) if (found := _known(name))), ENGLISH)


def _known(name: str) -> str | None:
    """Return the supported language for a tag such as `de-AT`. Returns None if the language is not supported.

    Of the Chinese variants, only simplified Chinese is supported.
    """
    primary, *rest = name.lower().split("-")
    if primary == "zh" and {"hant", "tw", "hk", "mo"} & set(rest):
        return None
    return primary if primary in LANGUAGES else None


def _by_preference(accepted: str) -> list[str]:
    """Return the language tags of an Accept-Language header in order of preference. Tags with a weight of 0 are left
    out.
    """
    weighed: list[tuple[float, str]] = []
    for part in accepted[:500].split(","):
        name, _, parameter = part.strip().partition(";")
        weight = parameter.strip().removeprefix("q=").strip() if parameter else "1"
        if name and (value := float(weight) if weight.replace(".", "", 1).isdecimal() else 0) > 0:
            weighed.append((-value, name.strip()))
    return [name for _, name in sorted(weighed, key=lambda pair: pair[0])]


class Languages:
    """Sets the language of a page request: the one in the cookie, or the first supported one that the browser accepts.

    Once the person is known, `prefer_language` switches to the language that this person has chosen.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(FOR_PROGRAMS):
            return await self._app(scope, receive, send)
        headers = Headers(scope=scope)
        language = choose_language(language_cookie(headers), headers.get("accept-language", ""))
        with texts_from(catalogue_of(language)):
            return await self._app(scope, receive, send)


def prefer_language(path: str, language: str | None) -> None:
    """Switch to the language of the signed-in person for the rest of a request. API requests stay in English."""
    if language in LANGUAGES and not path.startswith(FOR_PROGRAMS):
        use_catalogue(catalogue_of(language))


def language_cookie(headers: Headers) -> str | None:
    pairs = (part.partition("=") for part in headers.get("cookie", "").split(";"))
    return next((value.strip() for name, _, value in pairs if name.strip() == LANGUAGE_COOKIE), None)
