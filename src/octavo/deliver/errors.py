"""How a delivery can fail after there was an answer, or before anything was sent."""

from __future__ import annotations

from octavo.core.errors import BadInput, ErrorClass, OctavoError, RateLimited


class BadAddress(BadInput):
    """This is not an address that anything can be sent to."""

    code = "BAD_ADDRESS"


class MailNotSet(BadInput):
    """This installation sends no mail. OCTAVO_SMTP_URL names the server that does."""

    code = "MAIL_NOT_SET"
    error_class = ErrorClass.PERMANENT


class TooManySubscribers(BadInput):
    """There are as many as one owner may have. Delete one first."""

    code = "TOO_MANY_WEBHOOKS"
    error_class = ErrorClass.PERMANENT
    status = 409


class DeliveryFailed(OctavoError):
    """A delivery did not get through."""

    code = "DELIVERY_FAILED"
    status = 502

    def __init__(
        self, detail: str | None = None, *, answer: int | None = None, retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(detail)
        self.answer = answer
        self.retry_after_seconds = retry_after_seconds


class ReceiverFailed(DeliveryFailed):
    """The receiver failed. It is tried again by itself."""

    code = "RECEIVER_FAILED"
    error_class = ErrorClass.TRANSIENT


class ReceiverBusy(DeliveryFailed):
    """The receiver asked for patience. It is tried again by itself."""

    code = "RECEIVER_BUSY"
    error_class = RateLimited.error_class


class ReceiverRefused(DeliveryFailed):
    """The receiver refused what was sent to it."""

    code = "RECEIVER_REFUSED"


class ReceiverGone(ReceiverRefused):
    """The receiver says that it is there no more, so nothing is sent to it any longer."""

    code = "RECEIVER_GONE"
