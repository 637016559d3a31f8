"""Identifies the caller of a request by API key, by session cookie, or as a new visitor.

Routes declare the access that they require with a parameter such as `ReadCaller`, `EditCaller`, `WriteCaller` or
`AdminCaller`. A request without that access is refused before the route runs. If visitors are allowed, the first
request without credentials opens an anonymous session and creates an account (owner) for the visitor's documents.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Request, Response, Security
from fastapi.security import APIKeyCookie, HTTPBearer

from octavo.core.errors import Forbidden, NotAllowed, NotFound, Unauthenticated
from octavo.core.texts import mark
from octavo.database import Actor, Viewer, act_as, allow_changes
from octavo.owners import SESSION_SECONDS, Caller, open_anonymous_session, read_key, read_session
from octavo.owners.grants import require_changeable
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.languages import prefer_language
from octavo.web.http.limits import group_address
from octavo.web.http.security import bearer_key

SESSION_COOKIE = "octavo_session"
BROWSER_CHARACTERS = 200
SOME_COLLECTIONS = mark("You have access only to some collections of this account.")


# The browser's session ---------------------------------------------------------------------------------------------


def session_secret(request: Request) -> str | None:
    """Return the secret in the session cookie.

    Returns None if the request has an API key, because API keys take precedence.
    """
    return request.cookies.get(SESSION_COOKIE) if bearer_key(request.headers) is None else None


def remember_session(request: Request, secret: str) -> None:
    """Set the session cookie in the response to this request."""
    request.state.new_session = secret
    _set_cookie(request, secret, SESSION_SECONDS)


def forget_session(request: Request) -> None:
    _set_cookie(request, "", 0)


def _set_cookie(request: Request, value: str, seconds: int) -> None:
    carrier = Response()
    secure = request.url.scheme == "https"
    carrier.set_cookie(SESSION_COOKIE, value, max_age=seconds, httponly=True, samesite="lax", secure=secure)
    request.state.session_cookie = carrier.headers["set-cookie"]


def address_of(request: Request) -> str:
    return group_address(request.client.host if request.client else None)


# Callers ---------------------------------------------------------------------------------------------------------


async def recognise(request: Request, services: ServicesOf) -> Caller | None:
    """Identify the caller and apply the rate limit.

    Returns None if the request has neither an API key nor a valid session. Also reloads the model settings if another
    process has changed them.
    """
    key = bearer_key(request.headers)
    caller = await _by_cookie(request, services) if key is None else await _by_key(services, key)
    address = address_of(request)
    try:
        await services.limits.admit(caller, address)
    finally:
        request.state.quotas = services.limits.quotas(caller, address)
    await services.models.refresh()
    if key is not None and caller is None:
        raise Unauthenticated("This API key is unknown, revoked or expired.")
    request.state.caller = caller
    prefer_language(request.url.path, caller.language if caller else None)
    _act_as(request, caller)
    return caller


def _act_as(request: Request, caller: Caller | None) -> None:
    """Attribute the actions of this request to its caller."""
    browser = "".join(one for one in request.headers.get("user-agent", "") if one.isprintable())[:BROWSER_CHARACTERS]
    viewer = Viewer(caller.owner_id, caller.user_id) if caller and caller.limited and caller.user_id else None
    actor = (caller.user_id or caller.owner_id) if caller else None
    act_as(Actor(actor, caller.via if caller else "", browser, viewer))


async def _by_key(services: Services, key: str) -> Caller | None:
    async with services.database.connection() as connection:
        return await read_key(connection, key)


async def _by_cookie(request: Request, services: Services) -> Caller | None:
    secret = session_secret(request)
    if not secret:
        return None
    async with services.database.connection() as connection:
        session = await read_session(connection, secret)
    if session and session.renewed:
        remember_session(request, secret)
    return session.caller if session else None


OptionalCaller = Annotated[Caller | None, Depends(recognise)]


async def visit(request: Request, services: ServicesOf, caller: OptionalCaller) -> Caller | None:
    """Identify the caller. If visitors are allowed, a request without credentials opens an anonymous session."""
    if caller or not services.settings.anonymous:
        return caller
    await services.limits.admit_visitor(address_of(request))
    async with services.database.transaction() as connection:
        secret, visitor = await open_anonymous_session(connection)
    remember_session(request, secret)
    request.state.caller = visitor
    _act_as(request, visitor)
    return visitor


VisitingCaller = Annotated[Caller | None, Depends(visit)]


async def read(caller: VisitingCaller) -> Caller:
    if caller is None:
        raise Unauthenticated
    return caller


ReadCaller = Annotated[Caller, Depends(read)]


async def write(caller: ReadCaller) -> Caller:
    if caller.may_edit and caller.limited:
        raise NotAllowed(SOME_COLLECTIONS)
    if not caller.may_write:
        raise NotAllowed
    return caller


WriteCaller = Annotated[Caller, Depends(write)]


# Path parameters that name something that limited members can change.
CHANGEABLE = ("document", "highlight", "upload", "change")


async def edit(request: Request, services: ServicesOf, caller: ReadCaller) -> Caller:
    """Return the caller of a route that changes documents.

    A limited member is refused unless they can change everything that the path names, such as a document or a
    highlight. Document ids in the body are checked by a database trigger when the documents are changed.
    """
    if not caller.limited:
        return await write(caller)
    if not caller.may_edit:
        raise NotAllowed
    named = [(name, request.path_params[name]) for name in CHANGEABLE if name in request.path_params]
    allow_changes()
    async with services.database.transaction() as connection:
        for thing, ident in named:
            await require_changeable(connection, caller, thing, _as_id(ident))
    return caller


def _as_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise NotFound from None


EditCaller = Annotated[Caller, Depends(edit)]


async def read_all(caller: ReadCaller) -> Caller:
    """Return the caller. Refuses limited members, because the route covers the whole account."""
    if caller.limited:
        raise NotAllowed(SOME_COLLECTIONS)
    return caller


WholeCaller = Annotated[Caller, Depends(read_all)]


def still_acts_for(request: Request, services: Services, caller: Caller) -> Callable[[], Awaitable[bool]]:
    """Return a function that checks whether the caller's API key or session is still valid for the same account.

    Long responses, such as event streams, call the function repeatedly.
    """
    key = bearer_key(request.headers)
    secret = getattr(request.state, "new_session", None) or session_secret(request) or ""

    async def check() -> bool:
        async with services.database.connection() as connection:
            if key is not None:
                now = await read_key(connection, key)
            else:
                # Not renewed, because a new cookie cannot be sent in the middle of a response.
                session = await read_session(connection, secret, renew=False)
                now = session.caller if session else None
        return now is not None and (now.owner_id, now.limited) == (caller.owner_id, caller.limited)

    return check


async def require_caller(caller: OptionalCaller) -> Caller:
    """Return the caller. Requests without credentials are refused, and no anonymous session is opened for them."""
    if caller is None:
        raise Unauthenticated
    return caller


KnownCaller = Annotated[Caller, Depends(require_caller)]


async def require_key(caller: KnownCaller) -> Caller:
    """Return the caller. Requests without an API key are refused."""
    if caller.via != "key":
        raise Unauthenticated("Send an API key.")
    return caller


KeyCaller = Annotated[Caller, Depends(require_key)]


async def administer(caller: KnownCaller) -> Caller:
    if not caller.is_admin:
        raise Forbidden
    return caller


AdminCaller = Annotated[Caller, Depends(administer)]


async def find_person(caller: KnownCaller) -> UUID:
    """Return the id of the user who is signed in with this browser. Other callers are refused."""
    if caller.user_id is None or caller.via != "session":
        raise NotAllowed("Sign in to your account in a browser to do this. API keys cannot do it.")
    return caller.user_id


PersonId = Annotated[UUID, Depends(find_person)]

# Dependencies of every route except monitoring. The last two only describe the credentials in OpenAPI.
CREDENTIALS = [
    Depends(recognise),
    Security(HTTPBearer(auto_error=False, scheme_name="key")),
    Security(APIKeyCookie(name=SESSION_COOKIE, auto_error=False, scheme_name="session")),
]
