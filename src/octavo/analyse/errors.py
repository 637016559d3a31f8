"""Errors raised for analyses and prompts."""

from __future__ import annotations

from octavo.core.errors import BadInput, ErrorClass, OctavoError


class NotReadable(BadInput):
    """This document has no text yet. Wait until it has been processed."""

    code = "NOT_READABLE"
    status = 409


class NoPrompts(BadInput):
    """No prompt selected. Select or activate at least one prompt."""

    code = "NO_PROMPTS"


class UnknownPrompt(BadInput):
    """No prompt has this title."""

    code = "UNKNOWN_PROMPT"


class BuiltInPrompt(BadInput):
    """Built-in prompts cannot be changed. Copy the text to a new prompt."""

    code = "PROMPT_BUILT_IN"
    status = 409


class TooManyPrompts(BadInput):
    """The limit of 500 prompts has been reached. Delete some first."""

    code = "TOO_MANY_PROMPTS"
    status = 409


class NotPlanned(BadInput):
    """The analysis is still being prepared. Try again when it is running."""

    code = "ANALYSIS_NOT_PLANNED"
    status = 409


class DocumentChanged(OctavoError):
    """The document was processed again after this analysis started. Start a new analysis."""

    code = "ANALYSIS_OUTDATED"
    error_class = ErrorClass.PERMANENT
    status = 409


class Incomplete(OctavoError):
    """The answers do not cover the whole document, so they were not combined."""

    code = "ANALYSIS_INCOMPLETE"
    error_class = ErrorClass.PERMANENT
    status = 409


class NoParent(BadInput):
    """This job does not belong to an analysis, so there is no analysis to end. Discard only the job."""

    code = "NO_PARENT"
    status = 409
