"""Requests access tokens for mail servers with a refresh token (OAuth 2, RFC 6749 section 6)."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlencode

from octavo.fetch import FetchLimits, GuardedClient
from octavo.intake.errors import BadSource, SourceRefused

LIMITS = FetchLimits(bytes=64 << 10, seconds=20.0)
# A token is not used in the last seconds before it expires.
MARGIN_SECONDS = 60.0
DEFAULT_SECONDS = 300.0
_OK, _REFUSED = 200, frozenset({400, 401, 403})
_TOKENS: dict[TokenRequest, tuple[str, float]] = {}
MOST_KEPT = 1000


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """The parameters of a request to the token server."""

    url: str
    client_id: str
    client_secret: str | None
    refresh_token: str


async def access_token(
    fetch: GuardedClient, request: TokenRequest, on_rotation: Callable[[str], Awaitable[None]]
) -> str:
    """Return an access token. If the server replaces the refresh token, `on_rotation` is called with the new one."""
    token, until = _TOKENS.get(request, ("", 0.0))
    if time.monotonic() < until:
        return token
    answer = await _ask(fetch, request)
    token = answer.get("access_token")
    if not isinstance(token, str) or not token.isprintable():
        raise BadSource("The token server returned no access token.")
    if len(_TOKENS) >= MOST_KEPT:
        _TOKENS.clear()
    _TOKENS[request] = (token, time.monotonic() + _lifetime(answer) - MARGIN_SECONDS)
    replaced = answer.get("refresh_token")
    if isinstance(replaced, str) and replaced and replaced != request.refresh_token:
        await on_rotation(replaced)
    return token


def forget_token(request: TokenRequest) -> None:
    """Drop an access token that the mail server refused, so that the next call requests a new one."""
    _TOKENS.pop(request, None)


async def _ask(fetch: GuardedClient, request: TokenRequest) -> dict[str, Any]:
    values = {"grant_type": "refresh_token", "refresh_token": request.refresh_token, "client_id": request.client_id}
    values |= {"client_secret": request.client_secret} if request.client_secret else {}
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    answer = await fetch.post(request.url, urlencode(values).encode(), headers, LIMITS)
    if answer.status in _REFUSED:
        raise SourceRefused("The token server refused the refresh token. Sign in again and enter a new one.")
    try:
        said: object = json.loads(answer.body) if answer.status == _OK else None
    except ValueError:
        said = None
    if not isinstance(said, dict):
        raise BadSource(f"The token server returned status {answer.status}.")
    return cast("dict[str, Any]", said)


def _lifetime(answer: dict[str, Any]) -> float:
    given = answer.get("expires_in")
    return float(given) if isinstance(given, int | float) and 0 < given < 1e6 else DEFAULT_SECONDS  # noqa: PLR2004
