"""Errors about single objects, such as a missing file.

If the disk or the S3 server fails, `StorageFailed` is raised.
"""

from __future__ import annotations

from octavo.core.errors import BadInput, Defect, ErrorClass, StorageFailed


class BadKey(Defect):
    """Internal error: invalid storage key. It has been logged; nothing was stored."""

    code = "BAD_KEY"


class StorageUnavailable(StorageFailed):
    """The storage cannot be used at the moment. Work resumes automatically when it is available again."""

    error_class = ErrorClass.NETWORK  # not the fault of a file, so the attempt does not count


class ObjectMissing(StorageFailed):
    """A stored file is missing."""

    error_class = ErrorClass.PERMANENT
    status = 404


class ObjectDamaged(StorageFailed):
    """A stored file is truncated or was changed. Upload the same file again to replace it."""

    code = "FILE_DAMAGED"
    error_class = ErrorClass.PERMANENT
    status = 409  # waiting does not help: the stored bytes conflict with their checksum until somebody uploads the file


class LinkRefused(BadInput):
    """This link has expired or was changed. Open the document again to get a new one."""

    code = "LINK_REFUSED"
    error_class = ErrorClass.PERMANENT
    status = 403
