"""Security checks for every request, and security headers for every response.

Written as plain ASGI middleware, so that streamed responses are not buffered.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection
from functools import cache
from hmac import compare_digest
from ipaddress import ip_address
from socket import gethostname
from typing import NamedTuple
from urllib.parse import urlsplit

from pydantic import SecretStr
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from octavo.core.errors import CrossSite, OctavoError, Stopping, TooLarge, WrongHost
from octavo.core.http import EVERY_ADDRESS
from octavo.core.settings import Settings
from octavo.owners.callers import PREFIX as KEY_PREFIX
from octavo.web.http.problems import problem

UNAUTHENTICATED = 401
UNSAFE_METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE"})
DEFAULT_PORTS = {"http": 80, "https": 443}
PREFLIGHT_SECONDS = 600
MOST_BYTES = 1 << 20
# Headers that a proxy adds. A request with one of them may come from another machine.
FORWARDED = frozenset(
    {"forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "cf-connecting-ip"}
)
# These routes stream their body and check its size.
_FILES = re.compile(
    r"/api/v1/((import/)?(documents|conversions)|import/records|uploads/[^/]+/content)|/actions/(upload|documents/[^/]+/(replace|version))"
    r"|/conversions|/settings/mappings/try|/v1/convert/(file|source)|/process"
)
_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[^:/@\s\[\]]+)(:(?P<port>\d{1,5}))?", re.IGNORECASE)


CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; "
    "manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class HostName(NamedTuple):
    """The parts of a Host header: a name or an IP address, and an optional port."""

    name: str
    port: int | None


# Rules -------------------------------------------------------------------------------------------------------------


def read_host(header: str) -> HostName | None:
    found = _HOST.fullmatch(header)
    if not found:
        return None
    port = found["port"]
    return HostName(found["name"].strip("[]").lower().rstrip("."), int(port) if port else None)


def is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def answers_to(header: str | None, settings: Settings) -> bool:
    """Whether the Host header names this server.

    A request without the header is accepted, because it is not from a browser. The check protects against DNS
    rebinding: another site can point its own name to this server, but it cannot make a browser send an IP address or a
    different name in the header.
    """
    if header is None:
        return True
    place = read_host(header)
    if place is None:
        return False
    if place.name in {"localhost", settings.host.lower(), *settings.hosts, *public_names(settings)}:
        return True
    if not is_address(place.name):
        return settings.host in EVERY_ADDRESS and place.name in own_names()
    # If the setting is a name, the addresses of the server are unknown here.
    listens_on_any = settings.host in EVERY_ADDRESS or not is_address(settings.host)
    return listens_on_any or ip_address(place.name).is_loopback


def public_names(settings: Settings) -> Collection[str]:
    return {(urlsplit(settings.public_url).hostname or "").lower()} if settings.public_url else ()


@cache
def own_names() -> Collection[str]:
    """Return the names of this machine on its local network.

    A request for one of these names cannot be a DNS rebinding attack, because an attacker outside the network cannot
    make the names point to another machine.
    """
    name = gethostname().lower()
    return {name, f"{name.partition('.')[0]}.local"}


def bearer_key(headers: Headers) -> str | None:
    """Return the API key in the Authorization header, or in X-Api-Key, which clients of docling-serve send.

    The key may be empty. Returns None if there is no header with a key. An Authorization header with another scheme, or
    an X-Api-Key that does not look like an Octavo key, is ignored, because it is meant for a proxy.
    """
    scheme, _, key = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return key.strip()
    other = headers.get("x-api-key", "").strip()
    return other if other.startswith(KEY_PREFIX) else None


def is_local(scope: Scope) -> bool:
    """Whether a program on this machine sent the request directly. False if a proxy forwarded the request."""
    client = scope.get("client")
    if client is None or not is_address(client[0]) or not ip_address(client[0]).is_loopback:
        return False
    return FORWARDED.isdisjoint(name.lower() for name in Headers(scope=scope))


def may_monitor(scope: Scope, token: SecretStr | None) -> bool:
    """Whether the caller can see the state of this server.

    The caller must be a program on this machine, or send `token` as a bearer token.
    """
    if is_local(scope):
        return True
    given = bearer_key(Headers(scope=scope))
    if token is None or not given:
        return False
    return compare_digest(given.encode(), token.get_secret_value().encode())


def is_same_origin(origin: str, host: str | None) -> bool:
    try:
        from_place = urlsplit(origin)
        default_port = DEFAULT_PORTS[from_place.scheme]
        port = from_place.port or default_port
    except (ValueError, KeyError):
        return False
    place = read_host(host or "")
    return place is not None and (place.name, place.port or default_port) == (from_place.hostname, port)


def is_cross_site(headers: Headers, origins: Collection[str]) -> bool:
    """Whether another site made the browser send this request.

    True for browser extensions and for all other sites, even allowed ones: they must use an API key. The Origin header
    of a same-origin request names this server. It can also be "null" (a form on a page with no-referrer) or an allowed
    origin (behind a proxy that changes the host).
    """
    site = headers.get("sec-fetch-site")
    if site not in {None, "same-origin", "none"}:
        return True
    origin = headers.get("origin")
    if origin is None or is_same_origin(origin, headers.get("host")):
        return False
    return site != "same-origin" or origin.lower() not in {"null", *origins}


def is_other_origin(headers: Headers, origins: Collection[str]) -> bool:
    """Whether the Origin header names a site that is neither this server nor an allowed site.

    Only browsers send this header.
    """
    origin = headers.get("origin")
    return origin is not None and origin.lower() not in origins and not is_same_origin(origin, headers.get("host"))


# Middleware --------------------------------------------------------------------------------------------------------


class SecurityHeaders:
    """Adds security headers to every response. Headers set by a route take precedence."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_with_headers)


