"""Who sends a request: an API key, a session cookie or a new visitor.

A route takes `ReadCaller`, `WriteCaller` or `AdminCaller` and gets the caller, or the request is refused before it
reaches the route. A first visit opens an anonymous session with an owner of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Request, Response, Security
from fastapi.security import APIKeyCookie, HTTPBearer

from octavo.core.errors import Forbidden, NotAllowed, Unauthenticated
from octavo.owners import SESSION_SECONDS, Caller, open_anonymous_session, read_key, read_session
from octavo.web.context.services import Services, ServicesOf
from octavo.web.http.limits import group_address
from octavo.web.http.security import bearer_key

SESSION_COOKIE = "octavo_session"


# The browser's session ---------------------------------------------------------------------------------------------


def session_secret(request: Request) -> str | None:
    """The cookie; a request with a key acts by that alone."""
    return request.cookies.get(SESSION_COOKIE) if bearer_key(request.headers) is None else None


def remember_session(request: Request, secret: str) -> None:
    """Whatever the route answers, the browser gets this cookie with it."""
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


# Who asks ----------------------------------------------------------------------------------------------------------


async def recognise(request: Request, services: ServicesOf) -> Caller | None:
    """Who asks, if the request says so; counted against their limit."""
    key = bearer_key(request.headers)
    caller = await _by_cookie(request, services) if key is None else await _by_key(services, key)
    services.limits.admit(caller, address_of(request))
    if key is not None and caller is None:
        raise Unauthenticated("This key is unknown, revoked or expired.")
    request.state.caller = caller
    return caller


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
    """Who asks; somebody new becomes a visitor, where visitors are allowed."""
    if caller or not services.settings.anonymous:
        return caller
    async with services.database.transaction() as connection:
        secret, visitor = await open_anonymous_session(connection)
    remember_session(request, secret)
    request.state.caller = visitor
    return visitor


VisitingCaller = Annotated[Caller | None, Depends(visit)]


async def read(caller: VisitingCaller) -> Caller:
    if caller is None:
        raise Unauthenticated
    return caller


ReadCaller = Annotated[Caller, Depends(read)]


async def write(caller: ReadCaller) -> Caller:
    if not caller.may_write:
        raise NotAllowed
    return caller


WriteCaller = Annotated[Caller, Depends(write)]


def still_acts_for(request: Request, services: Services, caller: Caller) -> Callable[[], Awaitable[bool]]:
    """Whether who was let in would be let in again, for answers that take long."""
    key = bearer_key(request.headers)
    secret = getattr(request.state, "new_session", None) or session_secret(request) or ""

    async def ask() -> bool:
        async with services.database.connection() as connection:
            if key is not None:
                now = await read_key(connection, key)
            else:
                # The browser would not hear of it if the session was renewed here.
                session = await read_session(connection, secret, renew=False)
                now = session.caller if session else None
        return now is not None and now.owner_id == caller.owner_id

    return ask


async def know(caller: OptionalCaller) -> Caller:
    """Only who is somebody already; no visitor is made for this."""
    if caller is None:
        raise Unauthenticated
    return caller


KnownCaller = Annotated[Caller, Depends(know)]


async def administer(caller: KnownCaller) -> Caller:
    if not caller.is_admin:
        raise Forbidden
    return caller


AdminCaller = Annotated[Caller, Depends(administer)]


async def find_person(caller: KnownCaller) -> UUID:
    """The person whose browser this is."""
    if caller.user_id is None or caller.via != "session":
        raise NotAllowed("This is for people who are signed in with a password.")
    return caller.user_id


PersonId = Annotated[UUID, Depends(find_person)]

# For every route but those that machines watch. The last two only describe the first in OpenAPI.
CREDENTIALS = [
    Depends(recognise),
    Security(HTTPBearer(auto_error=False, scheme_name="key")),
    Security(APIKeyCookie(name=SESSION_COOKIE, auto_error=False, scheme_name="session")),
]
