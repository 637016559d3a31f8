"""What must hold when all is over: nothing acknowledged is lost or doubled, and the books balance."""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from functools import partial
from hashlib import sha256
from typing import Any

from tests.soak.load import Caller, Receipts
from tests.support.engine import Engine
from tests.support.fake_ai import FakeGemini
from tests.support.fake_ai.server import Bill, cost_of

READERS = 4
STAGES = {"extracted", "markdown_saved", "chunked", "facts_found", "classified", "enriched", "embedded"}
OPEN = "SELECT count(*) FROM jobs WHERE status IN ('queued', 'processing', 'paused')"
RESERVED = "SELECT count(*) FROM ai_calls WHERE state = 'reserved'"
GIVEN_UP = (
    "SELECT kind, status, error_code, error_message FROM jobs WHERE status IN ('dead_letter', 'failed', 'cancelled')"
)
TWICE = """
    SELECT process_id, detail ->> 'stage' AS stage, detail ->> 'part' AS part, count(*) FROM events WHERE kind = 'stage'
    GROUP BY 1, 2, 3 HAVING count(*) > 1"""
INCOMPLETE = """
    SELECT j.document_id, array_agg(s.stage) AS stages FROM jobs j LEFT JOIN job_stages s ON s.job_id = j.id
    WHERE j.kind = 'process_document' AND j.status = 'complete' GROUP BY j.id HAVING NOT array_agg(s.stage) @> %s"""
SAME = "SELECT encode(sha256, 'hex') AS content, count(*) FROM documents GROUP BY 1 HAVING count(*) > 1"
OPEN_ANALYSES = "SELECT id, status, error_message FROM analyses WHERE status <> 'completed'"
CALLS = """
    SELECT is_estimated, cost_usd, tokens_in, tokens_out, model FROM ai_calls
    WHERE state <> 'failed' OR cost_usd > 0 OR is_estimated"""


def check(engine: Engine, caller: Caller, receipts: Receipts) -> list[str]:
    """The promises that were broken, each in a line."""
    found = [*receipts.problems]
    found += [f"given up: {row}" for row in engine.rows(GIVEN_UP)]
    found += [f"executed twice: {row}" for row in engine.rows(TWICE)]
    found += [f"a stage is missing: {row}" for row in engine.rows(INCOMPLETE, sorted(STAGES))]
    found += [f"stored twice: {row}" for row in engine.rows(SAME)]
    found += [f"analysis not completed: {row}" for row in engine.rows(OPEN_ANALYSES)]
    with ThreadPoolExecutor(READERS) as readers:
        checked = (
            readers.map(partial(check_document, caller), receipts.contents, receipts.contents.values()),
            readers.map(partial(check_tags, caller), receipts.tags, receipts.tags.values()),
            readers.map(partial(check_conversion, caller), receipts.conversions, receipts.conversions.values()),
            readers.map(partial(check_analysis, caller), receipts.analyses),
        )
        return [*found, *(line for lines in checked for wrong in lines for line in wrong)]


def check_document(caller: Caller, document: str, digest: str) -> list[str]:
    status, shown = caller.get(f"/api/v1/documents/{document}")
    if status != 200 or json.loads(shown)["status"] != "completed":
        return [f"document {document}: {status} {shown[:200]!r}"]
    status, source = caller.get(f"/api/v1/documents/{document}/source")
    if status != 200 or sha256(source).hexdigest() != digest:
        return [f"document {document} has other bytes than those that were acknowledged: {status}"]
    return []


def check_tags(caller: Caller, document: str, tags: list[str]) -> list[str]:
    shown = json.loads(caller.get(f"/api/v1/documents/{document}")[1])
    return [] if set(tags) <= set(shown["tags"]) else [f"document {document} has {shown['tags']} instead of {tags}"]


def check_conversion(caller: Caller, conversion: str, number: str) -> list[str]:
    status, xml = caller.get(f"/api/v1/conversions/{conversion}/download")
    return [] if status == 200 and number.encode() in xml else [f"conversion {conversion}: {status} {xml[:200]!r}"]


def check_analysis(caller: Caller, analysis: str) -> list[str]:
    status, shown = caller.get(f"/api/v1/analyses/{analysis}")
    is_there = status == 200 and json.loads(shown)["status"] == "completed"
    return [] if is_there else [f"analysis {analysis}: {status} {shown[:200]!r}"]


def check_books(engine: Engine, gemini: FakeGemini) -> tuple[list[str], Decimal, int]:
    """The ledger has every bill, once; a call whose answer nobody heard is there as an estimate that is not too low.

    Returns what is wrong, the total, and the number of estimates.
    """
    calls: list[dict[str, Any]] = engine.rows(CALLS)
    known = [call for call in calls if not call["is_estimated"]]
    estimated = [call["cost_usd"] for call in calls if call["is_estimated"]]
    heard = Counter((call["model"], call["tokens_in"], call["tokens_out"]) for call in known)
    billed = Counter((bill.model, bill.read, bill.written) for bill in gemini.bills)
    unheard = [Bill(*bill) for bill in (billed - heard).elements()]
    found = [f"in the ledger and not billed: {call}" for call in (heard - billed).elements()]
    if len(unheard) > len(estimated):
        found.append(f"{len(unheard)} bills without an entry, {len(estimated)} estimates")
    if sum(estimated, Decimal(0)) < total_of(unheard):
        found.append(f"estimates of {sum(estimated)} for bills of {total_of(unheard)}")
    paid = sum((call["cost_usd"] for call in known), Decimal(0))
    if paid != total_of(gemini.bills) - total_of(unheard):
        found.append(f"the ledger has {paid}, the bills are {total_of(gemini.bills)} with {total_of(unheard)} unheard")
    return found, paid + sum(estimated, Decimal(0)), len(estimated)


def total_of(bills: list[Bill]) -> Decimal:
    return sum(map(cost_of, bills), start=Decimal(0))
