"""The base class of all errors, and the errors that several packages raise. Most others are in `<package>/errors.py`.

Each error has a stable code, a class that determines whether to retry, and a message for users: the first line of its
docstring. A `BadInput` has a cause that the caller can correct; a `Defect` is a bug in Octavo.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from inspect import cleandoc
from typing import ClassVar


class ErrorClass(StrEnum):
    """Groups errors by how they are handled. The class determines whether and when a failed attempt is retried."""

    TRANSIENT = "transient"
    TIMEOUT = "timeout"
    NETWORK = "network"
    DATABASE = "database"
    RATE_LIMIT = "rate_limit"
    AI_QUOTA = "ai_quota"
    VALIDATION = "validation"
    UNSUPPORTED = "unsupported"
    CONTENT_BLOCKED = "content_blocked"
    PERMANENT = "permanent"


@dataclass(frozen=True, slots=True)
class RetryRule:
    """When to retry after an error.

    `charged` is true if the failed attempt counts towards the maximum number of attempts. Attempts that fail because of
    another service do not count.
    """

    first_delay_seconds: int
    charged: bool
    factor: int = 5


RETRY_RULES: dict[ErrorClass, RetryRule | None] = {
    ErrorClass.TRANSIENT: RetryRule(5, charged=True),
    ErrorClass.TIMEOUT: RetryRule(5, charged=True),
    ErrorClass.NETWORK: RetryRule(5, charged=False),
    # This failure can only be recorded after the outage, so the delay grows slowly.
    ErrorClass.DATABASE: RetryRule(5, charged=False, factor=2),
    ErrorClass.RATE_LIMIT: RetryRule(30, charged=False),
    ErrorClass.AI_QUOTA: RetryRule(60, charged=False),
    ErrorClass.VALIDATION: None,
    ErrorClass.UNSUPPORTED: None,
    ErrorClass.CONTENT_BLOCKED: None,
    ErrorClass.PERMANENT: None,
}


class OctavoError(Exception):
    """Unknown error."""

    code: ClassVar[str] = "UNKNOWN"
    error_class: ClassVar[ErrorClass] = ErrorClass.PERMANENT
    status: ClassVar[int] = 500
    # Set if the other server requested a delay.
    retry_after_seconds: float | None = None

    def __init__(self, detail: str | None = None) -> None:
        self.title = cleandoc(type(self).__doc__ or "").splitlines()[0]
        self.detail = detail
        super().__init__(self.line)

    @property
    def line(self) -> str:
        """The error's title and detail on one line."""
        return f"{self.title} {self.detail}" if self.detail else self.title


class BadInput(OctavoError):
    """Invalid input."""

    code = "VALIDATION"
    error_class = ErrorClass.VALIDATION
    status = 422

    @property
    def line(self) -> str:
        """The error on one line.

        For `BadInput` itself, only the detail is shown, because the title is too general. Subclasses also show their
        title.
        """
        return self.detail if self.detail and type(self) is BadInput else super().line


class Defect(OctavoError):
    """Internal error. It has been logged; your data was not changed."""


# Documents that cannot be read


class NotPdf(BadInput):
    """This file is not a PDF. Only PDFs can be converted."""

    code = "NOT_PDF"
    error_class = ErrorClass.UNSUPPORTED
    status = 415


class NotSupported(BadInput):
    """This file type is not supported."""

    code = "NOT_SUPPORTED"
    error_class = ErrorClass.UNSUPPORTED
    status = 415


class ExtensionFailed(BadInput):
    """An extension failed."""

    code = "EXTENSION_FAILED"


class TooLarge(BadInput):
    """Larger than the limit."""

    code = "TOO_LARGE"
    status = 413


class Encrypted(BadInput):
    """Password-protected. Enter the password."""

    code = "ENCRYPTED"


class Empty(BadInput):
    """The content is empty."""

    code = "EMPTY"


