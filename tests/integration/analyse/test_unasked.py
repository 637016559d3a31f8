"""Long documents are analysed by themselves where the settings say so."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from octavo.ai.estimates import DocumentSize, Estimator
from octavo.ai.gateway_setup import open_gateway
from octavo.core.settings import Settings
from tests.support.analyses import write_book
from tests.support.fake_ai import FakeGemini
from tests.support.fake_ai.server import SECRET
from tests.support.library import Desk
from tests.support.processing import OpenSandbox
from tests.support.working import add, finished, working

ANALYSES = "SELECT count(*) FROM analyses WHERE document_id = %s"
PROMPTS = """
    SELECT (SELECT count(*) FROM prompts WHERE active) - count(*) FROM analysis_results r
    JOIN analyses a ON a.id = r.analysis_id WHERE a.document_id = %s"""


@pytest.mark.parametrize(
    ("settings", "analysed"),
    [
        ({"analyse_pages": 2}, 1),
        ({"analyse_pages": 3}, 0),  # no more than that
        ({"analyse_pages": 2, "analyse_bytes": 100}, 0),
        ({}, 0),  # 300 pages
    ],
)
async def test_a_document_above_the_threshold_is_asked_all_active_prompts_once(
    desk: Desk, owner: UUID, folder: Path, settings: dict[str, Any], analysed: int
) -> None:
    document = await add(desk, owner, "book.pdf", write_book(3), content_type="application/pdf")
    async with working(desk, OpenSandbox(), folder, **settings):
        assert (await finished(desk, owner, document)).status == "completed"
    assert await desk.one(ANALYSES, document) == analysed
    if analysed:
        assert await desk.one(PROMPTS, document) == 0


@pytest.mark.parametrize(("budget", "analysed"), [(1.0, 1), (0.00001, 0)])
async def test_an_analysis_that_nobody_asked_for_stays_within_its_budget(
    desk: Desk, owner: UUID, folder: Path, gemini: FakeGemini, budget: float, analysed: int
) -> None:
    document = await add(desk, owner, "book.pdf", write_book(3), content_type="application/pdf")
    given = {"providers": "gemini", "gemini_key": SECRET, "gemini_url": gemini.url, "embedding_model": "local"}
    described = {"task_models": "classify_document=local,enrich_chunks=local"}
    settings: dict[str, Any] = {"analyse_pages": 2, "analyse_budget": budget, **given, **described}
    async with (
        aclosing(open_gateway(Settings.model_validate(settings), desk.database)) as gateway,
        working(desk, OpenSandbox(), folder, gateway=gateway, **settings),
    ):
        assert (await finished(desk, owner, document)).status == "completed"
    assert await desk.one(ANALYSES, document) == analysed
    (stage,) = await desk.rows("SELECT output FROM job_stages WHERE stage = 'analysis_asked'")
    prompts = await desk.one("SELECT count(*) FROM prompts WHERE active")
    found = await finished(desk, owner, document)
    size = DocumentSize.of(found.word_count, found.page_count)
    shown = Estimator(Settings.model_validate(settings)).estimate(size, prompts).analysis.usd
    assert stage["output"]["estimated_usd"] == shown > 0, "the estimate that people see"


def test_long_documents_are_analysed_by_default() -> None:
    assert (Settings().analyse_pages, Settings().analyse_budget) == (300, 1.0)
