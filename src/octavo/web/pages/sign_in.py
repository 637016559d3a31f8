"""Opens the one-time link that `octavo up` prints: this browser becomes the owner's."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from octavo.model.errors import SignInRefused
from octavo.owners import use_sign_in_link
from octavo.web.pages import templates
from octavo.web.parts import PartsOf, remember_session, session_secret

router = APIRouter(include_in_schema=False)


@router.get("/sign-in")
async def sign_in(request: Request, parts: PartsOf, token: str = "") -> Response:
    try:
        async with parts.database.transaction() as connection:
            secret = await use_sign_in_link(connection, token, replacing=session_secret(request))
    except SignInRefused as error:
        return templates.TemplateResponse(request, "sign_in_refused.html", {"error": error}, error.status)
    remember_session(request, secret)
    return RedirectResponse("/", 303)
