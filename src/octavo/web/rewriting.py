"""Whether somebody may have a text written by a model: said before anything is begun, so that nothing changes."""

from __future__ import annotations

from octavo.ai.models import asks_outside
from octavo.ai.tasks import CLEAN_MARKDOWN, EXTRACT_PAGES
from octavo.core.errors import NoModel
from octavo.core.extraction import Extraction
from octavo.core.settings import Settings
from octavo.owners.callers import Caller


def may_rewrite(settings: Settings, caller: Caller) -> bool:
    return _why_not(settings, caller) is None


def check_extraction(settings: Settings, caller: Caller, extraction: object) -> None:
    """Raises `NoModel` for what only a model could do, where there is none for this caller."""
    if extraction not in {None, Extraction.PLAIN} and (why := _why_not(settings, caller)):
        raise NoModel(why)


def _why_not(settings: Settings, caller: Caller) -> str | None:
    if caller.is_anonymous and not settings.anonymous_models:
        return "Visitors are served on this machine alone, and no model here can write texts. Sign in first."
    if not all(asks_outside(settings, task.name) for task in (CLEAN_MARKDOWN, EXTRACT_PAGES)):
        return "`local` alone cannot write texts."
    return None
