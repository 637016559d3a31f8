"""The answers of an analysis as a file that people and spreadsheets can read."""

from __future__ import annotations

import csv
from dataclasses import replace
from datetime import UTC, datetime
from io import StringIO
from uuid import UUID

from octavo.analyse.details import as_csv, as_markdown
from octavo.records.analyses import (
    AnalysesHealth,
    Analysis,
    AnsweredPart,
    CitationView,
    Done,
    ItemsDone,
    Percent,
    ResultView,
)

AT = datetime(2026, 1, 2, tzinfo=UTC)
ANALYSIS = Analysis(
    id=UUID(int=1),
    document_id=UUID(int=2),
    title="Crane lease",
    mode="parallel",
    at_once=5,
    status="completed",
    phase="completed",
    unit="pages",
    units=3,
    segments=Done(1, 1),
    items=ItemsDone(1, 1, 0, 0),
    results=Done(1, 1),
    percent=Percent(100, 100, 100),
    mean_item_seconds=None,
    eta=None,
    elapsed_seconds=1.0,
    tokens=0,
    cost_usd=0.0,
    workers=0,
    retries=0,
    paused=0,
    health=AnalysesHealth(ok=True, message=""),
    last_heartbeat=None,
    error=None,
    errors=[],
    created_at=AT,
    completed_at=AT,
)
RESULT = ResultView(
    prompt_id=UUID(int=3),
    title="Money",
    prompt="How much?",
    system="",
    version=1,
    execution_order=1,
    status="completed",
    items=Done(1, 1),
    content="4,250 EUR a month [p. 2].",
    citations=[
        CitationView(2, "a rent of 4,250 EUR", verified=True, relevance=1.0),
        CitationView(3, "=HYPERLINK(1)", verified=False, relevance=0.5),
    ],
    made_by="local",
    failed_models=[],
    error=None,
    attempts=1,
    tokens=0,
    cost_usd=0.0,
    seconds=None,
    completed_at=AT,
    answered_by=["gemini:flash", "local"],
    parts=[AnsweredPart(1, 2, "gemini:flash"), AnsweredPart(3, 3, "local")],
    gaps=[],
)


def test_markdown_has_the_answer_its_model_and_the_quotes() -> None:
    text = as_markdown(ANALYSIS, [RESULT, replace(RESULT, title="Dates", content=None, citations=[], answered_by=[])])
    assert text.startswith("# Analysis of Crane lease\n\n## Money\n\n4,250 EUR a month [p. 2].\n\n")
    assert "Answered by: gemini:flash, local." in text
    assert "- page 2: “a rent of 4,250 EUR”\n- page 3 (not found on this page): “=HYPERLINK(1)”" in text
    assert text.endswith("## Dates\n\nNo answer yet.\n")


def test_csv_has_a_row_for_each_quote_and_no_formulas() -> None:
    rows = list(csv.DictReader(StringIO(as_csv(ANALYSIS, [RESULT, replace(RESULT, title="Dates", citations=[])]))))
    assert [(one["prompt"], one["page"], one["verified"]) for one in rows] == [
        ("Money", "2", "yes"),
        ("Money", "3", "no"),
        ("Dates", "", ""),
    ]
    assert rows[1]["quote"] == "'=HYPERLINK(1)"
    assert rows[0]["answered_by"] == "gemini:flash, local"
