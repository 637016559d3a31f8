"""Conversions over HTTP: a form in, values with places and XML out; who may is in the table of all routes."""

from __future__ import annotations

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
from tests.support.conversions import converted, invoice
from tests.support.library import Desk
from tests.support.processing import OpenSandbox
from tests.support.visitors import House, me
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
    listed = (await client.get(CONVERSIONS, params={"status": "complete"})).json()["items"]
    assert [(one["id"], one["values"]) for one in listed] == [(found["id"], [])]


async def test_what_cannot_be_converted_is_refused_with_its_code_and_listed(house: House) -> None:
    client = await house.browser()
    for body, mapping, status, code in (
        (b"plain text", "invoice_v1", 415, "NOT_PDF"),
        (b"", "invoice_v1", 422, "EMPTY"),
        (PDF, "no_such_v9", 422, "UNKNOWN_MAPPING"),
    ):
        answer = await send(client, body, mapping)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
    listed = (await client.get(CONVERSIONS)).json()["items"]
    assert [one["error"]["code"] for one in listed] == ["UNKNOWN_MAPPING", "EMPTY", "NOT_PDF"]


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
