"""Links to documents and collections show these and nothing else, and the audit lists who did what."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from octavo.library import shares
from tests.api.rooms.conftest import administrator, guest, heading, is_page, person, went_to, words
from tests.support.passwords import PASSWORD
from tests.support.visitors import House, OpenHouse, me, refused

API = {"accept": "application/json"}


async def add_text(house: House, browser: httpx.AsyncClient, title: str, text: str, **edit: Any) -> str:  # noqa: ANN401
    """A document with a text, as a worker would leave it."""
    headers = {"x-upload-filename": f"{title}.txt"}
    added = await browser.post("/api/v1/documents", content=f"{title} {uuid4()}".encode(), headers=headers)
    document = added.json()["document_id"]
    services = house.app.state.services
    stored = await services.bucket.put(f"markdown/{document}", text.encode())
    values = (stored.key, stored.bytes, bytes.fromhex(stored.sha256))
    await house.run("INSERT INTO objects (key, bytes, sha256) VALUES (%s, %s, %s)", *values)
    await house.run(
        "INSERT INTO artifacts (id, document_id, kind, key, content_type) VALUES (%s, %s, 'markdown', %s, %s)",
        *(uuid4(), document, stored.key, "text/markdown"),
    )
    await house.run("UPDATE documents SET text_ready = true, status = 'completed' WHERE id = %s", document)
    changed = await browser.patch(f"/api/v1/documents/{document}", json={"title": title, **edit})
    assert changed.status_code == 200, changed.text
    return document


async def share(browser: httpx.AsyncClient, **wanted: Any) -> dict[str, Any]:  # noqa: ANN401
    answer = await browser.post("/api/v1/shares", json=wanted)
    assert answer.status_code == 201, answer.text
    return answer.json()


def path_of(link: str) -> str:
    return "/shared/" + link.rpartition("/")[2]


async def test_a_link_shows_one_document_and_nothing_else(house: House) -> None:
    ada = await person(house, "ada@example.org")
    bog = await add_text(house, ada, "The bog", "# The bog\n\nPeat keeps rain. <script>alert(1)</script>")
    farm = await add_text(house, ada, "The farm", "A secret of the farm.")
    made = await share(ada, document_id=bog)
    reader, path = await guest(house), path_of(made["link"])
    went_to(await reader.get(path), f"{path}/{bog}")
    page = await reader.get(f"{path}/{bog}")
    is_page(page)
    assert (heading(page), "Peat keeps rain." in words(page)) == ("The bog", True)
    assert "<script>alert" not in page.text
    assert page.headers["x-robots-tag"] == "noindex"
    text = await reader.get(f"{path}/{bog}/markdown")
    assert text.text.startswith("# The bog")
    for other in (farm, str(uuid4())):
        for kind in ("", "/markdown", "/pages", "/pages/1.png", "/figures/1.png"):
            answer = await reader.get(f"{path}/{other}{kind}", headers=API)
            refused(answer, 404, "NOT_FOUND")
    # The link is no session: nothing else can be reached with it, and nobody becomes a visitor.
    assert "octavo_session" not in reader.cookies
    secret = path.rpartition("/")[2]
    for route in (f"/api/v1/documents/{bog}", "/api/v1/documents", f"/api/v1/documents/{bog}/markdown"):
        for headers in ({"authorization": f"Bearer {secret}"}, {"cookie": f"octavo_session={secret}"}):
            answer = await reader.get(route, headers={**API, **headers})
            assert answer.status_code in {401, 404} or answer.json()["items"] == []
        reader.cookies.clear()
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        assert (await reader.request(method, f"{path}/{bog}", headers=API)).status_code == 405


async def test_a_link_to_a_collection_follows_its_documents(house: House) -> None:
    ada = await person(house, "ada@example.org")
    bog = await add_text(house, ada, "The bog", "Peat.", collection="Nature")
    farm = await add_text(house, ada, "The farm", "Hay.", collection="Work")
    (nature,) = [one for one in (await ada.get("/api/v1/collections")).json()["items"] if one["name"] == "Nature"]
    reader = await guest(house)
    path = path_of((await share(ada, collection_id=nature["id"]))["link"])
    page = await reader.get(path)
    is_page(page)
    assert (heading(page), "The bog" in page.text, "The farm" in page.text) == ("Nature", True, False)
    assert (await reader.get(f"{path}/{farm}")).status_code == 404
    await ada.patch(f"/api/v1/documents/{farm}", json={"collection": "Nature"})
    assert (await reader.get(f"{path}/{farm}")).status_code == 200
    await ada.delete(f"/api/v1/documents/{bog}")
    assert (await reader.get(f"{path}/{bog}")).status_code == 404
    assert "The bog" not in (await reader.get(path)).text


async def test_a_link_expires_and_is_revoked(house: House) -> None:
    ada, bob = await person(house, "ada@example.org"), await person(house, "bob@example.org")
    bog = await add_text(house, ada, "The bog", "Peat.")
    first, second = await share(ada, document_id=bog), await share(ada, document_id=bog, expires_in_days=1)
    reader = await guest(house)
    assert (await reader.get(f"{path_of(first['link'])}/{bog}")).status_code == 200
    refused(await bob.delete(f"/api/v1/shares/{first['id']}", headers=API), 404, "NOT_FOUND")
    page = await ada.get("/settings/shares")
    assert words(page).count("Anybody with the link") == 2
    assert first["link"] not in page.text
    went_to(await ada.post(f"/settings/shares/{first['id']}/revoke"), "/settings/shares?said=share_revoked")
    await house.run("UPDATE shares SET expires_at = clock_timestamp() WHERE id = %s", second["id"])
    for link in (first["link"], second["link"]):
        for path in (path_of(link), f"{path_of(link)}/{bog}", f"{path_of(link)}/{bog}/markdown"):
            refused(await reader.get(path, headers=API), 404, "SHARE_REFUSED")
    assert (await ada.get("/api/v1/shares")).json()["items"] == []


async def test_a_link_for_people_with_an_account_asks_to_sign_in(open_house: OpenHouse) -> None:
    house = await open_house()
    ada, bob = await person(house, "ada@example.org"), await person(house, "bob@example.org")
    bog = await add_text(house, ada, "The bog", "Peat.")
    path = path_of((await share(ada, document_id=bog, sign_in=True))["link"])
    reader, visitor = await guest(house), await guest(house)
    await me(visitor)
    for browser in (reader, visitor):
        went_to(await browser.get(path), f"/sign-in?next=%2Fshared%2F{path.rpartition('/')[2]}")
        for kind in ("", "/markdown", "/pages/1.png"):
            refused(await browser.get(f"{path}/{bog}{kind}", headers=API), 401, "UNAUTHENTICATED")
    assert "Peat." in words(await bob.get(f"{path}/{bog}"))
    refused(await bob.get(f"/api/v1/documents/{bog}", headers=API), 404, "NOT_FOUND")


async def test_only_members_who_can_write_share_and_only_their_own(house: House) -> None:
    ada, bob = await person(house, "ada@example.org"), await person(house, "bob@example.org")
    bog = await add_text(house, ada, "The bog", "Peat.")
    refused(await bob.post("/api/v1/shares", json={"document_id": bog}, headers=API), 404, "NOT_FOUND")
    for wrong in ({}, {"document_id": bog, "collection_id": bog}, {"document_id": bog, "expires_in_days": 366}):
        assert (await ada.post("/api/v1/shares", json=wrong, headers=API)).status_code == 422
    page = await ada.post("/settings/shares", data={"document": bog, "days": "30", "sign_in": ""})
    is_page(page, 201)
    assert "Copy the link now." in words(page)
    is_page(await ada.post("/settings/shares", data={"document": bog, "days": "never"}), 422)


# Audit -------------------------------------------------------------------------------------------------------------


async def test_the_audit_lists_who_did_what(house: House) -> None:
    ada, bob = await person(house, "ada@example.org"), await person(house, "bob@example.org")
    await ada.post("/api/v1/members", json={"email": "bob@example.org", "role": "member"})
    await bob.post("/api/v1/session/owner", json={"owner_id": (await me(ada))["owner_id"]})
    bog = await add_text(house, bob, "=The bog", "Peat.")
    key = (await ada.post("/api/v1/keys", json={"name": "script", "scope": "write"})).json()
    await (await house.program(key["key"])).delete(f"/api/v1/documents/{bog}")
    entries = (await ada.get("/api/v1/audit", headers=API)).json()["items"]
    seen = [(one["actor"], one["via"], one["action"], one["thing"]) for one in entries]
    assert ("ada@example.org", "session", "member.add", "bob@example.org") in seen
    assert ("ada@example.org", "session", "key.add", "script") in seen
    assert ("bob@example.org", "session", "created", "=The bog") in seen
    deleted = [one for one in entries if one["via"] == "key"]
    assert deleted
    assert {one["actor"] for one in deleted} == {"ada@example.org"}
    assert {one["document_id"] for one in deleted} == {bog}
    people = {one["actor"]: one["actor_id"] for one in entries}
    only = (await ada.get("/api/v1/audit", params={"person": people["bob@example.org"]}, headers=API)).json()["items"]
    assert {one["actor"] for one in only} == {"bob@example.org"}
    grouped = (await ada.get("/api/v1/audit", params={"action": "member"}, headers=API)).json()["items"]
    assert [one["action"] for one in grouped] == ["member.add"]
    later = await ada.get("/api/v1/audit", params={"since": "2999-01-01"}, headers=API)
    assert later.json()["items"] == []
    first = (await ada.get("/api/v1/audit", params={"limit": 2}, headers=API)).json()
    rest = (await ada.get("/api/v1/audit", params={"cursor": first["next_cursor"], "limit": 500}, headers=API)).json()
    assert first["items"] + rest["items"] == entries
    refused(await bob.get("/api/v1/audit", headers=API), 403, "NOT_ALLOWED")
    refused(await bob.get("/settings/audit", headers=API), 403, "NOT_ALLOWED")


async def test_the_audit_lists_changes_of_rules_fields_sources_and_recipients(house: House, folder: Path) -> None:
    ada, machine = await person(house, "ada@example.org"), await administrator(house)
    bog = await add_text(house, ada, "The bog", "Peat.", tags=["wet"])
    field = (await ada.post("/api/v1/fields", json={"name": "Project", "type": "text"})).json()["id"]
    body = {"name": "Bogs", "when": {"tag": "wet"}, "then": {"fields": {"Project": "Bog"}}, "enabled": False}
    rule = f"/api/v1/rules/{(await ada.post('/api/v1/rules', json=body)).json()['id']}"
    assert (await ada.patch(rule, json={"enabled": True})).status_code == 200
    assert (await ada.post(f"{rule}/apply")).json()["documents"] == 1
    assert (await ada.post(f"{rule}/undo")).status_code == 200
    hook = {"address": "https://example.org/hook"}
    recipient = (await ada.post("/api/v1/webhooks", json=hook)).json()["id"]
    await ada.delete(f"/api/v1/webhooks/{recipient}")
    await ada.delete(f"/api/v1/fields/{field}")
    entries = (await ada.get("/api/v1/audit", headers=API)).json()["items"]
    changes = [(one["action"], one["thing"]) for one in reversed(entries) if one["document_id"] is None]
    assert [one for one in changes if one[0].startswith(("field", "rule", "recipient"))] == [
        *(
            ("field.add", None),
            ("rule.add", "Bogs"),
            ("rule.enable", "Bogs"),
            ("rule.apply", "Bogs"),
            ("rule.undo", "Bogs"),
        ),
        *(("recipient.add", None), ("recipient.delete", None), ("field.delete", None)),
    ]
    assert {one["actor"] for one in entries if one["document_id"] in {None, bog}} == {"ada@example.org"}
    inbox = folder / "inbox"
    inbox.mkdir()
    source = await machine.post("/api/v1/sources", json={"kind": "folder", "path": str(inbox)})
    await machine.post(f"/api/v1/sources/{source.json()['id']}/pause")
    query = {"action": "source"}
    listed = (await machine.get("/api/v1/audit", params=query, headers=API)).json()["items"]
    assert [(one["action"], one["thing"]) for one in listed] == [("source.pause", "inbox"), ("source.add", "inbox")]


async def test_the_audit_page_filters_and_exports(house: House) -> None:
    ada = await person(house, "ada@example.org")
    await add_text(house, ada, "=HYPERLINK", "Peat.")
    page = await ada.get("/settings/audit", params={"action": "account", "since": "2020-01-01", "until": "no day"})
    is_page(page)
    assert "account.sign_up" in page.text
    assert "edited" not in [line.strip() for line in words(page).split()]
    exported = await ada.get("/api/v1/audit/csv", headers=API)
    assert exported.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(exported.text)))
    assert {one["person"] for one in rows} == {"ada@example.org"}
    assert "'=HYPERLINK" in {one["object"] for one in rows}
    assert {one["action"] for one in rows} >= {"account.sign_up", "created"}


async def test_filters_that_make_no_sense_are_refused_or_ignored(house: House) -> None:
    ada = await person(house, "ada@example.org")
    for day in ("0001-01-01", "9999-12-31"):
        query = {"since": "0001-01-01", "until": day}
        found = (await ada.get("/api/v1/audit", params=query, headers=API)).json()["items"]
        assert bool(found) == (day == "9999-12-31")
        is_page(await ada.get("/settings/audit", params=query))
        assert (await ada.get("/api/v1/audit/csv", params=query)).status_code == 200
    refused(await ada.get("/api/v1/audit", params={"action": "a\x00"}, headers=API), 422, "VALIDATION")
    is_page(await ada.get("/settings/audit", params={"action": "a\x00"}))


async def test_what_a_visitor_did_is_not_attributed_to_the_administrator(house: House) -> None:
    browser = await guest(house)
    headers = API | {"x-upload-filename": "peat.txt"}
    assert (await browser.post("/api/v1/documents", content=b"Peat keeps rain.", headers=headers)).status_code == 202
    account = {"email": "ada@example.org", "password": PASSWORD}
    assert (await browser.post("/api/v1/account", json=account, headers=API)).status_code == 201
    found = (await browser.get("/api/v1/audit", headers=API)).json()["items"]
    assert {one["actor"] for one in found if one["action"].startswith("created")} == {None}
    page = words(await browser.get("/settings/audit"))
    assert ("Visitor without an account" in page, "Administrator of this machine" in page) == (True, False)
    machine = await administrator(house)
    await share(machine, collection_id=(await machine.post("/api/v1/collections", json={"name": "A"})).json()["id"])
    assert (await machine.get("/api/v1/audit", headers=API)).json()["items"][0]["actor"] == "administrator"


async def test_a_long_collection_is_shown_page_by_page(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "MOST_LISTED", 1)
    ada = await person(house, "ada@example.org")
    for title in ("Bog", "Farm"):
        await add_text(house, ada, title, "Text.", collection="Land")
    (land,) = (await ada.get("/api/v1/collections", headers=API)).json()["items"]
    reader, path = await guest(house), path_of((await share(ada, collection_id=land["id"]))["link"])
    first = await reader.get(path)
    assert ("Bog" in words(first), "Farm" in words(first)) == (True, False)
    (more,) = re.findall(rf'href="({path}\?cursor=[^"]+)"', first.text)
    second = await reader.get(more)
    is_page(second)
    assert ("Bog" in words(second), "Farm" in words(second), "cursor=" in second.text) == (False, True, False)
