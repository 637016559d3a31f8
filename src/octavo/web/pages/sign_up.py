"""Making an account: what this browser collected becomes the new person's."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.responses import Response

from octavo.core.errors import EmailTaken, SignUpClosed, WeakPassword
from octavo.database import fetch_rows, load_queries
from octavo.owners import Caller
from octavo.owners.passwords import LEAST_CHARACTERS
from octavo.web import accounts
from octavo.web.api.account import Credentials
from octavo.web.pages import back_to, render
from octavo.web.pages.forms import local_path, read_form
from octavo.web.pages.sign_in import WRONG
from octavo.web.parts import Parts, PartsOf, Recognised

router = APIRouter(include_in_schema=False)
QUERIES = load_queries("pages")
Field = Annotated[str, Form(max_length=2000)]


@router.get("/sign-up")
async def sign_up_page(
    request: Request,
    parts: PartsOf,
    caller: Recognised,
    next: str = "",  # noqa: A002 - its name outside
) -> Response:
    _refuse_when_closed(parts)
    return await _show(request, parts, caller, back=local_path(next))


@router.post("/sign-up")
async def sign_up(
    request: Request, parts: PartsOf, caller: Recognised, email: Field = "", password: Field = "", back: Field = "/"
) -> Response:
    _refuse_when_closed(parts)
    wanted, wrong = read_form(Credentials, {"email": email, "password": password}, WRONG)
    status = 422
    if wanted:
        try:
            await accounts.sign_up(request, parts, caller, wanted.email, wanted.password)
            return back_to(local_path(back))
        except WeakPassword as error:
            wrong, status = {"password": error.line}, error.status
        except EmailTaken as error:
            wrong, status = {"email": error.title}, error.status
    return await _show(request, parts, caller, status, back=local_path(back), email=email, wrong=wrong)


async def _show(request: Request, parts: Parts, caller: Caller | None, status: int = 200, **values: Any) -> Response:  # noqa: ANN401
    """It says how many documents come along."""
    brought = 0
    if caller and caller.is_anonymous:
        async with parts.database.connection() as connection:
            counted = await fetch_rows(connection, QUERIES.frame, {"owner": caller.owner_id, "person": None})
        brought = counted[0]["documents"]
    return render(request, "sign_up.html", None, status, least=LEAST_CHARACTERS, brought=brought, **values)


def _refuse_when_closed(parts: Parts) -> None:
    if not parts.settings.sign_up:
        raise SignUpClosed
