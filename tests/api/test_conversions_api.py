"""Conversions over HTTP: a form in, values with places and XML out; who may is in the table of all routes."""

from __future__ import annotations

import asyncio
import json
import re
from inspect import signature
from pathlib import Path
from typing import Any
from uuid import UUID
from xml.etree import ElementTree as ET

import httpx

from octavo.client.conversions import ConversionCalls
from octavo.convert.mappings.stored_mappings import DEFAULT_MAPPING
from octavo.extract.detect import detect
from octavo.intake import Intake
from octavo.web.context.callers import SESSION_COOKIE
from tests.support.conversions import converted, invoice
from tests.support.library import Desk
from tests.support.preloaded import descendants
from tests.support.processing import OpenSandbox
from tests.support.visitors import House, OpenHouse, me, refused, session_of
from tests.support.working import working

CONVERSIONS = "/api/v1/conversions"
PDF = invoice().write()


async def send(client: httpx.AsyncClient, body: bytes = PDF, mapping: str = "invoice_v1") -> httpx.Response:
    """The mapping behind the file, as a form may have it."""
    files = [("file", ("bill.pdf", body, "application/pdf")), ("mapping", (None, mapping.encode()))]
    return await client.post(CONVERSIONS, files=files)


async def finish(house: House, client: httpx.AsyncClient, folder: Path, conversion: str) -> dict[str, Any]:
    services = house.app.state.services
    desk = Desk(services.database, services.bucket, Intake(services.database, services.bucket, detect))
    async with working(desk, OpenSandbox(), folder):
        await converted(desk, UUID((await me(client))["owner_id"]), UUID(conversion))
    return (await client.get(f"{CONVERSIONS}/{conversion}")).json()


async def test_an_invoice_becomes_values_and_xml_and_downloads_are_counted(house: House, folder: Path) -> None:
    client = await house.browser()
    asked = await send(client)
    assert asked.status_code == 202, asked.text
    assert asked.json()["status"] == "queued"
    early = await client.get(f"{CONVERSIONS}/{asked.json()['id']}/download")
    assert (early.status_code, early.json()["code"]) == (409, "NOT_READY")
    found = await finish(house, client, folder, asked.json()["id"])
    assert (found["status"], found["error"], found["duplicate_of"], found["missing"]) == ("complete", None, None, [])
    total = next(one for one in found["values"] if one["name"] == "total")
    assert (total["value"], total["page"], total["quote"], total["verified"]) == ("12.50", 1, "12.50", True)
    assert len(total["box"]) == 4
    answers = {
        form: await client.get(f"{CONVERSIONS}/{found['id']}/download", params={"form": form})
        for form in ("xml", "plain", "json")
    }
    assert all(one.headers["content-disposition"].startswith("attachment") for one in answers.values())
    assert {one.text for one in ET.fromstring(answers["plain"].content)} >= {"A-17", "2024-08-15", "12.50", "EUR"}
    assert b"urn:octavo:provenance" in answers["xml"].content
    assert json.loads(answers["json"].content)["mapping"] == "invoice_v1"
    counted = (await client.get(f"{CONVERSIONS}/{found['id']}")).json()
    assert counted["download_count"] == 3
    assert counted["first_downloaded_at"]
    assert (await send(client)).json()["id"] == found["id"]


async def test_raw_bytes_and_corrections(house: House, folder: Path) -> None:
    client = await house.browser()
    headers = {"x-upload-filename": "bill.pdf", "content-type": "application/pdf"}
    asked = await client.post(CONVERSIONS, params={"mapping": "invoice_v1"}, content=PDF, headers=headers)
    found = await finish(house, client, folder, asked.json()["id"])
    path = f"{CONVERSIONS}/{found['id']}"
    wrong = await client.patch(path, json={"values": [{"name": "total", "value": "a lot"}]})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "VALIDATION")
    right = await client.patch(path, json={"values": [{"name": "total", "value": "99.00"}]})
    assert right.json()["revision"] == 2
    revisions = (await client.get(f"{path}/revisions")).json()["items"]
    assert [one["made_by"] for one in revisions] == ["engine", "person"]
    (sample,) = (await client.get("/api/v1/training-samples")).text.splitlines()
    assert json.loads(sample)["conversion"] == found["id"]
    assert (await client.get(CONVERSIONS, params={"status": "complete"})).json()["items"] == []
    (listed,) = (await client.get(CONVERSIONS, params={"status": "needs_review"})).json()["items"]
    assert (listed["id"], listed["values"], listed["status"]) == (found["id"], [], "needs_review")


