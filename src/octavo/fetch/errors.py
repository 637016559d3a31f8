"""Errors for fetches that got no usable response. A response with an error status is usable and is returned."""

from __future__ import annotations

from octavo.core.errors import BadInput, ErrorClass, NetworkFailed


class BadUrl(BadInput):
    """Invalid URL."""

    code = "BAD_URL"


class AddressRefused(BadInput):
    """Private addresses are blocked. Allow it with OCTAVO_FETCH_ALLOW."""

    code = "FETCH_REFUSED"
    error_class = ErrorClass.PERMANENT


class TooManyRedirects(BadInput):
    """Too many redirects."""

    code = "TOO_MANY_REDIRECTS"
    error_class = ErrorClass.PERMANENT


class NameUnknown(NetworkFailed):
    """Host not found. Check the spelling of the address."""

    code = "NAME_UNKNOWN"
    error_class = ErrorClass.PERMANENT


class CertificateRefused(NetworkFailed):
    """The site's TLS certificate is invalid, so nothing was fetched."""

    code = "TLS_FAILED"
    error_class = ErrorClass.PERMANENT


class AnswerBroken(NetworkFailed):
    """The site's response cannot be decompressed."""

    code = "ANSWER_BROKEN"
    error_class = ErrorClass.PERMANENT


class AnswerIncomplete(NetworkFailed):
    """The site's response ended before it was complete."""

    code = "ANSWER_INCOMPLETE"
