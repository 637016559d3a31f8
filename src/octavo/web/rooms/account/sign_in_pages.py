"""Pages for signing up, signing out, and signing in with a password or with the one-time link from `octavo up`."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.responses import Response

from octavo.core.errors import EmailTaken, SignInRefused, SignUpClosed, WeakPassword, WrongCredentials
from octavo.core.texts import Texts, mark
from octavo.core.texts import gettext as _
from octavo.database import fetch_rows, load_queries
from octavo.owners import Caller, is_sign_in_link, use_sign_in_link
from octavo.owners.accounts import LEAST_CHARACTERS
from octavo.owners.callers import LinkRefused, WrongCode
from octavo.web.context.callers import OptionalCaller, remember_session, session_secret
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.limits import TooFast
from octavo.web.rooms.account import accounts
from octavo.web.rooms.account.api import Credentials
from octavo.web.shell.forms import Question, ask, local_path, read_form
from octavo.web.shell.frame import back_to, render

router = APIRouter(include_in_schema=False)
Field = Annotated[str, Form(max_length=2000)]
WRONG = Texts({"email": "Enter a valid email address.", "password": "This password is too long."})


@router.get("/sign-in")
async def sign_in_page(
    request: Request,
    services: ServicesOf,
    caller: OptionalCaller,
    token: str | None = None,
    next: str = "",  # noqa: A002 - the name of the query parameter
    left: bool = False,  # noqa: FBT001, FBT002 - a query parameter
) -> Response:
    if token is not None:
        return await _show_link(request, services, token)
    known = caller is not None and not caller.is_anonymous
    return _show_sign_in(request, services, back=local_path(next), known=known, left=left and not known)


def _show_sign_in(request: Request, services: Services, status: int = 200, **values: object) -> Response:
    settings = services.settings
    provider = settings.oidc_label if settings.oidc_issuer else None
    return render(request, "sign_in.html", None, status, open=settings.sign_up, provider=provider, **values)


async def _show_link(request: Request, services: Services, token: str) -> Response:
    """Show a form that signs in with the one-time link.

    Opening the link must not use it up, because mail scanners and previews open links too.
    """
    async with services.database.connection() as connection:
        valid = await is_sign_in_link(connection, token)
    return render(request, "sign_in_link.html", None, token=token) if valid else _refuse_link(request, SignInRefused())


def _refuse_link(request: Request, error: SignInRefused) -> Response:
    return render(request, "sign_in_refused.html", None, error.status, error=error)


async def _use_link(request: Request, services: Services, token: str) -> Response:
    try:
        async with services.database.transaction() as connection:
            secret = await use_sign_in_link(connection, token, replacing=session_secret(request))
    except SignInRefused as error:
        return _refuse_link(request, error)
    remember_session(request, secret)
    return back_to("/")


@router.post("/sign-in")
async def sign_in(
    request: Request,
    services: ServicesOf,
    caller: OptionalCaller,
    email: Field = "",
    password: Field = "",
    back: Field = "/",
    token: Annotated[str | None, Form(max_length=2000)] = None,
) -> Response:
    """Sign in with a password or a one-time link.

    An error is shown next to its field, and the password must be entered again.
    """
    if token is not None:
        return await _use_link(request, services, token)
    wanted, wrong = read_form(Credentials, {"email": email, "password": password}, WRONG)
    status, headers = 422, dict[str, str]()
    if wanted:
        try:
            token = await accounts.begin_sign_in(request, services, caller, wanted.email, wanted.password)
            if token:
                return render(request, "sign_in_code.html", None, token=token, back=local_path(back))
            return back_to(local_path(back))
        except WrongCredentials as error:
            wrong, status = {"password": error.title}, error.status
        except TooFast as error:
            wrong, status = {"password": _("Too many wrong passwords. %(detail)s", detail=error.detail)}, error.status
            headers = {"retry-after": str(round(error.retry_after_seconds or 1))}
    answer = _show_sign_in(request, services, status, back=local_path(back), email=email, wrong=wrong)
    answer.headers.update(headers)
    return answer


@router.post("/sign-in/code")
async def send_code(
    request: Request,
    services: ServicesOf,
    caller: OptionalCaller,
    token: Field = "",
    code: Field = "",
    back: Field = "/",
) -> Response:
    """Complete a sign-in by checking a second-factor code. The password has already been checked."""
    try:
        await accounts.complete_sign_in(request, services, caller, token, code)
        return back_to(local_path(back))
    except LinkRefused:
        wrong = {"password": _("Your sign-in took too long. Enter your password again.")}
        return _show_sign_in(request, services, LinkRefused.status, back=local_path(back), wrong=wrong)
    except WrongCode as error:
        wrong, status = {"code": error.title}, error.status
    except TooFast as error:
        wrong, status = {"code": _("Too many wrong codes. %(detail)s", detail=error.detail)}, error.status
    return render(request, "sign_in_code.html", None, status, token=token, back=local_path(back), wrong=wrong)


QUERIES = load_queries("pages")


@router.get("/sign-up")
async def sign_up_page(
    request: Request,
    services: ServicesOf,
    caller: OptionalCaller,
    next: str = "",  # noqa: A002 - the name of the query parameter
) -> Response:
    _refuse_when_closed(services)
    return await _show(request, services, caller, back=local_path(next))


@router.post("/sign-up")
async def sign_up(
    request: Request,
    services: ServicesOf,
    caller: OptionalCaller,
    email: Field = "",
    password: Field = "",
    back: Field = "/",
) -> Response:
    _refuse_when_closed(services)
    wanted, wrong = read_form(Credentials, {"email": email, "password": password}, WRONG)
    status = 422
    if wanted:
        try:
            await accounts.sign_up(request, services, caller, wanted.email, wanted.password)
            return back_to(local_path(back))
        except WeakPassword as error:
            wrong, status = {"password": error.line}, error.status
        except EmailTaken as error:
            wrong, status = {"email": error.title}, error.status
        except TooFast as error:
            wrong, status = (
                {"email": _("Too many new accounts from your network. %(detail)s", detail=error.detail)},
                error.status,
            )
    return await _show(request, services, caller, status, back=local_path(back), email=email, wrong=wrong)


async def _show(
    request: Request,
    services: Services,
    caller: Caller | None,
    status: int = 200,
    **values: Any,  # noqa: ANN401
) -> Response:
    """Show the sign-up page, with the number of this browser's documents that will be moved to the account."""
    brought = 0
    if caller and caller.is_anonymous:
        async with services.database.connection() as connection:
            counted = await fetch_rows(connection, QUERIES.frame, {"owner": caller.owner_id, "person": None})
        brought = counted[0]["documents"]
    return render(request, "sign_up.html", None, status, least=LEAST_CHARACTERS, brought=brought, **values)