async def test_what_cannot_be_converted_is_refused_with_its_code_and_listed(house: House) -> None:
    client = await house.browser()
    for body, mapping, status, code in (
        (b"plain text", "invoice_v1", 415, "NOT_PDF"),
        (b"", "invoice_v1", 422, "EMPTY"),
        (PDF, "no_such_v9", 422, "UNKNOWN_MAPPING"),  # and no job
    ):
        answer = await send(client, body, mapping)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
    listed = (await client.get(CONVERSIONS)).json()["items"]
    assert [one["error"]["code"] for one in listed] == ["EMPTY", "NOT_PDF"]


async def test_mappings_are_listed_checked_added_and_have_a_schema(house: House) -> None:
    client = await house.browser()
    broken = await client.post("/api/v1/mappings/check", json={"file": "x.yaml", "text": "name: x_v1"})
    assert (broken.status_code, broken.json()["code"]) == (422, "BAD_MAPPING")
    assert "x.yaml: " in broken.json()["detail"]
    mine = {"file": "mine.yaml", "text": "name: mine_v1\nextends: invoice_v1"}
    assert (await client.post("/api/v1/mappings", json=mine)).status_code == 201
    names = [one["name"] for one in (await client.get("/api/v1/mappings")).json()["items"]]
    assert names == ["invoice_v1", "pt_simon_invoice_v1", "receipt_v1", "mine_v1"]
    assert b"urn:octavo:mapping:mine_v1" in (await client.get("/api/v1/mappings/mine_v1/schema")).content


LABELS = "[" + ",".join(f"l{number}" for number in range(2000)) + "]"
BOMB = (
    f"name: bomb_v1\nxml: B\nfields:\n  f: {{type: text, xml: F, labels: &m {{k: &l {LABELS},"
    + ",".join(f"k{number}: *l" for number in range(1000))
    + "}}\n"
    + "".join(f"  f{number}: {{type: text, xml: F{number}, labels: *m}}\n" for number in range(200))
)
ENDLESS = "".join(f"\\u{number:04x}-\\uffff" for number in range(150))
# Compiling its patterns takes minutes.
PATTERNS = ",".join(f"'(?i){number}[{ENDLESS}]'" for number in range(100))
SLOW_TO_CHECK = f"name: slow_v1\nxml: S\nfields: {{a: {{type: text, xml: A, patterns: [{PATTERNS}]}}}}"


async def test_mappings_full_of_aliases_are_refused_while_others_read(house: House) -> None:
    """45 KB that mean 400 million labels."""
    visitor, reader = await house.browser(), await house.person("reader@example.org")
    await me(visitor)
    paths = ("/api/v1/mappings", "/api/v1/mappings/check")
    thrown = [asyncio.create_task(visitor.post(paths[n % 2], json={"text": BOMB})) for n in range(12)]
    while not all(one.done() for one in thrown):
        assert (await reader.get("/api/v1/documents")).status_code == 200
        idle = await house.rows(
            "SELECT FROM pg_stat_activity WHERE datname = current_database() AND xact_start < now() - interval '2 s'"
        )
        assert not idle
    answers = [(one.result().status_code, one.result().json()["code"]) for one in thrown]
    assert set(answers) == {(422, "BAD_MAPPING"), (429, "RATE_LIMIT")}
    page = await visitor.post("/settings/mappings", data={"text": BOMB}, headers={"accept": "text/html"})
    assert page.status_code == 422
    assert "anchors (&amp;) and aliases (*) are not allowed" in page.text


async def test_visitors_check_few_mappings_and_people_many(open_house: OpenHouse) -> None:
    house = await open_house(mapping_checks_per_minute_anonymous=2)
    visitor, person = await house.browser(), await house.person("a@example.org")
    await me(visitor)
    for client, expected in ((visitor, [422, 422, 429]), (person, [422, 422, 422])):
        answers = [await client.post("/api/v1/mappings/check", json={"text": "a: b"}) for _ in range(3)]
        assert [one.status_code for one in answers] == expected


