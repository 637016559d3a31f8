"""Errors as RFC 9457 problems: one form for everything that goes wrong, with a stable code."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import BaseRoute, Match

from octavo.core.errors import BadInput, Defect, NotFound, OctavoError

log = structlog.get_logger()
MEDIA_TYPE = "application/problem+json"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
CODES = {404: NotFound.code, 405: "METHOD_NOT_ALLOWED", 401: "UNAUTHENTICATED", 403: "FORBIDDEN"}


class WrongMethod(BadInput):
    """This cannot be done with that address."""

    code = CODES[HTTPStatus.METHOD_NOT_ALLOWED]
    status = 405

    def __init__(self, allowed: Iterable[str]) -> None:
        methods = ", ".join(sorted(allowed))
        self.headers = {"allow": methods}
        super().__init__(f"It takes {methods}." if methods else None)


# Instead of the words of the libraries that notice it.
SENTENCES = {
    HTTPStatus.BAD_REQUEST: "The request cannot be read. Is its body what its headers say?",
    HTTPStatus.NOT_FOUND: NotFound().title,
}


def problem(
    status: int, code: str, title: str, detail: str | None = None, headers: dict[str, str] | None = None
) -> JSONResponse:
    body = {"type": "about:blank", "title": title, "status": status, "code": code, "detail": detail or title}
    return JSONResponse(body, status, headers=headers, media_type=MEDIA_TYPE)


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong with one request, before it has a form. `is_plain`: nobody found better words for it."""

    status: int
    code: str
    title: str
    detail: str | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str])
    is_plain: bool = False

    @property
    def line(self) -> str:
        return f"{self.title} {self.detail}" if self.detail else self.title


# Answers a page for people who look at pages, and nothing for programs.
AsPage = Callable[[Request, Failure], Awaitable[Response | None]]


def handle_problems(app: FastAPI, as_page: AsPage, crash_headers: Mapping[str, str]) -> None:
    """Register the one renderer for each kind of failure. A crash is answered outside of all middleware, so it gets
    `crash_headers` here.
    """

    async def answer(request: Request, failure: Failure) -> Response:
        page = await as_page(request, failure)
        headers = failure.headers or None
        return page or problem(failure.status, failure.code, failure.title, failure.detail, headers)

    @app.exception_handler(OctavoError)
    async def known(request: Request, error: OctavoError) -> Response:
        if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            log.warning("request failed", path=request.url.path, code=error.code, reason=error.line)
        wait = error.retry_after_seconds
        headers = dict(getattr(error, "headers", {})) | ({"retry-after": str(math.ceil(wait))} if wait else {})
        return await answer(request, Failure(error.status, error.code, error.title, error.detail, headers))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        mistakes = error.errors()
        if any(one["loc"][0] == "path" for one in mistakes):
            # An address that cannot be is like one that nothing is at.
            return await answer(request, Failure(NotFound.status, NotFound.code, NotFound().title, is_plain=True))
        wrong = describe_mistakes(mistakes)
        return await answer(request, Failure(BadInput.status, BadInput.code, BadInput().title, wrong))

    @app.exception_handler(HTTPException)
    async def plain(request: Request, error: HTTPException) -> Response:
        status = HTTPStatus(error.status_code)
        code = CODES.get(status, status.phrase.upper().replace(" ", "_"))
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            wrong = WrongMethod(allowed_methods(request))
            return await answer(request, Failure(status, code, wrong.title, wrong.detail, wrong.headers, is_plain=True))
        title = SENTENCES.get(status, status.phrase)
        detail = None if status in SENTENCES else str(error.detail)
        headers = dict(error.headers) if error.headers else {}
        return await answer(request, Failure(status, code, title, detail, headers, is_plain=True))

    @app.exception_handler(ClientDisconnect)
    async def gone(request: Request, error: ClientDisconnect) -> JSONResponse:
        """Nobody hears the answer; what was sent so far is left to whoever reads it."""
        del error
        log.info("caller left", path=request.url.path)
        return problem(BadInput.status, "CALLER_LEFT", "The connection was closed before the request was whole.")

    @app.exception_handler(Exception)
    async def unknown(request: Request, error: Exception) -> Response:
        log.error("request crashed", path=request.url.path, exc_info=error)
        return await answer(request, Failure(Defect.status, Defect.code, Defect().title, headers=dict(crash_headers)))


def allowed_methods(request: Request) -> set[str]:
    """Of all routes with this path; one route knows only its own."""
    routes: list[BaseRoute] = request.app.routes
    return {method for method in METHODS if any(_takes(route, request, method) for route in routes)}


def _takes(route: BaseRoute, request: Request, method: str) -> bool:
    return route.matches({**request.scope, "method": method})[0] == Match.FULL


# By the kinds that the checking library tells apart; what stands in braces is what it knows about them.
WORDS = {
    "missing": "it is missing",
    "extra_forbidden": "there is no such field",
    "json_invalid": "this is no JSON",
    "string_type": "this is no text",
    "string_too_long": "at most {max_length} characters are taken",
    "string_too_short": "at least {min_length} characters are needed",
    "string_pattern_mismatch": "it is not in the form that is wanted here, or has characters that are not taken",
    "too_long": "at most {max_length} are taken",
    "too_short": "at least {min_length} are needed",
    "list_type": "this is no list",
    "greater_than_equal": "it must be {ge} or more",
    "less_than_equal": "it must be {le} or less",
    "literal_error": "it must be {expected}",
    "enum": "it must be {expected}",
    "value_error": "{error}",
}
# By how their kinds begin.
BEGINNINGS = {
    "int_": "this is no whole number",
    "float_": "this is no number",
    "finite_number": "this is no number",
    "bool_": "this is neither true nor false",
    "uuid_": "this is no id",
    "date_": "this is no date, as 2026-11-15",
    "datetime_": "this is no time",
    "dict_": "this is no object with fields",
    "model_": "this is no object with fields",
    "dataclass_": "this is no object with fields",
    "string_": "this text cannot be used",
}
OTHERWISE = "this cannot be used"


def describe_mistakes(mistakes: Iterable[Mapping[str, Any]]) -> str:
    """All of them in one line; what was sent is not repeated."""
    return "; ".join(f"{_place(one)}: {_words(one)}" for one in mistakes) + "."


def _place(mistake: Mapping[str, Any]) -> str:
    """The name of the field, or where it came from when it has none."""
    first, *rest = mistake["loc"] or ("request",)
    named = [] if mistake["type"] == "json_invalid" else rest
    return ".".join(map(str, named or [first]))


def _words(mistake: Mapping[str, Any]) -> str:
    kind = str(mistake["type"])
    if kind in WORDS:
        return WORDS[kind].format_map(mistake.get("ctx") or {})
    return next((words for beginning, words in BEGINNINGS.items() if kind.startswith(beginning)), OTHERWISE)
