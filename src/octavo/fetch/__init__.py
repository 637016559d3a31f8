"""Sends requests to other servers. Only public addresses are allowed, even after redirects. Limits size and time."""

from octavo.fetch.client import (
    FetchLimits,
    FetchResponse,
    GuardedClient,
    SystemResolver,
    UnexpectedStatus,
    refuse_private_addresses,
)
from octavo.fetch.urls import (
    AddressRefused,
    AnswerBroken,
    BadUrl,
    CertificateRefused,
    NameUnknown,
    Target,
    TooManyRedirects,
    is_public,
    parse_url,
    refuse_private,
)

__all__ = [
    "AddressRefused",
    "AnswerBroken",
    "BadUrl",
    "CertificateRefused",
    "FetchLimits",
    "FetchResponse",
    "GuardedClient",
    "NameUnknown",
    "SystemResolver",
    "Target",
    "TooManyRedirects",
    "UnexpectedStatus",
    "is_public",
    "parse_url",
    "refuse_private",
    "refuse_private_addresses",
]
