"""What goes wrong on a page, as a page: the cause, its code, and one thing to do about it."""

from __future__ import annotations

import contextlib
from http import HTTPStatus
from urllib.parse import urlencode

import psycopg
from fastapi import Request, Response

from octavo.core.errors import OctavoError, Unauthenticated
from octavo.owners import Caller
from octavo.web.context.services import services_of
from octavo.web.http.problems import Failure
from octavo.web.shell.frame import Frame, load_frame
from octavo.web.shell.templates import back_to, render

NOT_PAGES = ("/api/", "/healthz", "/readyz", "/metrics", "/static/", "/objects", "/fragments/")
# Where one was when something below it went wrong; browsers do not tell.
PLACES = {
    "/operations": "Back to operations",
    "/conversions": "Back to conversions",
    "/settings/mappings": "Back to mappings",
    "/settings/keys": "Back to keys",
    "/settings/webhooks": "Back to webhooks",
    "/settings": "Back to settings",
    "/notifications": "Back to notifications",
}
HEADINGS = {
    403: "You may not do this",
    404: "There is nothing here",
    405: "This address is not for looking at",
    409: "That is not possible any more",
    413: "This is too large",
    422: "This cannot be used",
    429: "A little too fast",
    503: "Octavo cannot answer right now",
}
CAUSES = {
    404: "This page does not exist, or it is not yours.",
    405: "It only takes what a form sends. Open the page that the form is on.",
}


def is_for_people(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "") and not request.url.path.startswith(NOT_PAGES)


async def as_page(request: Request, failure: Failure) -> Response | None:
    """Nothing for programs. Who is not signed in is led to where one does that, and comes back."""
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
        heading=HEADINGS.get(failure.status, "Something went wrong"),
        cause=CAUSES.get(failure.status, failure.line) if failure.is_plain else failure.line,
        code=failure.code,
        verb=verb,
        address=address,
    )
    answer.headers.update(failure.headers)
    return answer


async def _frame(request: Request, caller: Caller) -> Frame | None:
    """The page around it, unless that fails too."""
    with contextlib.suppress(OctavoError, psycopg.Error):
        services = await services_of(request)
        async with services.database.connection() as connection:
            return await load_frame(connection, caller, "", services.settings.upload_bytes)
    return None


def _verb(request: Request, failure: Failure, caller: Caller | None) -> tuple[str, str]:
    again = failure.status == HTTPStatus.TOO_MANY_REQUESTS or failure.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    if again and request.method == "GET":
        return "Try again", f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path
    if failure.status == HTTPStatus.FORBIDDEN and (caller is None or caller.is_anonymous):
        return "Sign in", "/sign-in"
    for place, words in PLACES.items():
        if request.url.path.startswith(f"{place}/") and (place != "/operations" or (caller and caller.is_admin)):
            return words, place
    return "Go to the library", "/library"
