"""What can go wrong with one object, beside the failures of the disk or of the S3 server itself."""

from __future__ import annotations

from octavo.core.errors import BadInput, Defect, ErrorClass, StorageFailed


class BadKey(Defect):
    """Octavo made a storage key that is not allowed. It has been logged; nothing was stored."""

    code = "BAD_KEY"


class ObjectMissing(StorageFailed):
    """A stored file is missing."""

    error_class = ErrorClass.PERMANENT
    status = 404


class LinkRefused(BadInput):
    """This link is too old or was altered. Open the document again to get a new one."""

    code = "LINK_REFUSED"
    error_class = ErrorClass.PERMANENT
    status = 403
