"""Estimated costs of models, as this caller would pay them."""

from __future__ import annotations

from octavo.ai.estimates import DocumentSize, Estimator
from octavo.core.settings import Settings
from octavo.owners import Caller
from octavo.records.account import DocumentEstimate
from octavo.records.documents import Document


def estimate_size(settings: Settings, caller: Caller, size: DocumentSize, prompts: int = 1) -> DocumentEstimate:
    """Visitors are served offline, unless the settings allow them models."""
    is_offline = caller.is_anonymous and not settings.anonymous_models
    return Estimator(settings, is_offline=is_offline).estimate(size, prompts)


def estimate_document(settings: Settings, caller: Caller, document: Document, prompts: int = 1) -> DocumentEstimate:
    return estimate_size(settings, caller, DocumentSize.of(document.word_count, document.page_count), prompts)
