"""Reaches other people's servers: only public ones, whatever a link or its redirects say, and never for long."""

from octavo.fetch.addresses import is_public
from octavo.fetch.answers import Fetched, FetchLimits
from octavo.fetch.client import GuardedClient
from octavo.fetch.errors import AddressRefused, AnswerBroken, BadUrl, CertificateRefused, NameUnknown, TooManyRedirects
from octavo.fetch.urls import Target, parse_url, refuse_literal

__all__ = [
    "AddressRefused",
    "AnswerBroken",
    "BadUrl",
    "CertificateRefused",
    "FetchLimits",
    "Fetched",
    "GuardedClient",
    "NameUnknown",
    "Target",
    "TooManyRedirects",
    "is_public",
    "parse_url",
    "refuse_literal",
]
