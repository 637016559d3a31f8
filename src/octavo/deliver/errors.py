"""Errors of deliveries. Some are detected before an event is sent, the others are reported by the receiver."""

from __future__ import annotations

from octavo.core.errors import BadInput, ErrorClass, OctavoError, RateLimited


class BadAddress(BadInput):
    """Invalid address."""

    code = "BAD_ADDRESS"


class MailNotSet(BadInput):
    """Mail is not set up. Set OCTAVO_SMTP_URL to the address of a mail server."""

    code = "MAIL_NOT_SET"
    error_class = ErrorClass.PERMANENT


class TooManySubscribers(BadInput):
    """You have reached the maximum number of recipients. Delete one first."""

    code = "TOO_MANY_WEBHOOKS"
    error_class = ErrorClass.PERMANENT
    status = 409


class NoSecret(BadInput):
    """Only webhooks have a secret."""

    code = "NO_SECRET"
    error_class = ErrorClass.PERMANENT
    status = 409


class NotReplayable(BadInput):
    """This delivery cannot be sent again."""

    code = "NOT_REPLAYABLE"
    error_class = ErrorClass.PERMANENT
    status = 409


class DeliveryFailed(OctavoError):
    """The delivery failed."""

    code = "DELIVERY_FAILED"
    status = 502

    def __init__(
        self, detail: str | None = None, *, answer: int | None = None, retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(detail)
        self.answer = answer
        self.retry_after_seconds = retry_after_seconds


class ReceiverFailed(DeliveryFailed):
    """The receiver could not be reached or reported an error."""

    code = "RECEIVER_FAILED"
    error_class = ErrorClass.TRANSIENT


class ReceiverBusy(DeliveryFailed):
    """The receiver is busy."""

    code = "RECEIVER_BUSY"
    error_class = RateLimited.error_class


class ReceiverRefused(DeliveryFailed):
    """The receiver rejected the delivery."""

    code = "RECEIVER_REFUSED"


class ReceiverGone(ReceiverRefused):
    """The receiver no longer exists. Deliveries to it are stopped."""

    code = "RECEIVER_GONE"
