"""Fetches a web page and turns failures into errors with advice."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from octavo.core.errors import NetworkFailed, OctavoError, Paywalled, TimedOut, TooLarge
from octavo.core.http import requested_wait
from octavo.fetch import AddressRefused, BadUrl, FetchLimits, FetchResponse, GuardedClient
from octavo.intake.links import errors

ACCEPT = "text/html,application/xhtml+xml,application/pdf;q=0.9,text/*;q=0.8,*/*;q=0.5"
MOST_WAIT_SECONDS = 3600.0
_OK = range(200, 300)
_STATUSES: dict[int, type[OctavoError]] = {
    401: Paywalled,
    402: Paywalled,
    403: errors.PageForbidden,
    404: errors.PageMissing,
    407: errors.PageForbidden,
    410: errors.PageMissing,
    451: errors.PageForbidden,
}
_BUSY = 429
_SERVER_ERRORS = range(500, 600)
_MEDIA_TYPE = re.compile(r"[a-z0-9.+-]+/[a-z0-9.+-]+", re.IGNORECASE)
_CHARSET = re.compile(r"charset\s*=\s*\"?([\w.:-]{1,40})", re.IGNORECASE)
# These types never contain text.
_NO_TEXT = re.compile(r"(?:audio|video|font)/", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RawPage:
    """A fetched page, unchanged. `url` is the URL after all redirects."""

    url: str
    content_type: str
    body: bytes


async def fetch_page(client: GuardedClient, url: str, limits: FetchLimits) -> RawPage:
    try:
        answer = await client.get(url, limits, {"Accept": ACCEPT})
    except TooLarge as error:
        raise errors.PageTooLarge(error.detail) from None
    except TimedOut:
        raise errors.PageTooSlow from None
    except (AddressRefused, BadUrl):
        raise
    except NetworkFailed as error:
        raise (errors.SiteUnreachable(error.detail) if type(error) is NetworkFailed else error) from None
    check_status(answer)
    content_type = clean_type(answer.content_type)
    if _NO_TEXT.match(content_type):
        raise errors.PageNotText
    if not answer.body.strip():
        raise errors.PageEmpty
    return RawPage(answer.url, content_type, answer.body)


def check_status(answer: FetchResponse) -> None:
    if answer.status in _OK:
        return
    if answer.status == _BUSY:
        raise errors.SiteBusy(retry_after_seconds=read_wait(answer.headers))
    if answer.status in _SERVER_ERRORS:
        raise errors.SiteFailed(retry_after_seconds=read_wait(answer.headers))
    raise _STATUSES.get(answer.status, errors.PageRefused)


def read_wait(headers: Mapping[str, str]) -> float | None:
    """The number of seconds that a site asks clients to wait, up to a limit."""
    return requested_wait(headers, longest=MOST_WAIT_SECONDS)


def clean_type(header: str) -> str:
    """Clean the content type sent by the server, which is not trusted."""
    media_type = _MEDIA_TYPE.match(header.strip())
    if not media_type:
        return "application/octet-stream"
    charset = _CHARSET.search(header[:300])
    return media_type[0].lower() + (f"; charset={charset[1].lower()}" if charset else "")
