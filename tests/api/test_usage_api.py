"""What models cost: each owner sees their own, on a running server, by the API, the client and the command line."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from uuid import UUID, uuid4

import httpx
import psycopg
import pytest

from octavo.cli import main
from octavo.client import Client
from tests.support.postgres import Server
from tests.support.web import WebProcess, running_web

CALL = """
    INSERT INTO ai_calls (id, owner_id, document_id, purpose, provider, model, state, fault, estimate_usd, cost_usd,
                          is_estimated, tokens_in, tokens_out, created_at, expires_at, ended_at)
    VALUES (%(id)s, %(owner)s, %(document)s, %(purpose)s, 'gemini', 'gemini-2.5-flash', %(state)s, %(fault)s, 0.5,
            %(cost)s, %(estimated)s, 1000, 10, %(at)s, now(), CASE WHEN %(state)s <> 'reserved' THEN now() END)"""
REUSE = "INSERT INTO ai_reuses (call_id, owner_id, saved_usd, at) VALUES (%s, %s, 0.25, '2026-03-31 23:59 UTC')"
DOCUMENT = """
    INSERT INTO documents (id, owner_id, process_id, filename, content_type, source_type, sha256, bytes)
    VALUES (%s, %s, %s, 'minutes.pdf', 'application/pdf', 'pdf', sha256('x'), 1)"""


@pytest.fixture(scope="module")
def web(newest_server: Server) -> Iterator[WebProcess]:
    with running_web(newest_server, owner_budget=5) as process:
        yield process


@pytest.fixture(scope="module")
def key(web: WebProcess) -> str:
    """Of the owner of the machine, who had a document described in March."""
    made = web.machine_key()
    with psycopg.connect(web.database_info, autocommit=True) as connection:
        row = connection.execute(b"SELECT id FROM owners WHERE kind = 'local'").fetchone()
        assert row
        owner, document, first = row[0], uuid4(), uuid4()
        connection.execute(DOCUMENT.encode(), (document, owner, uuid4()))
        for change in (
            {"id": first, "cost": 0.25, "document": document},
            {"cost": 1.5, "document": document, "purpose": "enrich_chunks"},
            {"cost": 0.5, "state": "failed", "fault": "abandoned", "estimated": True},
            {"state": "failed", "fault": "over_budget"},
            {"state": "reserved"},
            {"cost": 0.125, "at": "2026-02-28 23:59 UTC"},
            {"cost": 64, "owner": None},
        ):
            connection.execute(CALL.encode(), PLAIN | {"id": uuid4(), "owner": owner} | change)
        connection.execute(REUSE.encode(), (first, owner))
    return made


PLAIN: dict[str, object] = {
    "document": None,
    "purpose": "classify_document",
    "state": "settled",
    "fault": None,
    "cost": 0,
    "estimated": False,
    "at": "2026-03-01 00:00 UTC",
}


def test_the_usage_of_a_month_adds_up_and_includes_savings(web: WebProcess, key: str) -> None:
    answer = httpx.get(f"{web.address}/api/v1/usage?month=2026-03", headers={"authorization": f"Bearer {key}"})
    usage = answer.json()
    (document,) = usage.pop("documents")
    purposes = usage.pop("purposes")
    assert usage == {
        "month": "2026-03",
        "calls": 3,
        "tokens_in": 5000,
        "tokens_out": 50,
        "cost_usd": 2.25,
        "estimated_usd": 0.5,
        "reserved_usd": 0.5,
        "reuses": 1,
        "saved_usd": 0.25,
        "budget_usd": 5.0,
        "everybody_usd": 66.25,
        "months": [{"month": "2026-03", "cost_usd": 2.25}, {"month": "2026-02", "cost_usd": 0.125}],
    }
    assert (document["title"], document["calls"], document["cost_usd"]) == ("minutes.pdf", 2, 1.75)
    assert [(one["purpose"], one["calls"], one["failed"], one["cost_usd"]) for one in purposes] == [
        ("enrich_chunks", 1, 0, 1.5),
        ("classify_document", 2, 1, 0.75),
    ]


def test_a_document_shows_its_cost(web: WebProcess, key: str) -> None:
    headers = {"authorization": f"Bearer {key}"}
    (listed,) = httpx.get(f"{web.address}/api/v1/documents", headers=headers).json()["items"]
    assert listed["cost_usd"] == 1.75


def test_a_stranger_has_a_month_of_their_own(web: WebProcess, key: str) -> None:
    usage = httpx.get(f"{web.address}/api/v1/usage?month=2026-03").json()
    assert (usage["calls"], usage["cost_usd"], usage["reuses"], usage["documents"]) == (0, 0, 0, [])
    assert usage["everybody_usd"] is None


@pytest.mark.parametrize("month", ["2026", "2026-13", "0000-01", "now", "2026-03-01"])
def test_an_invalid_month_is_refused(web: WebProcess, month: str) -> None:
    answer = httpx.get(f"{web.address}/api/v1/usage", params={"month": month})
    assert (answer.status_code, answer.json()["code"]) == (422, "VALIDATION")


def test_the_client_reads_the_present_month(web: WebProcess, key: str) -> None:
    async def read() -> str:
        async with Client(web.address, key=key) as client:
            return (await client.read_usage()).month

    assert len(asyncio.run(read())) == len("2026-03")


def say(
    web: WebProcess, key: str, patch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str], *arguments: str
) -> str:
    patch.setattr(sys, "argv", ["octavo", *arguments, "--server", web.address, "--key", key])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    return capture.readouterr().out


def test_the_command_line_says_it_in_a_table(
    web: WebProcess, key: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = say(web, key, monkeypatch, capsys, "usage", "--month", "2026-03")
    assert "2.25 USD of 5.00 USD, 0.5000 USD of it estimated" in said
    assert "0.2500 USD by reusing 1 answer" in said
    assert "2026-02 0.1250 USD" in said
    assert "enrich_chunks" in said
    assert "minutes.pdf" in said
    data = json.loads(say(web, key, monkeypatch, capsys, "usage", "--month", "2026-03", "--json"))
    assert data["saved_usd"] == 0.25
    assert UUID(data["documents"][0]["document_id"])
    nothing = say(web, key, monkeypatch, capsys, "usage", "--month", "2020-01")
    assert "0.00 USD of 5.00 USD" in nothing


def test_the_command_line_shows_and_sets_what_models_may_cost(
    web: WebProcess, key: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def budgets(*arguments: str) -> str:
        return " ".join(say(web, key, monkeypatch, capsys, "budgets", *arguments).split())

    assert "Owner 5.00 USD per month" in budgets("show")
    assert "Document 8.00 USD (default 3.00 USD)" in budgets("set", "--document", "8", "--month", "50")
    document = json.loads(budgets("set", "--document", "usual", "--month", "usual", "--json"))["document"]
    assert document == {"usd": 3.0, "usual_usd": 3.0, "is_set": False}
    headers = {"authorization": f"Bearer {key}"}
    (one,) = httpx.get(f"{web.address}/api/v1/documents", headers=headers).json()["items"]
    assert "Budget 4.50 USD, default 3.00 USD Spent 1.75 USD Maximum 5.00 USD" in budgets(
        "raise", one["id"][:8], "4.50"
    )
    assert "Budget 4.50 USD" in budgets("show", one["id"][:8])
