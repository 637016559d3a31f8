"""Every failure Octavo names: a stable code, the class that decides about retries, and a line a person can act on.

The docstring of an error is its message. `BadInput` is what somebody outside can put right; `Defect` is ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from inspect import cleandoc
from typing import ClassVar


class ErrorClass(StrEnum):
    """Decides whether and when a failed attempt is made again."""

    TRANSIENT = "transient"
    TIMEOUT = "timeout"
    NETWORK = "network"
    RATE_LIMIT = "rate_limit"
    AI_QUOTA = "ai_quota"
    VALIDATION = "validation"
    UNSUPPORTED = "unsupported"
    CONTENT_BLOCKED = "content_blocked"
    PERMANENT = "permanent"


@dataclass(frozen=True, slots=True)
class RetryRule:
    """`charged`: whether the attempt counts against the limit; waiting for somebody else's recovery does not."""

    first_delay_seconds: int
    charged: bool
    factor: int = 5


RETRY_RULES: dict[ErrorClass, RetryRule | None] = {
    ErrorClass.TRANSIENT: RetryRule(5, charged=True),
    ErrorClass.TIMEOUT: RetryRule(5, charged=True),
    ErrorClass.NETWORK: RetryRule(5, charged=False),
    ErrorClass.RATE_LIMIT: RetryRule(30, charged=False),
    ErrorClass.AI_QUOTA: RetryRule(60, charged=False),
    ErrorClass.VALIDATION: None,
    ErrorClass.UNSUPPORTED: None,
    ErrorClass.CONTENT_BLOCKED: None,
    ErrorClass.PERMANENT: None,
}


class OctavoError(Exception):
    """Something went wrong that Octavo has no better name for."""

    code: ClassVar[str] = "UNKNOWN"
    error_class: ClassVar[ErrorClass] = ErrorClass.PERMANENT
    status: ClassVar[int] = 500
    # Set where the other side said when to come again.
    retry_after_seconds: float | None = None

    def __init__(self, detail: str | None = None) -> None:
        self.title = cleandoc(type(self).__doc__ or "").splitlines()[0]
        self.detail = detail
        super().__init__(self.line)

    @property
    def line(self) -> str:
        """What happened and what to do, as one line."""
        return f"{self.title} {self.detail}" if self.detail else self.title


class BadInput(OctavoError):
    """What was given cannot be used."""

    code = "VALIDATION"
    error_class = ErrorClass.VALIDATION
    status = 422

    @property
    def line(self) -> str:
        """Of the general kind, what is wrong says it all."""
        return self.detail if self.detail and type(self) is BadInput else super().line


class Defect(OctavoError):
    """Octavo made a mistake. It has been logged; nothing of yours was changed."""


# Documents that cannot be read


class NotPdf(BadInput):
    """This is not a PDF, although its name or type says so."""

    code = "NOT_PDF"
    error_class = ErrorClass.UNSUPPORTED
    status = 415


class NotSupported(BadInput):
    """Octavo does not read this type of file."""

    code = "NOT_SUPPORTED"
    error_class = ErrorClass.UNSUPPORTED
    status = 415


class TooLarge(BadInput):
    """This is larger than the limit."""

    code = "TOO_LARGE"
    status = 413


class Encrypted(BadInput):
    """The file is protected by a password. Give the password to open it."""

    code = "ENCRYPTED"


class Empty(BadInput):
    """There is nothing in it."""

    code = "EMPTY"


class Paywalled(BadInput):
    """Only people who pay or sign in can see this page."""

    code = "PAGE_PAYWALL"
    error_class = ErrorClass.PERMANENT
    advice: ClassVar[str] = (
        "Look for a copy of it in the Internet Archive (web.archive.org) or at archive.today and add the address "
        "of the copy, or paste the text."
    )

    def __init__(self, detail: str | None = None) -> None:
        super().__init__(detail or self.advice)


class ContentBlocked(OctavoError):
    """The model refused this content because of its own rules."""

    code = "AI_CONTENT_BLOCKED"
    error_class = ErrorClass.CONTENT_BLOCKED
    status = 422


# Waiting for somebody else


class TimedOut(OctavoError):
    """It took longer than it may. It is tried again by itself."""

    code = "TIMEOUT"
    error_class = ErrorClass.TIMEOUT
    status = 504


class NetworkFailed(OctavoError):
    """The other side could not be reached. It is tried again by itself."""

    code = "NETWORK"
    error_class = ErrorClass.NETWORK
    status = 502


class RateLimited(OctavoError):
    """Too many requests in a short time. It goes on by itself in a few minutes."""

    code = "RATE_LIMIT"
    error_class = ErrorClass.RATE_LIMIT
    status = 429


class QuotaExhausted(OctavoError):
    """The model provider's quota is used up. It goes on when the provider allows it."""

    code = "AI_QUOTA"
    error_class = ErrorClass.AI_QUOTA
    status = 429


class ModelUnavailable(OctavoError):
    """The model provider takes no requests at the moment. It goes on by itself."""

    code = "AI_UNAVAILABLE"
    error_class = ErrorClass.AI_QUOTA
    status = 503


class ModelFailed(OctavoError):
    """The model provider failed. It is tried again by itself."""

    code = "AI_FAILED"
    error_class = ErrorClass.TRANSIENT
    status = 502


class AnswerUnusable(OctavoError):
    """The model did not answer in the form that it was asked for. It is asked again by itself."""

    code = "AI_ANSWER_UNUSABLE"
    error_class = ErrorClass.TRANSIENT
    status = 502


class BadModelKey(OctavoError):
    """The model provider does not accept the key in the settings. Put it right, then retry."""

    code = "AI_BAD_KEY"
    status = 502


