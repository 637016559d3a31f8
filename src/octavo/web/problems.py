"""Errors as RFC 9457 problems: one form for everything that goes wrong, with a stable code."""

from __future__ import annotations

import math
from http import HTTPStatus

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from octavo.model.errors import BadInput, Defect, NotFound, OctavoError
from octavo.web.headers import HEADERS

log = structlog.get_logger()
MEDIA_TYPE = "application/problem+json"
CODES = {404: NotFound.code, 405: "METHOD_NOT_ALLOWED", 401: "UNAUTHENTICATED", 403: "FORBIDDEN"}


def problem(
    status: int, code: str, title: str, detail: str | None = None, headers: dict[str, str] | None = None
) -> JSONResponse:
    body = {"type": "about:blank", "title": title, "status": status, "code": code, "detail": detail or title}
    return JSONResponse(body, status, headers=headers, media_type=MEDIA_TYPE)


def handle_problems(app: FastAPI) -> None:
    """Register the one renderer for each kind of failure."""

    @app.exception_handler(OctavoError)
    async def known(request: Request, error: OctavoError) -> JSONResponse:
        if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            log.warning("request failed", path=request.url.path, code=error.code, reason=error.line)
        wait = getattr(error, "retry_after_seconds", None)
        headers = {"retry-after": str(math.ceil(wait))} if wait else None
        return problem(error.status, error.code, error.title, error.detail, headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        del request
        wrong = "; ".join(f"{'.'.join(map(str, one['loc'][1:]))}: {one['msg']}" for one in error.errors())
        return problem(BadInput.status, BadInput.code, BadInput().title, wrong)

    @app.exception_handler(HTTPException)
    async def plain(request: Request, error: HTTPException) -> JSONResponse:
        del request
        phrase = HTTPStatus(error.status_code).phrase
        code = CODES.get(error.status_code, phrase.upper().replace(" ", "_"))
        headers = dict(error.headers) if error.headers else None
        return problem(error.status_code, code, phrase, str(error.detail), headers)

    @app.exception_handler(ClientDisconnect)
    async def gone(request: Request, error: ClientDisconnect) -> JSONResponse:
        """Nobody hears the answer; what was sent so far is left to whoever reads it."""
        del error
        log.info("caller left", path=request.url.path)
        return problem(BadInput.status, "CALLER_LEFT", "The connection was closed before the request was whole.")

    @app.exception_handler(Exception)
    async def unknown(request: Request, error: Exception) -> JSONResponse:
        log.error("request crashed", path=request.url.path, exc_info=error)
        # Answered outside of all middleware, so that its headers are set here.
        return problem(Defect.status, Defect.code, Defect().title, headers=HEADERS)
