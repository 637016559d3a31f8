"""What can be wrong with an analysis, in words for people."""

from __future__ import annotations

from octavo.core.errors import BadInput, ErrorClass, OctavoError


class NotReadable(BadInput):
    """This document has no text yet that could be asked about."""

    code = "NOT_READABLE"
    status = 409


class NoPrompts(BadInput):
    """There is no prompt to ask. Name some, or make one active."""

    code = "NO_PROMPTS"


class BuiltInPrompt(BadInput):
    """This prompt came with Octavo and is everybody's. Make your own from it."""

    code = "PROMPT_BUILT_IN"
    status = 409


class TooManyPrompts(BadInput):
    """There may be 500 prompts. Delete some that you do not need."""

    code = "TOO_MANY_PROMPTS"
    status = 409


class NotReopened(BadInput):
    """That cannot be done while the analysis is being prepared, or as long as nothing of it was asked."""

    code = "ANALYSIS_NOT_PLANNED"
    status = 409


class DocumentChanged(OctavoError):
    """The document was read anew since this analysis began. Start a new one."""

    code = "ANALYSIS_OUTDATED"
    error_class = ErrorClass.PERMANENT
    status = 409


class Incomplete(OctavoError):
    """The answers do not cover the document, so they are not put together."""

    code = "ANALYSIS_INCOMPLETE"
    error_class = ErrorClass.PERMANENT
    status = 409
