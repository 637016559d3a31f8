"""Adds documents: uploads in one or several steps, with deduplication by content."""

from octavo.intake.upload_rows import clean_filename
from octavo.intake.uploads import Intake, IntakeLimits, NewUpload
from octavo.records.documents import Outcome, Ticket

__all__ = ["Intake", "IntakeLimits", "NewUpload", "Outcome", "Ticket", "clean_filename"]
