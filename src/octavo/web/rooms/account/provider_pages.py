"""Pages for signing in with an OpenID Connect provider, and for connecting an account with it.

Signing in begins with a link, not with a form, because the content security policy forbids forms that submit to another
site. Connecting begins with a form, so that no other site can start it, and continues with a link.
"""

from __future__ import annotations

from typing import Annotated

import structlog
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from octavo.core.errors import NotFound, OctavoError
from octavo.core.texts import gettext as _
from octavo.owners import Caller
from octavo.owners.errors import ProviderFailed, ProviderRefused
from octavo.owners.id_tokens import Identity, read_identity
from octavo.owners.identities import (
    SECONDS_AT_PROVIDER,
    ProviderSignIn,
    ReturnedSignIn,
    begin_sign_in,
    connect_identity,
    disconnect_identities,
    require_same_person,
    sign_in_with_identity,
    take_sign_in,
)
from octavo.web.context.callers import (
    KnownCaller,
    OptionalCaller,
    PersonId,
    remember_session,
    session_secret,
)
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.limits import TooFast
from octavo.web.rooms.account.mail import public_address
from octavo.web.rooms.account.provider import Provider, provider_of
from octavo.web.shell.forms import local_path
from octavo.web.shell.templates import back_to, render

router = APIRouter(include_in_schema=False)
log = structlog.get_logger()
COOKIE = "octavo_provider"
CALLBACK = "/sign-in/provider/callback"
ACCOUNT = "/settings/account"
Text = Annotated[str, Query(max_length=4000)]


@router.get("/sign-in/provider")
async def begin(request: Request, services: ServicesOf, next: str = "") -> Response:  # noqa: A002 - the name of the query parameter
    """Send the browser to the provider."""
    try:
        begun, url = await _begin(request, services, local_path(next), None)
    except OctavoError as error:
        return _refuse(request, error)
    return _remember(request, RedirectResponse(url, 303), begun)


@router.post("/settings/account/provider")
async def connect(request: Request, services: ServicesOf, caller: KnownCaller, person: PersonId) -> Response:
    """Show the link with which a signed-in person connects an identity of the provider to their account."""
    del caller
    try:
        begun, url = await _begin(request, services, ACCOUNT, person)
    except OctavoError as error:
        return _refuse(request, error)
    page = render(request, "provider_connect.html", None, url=url, label=services.settings.oidc_label)
    return _remember(request, page, begun)


async def _begin(
    request: Request, services: Services, back: str, person: PersonId | None
) -> tuple[ProviderSignIn, str]:
    provider = _provider(services)
    configuration = await provider.configuration()
    del configuration  # read first, so that nothing is stored if the provider cannot be reached
    async with services.database.transaction() as connection:
        begun = await begin_sign_in(connection, back, person)
    return begun, await provider.authorization_url(begun, public_address(request, services, CALLBACK))


@router.get(CALLBACK)
async def come_back(
    request: Request,
    services: ServicesOf,
    caller: OptionalCaller,
    state: Text = "",
    code: Text = "",
    iss: Text = "",
    error: Text = "",
) -> Response:
    """Complete a sign-in: the provider has sent the browser back, with a code that can be used once."""
    try:
        async with services.database.transaction() as connection:
            returned = await take_sign_in(connection, state, request.cookies.get(COOKIE, ""))
        identity = await _read_identity(request, services, returned, code=code, iss=iss, error=error)
        address = await _complete(request, services, caller, returned, identity)
    except OctavoError as refusal:
        log.warning("a sign-in with the provider was refused", code=refusal.code, reason=refusal.detail)
        return _refuse(request, refusal)
    answer = back_to(address)
    answer.delete_cookie(COOKIE, path="/sign-in", samesite="lax", secure=request.url.scheme == "https")
    return answer


async def _read_identity(
    request: Request, services: Services, returned: ReturnedSignIn, *, code: str, iss: str, error: str
) -> Identity:
    provider, settings = _provider(services), services.settings
    named = (await provider.configuration()).names_issuer
    if (iss or named) and iss != settings.oidc_issuer:
        raise ProviderRefused(_("The response is from another issuer."))
    if error or not code:
        raise ProviderRefused(
            _("You cancelled it, or the provider does not allow it.") if error == "access_denied" else None
        )
    claims = await provider.read_claims(code, returned, public_address(request, services, CALLBACK))
    return read_identity(claims, settings)


async def _complete(
    request: Request, services: Services, caller: Caller | None, returned: ReturnedSignIn, identity: Identity
) -> str:
    """Sign the person in, or connect the identity. Returns the address of the next page."""
    settings = services.settings
    async with services.database.transaction() as connection:
        if returned.user_id:
            require_same_person(returned, caller.user_id if caller and caller.via == "session" else None)
            owner_id = caller.owner_id if caller else returned.user_id
            await connect_identity(connection, returned.user_id, owner_id, identity)
            return f"{ACCOUNT}?said=connected#provider"
        secret = await sign_in_with_identity(
            connection,
            identity,
            may_create=settings.oidc_sign_up,
            claims_roles=bool(settings.oidc_roles_claim),
            replacing=session_secret(request),
        )
    remember_session(request, secret)
    if caller:
        services.live.recheck(caller.owner_id)
    return returned.back


@router.post("/settings/account/provider/disconnect")
async def disconnect(services: ServicesOf, caller: KnownCaller, person: PersonId) -> Response:
    async with services.database.transaction() as connection:
        await disconnect_identities(connection, person, caller.owner_id)
    return back_to(f"{ACCOUNT}?said=disconnected#provider")


@router.get("/sign-out/provider")
async def leave_provider(request: Request, services: ServicesOf) -> Response:
    """Sign out from the provider, too. The browser comes back to the sign-in page."""
    try:
        url = await _provider(services).sign_out_url(public_address(request, services, "/sign-in"))
    except (ProviderFailed, TooFast) as error:
        return _refuse(request, error)
    return RedirectResponse(url or "/sign-in", 303)


def _provider(services: Services) -> Provider:
    if not services.settings.oidc_issuer:
        raise NotFound
    return services.shared(provider_of)


def _remember(request: Request, answer: Response, begun: ProviderSignIn) -> Response:
    """Store a cookie in the browser that starts the sign-in, because only this browser may complete it."""
    answer.set_cookie(
        COOKIE,
        begun.browser,
        max_age=SECONDS_AT_PROVIDER,
        path="/sign-in",
        httponly=True,
        samesite="lax",
        secure=request.url.scheme == "https",
    )
    return answer


def _refuse(request: Request, error: OctavoError) -> Response:
    if isinstance(error, NotFound):
        raise error

    return render(request, "provider_refused.html", None, error.status, error=error)