class Interruption:
    """Sends an error response if a stopping server cancels a request that takes too long."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_started = False

        async def send_and_note(message: Message) -> None:
            nonlocal has_started
            has_started = True
            await send(message)

        try:
            await self._app(scope, receive, send_and_note)
        except asyncio.CancelledError:
            if has_started or scope["type"] != "http":
                raise
            await refusal(Stopping())(scope, receive, send)


class HostCheck:
    """Refuses requests whose Host header does not name this server."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._is_for_us(Headers(scope=scope).getlist("host")):
            return await refusal(WrongHost())(scope, receive, send)
        return await self._app(scope, receive, send)

    def _is_for_us(self, hosts: list[str]) -> bool:
        """Whether the Host header names this server.

        A request with several Host headers is refused, because a proxy in front of this server may have checked a
        different one.
        """
        return len(hosts) <= 1 and answers_to(hosts[0] if hosts else None, self._settings)


class SameSite:
    """Refuses requests that change data if another site makes the browser send them (CSRF).

    Requests with an API key are accepted, because other sites do not know the key. If a list of allowed origins is
    configured, other origins are refused even with a key, because browser extensions can bypass CORS.
    """

    def __init__(self, app: ASGIApp, origins: Collection[str]) -> None:
        self._app = app
        self._origins = frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        headers = Headers(scope=scope)
        origin = headers.get("origin", "")
        if origin.lower() not in self._origins:
            return await self._pass(scope, receive, send, headers)
        if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            return await preflight(origin, headers)(scope, receive, send)
        return await self._pass(scope, receive, readable_from(origin, send), headers)

    async def _pass(self, scope: Scope, receive: Receive, send: Send, headers: Headers) -> None:
        if self._is_refused(scope["method"], headers):
            return await refusal(CrossSite())(scope, receive, send)
        return await self._app(scope, receive, send)

    def _is_refused(self, method: str, headers: Headers) -> bool:
        if bearer_key(headers) is not None:
            return bool(self._origins) and is_other_origin(headers, self._origins)
        return method in UNSAFE_METHODS and is_cross_site(headers, self._origins)


class SessionHeaders:
    """Adds a new session cookie to responses that need one, the WWW-Authenticate header to 401 responses, and the
    remaining rate limits to responses of the API.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = scope.setdefault("state", {})

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if cookie := state.get("session_cookie"):
                    headers.append("set-cookie", cookie)
                    headers.setdefault("cache-control", "no-store")
                if message["status"] == UNAUTHENTICATED:
                    headers.setdefault("www-authenticate", "Bearer")
                if (quotas := state.get("quotas")) and scope["path"].startswith("/api/"):
                    headers["ratelimit-policy"] = ", ".join(one.policy for one in quotas)
                    headers["ratelimit"] = ", ".join(one.state for one in quotas)
            await send(message)

        await self._app(scope, receive, send_with_headers)


def readable_from(origin: str, send: Send) -> Send:
    """Allow scripts of this origin to read the response, but only if their request sends no cookies."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["access-control-allow-origin"] = origin
            headers["access-control-expose-headers"] = (
                "retry-after, content-disposition, etag, ratelimit, ratelimit-policy"
            )
            headers.add_vary_header("origin")
        await send(message)

    return send_with_headers


def preflight(origin: str, headers: Headers) -> Response:
    allowed = {
        "access-control-allow-origin": origin,
        "access-control-allow-methods": ", ".join(["GET", *sorted(UNSAFE_METHODS)]),
        "access-control-allow-headers": headers.get("access-control-request-headers", ""),
        "access-control-max-age": str(PREFLIGHT_SECONDS),
        "vary": "origin",
    }
    return Response(status_code=204, headers=allowed)


def refusal(error: OctavoError) -> Response:
    wait = error.retry_after_seconds
    return problem(error.status, error.code, error.title, headers={"retry-after": f"{wait:.0f}"} if wait else None)


class BodyLimit:
    """Limits the size of request bodies. Checks the Content-Length header, and counts the bytes while reading.

    Routes that receive files are exempt, because they have their own limits.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _FILES.fullmatch(scope["path"]):
            await self._app(scope, receive, send)
            return
        error = TooLarge(f"The request body is limited to {MOST_BYTES:,} bytes here.")
        length = Headers(scope=scope).get("content-length", "0")
        if length.isdecimal() and int(length) > MOST_BYTES:
            await problem(error.status, error.code, error.title, error.detail)(scope, receive, send)
            return
        taken = 0

        async def receive_some() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > MOST_BYTES:
                raise error
            return message

        await self._app(scope, receive_some, send)
