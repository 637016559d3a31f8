"""Adds documents by upload, in one request or several, and recognises duplicates by their checksum."""

from octavo.intake.upload_rows import clean_filename
from octavo.intake.uploads import Intake, IntakeLimits, NewUpload
from octavo.records.documents import Outcome, Ticket

__all__ = ["Intake", "IntakeLimits", "NewUpload", "Outcome", "Ticket", "clean_filename"]