def _refuse_when_closed(services: Services) -> None:
    if not services.settings.sign_up:
        raise SignUpClosed


QUESTION = Question(
    mark("Sign out?"),
    mark("Your documents are kept."),
    "/sign-out",
    mark("Sign out"),
    "/library",
    no=mark("Stay signed in"),
)


def _warning(services: Services) -> Question:
    return Question(
        title=_("Sign out and lose your documents?"),
        text=_(
            "You have no account, so your documents are tied to this browser. After you sign out, nobody can "
            "access them. Create an account first to keep them."
        ),
        action="/sign-out",
        verb=_("Sign out anyway"),
        keep="/library",
        other=(_("Create account"), "/sign-up") if services.settings.sign_up else None,
    )


@router.get("/sign-out")
async def sign_out_page(request: Request, services: ServicesOf, caller: OptionalCaller) -> Response:
    if caller is None:
        return back_to("/sign-in")
    return ask(request, _warning(services) if caller.is_anonymous else QUESTION)


@router.post("/sign-out")
async def sign_out(
    request: Request, services: ServicesOf, caller: OptionalCaller, confirmed: Annotated[str, Form(max_length=10)] = ""
) -> Response:
    if caller and caller.is_anonymous and not confirmed:
        return ask(request, _warning(services))
    await accounts.sign_out(request, services, caller)
    return back_to("/sign-in?left=true" if services.settings.oidc_issuer else "/sign-in")
