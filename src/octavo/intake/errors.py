"""Upload errors."""

from __future__ import annotations

from octavo.core.errors import BadInput, ErrorClass, OctavoError, TooLarge


class UploadIncomplete(BadInput):
    """The upload is incomplete. Send the bytes, then finalize it."""

    code = "UPLOAD_INCOMPLETE"
    status = 409


class UploadClosed(BadInput):
    """This upload has already ended. Start a new one."""

    code = "UPLOAD_CLOSED"
    status = 409


class NotCanonical(BadInput):
    """The document was not created from this upload."""

    code = "NOT_CANONICAL"
    error_class = ErrorClass.PERMANENT
    status = 409


class HashMismatch(BadInput):
    """The SHA-256 of the received bytes differs from the announced one. Send the file again."""

    code = "HASH_MISMATCH"


class SizeMismatch(BadInput):
    """The number of received bytes differs from the announced size. Send the file again."""

    code = "SIZE_MISMATCH"


class Duplicate(BadInput):
    """You already have this file."""

    code = "DUPLICATE"
    status = 409

    def __init__(self, twin: str) -> None:
        super().__init__(f"It exists as document {twin}.")
        self.fields = {"duplicate_of": twin}


class QuotaExceeded(TooLarge):
    """Storage quota exceeded. Delete something permanently, or ask for a larger quota."""

    code = "QUOTA_EXCEEDED"


class TooManyUploads(OctavoError):
    """Too many open uploads. Finish some first."""

    code = "TOO_MANY_UPLOADS"
    error_class = ErrorClass.RATE_LIMIT
    status = 429

    def __init__(self, detail: str | None = None, retry_after_seconds: float = 60) -> None:
        super().__init__(detail)
        self.retry_after_seconds = retry_after_seconds
