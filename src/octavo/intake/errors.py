"""Why an upload is refused; each leaves one row that says so, and nothing else."""

from __future__ import annotations

from octavo.core.errors import BadInput, ErrorClass, OctavoError, TooLarge


class UploadIncomplete(BadInput):
    """The bytes of this upload have not arrived yet. Send them, then finalize."""

    code = "UPLOAD_INCOMPLETE"
    status = 409


class UploadClosed(BadInput):
    """This upload has ended already. Begin a new one."""

    code = "UPLOAD_CLOSED"
    status = 409


class NotCanonical(BadInput):
    """This upload is not the one that its document is made from."""

    code = "NOT_CANONICAL"
    error_class = ErrorClass.PERMANENT
    status = 409


class HashMismatch(BadInput):
    """What arrived is not what was announced: its SHA-256 differs. Send it again."""

    code = "HASH_MISMATCH"


class SizeMismatch(BadInput):
    """What arrived is not what was announced: its size differs. Send it again."""

    code = "SIZE_MISMATCH"


class Duplicate(BadInput):
    """You have this file already."""

    code = "DUPLICATE"
    status = 409


class QuotaExceeded(TooLarge):
    """There is no room left for this. Delete something for good, or ask for more."""

    code = "QUOTA_EXCEEDED"


class TooManyUploads(OctavoError):
    """Too many uploads at once. Finish some first."""

    code = "TOO_MANY_UPLOADS"
    error_class = ErrorClass.RATE_LIMIT
    status = 429

    def __init__(self, detail: str | None = None, retry_after_seconds: float = 60) -> None:
        super().__init__(detail)
        self.retry_after_seconds = retry_after_seconds
