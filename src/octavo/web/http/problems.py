"""Returns errors as problem responses (RFC 9457): one format for all errors, with stable codes."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import islice
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
    """Method not allowed here."""

    code = CODES[HTTPStatus.METHOD_NOT_ALLOWED]
    status = 405

    def __init__(self, allowed: Iterable[str]) -> None:
        methods = ", ".join(sorted(allowed))
        self.headers = {"allow": methods}
        super().__init__(f"Allowed: {methods}." if methods else None)


# These replace the messages of libraries.
SENTENCES = {
    HTTPStatus.BAD_REQUEST: "The request cannot be read. Check that its body matches its headers.",
    HTTPStatus.NOT_FOUND: NotFound().title,
}


def problem(
    status: int,
    code: str,
    title: str,
    detail: str | None = None,
    headers: dict[str, str] | None = None,
    fields: Mapping[str, Any] | None = None,
) -> JSONResponse:
    body = {"type": "about:blank", "title": title, "status": status, "code": code, "detail": detail or title}
    return JSONResponse(body | dict(fields or {}), status, headers=headers, media_type=MEDIA_TYPE)


@dataclass(frozen=True, slots=True)
class Failure:
    """An error before it is converted to a response.

    `is_plain` is true if the error comes from the web framework and has only a generic message. `fields` are additional
    fields of the response, such as `duplicate_of`.
    """

    status: int
    code: str
    title: str
    detail: str | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str])
    is_plain: bool = False
    fields: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def line(self) -> str:
        return f"{self.title} {self.detail}" if self.detail else self.title


def logged_path(request: Request) -> str:
    """Return a request's path for the log. A token in the path is replaced, because it grants access."""
    token = request.path_params.get("token")
    return request.url.path.replace(token, "…") if token else request.url.path


# Returns a page for browsers and None for programs.
AsPage = Callable[[Request, Failure], Awaitable[Response | None]]


def handle_problems(app: FastAPI, as_page: AsPage, crash_headers: Mapping[str, str]) -> None:
    """Register one handler for each kind of error.

    The response to an unexpected error does not pass through the middleware, so `crash_headers` are added here.
    """

    async def answer(request: Request, failure: Failure) -> Response:
        page = await as_page(request, failure)
        headers = failure.headers or None
        fields = dict(failure.fields) | openai_fields(request.url.path, failure)
        return page or problem(failure.status, failure.code, failure.title, failure.detail, headers, fields)

    @app.exception_handler(OctavoError)
    async def known(request: Request, error: OctavoError) -> Response:
        if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            log.warning("request failed", path=logged_path(request), code=error.code, reason=error.line)
        wait = error.retry_after_seconds
        headers = dict(getattr(error, "headers", {})) | ({"retry-after": str(math.ceil(wait))} if wait else {})
        fields = getattr(error, "fields", {})
        failure = Failure(error.status, error.code, error.title, error.detail, headers, fields=fields)
        return await answer(request, failure)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        errors = error.errors()
        if any(one["loc"][0] == "path" for one in errors):
            # An invalid path parameter is handled like an unknown path.
            return await answer(request, Failure(NotFound.status, NotFound.code, NotFound().title, is_plain=True))
        wrong = describe_validation_errors(errors)
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
    async def disconnected(request: Request, error: ClientDisconnect) -> JSONResponse:
        """Handle a client that disconnected during its request. A response is required, although nobody reads it."""
        del error
        log.info("client disconnected", path=logged_path(request))
        return problem(BadInput.status, "CALLER_LEFT", "The connection was closed before the request was complete.")

    @app.exception_handler(Exception)
    async def unknown(request: Request, error: Exception) -> Response:
        log.error("request crashed", path=logged_path(request), exc_info=error)
        return await answer(request, Failure(Defect.status, Defect.code, Defect().title, headers=dict(crash_headers)))


# Routes that are compatible with OpenAI's API. Its clients read errors from the field `error`.
OPENAI_ROUTES = ("/v1/chat/", "/v1/models")
OPENAI_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    402: "insufficient_quota",
    429: "rate_limit_error",
}


def openai_fields(path: str, failure: Failure) -> dict[str, Any]:
    """Return the additional fields that clients of OpenAI's API expect in an error response. Empty for other routes."""
    return {"error": openai_error(failure.status, failure.code, failure.line)} if path.startswith(OPENAI_ROUTES) else {}


def openai_error(status: int, code: str, message: str) -> dict[str, str | None]:
    """Return an error in the format of OpenAI's API. `code` is the same stable code as in the rest of Octavo's API."""
    otherwise = "server_error" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "invalid_request_error"
    return {"message": message, "type": OPENAI_TYPES.get(status, otherwise), "param": None, "code": code}


def allowed_methods(request: Request) -> set[str]:
    """Return all methods allowed for this path. Each route knows only its own methods, so all routes are checked."""
    routes: list[BaseRoute] = request.app.routes
    return {method for method in METHODS if any(_takes(route, request, method) for route in routes)}


def _takes(route: BaseRoute, request: Request, method: str) -> bool:
    return route.matches({**request.scope, "method": method})[0] == Match.FULL


# By error type of Pydantic. Names in braces are replaced by values from the context of the error.
MESSAGES = {
    "missing": "is missing",
    "extra_forbidden": "unknown field",
    "json_invalid": "must be valid JSON",
    "string_type": "must be a string",
    "string_too_long": "must have at most {max_length} characters",
    "string_too_short": "must have at least {min_length} characters",
    "string_pattern_mismatch": "has an invalid format or invalid characters",
    "too_long": "must have at most {max_length} items",
    "too_short": "must have at least {min_length} items",
    "list_type": "must be a list",
    "greater_than_equal": "must be {ge} or more",
    "less_than_equal": "must be {le} or less",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "value_error": "{error}",
}
# By prefix of the error type.
PREFIXES = {
    "int_": "must be an integer",
    "float_": "must be a number",
    "finite_number": "must be a number",
    "bool_": "must be true or false",
    "uuid_": "must be a UUID",
    "date_": "must be a date such as 2026-11-15",
    "datetime_": "must be a date and time",
    "dict_": "must be an object",
    "model_": "must be an object",
    "dataclass_": "must be an object",
    "string_": "is not a valid string",
}
OTHERWISE = "is invalid"
MOST_ERRORS = 20
MOST_PLACE = 200


def describe_validation_errors(errors: Iterable[Mapping[str, Any]]) -> str:
    """Describe the first validation errors in one line, without repeating the input.

    A hostile request can contain thousands of errors; the response must not be larger than the request.
    """
    described = [f"{_place(one)}: {_message(one)}" for one in islice(errors, MOST_ERRORS + 1)]
    more = ["there are more errors"] if len(described) > MOST_ERRORS else []
    return "; ".join([*described[:MOST_ERRORS], *more]) + "."


def _place(error: Mapping[str, Any]) -> str:
    """Return the name of the invalid field or, if the error has no field, the invalid part of the request, such as
    `body`.
    """
    first, *rest = error["loc"] or ("request",)
    named = [] if error["type"] == "json_invalid" else rest
    return ".".join(map(str, named or [first]))[:MOST_PLACE]


def _message(error: Mapping[str, Any]) -> str:
    kind = str(error["type"])
    if kind in MESSAGES:
        return MESSAGES[kind].format_map(error.get("ctx") or {})
    return next((words for beginning, words in PREFIXES.items() if kind.startswith(beginning)), OTHERWISE)
