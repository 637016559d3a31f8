"""What programs may rely on beside the routes that have a file of their own."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import SecretStr

from octavo.core.instruments import record_spans, stop_tracing
from octavo.web.rooms.library import exports
from tests.support.connections import connect, put_passage
from tests.support.visitors import House, OpenHouse, me, refused

DURATION = "octavo_http_request_duration_seconds"
TEXT = 'The gull "naïve"\nflies over 東京 at dawn. '


async def test_an_export_has_all_that_the_other_routes_tell(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    client = await house.browser()
    one, other = [
        UUID((await client.post("/api/v1/documents", json={"text": text})).json()["document_id"])
        for text in (TEXT, "Other words")
    ]
    path = f"/api/v1/documents/{one}"
    early = (await client.get(f"{path}/export")).json()
    assert (early["document"]["status"], early["markdown"], early["chunks"]) == ("pending", None, [])
    await connect(house.run, UUID((await me(client))["owner_id"]), one, other)
    await put_passage(house.run, one, index=1)
    stored = await house.app.state.services.bucket.put(f"markdown/{one}", (TEXT * 9000).encode())
    values = (stored.key, stored.bytes, bytes.fromhex(stored.sha256))
    await house.run("INSERT INTO objects (key, bytes, sha256) VALUES (%s, %s, %s)", *values)
    made = (
        "INSERT INTO artifacts (id, document_id, kind, key, content_type) VALUES (%s, %s, 'markdown', %s, 'text/plain')"
    )
    await house.run(made, uuid4(), one, stored.key)
    for note in ("first", "second"):
        marked = await client.post(f"{path}/highlights", json={"start": 0, "end": 5, "note": note})
        assert marked.status_code == 201, marked.text
    monkeypatch.setattr(exports, "MOST_LIMIT", 1)
    answer = await client.get(f"{path}/export")
    assert answer.headers["content-disposition"].startswith("attachment")
    whole = answer.json()
    assert whole["document"] == (await client.get(path)).json()
    assert whole["markdown"] == TEXT * 9000
    for name, number in (("chunks", 2), ("connections", 1), ("highlights", 2)):
        assert whole[name] == (await client.get(f"{path}/{name}")).json()["items"]
        assert len(whole[name]) == number


async def test_a_highlight_of_a_missing_passage_is_refused_with_the_reason(house: House) -> None:
    client, stranger = await house.browser(), await house.browser()
    document = UUID((await client.post("/api/v1/documents", json={"text": TEXT})).json()["document_id"])
    path = f"/api/v1/documents/{document}/highlights"
    refused(await client.post(path, json={"quote": "gull"}), 409, "NOT_READY")
    await put_passage(house.run, document, index=0)
    problem = await client.post(path, json={"quote": "a crane"})
    refused(problem, 422, "VALIDATION")
    assert "not found in the text" in problem.json()["detail"]
    for body in ({}, {"start": 3}, {"start": 3, "end": 3}, {"quote": "gull", "colour": "black"}):
        refused(await client.post(path, json=body), 422, "VALIDATION")
    refused(await stranger.get(path), 404, "NOT_FOUND")


async def test_a_monitoring_system_can_read_how_much_there_is_to_do(house: House) -> None:
    client = await house.browser()
    await client.post("/api/v1/documents", json={"text": TEXT})
    answer = await client.get("/metrics")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    lines = answer.text.splitlines()
    assert {'octavo_jobs{status="queued"} 1.0', 'octavo_jobs_queued{kind="process_document"} 1.0'} <= set(lines)
    assert {'octavo_jobs{status="dead_letter"} 0.0', 'octavo_workers{state="alive"} 0.0'} <= set(lines)


async def test_requests_are_timed_by_route_and_not_by_path(house: House) -> None:
    client = await house.browser()
    for path in (f"/api/v1/documents/{uuid4()}", "/wp-admin/1", "/wp-admin/2", "/static/none.css"):
        await client.get(path)
    await client.request("BREW", "/api/v1/documents")
    lines = (await client.get("/metrics")).text.splitlines()
    timed = {line.split(" ")[0].removeprefix(f"{DURATION}_count") for line in lines if line.startswith(DURATION)}
    assert '{method="GET",route="/api/v1/documents/{document}",status="404"}' in timed
    assert {one for one in timed if "wp-admin" in one or "none.css" in one or "BREW" in one} == set()
    assert any('route="none",status="404"' in one for one in timed)


async def test_the_trace_of_a_request_goes_on_in_its_job(house: House) -> None:
    exporter = InMemorySpanExporter()
    record_spans("web", SimpleSpanProcessor(exporter))
    try:
        client = await house.browser()
        given = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"}
        await client.post("/api/v1/documents", json={"text": TEXT}, headers=given)
        await client.post("/api/v1/documents", json={"text": TEXT + "x"}, headers={"traceparent": "x" * 5000})
    finally:
        stop_tracing()
    request, other = exporter.get_finished_spans()
    assert (request.name, other.name) == ("POST /api/v1/documents",) * 2
    contexts = [row[0].split("-")[1:3] for row in await house.rows("SELECT context FROM job_traces")]
    assert request.context
    assert other.context
    assert ["a" * 32, f"{request.context.span_id:016x}"] in contexts
    assert [f"{other.context.trace_id:032x}", f"{other.context.span_id:016x}"] in contexts


@pytest.mark.parametrize("forwarded", ["Forwarded", "X-Forwarded-For", "X-Real-IP", "Via"])
async def test_strangers_learn_nothing_from_health_and_metrics(open_house: OpenHouse, forwarded: str) -> None:
    house = await open_house(metrics_token=SecretStr("a token for monitoring"))
    strangers = [await house.browser(address="192.0.2.1"), await house.browser(address="fd00::1")]
    strangers.append(await house.browser())  # a visitor behind a proxy on this machine
    strangers[-1].headers[forwarded] = "192.0.2.1"
    for stranger in strangers:
        ready = await stranger.get("/readyz")
        assert (ready.status_code, ready.json()) == (200, {"status": "ready"})
        refused(await stranger.get("/metrics"), 401, "UNAUTHENTICATED")
        stranger.headers["authorization"] = "Bearer a guess"
        refused(await stranger.get("/metrics"), 401, "UNAUTHENTICATED")
        assert "checks" not in (await stranger.get("/readyz")).json()


async def test_the_token_opens_metrics_and_readiness_to_another_machine(open_house: OpenHouse) -> None:
    house = await open_house(metrics_token=SecretStr("a token for monitoring"))
    monitor = await house.browser(address="192.0.2.1")
    monitor.headers["authorization"] = "Bearer a token for monitoring"
    assert "octavo_workers" in (await monitor.get("/metrics")).text
    checks = (await monitor.get("/readyz")).json()["checks"]
    assert [check["name"] for check in checks] == ["database", "connections", "storage", "disk"]


async def test_without_a_token_no_other_machine_reads_metrics(house: House) -> None:
    stranger = await house.browser(address="192.0.2.1")
    for token in ("", "None", "null"):
        stranger.headers["authorization"] = f"Bearer {token}"
        refused(await stranger.get("/metrics"), 401, "UNAUTHENTICATED")
    assert "checks" in (await (await house.browser(address="::1")).get("/readyz")).json()


async def test_a_word_that_is_empty_is_one_that_is_not_given(house: House) -> None:
    client = await house.browser()
    await client.post("/api/v1/documents", json={"text": TEXT})
    for path in ("documents?q=&tag=&collection=&cursor=", "jobs?kind=&cursor="):
        assert len((await client.get(f"/api/v1/{path}")).json()["items"]) == 1


async def test_a_new_collection_is_the_answer_and_its_only_item(house: House) -> None:
    client = await house.browser()
    made = (await client.post("/api/v1/collections", json={"name": "Boats"})).json()
    (item,) = made["items"]
    assert (made["next_cursor"], item["name"], item["documents"]) == (None, "Boats", 0)
    assert {name: made[name] for name in item} == item
    assert (await client.get("/api/v1/collections")).json()["items"] == [item]


async def test_answers_say_how_many_requests_are_left(open_house: OpenHouse) -> None:
    house = await open_house(requests_per_minute=5)
    client = await house.person("ann@example.org")
    first = await client.get("/api/v1/tags")
    assert first.headers["ratelimit-policy"] == '"owner";q=5;w=60'
    assert first.headers["ratelimit"] == '"owner";r=4;t=12'
    for left in (3, 2, 1, 0):
        assert f"r={left};" in (await client.get("/api/v1/tags")).headers["ratelimit"]
    problem = await client.get("/api/v1/tags")
    refused(problem, 429, "RATE_LIMIT")
    assert "r=0;" in problem.headers["ratelimit"]
    assert int(problem.headers["retry-after"]) > 0
    assert "ratelimit" not in (await client.get("/library")).headers
    await house.pass_time(12)
    assert "r=0;" in (await client.get("/api/v1/tags")).headers["ratelimit"]


async def test_visitors_see_both_of_their_limits(open_house: OpenHouse) -> None:
    house = await open_house(requests_per_minute=500, requests_per_minute_anonymous=50)
    client = await house.browser()
    await me(client)
    answer = await client.get("/api/v1/tags")
    assert answer.headers["ratelimit-policy"] == '"address";q=50;w=60, "owner";q=500;w=60'
    assert answer.headers["ratelimit"].startswith('"address";r=48;')
    assert "r=499;" in answer.headers["ratelimit"]