class ModelRefused(OctavoError):
    """The model provider does not take this request as it is. Look whether the name of the model is right."""

    code = "AI_REFUSED"
    status = 502


class NoModel(OctavoError):
    """No model that can do this is set up for you. OCTAVO_PROVIDERS says which there are."""

    code = "AI_NO_MODEL"
    status = 422


class TokenLimit(OctavoError):
    """The text is too long for one call of this model."""

    code = "AI_TOKEN_LIMIT"
    status = 422


class OverBudget(OctavoError):
    """The budget is used up. It goes on as soon as the budget is raised."""

    code = "OVER_BUDGET"
    status = 402


class BudgetTooHigh(BadInput):
    """One document cannot have more than its owner may spend in a month."""

    code = "BUDGET_TOO_HIGH"
    status = 409


# The conversion gateway


class GatewayRefused(OctavoError):
    """The conversion service refused the document."""

    code = "GW_4XX"
    status = 502


class GatewayFailed(OctavoError):
    """The conversion service failed. It is tried again by itself."""

    code = "GW_5XX"
    error_class = ErrorClass.TRANSIENT
    status = 502


class GatewayTimedOut(OctavoError):
    """The conversion service did not answer in time. It is tried again by itself."""

    code = "GW_TIMEOUT"
    error_class = ErrorClass.TIMEOUT
    status = 504


# The machine


class StorageFailed(OctavoError):
    """A file could not be read or written."""

    code = "IO_ERROR"
    error_class = ErrorClass.TRANSIENT
    status = 503


class Crashed(OctavoError):
    """The part that reads files crashed on this one. Nothing else was affected."""

    code = "CRASHED"
    error_class = ErrorClass.TRANSIENT
    status = 500


class Cancelled(OctavoError):
    """Stopped by you."""

    code = "CANCELLED"
    status = 409


# The codes that a job can carry end here; what follows is answered to callers and operators, never stored on a job.


class NotFound(BadInput):
    """There is no such thing, or it is not yours."""

    code = "NOT_FOUND"
    error_class = ErrorClass.PERMANENT
    status = 404


class NoPagePictures(BadInput):
    """Only PDFs and images have pictures of their pages, and this document is neither."""

    code = "NO_PAGE_PICTURES"
    error_class = ErrorClass.PERMANENT
    status = 404


class PageMissing(BadInput):
    """The document has no such page."""

    code = "PAGE_MISSING"
    error_class = ErrorClass.PERMANENT
    status = 404


class PageNotDrawn(BadInput):
    """This page cannot be drawn. Its text and the file itself are not affected."""

    code = "PAGE_NOT_DRAWN"
    error_class = ErrorClass.PERMANENT


class SignInRefused(BadInput):
    """This sign-in link was used before, is too old, or was never made. Get a new one with `octavo up`."""

    code = "SIGN_IN_REFUSED"
    error_class = ErrorClass.PERMANENT
    status = 403


class BadSetting(BadInput):
    """A setting is wrong."""

    code = "BAD_SETTING"


class NotPossibleHere(BadInput):
    """This machine does not allow it."""

    code = "NOT_POSSIBLE_HERE"


class AlreadyRunning(BadInput):
    """Octavo is running already."""

    code = "ALREADY_RUNNING"
    status = 409


class NotRunning(BadInput):
    """Octavo is not running. Start it with `octavo up`."""

    code = "NOT_RUNNING"
    status = 409


class DatabaseUnavailable(OctavoError):
    """The database does not answer."""

    code = "DATABASE_UNAVAILABLE"
    error_class = ErrorClass.TRANSIENT
    status = 503


class WrongDatabase(BadInput):
    """This database cannot be used."""

    code = "WRONG_DATABASE"


class AlreadyStored(Defect):
    """An object is written once, and there is one under this key already."""

    code = "ALREADY_STORED"
    error_class = ErrorClass.PERMANENT


class Unauthenticated(BadInput):
    """You are not signed in."""

    code = "UNAUTHENTICATED"
    error_class = ErrorClass.PERMANENT
    status = 401


class Forbidden(BadInput):
    """Only the administrator of this installation may do this."""

    code = "FORBIDDEN"
    error_class = ErrorClass.PERMANENT
    status = 403


class NotAllowed(BadInput):
    """Your role, or the key that was used, does not allow this."""

    code = "NOT_ALLOWED"
    error_class = ErrorClass.PERMANENT
    status = 403


class SignUpClosed(BadInput):
    """New accounts are not made here. Ask whoever runs this installation for one."""

    code = "SIGN_UP_CLOSED"
    error_class = ErrorClass.PERMANENT
    status = 403


class EmailTaken(BadInput):
    """There is an account with this address already. Sign in instead."""

    code = "EMAIL_TAKEN"
    error_class = ErrorClass.PERMANENT
    status = 409


class WrongCredentials(BadInput):
    """The address or the password is wrong."""

    code = "WRONG_CREDENTIALS"
    error_class = ErrorClass.PERMANENT
    status = 401


class WeakPassword(BadInput):
    """This password is too short."""

    code = "WEAK_PASSWORD"


class AlreadyMember(BadInput):
    """This person is a member already."""

    code = "ALREADY_MEMBER"
    error_class = ErrorClass.PERMANENT
    status = 409


class LastOwner(BadInput):
    """Somebody has to stay owner. Make another person owner first."""

    code = "LAST_OWNER"
    error_class = ErrorClass.PERMANENT
    status = 409


class CrossSite(BadInput):
    """The request came from another site."""

    code = "CROSS_SITE"
    error_class = ErrorClass.PERMANENT
    status = 403


class WrongHost(BadInput):
    """This server does not answer under that name. Add the name to OCTAVO_HOSTS."""

    code = "WRONG_HOST"
    error_class = ErrorClass.PERMANENT
    status = 421
