"""How documents come in: uploads in two steps or one, and whose document a content is."""

from octavo.intake.names import clean_filename
from octavo.intake.uploads import Intake, IntakeLimits, NewUpload
from octavo.records.documents import Outcome, Ticket

__all__ = ["Intake", "IntakeLimits", "NewUpload", "Outcome", "Ticket", "clean_filename"]
