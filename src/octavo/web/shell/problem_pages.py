"""Renders error pages, which show the cause, the error code and one action."""

from __future__ import annotations

import contextlib
from http import HTTPStatus
from urllib.parse import urlencode

import psycopg
from fastapi import Request, Response

from octavo.core.errors import OctavoError, Unauthenticated
from octavo.core.texts import Texts, translate_sentences
from octavo.core.texts import gettext as _
from octavo.owners import Caller
from octavo.web.context.services import services_of
from octavo.web.http.problems import Failure
from octavo.web.shell.frame import Frame, load_frame
from octavo.web.shell.templates import back_to, render

NOT_PAGES = ("/api/", "/healthz", "/readyz", "/metrics", "/static/", "/objects", "/fragments/")
# The way back, by the address that failed, because browsers send no referrer.
PLACES = Texts(
    {
        "/operations": "Back to operations",
        "/conversions": "Back to conversions",
        "/settings/mappings": "Back to mappings",
        "/settings/keys": "Back to API keys",
        "/settings/webhooks": "Back to notification settings",
        "/settings": "Back to settings",
        "/notifications": "Back to notifications",
    }
)
HEADINGS = Texts(
    {
        403: "Not allowed",
        404: "Page not found",
        405: "This link only accepts form submissions",
        409: "This action is no longer possible",
        413: "Too large",
        422: "Invalid input",
        429: "Too many requests",
        503: "Octavo is unavailable",
    }
)
CAUSES = Texts(
    {
        404: "This page does not exist, or you do not have access to it.",
        405: "Open the page with the form instead.",
    }
)


def is_for_people(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "") and not request.url.path.startswith(NOT_PAGES)


async def as_page(request: Request, failure: Failure) -> Response | None:
    """Render the error as a page. Returns None if the caller is a program.

    Callers who must sign in are redirected to the sign-in page.
    """
    if not is_for_people(request):
        return None
    if failure.code == Unauthenticated.code:
        asked = request.method in {"GET", "HEAD"}
        path = f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path
        return back_to(f"/sign-in?{urlencode({'next': path})}" if asked and path != "/" else "/sign-in")
    caller: Caller | None = getattr(request.state, "caller", None)
    frame = await _frame(request, caller) if caller and failure.status < HTTPStatus.INTERNAL_SERVER_ERROR else None
    verb, address = _verb(request, failure, caller)
    answer = render(
        request,
        "problem.html",
        frame,
        failure.status,
        heading=HEADINGS.get(failure.status, _("Something went wrong")),
        cause=translate_sentences(CAUSES.get(failure.status, failure.line) if failure.is_plain else failure.line),
        code=failure.code,
        verb=verb,
        address=address,
    )
    answer.headers.update(failure.headers)
    return answer


async def _frame(request: Request, caller: Caller) -> Frame | None:
    """Load the frame (navigation and running jobs) for the error page. Returns None if it cannot be loaded either."""
    with contextlib.suppress(OctavoError, psycopg.Error):
        services = await services_of(request)
        async with services.database.connection() as connection:
            return await load_frame(connection, caller, "", services.settings)
    return None


def _verb(request: Request, failure: Failure, caller: Caller | None) -> tuple[str, str]:
    again = failure.status == HTTPStatus.TOO_MANY_REQUESTS or failure.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    if again and request.method == "GET":
        return _("Try again"), f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path
    if failure.status == HTTPStatus.FORBIDDEN and (caller is None or caller.is_anonymous):
        return _("Sign in"), "/sign-in"
    for place, words in PLACES.items():
        if request.url.path.startswith(f"{place}/") and (place != "/operations" or (caller and caller.is_admin)):
            return words, place
    return _("Go to the library"), "/library"