class Paywalled(BadInput):
    """This page is only visible to subscribers or after signing in."""

    code = "PAGE_PAYWALL"
    error_class = ErrorClass.PERMANENT
    advice: ClassVar[str] = (
        "Add the URL of a copy, for example from the Internet Archive (web.archive.org) or archive.today, or paste the "
        "text."
    )

    def __init__(self, detail: str | None = None) -> None:
        super().__init__(detail or self.advice)


class ContentBlocked(OctavoError):
    """The model refused this content because of its content policy."""

    code = "AI_CONTENT_BLOCKED"
    error_class = ErrorClass.CONTENT_BLOCKED
    status = 422


# Temporary problems of other services


class TimedOut(OctavoError):
    """Timed out."""

    code = "TIMEOUT"
    error_class = ErrorClass.TIMEOUT
    status = 504


class NetworkFailed(OctavoError):
    """The server could not be reached."""

    code = "NETWORK"
    error_class = ErrorClass.NETWORK
    status = 502


class RateLimited(OctavoError):
    """Too many requests. Retry in a few minutes."""

    code = "RATE_LIMIT"
    error_class = ErrorClass.RATE_LIMIT
    status = 429


class QuotaExhausted(OctavoError):
    """The model provider's quota is used up. Work resumes when the provider allows it."""

    code = "AI_QUOTA"
    error_class = ErrorClass.AI_QUOTA
    status = 429


class PriceUnknown(OctavoError):
    """This model has no known price, so it is not used. An administrator can enter a price in Settings, Models."""

    code = "AI_NO_PRICE"
    error_class = ErrorClass.AI_QUOTA
    status = 402


class ModelUnavailable(OctavoError):
    """The model provider is not available."""

    code = "AI_UNAVAILABLE"
    error_class = ErrorClass.AI_QUOTA
    status = 503


class ModelFailed(OctavoError):
    """The model provider failed."""

    code = "AI_FAILED"
    error_class = ErrorClass.TRANSIENT
    status = 502


class AnswerUnusable(OctavoError):
    """The model's answer did not have the required format."""

    code = "AI_ANSWER_UNUSABLE"
    error_class = ErrorClass.TRANSIENT
    status = 502


class BadModelKey(OctavoError):
    """The model provider rejected the API key in the settings. Correct it, then retry."""

    code = "AI_BAD_KEY"
    status = 502


class ModelRefused(OctavoError):
    """The model provider rejected the request. Check the name of the model."""

    code = "AI_REFUSED"
    status = 502


class NoModel(OctavoError):
    """No model is set up for this task. An administrator can add one under Settings, Models."""

    code = "AI_NO_MODEL"
    status = 422


class TokenLimit(OctavoError):
    """The text is too long for this model."""

    code = "AI_TOKEN_LIMIT"
    status = 422


class OverBudget(OctavoError):
    """The budget is used up. Work resumes when the budget is raised."""

    code = "OVER_BUDGET"
    status = 402


class BudgetTooHigh(BadInput):
    """A document's budget cannot exceed its owner's monthly budget."""

    code = "BUDGET_TOO_HIGH"
    status = 409


# The conversion gateway


class GatewayRefused(OctavoError):
    """The conversion service refused the document."""

    code = "GW_4XX"
    status = 502


class GatewayFailed(OctavoError):
    """The conversion service failed."""

    code = "GW_5XX"
    error_class = ErrorClass.TRANSIENT
    status = 502


class GatewayTimedOut(OctavoError):
    """The conversion service did not respond in time."""

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
    """The extractor crashed on this file. Nothing else was affected."""

    code = "CRASHED"
    error_class = ErrorClass.TRANSIENT
    status = 500


class Cancelled(OctavoError):
    """Stopped by you."""

    code = "CANCELLED"
    status = 409


# The codes above can be stored on a job. Those below are only returned to callers and operators.


class NotFound(BadInput):
    """Not found, or you do not have access to it."""

    code = "NOT_FOUND"
    error_class = ErrorClass.PERMANENT
    status = 404