async def test_a_check_ends_when_its_caller_leaves(house: House) -> None:
    person = await house.person("a@example.org")
    good = {"text": "name: good_v1\nextends: invoice_v1"}
    assert (await person.post("/api/v1/mappings/check", json=good)).status_code == 200
    cookie = f"{SESSION_COOKIE}={session_of(person)}"
    body = json.dumps({"text": SLOW_TO_CHECK}).encode()
    before = descendants()
    left, started = asyncio.Event(), False

    async def receive() -> dict[str, Any]:
        nonlocal started
        if not started:
            started = True
            return {"type": "http.request", "body": body, "more_body": False}
        while descendants() <= before:  # noqa: ASYNC110 - no event tells
            await asyncio.sleep(0.01)
        left.set()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:  # noqa: ANN401 - nobody reads it
        del message

    headers = [(b"content-type", b"application/json"), (b"cookie", cookie.encode()), (b"host", b"127.0.0.1:8400")]
    scope = {"type": "http", "method": "POST", "path": "/api/v1/mappings/check", "raw_path": b"/api/v1/mappings/check"}
    scope |= {"headers": headers, "query_string": b"", "scheme": "http", "http_version": "1.1", "root_path": ""}
    scope |= {"client": ("127.0.0.1", 5000), "server": ("127.0.0.1", 8400)}
    await house.app(scope, receive, send)
    assert left.is_set()
    assert descendants() <= before


async def test_a_mapping_that_an_older_version_accepted_says_why_it_cannot_be_used(house: House) -> None:
    client = await house.browser()
    owner = (await me(client))["owner_id"]
    text = "name: old_v1\nxml: O\nfields: {a: {type: text, xml: A, labels: {en: &l [a], de: *l}}}"
    insert = "INSERT INTO mappings (id, owner_id, name, file, text) VALUES (gen_random_uuid(), %s, %s, 'o.yaml', %s)"
    await house.run(insert, owner, "old_v1", text)
    await house.run(insert, owner, "plain_v1", "name: plain_v1\nextends: invoice_v1")
    *_, old, plain = (await client.get("/api/v1/mappings")).json()["items"]
    assert (old["name"], old["fields"]) == ("old_v1", [])
    assert "anchors (&) and aliases (*) are not allowed" in old["error"]
    assert (plain["error"], plain["title"]) == (None, "Invoices of any layout")
    assert refused(await client.get("/api/v1/mappings/old_v1"), 422, "BAD_MAPPING")
    page = await client.get("/settings/mappings", headers={"accept": "text/html"})
    assert "anchors (&amp;) and aliases (*) are not allowed" in page.text
    assert 'value="old_v1"' not in (await client.get("/conversions", headers={"accept": "text/html"})).text


async def test_page_api_and_command_have_the_same_default_mapping(house: House) -> None:
    client = await house.browser()
    form = await client.post(CONVERSIONS, files={"file": ("bill.pdf", PDF, "application/pdf")})
    raw = await client.post(CONVERSIONS, content=invoice("B-1").write(), headers={"x-upload-filename": "bill.pdf"})
    page = await client.get("/conversions", headers={"accept": "text/html"})
    (chosen,) = re.findall(r'<option value="([^"]+)" selected', page.text)
    assert {form.json()["mapping"], raw.json()["mapping"], chosen} == {DEFAULT_MAPPING}
    assert signature(ConversionCalls.convert).parameters["mapping"].default is None  # the server decides


async def test_a_repeated_submission_names_the_conversion_that_it_repeats(house: House) -> None:
    client = await house.browser()
    first, again = (await send(client)).json(), (await send(client)).json()
    assert (first["duplicate_of"], again["duplicate_of"], again["id"]) == (None, first["id"], first["id"])


async def test_what_models_answered_can_be_exported(house: House) -> None:
    client = await house.browser()
    begun = (await send(client)).json()["id"]
    answers = [{"name": "total", "value": "12,50", "quote": "12,50"}, {"name": "due_date", "value": "x", "quote": "y"}]
    model = {
        "task": "extract_fields",
        "fields": ["total", "due_date"],
        "made_by": "gemini:x",
        "said": answers,
        "error": None,
    }
    record = {"values": [["total", "12.50", 0.8, None, True, None, None]], "checks": [], "missing": [], "model": model}
    insert = "INSERT INTO revisions (conversion_id, number, record, made_by) VALUES (%s, 1, %s, 'engine')"
    await house.run(insert, begun, json.dumps(record))
    answer = await client.get("/api/v1/model-checks")
    assert answer.headers["content-type"] == "application/jsonl"
    (line,) = map(json.loads, answer.text.splitlines())
    assert (line["conversion"], line["made_by"], line["mapping"]) == (begun, "gemini:x", "invoice_v1")
    assert [one["accepted"] for one in line["said"]] == ["12.50", None]
    assert (await (await house.browser()).get("/api/v1/model-checks")).text == ""


