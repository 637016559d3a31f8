"""Sign-in with an OpenID Connect provider: the pages, and the client that talks to the provider.

Signing in begins with a link, not with a form, because the content security policy forbids forms that submit to another
site. Connecting an account with the provider begins with a form, so that no other site can start it, and continues with
a link.

The client reads the configuration and keys of the provider, exchanges codes, and verifies claims. It uses the same
guarded HTTP client that fetches links added by users. The URL of the provider comes from the settings, so it may be
private; other private addresses in the provider's configuration are refused.
"""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, cast
from urllib.parse import quote_plus, urlencode, urlsplit

import structlog
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from octavo.core.errors import NotFound, OctavoError
from octavo.core.settings import Settings, is_loopback
from octavo.core.texts import gettext as _
from octavo.core.types import pkce_challenge
from octavo.fetch import FetchLimits, FetchResponse, GuardedClient, parse_url
from octavo.owners import Caller
from octavo.owners.callers import ProviderFailed, ProviderRefused
from octavo.owners.identities import (
    SECONDS_AT_PROVIDER,
    Claims,
    Expected,
    Identity,
    ProviderSignIn,
    ReturnedSignIn,
    UnknownSigningKey,
    begin_sign_in,
    connect_identity,
    disconnect_identities,
    read_id_token,
    read_identity,
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
from octavo.web.shell.forms import local_path, public_address
from octavo.web.shell.frame import back_to, render

LIMITS = FetchLimits(bytes=1 << 19, seconds=10, redirects=0)
CONFIGURATION_SECONDS = 3600.0
# If a token was signed with an unknown key, the keys are read again, but not more often than this.
KEYS_SECONDS = 60.0
OK = 200
FORM = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Configuration:
    """The published configuration of the sign-in provider."""

    authorization: str
    token: str
    jwks: str
    userinfo: str | None
    end_session: str | None
    algorithms: tuple[str, ...]
    methods: tuple[str, ...]
    names_issuer: bool


class Provider:
    """The sign-in provider from the settings. Its configuration and keys are cached in this process."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._issuer = settings.oidc_issuer or ""
        self._clock = clock
        self._configuration: tuple[float, Configuration] | None = None
        self._keys: tuple[float, Json] | None = None

    async def configuration(self) -> Configuration:
        if self._configuration is None or self._clock() - self._configuration[0] > CONFIGURATION_SECONDS:
            found = await self._get(f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
            self._configuration = self._clock(), read_configuration(found, self._issuer)
        return self._configuration[1]

    async def authorization_url(self, begun: ProviderSignIn, redirect: str) -> str:
        query = {
            "response_type": "code",
            "client_id": self._settings.oidc_client_id or "",
            "redirect_uri": redirect,
            "scope": " ".join(self._settings.oidc_scopes),
            "state": begun.state,
            "nonce": begun.nonce,
            "code_challenge": pkce_challenge(begun.verifier),
            "code_challenge_method": "S256",
        }
        return _with_query((await self.configuration()).authorization, query)

    async def sign_out_url(self, back: str) -> str | None:
        """Return the provider's sign-out URL. After signing out, people are sent back to `back`.

        Returns None if the provider has no such URL.
        """
        end_session = (await self.configuration()).end_session
        query = {"client_id": self._settings.oidc_client_id or "", "post_logout_redirect_uri": back}
        return _with_query(end_session, query) if end_session else None

    async def read_claims(self, code: str, returned: ReturnedSignIn, redirect: str) -> Claims:
        """Exchange the authorisation code for verified claims about the person."""
        tokens = await self._exchange(code, returned.verifier, redirect)
        configuration = await self.configuration()
        expected = Expected(
            self._issuer,
            self._settings.oidc_client_id or "",
            returned.nonce,
            returned.now,
            configuration.algorithms,
        )
        claims = await self._verify(str(tokens.get("id_token", "")), expected)
        access = tokens.get("access_token")
        if configuration.userinfo is None or not isinstance(access, str):
            return claims
        more = await self._get(configuration.userinfo, {"authorization": f"Bearer {access}"})
        if more.get("sub") != claims["sub"]:
            raise ProviderRefused(_("The provider returned data about another person."))
        return {**more, **claims}

    async def _verify(self, token: str, expected: Expected) -> Claims:
        try:
            return read_id_token(token, await self._read_keys(CONFIGURATION_SECONDS), expected)
        except UnknownSigningKey:
            pass
        try:
            return read_id_token(token, await self._read_keys(KEYS_SECONDS), expected)
        except UnknownSigningKey as error:
            raise ProviderRefused(error.title) from None

    async def _read_keys(self, fresh_seconds: float) -> Json:
        """Return the signing keys of the provider.

        Cached keys are used only if they were read in the last `fresh_seconds`, so that a key that the provider has
        withdrawn is not accepted for long.
        """
        if self._keys is None or fresh_seconds < self._clock() - self._keys[0]:
            self._keys = self._clock(), await self._get((await self.configuration()).jwks)
        return self._keys[1]

    async def _exchange(self, code: str, verifier: str, redirect: str) -> Json:
        configuration, client = await self.configuration(), self._settings.oidc_client_id or ""
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect, "code_verifier": verifier}
        headers, secret = dict(FORM), self._settings.oidc_client_secret
        if secret is None:
            form["client_id"] = client
        elif "client_secret_basic" in configuration.methods:
            pair = f"{quote_plus(client)}:{quote_plus(secret.get_secret_value())}"
            headers["authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        else:
            form |= {"client_id": client, "client_secret": secret.get_secret_value()}
        answer = await self._send(configuration.token, headers, urlencode(form).encode())
        if answer.status != OK:
            # The provider's log says which of the two happened.
            raise ProviderRefused(_("The provider rejected the code. It may have been used before, or it has expired."))
        return _read_json(answer)

    async def _get(self, url: str, headers: dict[str, str] | None = None) -> Json:
        answer = await self._send(url, {"accept": "application/json", **(headers or {})})
        if answer.status != OK:
            raise ProviderFailed(_("The provider returned status %(status)s.", status=answer.status))
        return _read_json(answer)

    async def _send(self, url: str, headers: dict[str, str], body: bytes | None = None) -> FetchResponse:
        target = parse_url(self._issuer)
        own = {f"{target.host}:{target.port}", f"[{target.host}]:{target.port}"}
        async with GuardedClient(frozenset({*self._settings.fetch_allow, *own})) as client:
            try:
                if body is not None:
                    return await client.post(url, body, headers, LIMITS)
                return await client.get(url, LIMITS, headers)
            except OctavoError as error:
                raise ProviderFailed(error.line) from None


def provider_of(services: Services) -> Provider:
    return Provider(services.own_settings)


def read_configuration(found: Json, issuer: str) -> Configuration:
    """Check and read the published configuration. All its URLs must use HTTPS, except those on this machine."""
    if found.get("issuer") != issuer:
        raise ProviderFailed(_("The provider's issuer differs from OCTAVO_OIDC_ISSUER."))
    return Configuration(
        authorization=_address(found, "authorization_endpoint"),
        token=_address(found, "token_endpoint"),
        jwks=_address(found, "jwks_uri"),
        userinfo=_address(found, "userinfo_endpoint") if found.get("userinfo_endpoint") else None,
        end_session=_address(found, "end_session_endpoint") if found.get("end_session_endpoint") else None,
        algorithms=_texts(found, "id_token_signing_alg_values_supported", ("RS256",)),
        methods=_texts(found, "token_endpoint_auth_methods_supported", ("client_secret_basic",)),
        names_issuer=found.get("authorization_response_iss_parameter_supported") is True,
    )


def _address(found: Json, name: str) -> str:
    value = found.get(name)
    parts = urlsplit(value) if isinstance(value, str) else urlsplit("")
    if parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or "")):
        return str(value)
    raise ProviderFailed(_("The provider's %(name)s is not an HTTPS address.", name=name))


def _texts(found: Json, name: str, otherwise: tuple[str, ...]) -> tuple[str, ...]:
    value = found.get(name)
    listed = cast("list[object]", value) if isinstance(value, list) else list(otherwise)
    return tuple(one for one in listed if isinstance(one, str))


def _read_json(answer: FetchResponse) -> Json:
    try:
        found = json.loads(answer.body)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ProviderFailed(_("The provider's response is not JSON."))
    return cast("Json", found)


def _with_query(address: str, query: dict[str, str]) -> str:
    return f"{address}{'&' if '?' in address else '?'}{urlencode(query)}"


router = APIRouter(include_in_schema=False)
log = structlog.get_logger()
COOKIE = "octavo_provider"
CALLBACK = "/sign-in/provider/callback"
ACCOUNT = "/settings/account"
Text = Annotated[str, Query(max_length=4000)]


@router.get("/sign-in/provider")
async def begin(request: Request, services: ServicesOf, next: str = "") -> Response:  # noqa: A002 - the name of the query parameter
    """Redirect the browser to the sign-in provider."""
    try:
        begun, url = await _begin(request, services, local_path(next), None)
    except OctavoError as error:
        return _refuse(request, error)
    return _remember(request, RedirectResponse(url, 303), begun)


@router.post("/settings/account/provider")
async def connect(request: Request, services: ServicesOf, caller: KnownCaller, person: PersonId) -> Response:
    """Show a link that the signed-in person can open to connect their identity at the provider to their account."""
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
    """Complete a sign-in after the provider has redirected the browser back with a one-time code."""
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
            _("You cancelled the sign-in, or the provider does not allow it.") if error == "access_denied" else None
        )
    claims = await provider.read_claims(code, returned, public_address(request, services, CALLBACK))
    return read_identity(claims, settings)


async def _complete(
    request: Request, services: Services, caller: Caller | None, returned: ReturnedSignIn, identity: Identity
) -> str:
    """Sign the person in, or connect the identity. Returns the path of the next page."""
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
            seconds=settings.oidc_session_hours * 3600,
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
    """Sign out of the provider as well, if it supports this. The browser then opens the sign-in page."""
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
    """Store a cookie in the browser that starts the sign-in. Only a browser with this cookie can complete it."""
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
