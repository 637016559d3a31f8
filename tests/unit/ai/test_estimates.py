"""Costs are estimated before they are spent, close to what the measured book cost."""

from __future__ import annotations

import pytest

from octavo.ai.estimates import DocumentSize, Estimator
from octavo.core.settings import Settings

BOOK = DocumentSize(words=250_000, pages=500)
GEMINI = {"providers": "gemini,local", "gemini_key": "key"}
CHEAPER = "gemini:gemini-2.5-flash-lite"


def estimator(**settings: str) -> Estimator:
    return Estimator(Settings.model_validate(settings))


@pytest.mark.parametrize(("part", "measured"), [("describe", 0.4646), ("clean", 1.0132), ("pages", 1.0628)])
def test_the_estimate_is_close_to_the_measured_cost(part: str, measured: float) -> None:
    estimate = getattr(estimator(**GEMINI).estimate(BOOK), part)
    assert estimate.usd == pytest.approx(measured, rel=0.1)
    assert "gemini:gemini-2.5-flash" in estimate.models


def test_an_analysis_costs_per_prompt_and_long_documents_are_read_with_context() -> None:
    one, five = (estimator(**GEMINI).estimate(DocumentSize(500_000, 1000), prompts).analysis.usd for prompts in (1, 5))
    assert five == pytest.approx(5 * one, rel=0.01)
    assert 0.65 <= five <= 0.90


def test_connections_never_cost_more_than_their_limit() -> None:
    assert estimator(**GEMINI).estimate(BOOK).connections.usd == 0.20


def test_offline_work_costs_nothing() -> None:
    estimate = estimator().estimate(BOOK)
    assert {part.usd for part in (estimate.describe, estimate.clean, estimate.pages, estimate.analysis)} == {0}
    assert estimate.connections.usd == 0


def test_a_book_read_and_connected_by_models_stays_within_sixty_cents_with_a_cheaper_model_for_text() -> None:
    """As docs/how-to/models.md says."""
    tasks = ("extract_pages", "clean_markdown", "enrich_chunks", "classify_document")
    chosen = ",".join(f"{task}={CHEAPER}" for task in tasks)
    estimate = estimator(**GEMINI, task_models=chosen).estimate(BOOK)
    assert estimate.pages.usd + estimate.describe.usd + estimate.connections.usd <= 0.60