async def test_two_owners_with_a_mapping_of_one_name_keep_both_when_they_merge(house: House, folder: Path) -> None:
    """A conversion is read with the mapping it was made with, whatever has its name now."""
    visitor, person = await house.browser(), await house.person("a@example.org")
    for client, extra in ((visitor, "theirs"), (person, "mine")):
        field = f"{{type: text, xml: Extra, labels: {{en: [{extra}]}}, value: {extra}}}"
        text = f"name: both_v1\nextends: invoice_v1\nfields: {{{extra}: {field}}}"
        assert (await client.post("/api/v1/mappings", json={"text": text})).status_code == 201
    made = await finish(house, visitor, folder, (await send(visitor, mapping="both_v1")).json()["id"])
    await house.rows("SELECT merge_owner(%s, %s)", (await me(visitor))["owner_id"], (await me(person))["owner_id"])
    path = f"{CONVERSIONS}/{made['id']}"
    found = await person.get(path)
    assert found.status_code == 200, found.text
    assert "theirs" in {one["name"] for one in found.json()["values"]}
    assert (await person.get("/conversions/" + made["id"], headers={"accept": "text/html"})).status_code == 200
    corrected = await person.patch(path, json={"values": [{"name": "theirs", "value": "kept"}]})
    assert corrected.json()["revision"] == 2
    texts = {one["name"]: one for one in (await person.get("/api/v1/mappings")).json()["items"] if one["created_at"]}
    assert set(texts) == {"both_v1", "both_2_v1"}
    assert "theirs" in texts["both_2_v1"]["fields"]
    kept = (await person.get("/api/v1/mappings/both_2_v1")).json()
    assert (kept["name"], kept["text"].splitlines()[0]) == ("both_2_v1", "name: both_2_v1")


async def test_documents_are_converted_without_another_upload_one_by_one_and_by_a_filter(
    house: House, folder: Path
) -> None:
    client = await house.browser()
    sent = await client.post("/api/v1/documents", content=PDF, headers={"x-upload-filename": "bill.pdf"})
    document = sent.json()["document_id"]
    path = f"/api/v1/documents/{document}/convert"
    first = await client.post(path, json={"mapping": "invoice_v1"})
    again = await client.post(path, json={"mapping": "invoice_v1"})
    assert (first.status_code, again.json()["duplicate_of"]) == (202, first.json()["id"])
    assert refused(await client.post(path, json={"mapping": "invioce_v1"}), 422, "UNKNOWN_MAPPING")
    assert (await client.post(path)).json()["mapping"] == DEFAULT_MAPPING
    found = await finish(house, client, folder, first.json()["id"])
    assert (found["document_id"], found["source_expires_at"]) == (document, None)
    assert found["result_expires_at"]
    bulk = {"action": "convert", "edit": {"mapping": "receipt_v1"}}
    for which in ({"ids": [document]}, {"filter": {"q": "bill"}}):
        begun = await client.post("/api/v1/documents/bulk", json=bulk | which)
        assert begun.json()["changed"] == 1
        assert (await client.get(f"/api/v1/conversion-batches/{begun.json()['batch_id']}")).json()["total"] == 0
    for wrong in (bulk, bulk | {"ids": [document], "edit": {"title": "x"}}, {"ids": [document], "action": "edit"}):
        assert (await client.post("/api/v1/documents/bulk", json=wrong)).status_code == 422
    assert len((await client.get("/api/v1/documents")).json()["items"]) == 1


