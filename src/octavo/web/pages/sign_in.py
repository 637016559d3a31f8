"""Signing in: with address and password, or with the one-time link that `octavo up` prints."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import Response

from octavo.core.errors import SignInRefused, WrongCredentials
from octavo.owners import use_sign_in_link
from octavo.web import accounts
from octavo.web.api.account import Credentials
from octavo.web.limits import TooFast
from octavo.web.pages import back_to, render
from octavo.web.pages.forms import local_path, read_form
from octavo.web.parts import Parts, PartsOf, Recognised, remember_session, session_secret

router = APIRouter(include_in_schema=False)
Field = Annotated[str, Form(max_length=2000)]
WRONG = {"email": "This is no e-mail address.", "password": "This password is too long."}


@router.get("/sign-in")
async def sign_in_page(
    request: Request,
    parts: PartsOf,
    caller: Recognised,
    token: str | None = None,
    next: str = "",  # noqa: A002 - its name outside
) -> Response:
    if token is not None:
        return await _use_link(request, parts, token)
    known = caller is not None and not caller.is_anonymous
    return render(request, "sign_in.html", None, back=local_path(next), known=known, open=parts.settings.sign_up)


async def _use_link(request: Request, parts: Parts, token: str) -> Response:
    try:
        async with parts.database.transaction() as connection:
            secret = await use_sign_in_link(connection, token, replacing=session_secret(request))
    except SignInRefused as error:
        return render(request, "sign_in_refused.html", None, error.status, error=error)
    remember_session(request, secret)
    return back_to("/")


@router.post("/sign-in")
async def sign_in(
    request: Request, parts: PartsOf, caller: Recognised, email: Field = "", password: Field = "", back: Field = "/"
) -> Response:
    """What is wrong stands beside its field; the password has to be typed again."""
    wanted, wrong = read_form(Credentials, {"email": email, "password": password}, WRONG)
    status, headers = 422, dict[str, str]()
    if wanted:
        try:
            await accounts.sign_in(request, parts, caller, wanted.email, wanted.password)
            return back_to(local_path(back))
        except WrongCredentials as error:
            wrong, status = {"password": error.title}, error.status
        except TooFast as error:
            wrong, status = {"password": f"Too many wrong passwords. {error.detail}"}, error.status
            headers = {"retry-after": str(round(error.retry_after_seconds or 1))}
    values = {"back": local_path(back), "email": email, "wrong": wrong, "open": parts.settings.sign_up}
    answer = render(request, "sign_in.html", None, status, **values)
    answer.headers.update(headers)
    return answer
