"""What a route may use: the opened parts of the installation, and who is asking.

A route takes `Reading`, `Writing` or `Administering` and gets the caller, or the request is refused before it. Somebody
who comes for the first time becomes a visitor with an owner of their own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Annotated
from uuid import UUID

from fastapi import Depends, Request, Response, Security
from fastapi.security import APIKeyCookie, HTTPBearer

from octavo.core.errors import Forbidden, NotAllowed, Unauthenticated
from octavo.core.settings import Settings
from octavo.database import Database
from octavo.ops.health import Check, check_readiness
from octavo.ops.instance import storage_place
from octavo.owners import SESSION_SECONDS, Caller, open_anonymous_session, read_key, read_session
from octavo.storage import Bucket
from octavo.web.limits import Limits, group_address
from octavo.web.live import Hub
from octavo.web.models import Models
from octavo.web.pictures import PagePictures
from octavo.web.security import bearer_key
from octavo.web.trying import Trials
from octavo.web.turns import Turns
from octavo.web.unlocking import Unlocking

SESSION_COOKIE = "octavo_session"
# Long texts are compared one at a time: it takes a processor for a second or two.
COMPARING_WAIT, COMPARING_BUSY_SECONDS = 20, 2.0
# Models answer side by side; a crowd has to wait.
ANSWERS_AT_ONCE, ANSWERS_WAIT, ANSWERS_BUSY_SECONDS = 8, 40, 5.0


@dataclass(frozen=True, slots=True)
class Parts:
    settings: Settings
    database: Database
    bucket: Bucket
    limits: Limits
    live: Hub
    pictures: PagePictures
    unlocking: Unlocking
    trials: Trials
    models: Models
    comparing: Turns = field(default_factory=lambda: Turns(1, COMPARING_WAIT, COMPARING_BUSY_SECONDS))
    answering: Turns = field(default_factory=lambda: Turns(ANSWERS_AT_ONCE, ANSWERS_WAIT, ANSWERS_BUSY_SECONDS))

    async def readiness(self) -> list[Check]:
        return await check_readiness(self.database, self.bucket, storage_place(self.settings))


# Asynchronous like all that follow, although they wait for nothing: what is not, runs in a thread for each request.
async def parts_of(request: Request) -> Parts:
    parts = request.app.state.parts
    if not isinstance(parts, Parts):
        raise TypeError("the application is not started")
    return parts


PartsOf = Annotated[Parts, Depends(parts_of)]


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


async def recognise(request: Request, parts: PartsOf) -> Caller | None:
    """Who asks, if the request says so; counted against their limit."""
    key = bearer_key(request.headers)
    caller = await _by_cookie(request, parts) if key is None else await _by_key(parts, key)
    parts.limits.admit(caller, address_of(request))
    if key is not None and caller is None:
        raise Unauthenticated("This key is unknown, revoked or expired.")
    request.state.caller = caller
    return caller


async def _by_key(parts: Parts, key: str) -> Caller | None:
    async with parts.database.connection() as connection:
        return await read_key(connection, key)


async def _by_cookie(request: Request, parts: Parts) -> Caller | None:
    secret = session_secret(request)
    if not secret:
        return None
    async with parts.database.connection() as connection:
        session = await read_session(connection, secret)
    if session and session.renewed:
        remember_session(request, secret)
    return session.caller if session else None


Recognised = Annotated[Caller | None, Depends(recognise)]


async def visit(request: Request, parts: PartsOf, caller: Recognised) -> Caller | None:
    """Who asks; somebody new becomes a visitor, where visitors are allowed."""
    if caller or not parts.settings.anonymous:
        return caller
    async with parts.database.transaction() as connection:
        secret, visitor = await open_anonymous_session(connection)
    remember_session(request, secret)
    request.state.caller = visitor
    return visitor


Visiting = Annotated[Caller | None, Depends(visit)]


async def read(caller: Visiting) -> Caller:
    if caller is None:
        raise Unauthenticated
    return caller


Reading = Annotated[Caller, Depends(read)]


async def write(caller: Reading) -> Caller:
    if not caller.may_write:
        raise NotAllowed
    return caller


Writing = Annotated[Caller, Depends(write)]


def still_acts_for(request: Request, parts: Parts, caller: Caller) -> Callable[[], Awaitable[bool]]:
    """Whether who was let in would be let in again, for answers that take long."""
    key = bearer_key(request.headers)
    secret = getattr(request.state, "new_session", None) or session_secret(request) or ""

    async def ask() -> bool:
        async with parts.database.connection() as connection:
            if key is not None:
                now = await read_key(connection, key)
            else:
                # The browser would not hear of it if the session was renewed here.
                session = await read_session(connection, secret, renew=False)
                now = session.caller if session else None
        return now is not None and now.owner_id == caller.owner_id

    return ask


async def know(caller: Recognised) -> Caller:
    """Only who is somebody already; no visitor is made for this."""
    if caller is None:
        raise Unauthenticated
    return caller


Known = Annotated[Caller, Depends(know)]


async def administer(caller: Known) -> Caller:
    if not caller.is_admin:
        raise Forbidden
    return caller


Administering = Annotated[Caller, Depends(administer)]


async def find_person(caller: Known) -> UUID:
    """The person whose browser this is."""
    if caller.user_id is None or caller.via != "session":
        raise NotAllowed("This is for people who are signed in with a password.")
    return caller.user_id


Person = Annotated[UUID, Depends(find_person)]

# For every route but those that machines watch. The last two only describe the first in OpenAPI.
CREDENTIALS = [
    Depends(recognise),
    Security(HTTPBearer(auto_error=False, scheme_name="key")),
    Security(APIKeyCookie(name=SESSION_COOKIE, auto_error=False, scheme_name="session")),
]