async def test_corrections_point_at_words_change_rows_and_name_the_person(house: House, folder: Path) -> None:
    person = await house.person("ada@example.org")
    found = await finish(house, person, folder, (await send(person)).json()["id"])
    path = f"{CONVERSIONS}/{found['id']}"
    words = (await person.get(f"{path}/words", params={"page": 1})).json()["items"]
    (net,) = [one["box"] for one in words if one["text"] == "10.00"]
    values = [{"name": "total", "value": "10.00", "page": 1, "box": net}, {"name": "invoice_number", "value": "A-18"}]
    rows = [{"table": "lines", "action": "add", "values": {"description": "Tea", "amount": "10.00"}}]
    made = (await person.patch(path, json={"values": values, "rows": rows})).json()
    total, number = ({one["name"]: one for one in made["values"]}[name] for name in ("total", "invoice_number"))
    assert (total["quote"], total["confirmed_by"], total["status"]) == ("10.00", "ada@example.org", "confirmed")
    assert (number["page"], number["box"], number["quote"]) == (None, None, None)
    last = (await person.get(f"{path}/revisions")).json()["items"][-1]
    assert (last["person"], last["changes"][-1]["action"]) == ("ada@example.org", "add")
    for wrong in (
        {},
        {"values": [{"name": "total", "value": "1.00", "box": net}]},
        {"rows": [rows[0] | {"table": "x"}]},
    ):
        assert (await person.patch(path, json=wrong)).status_code == 422
    assert b'p:by="ada@example.org"' in (await person.get(f"{path}/download")).content
    assert (await person.delete(path)).status_code == 204
    assert (await person.get(path)).status_code == 404
    assert (await person.get("/api/v1/training-samples")).text == ""


async def test_a_correction_can_be_replaced_by_the_value_that_was_found(house: House, folder: Path) -> None:
    person = await house.person("ada@example.org")
    found = await finish(house, person, folder, (await send(person)).json()["id"])
    path = f"{CONVERSIONS}/{found['id']}"
    assert (await person.patch(path, json={"restore": ["total"]})).status_code == 422
    await person.patch(
        path, json={"values": [{"name": "total", "value": "99.00"}, {"name": "invoice_date", "value": None}]}
    )
    page = await person.get(f"/conversions/{found['id']}", params={"field": "total"})
    assert 'title="Restore 12.50"' in page.text
    made = (await person.patch(path, json={"restore": ["total", "invoice_date"]})).json()
    assert made["values"] == found["values"]
    last = (await person.get(f"{path}/revisions")).json()["items"][-1]
    assert last["changes"] == [
        {"name": "total", "before": "99.00", "after": "12.50"},
        {"name": "invoice_date", "before": None, "after": "2024-08-15"},
    ]
    assert "Restore" not in (await person.get(f"/conversions/{found['id']}", params={"field": "total"})).text


async def test_a_file_is_converted_again_with_the_same_mapping_or_another(house: House, folder: Path) -> None:
    person = await house.person("ada@example.org")
    first = await finish(house, person, folder, (await send(person)).json()["id"])
    await person.patch(f"{CONVERSIONS}/{first['id']}", json={"values": [{"name": "invoice_number", "value": "A-18"}]})
    begun = await person.post(f"{CONVERSIONS}/{first['id']}/again")
    assert begun.status_code == 202, begun.text
    twice = await person.post(f"{CONVERSIONS}/{first['id']}/again", json={})
    assert (twice.json()["id"], twice.json()["duplicate_of"]) == (begun.json()["id"], begun.json()["id"])
    second = await finish(house, person, folder, begun.json()["id"])
    assert (second["id"] != first["id"], second["mapping"]) == (True, "invoice_v1")
    numbers = {one["name"]: one for one in second["values"]}
    assert (numbers["invoice_number"]["value"], numbers["invoice_number"]["confirmed_by"]) == (
        "A-18",
        "ada@example.org",
    )
    assert (await send(person)).json()["id"] == second["id"]
    assert (await person.get(f"{CONVERSIONS}/{first['id']}/revisions")).status_code == 200
    assert "Convert again" in (await person.get(f"/conversions/{first['id']}/again")).text
    await person.post("/api/v1/mappings", json={"text": "name: mine_v1\nextends: invoice_v1"})
    form = await person.post(f"/conversions/{first['id']}/again", data={"mapping": "mine_v1"})
    third = await finish(house, person, folder, form.headers["location"].rpartition("/")[2])
    assert third["mapping"] == "mine_v1"
    unknown = await person.post(f"{CONVERSIONS}/{first['id']}/again", json={"mapping": "x_v1"})
    assert (unknown.status_code, unknown.json()["code"]) == (422, "UNKNOWN_MAPPING")
