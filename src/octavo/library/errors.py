"""Errors for documents, collections and versions."""

from __future__ import annotations

from octavo.core.errors import BadInput


class SourceGone(BadInput):
    """The original file is no longer stored, so it cannot be processed again. Add the file again."""

    code = "SOURCE_GONE"
    status = 409


class StillProcessed(BadInput):
    """This document is being processed. Wait until it is done, or cancel it."""

    code = "STILL_PROCESSED"
    status = 409


class NameTaken(BadInput):
    """This name is already taken."""

    code = "NAME_TAKEN"
    status = 409


class NotReady(BadInput):
    """Not available until the document has been processed."""

    code = "NOT_READY"
    status = 409


class NeverReady(NotReady):
    """This document has no text: none was found, or the file could not be read."""


class TooLongToCompare(BadInput):
    """These texts are too long to compare here. Download both and compare them locally."""

    code = "TOO_LONG_TO_COMPARE"
    status = 413


class NothingBefore(BadInput):
    """There is no earlier version or revision to compare with. Choose another document."""

    code = "NOTHING_BEFORE"
    status = 409


class ExportRunning(BadInput):
    """An export is being prepared. Wait until it is finished, or cancel its job."""

    code = "EXPORT_RUNNING"
    status = 409


class BadPlace(BadInput):
    """Invalid position for resuming an export. Start the export again."""

    code = "INVALID_RESUME"