class NoPagePictures(BadInput):
    """Page images exist only for PDFs and images."""

    code = "NO_PAGE_PICTURES"
    error_class = ErrorClass.PERMANENT
    status = 404


class PageMissing(BadInput):
    """The document does not have this page."""

    code = "PAGE_MISSING"
    error_class = ErrorClass.PERMANENT
    status = 404


class PageNotDrawn(BadInput):
    """This page cannot be rendered. Its text and the file are not affected."""

    code = "PAGE_NOT_DRAWN"
    error_class = ErrorClass.PERMANENT


class SignInRefused(BadInput):
    """This sign-in link is invalid, expired or already used. Get a new one with `octavo up`."""

    code = "SIGN_IN_REFUSED"
    error_class = ErrorClass.PERMANENT
    status = 403


class BadSetting(BadInput):
    """Invalid setting."""

    code = "BAD_SETTING"


class NotPossibleHere(BadInput):
    """Not possible on this machine."""

    code = "NOT_POSSIBLE_HERE"


class AlreadyRunning(BadInput):
    """Octavo is already running."""

    code = "ALREADY_RUNNING"
    status = 409


class NotRunning(BadInput):
    """Octavo is not running. Start it with `octavo up`."""

    code = "NOT_RUNNING"
    status = 409


class DatabaseUnavailable(OctavoError):
    """The database is not available."""

    code = "DATABASE_UNAVAILABLE"
    error_class = ErrorClass.DATABASE
    status = 503


class Stopping(OctavoError):
    """Octavo is stopping or restarting. Send the request again in a moment."""

    code = "STOPPING"
    error_class = ErrorClass.TRANSIENT
    status = 503
    retry_after_seconds = 2.0


class WrongDatabase(BadInput):
    """This database cannot be used."""

    code = "WRONG_DATABASE"


class AlreadyStored(Defect):
    """An object with this key already exists. Stored objects are never overwritten."""

    code = "ALREADY_STORED"
    error_class = ErrorClass.PERMANENT


class Unauthenticated(BadInput):
    """You are not signed in."""

    code = "UNAUTHENTICATED"
    error_class = ErrorClass.PERMANENT
    status = 401


class Forbidden(BadInput):
    """Only administrators can do this."""

    code = "FORBIDDEN"
    error_class = ErrorClass.PERMANENT
    status = 403


class NotAllowed(BadInput):
    """Your role or API key does not allow this."""

    code = "NOT_ALLOWED"
    error_class = ErrorClass.PERMANENT
    status = 403


class SignUpClosed(BadInput):
    """Sign-up is disabled. Ask the administrator for an account."""

    code = "SIGN_UP_CLOSED"
    error_class = ErrorClass.PERMANENT
    status = 403


class EmailTaken(BadInput):
    """An account with this address already exists. Sign in instead."""

    code = "EMAIL_TAKEN"
    error_class = ErrorClass.PERMANENT
    status = 409


class WrongCredentials(BadInput):
    """Wrong email address or password."""

    code = "WRONG_CREDENTIALS"
    error_class = ErrorClass.PERMANENT
    status = 401


class WeakPassword(BadInput):
    """This password is too short."""

    code = "WEAK_PASSWORD"


class AlreadyMember(BadInput):
    """This person is already a member."""

    code = "ALREADY_MEMBER"
    error_class = ErrorClass.PERMANENT
    status = 409


class LastOwner(BadInput):
    """There must be at least one owner. Make another member an owner first."""

    code = "LAST_OWNER"
    error_class = ErrorClass.PERMANENT
    status = 409


class CrossSite(BadInput):
    """Cross-site request refused."""

    code = "CROSS_SITE"
    error_class = ErrorClass.PERMANENT
    status = 403


class WrongHost(BadInput):
    """Unknown host name. Add it to OCTAVO_HOSTS."""

    code = "WRONG_HOST"
    error_class = ErrorClass.PERMANENT
    status = 421
