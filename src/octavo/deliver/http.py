"""What webhooks and chats have in common: an address of the web, and what a receiver's status means."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus

from octavo.core.http import read_retry_after
from octavo.deliver.errors import ReceiverBusy, ReceiverFailed, ReceiverGone, ReceiverRefused
from octavo.fetch import CertificateRefused, FetchLimits, GuardedClient, NameUnknown, parse_url, refuse_literal

ANSWER_BYTES = 1 << 20
LONGEST_WAIT_SECONDS = 3600.0
_LATER = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY})


def check_url(address: str, allow: frozenset[str]) -> str:
    """An address that may be public, as it will be called."""
    target = parse_url(address)
    refuse_literal(target, allow)
    return target.url


async def post(client: GuardedClient, address: str, body: bytes, headers: Mapping[str, str], *, seconds: float) -> int:
    """Send once; the status, if it is one of success."""
    limits = FetchLimits(bytes=ANSWER_BYTES, seconds=seconds, redirects=0)
    sent = {"content-type": "application/json", **headers}
    try:
        answer = await client.post(address, body, sent, limits)
    except (NameUnknown, CertificateRefused) as error:  # both can be put right over there
        raise ReceiverFailed(error.line) from None
    judge(answer.status, answer.headers, datetime.now(UTC))
    return answer.status


def judge(status: int, headers: Mapping[str, str], now: datetime) -> None:
    """Raise what a status means; nothing for success."""
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return
    said = f"It answered {status}."
    wait = read_retry_after(headers.get("retry-after"), now, longest=LONGEST_WAIT_SECONDS)
    if status == HTTPStatus.GONE:
        raise ReceiverGone(said, answer=status)
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        raise ReceiverBusy(said, answer=status, retry_after_seconds=wait)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _LATER:
        raise ReceiverFailed(said, answer=status, retry_after_seconds=wait)
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        said = f"It answered {status}; redirects are not followed."
    raise ReceiverRefused(said, answer=status)
