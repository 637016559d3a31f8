"""How a fetch can end badly before there is an answer; an answer of any status is none of these."""

from __future__ import annotations

from octavo.core.errors import BadInput, ErrorClass, NetworkFailed


class BadUrl(BadInput):
    """This is not a web address that can be fetched."""

    code = "BAD_URL"


class AddressRefused(BadInput):
    """This address is not on the public internet, so it is not fetched."""

    code = "FETCH_REFUSED"
    error_class = ErrorClass.PERMANENT


class TooManyRedirects(BadInput):
    """This address leads from one to the next without an end."""

    code = "TOO_MANY_REDIRECTS"
    error_class = ErrorClass.PERMANENT


class NameUnknown(NetworkFailed):
    """There is no site of this name. Look whether the address is written right."""

    code = "NAME_UNKNOWN"
    error_class = ErrorClass.PERMANENT


class CertificateRefused(NetworkFailed):
    """The site could not prove that it is the one in the address, so nothing was fetched from it."""

    code = "TLS_FAILED"
    error_class = ErrorClass.PERMANENT


class AnswerBroken(NetworkFailed):
    """The site sent an answer that cannot be unpacked."""

    code = "ANSWER_BROKEN"
    error_class = ErrorClass.PERMANENT
