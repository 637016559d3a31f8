"""Sources, fields and rules are set up on pages, without scripts."""

from __future__ import annotations

import html
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from uuid import UUID, uuid4

import httpx
import pytest
from lxml import html as lxml_html
from pydantic import SecretStr

from octavo.core.settings import Settings
from octavo.intake.sources.reading import SourceSecret, open_secret
from tests.api.rooms.conftest import administrator, guest, is_page, person, went_to, words
from tests.support.connections import put_passage
from tests.support.imap import ConsentServer, consent_server
from tests.support.visitors import House, OpenHouse

SOURCES, FIELDS, RULES = "/settings/sources", "/settings/fields", "/settings/rules"


async def test_an_administrator_watches_a_folder(house: House, tmp_path: Path) -> None:
    browser = await administrator(house)
    is_page(empty := await browser.get(SOURCES))
    assert "No sources yet" in words(empty)
    for path, reason in (("scans", "absolute path"), ("/nowhere", "does not exist"), ("/", "its own data")):
        is_page(answer := await browser.post(SOURCES, data={"path": path}), 422)
        assert reason in words(answer)
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    went_to(await browser.post(SOURCES, data={"path": str(inbox), "subfolders": "tags"}), f"{SOURCES}?said=source")
    is_page(answer := await browser.post(SOURCES, data={"path": str(inbox)}), 422)
    assert "already watched" in words(answer)
    (found,) = (await browser.get("/api/v1/sources")).json()["items"]
    assert (found["name"], found["options"]["subfolders"], found["state"]) == ("inbox", "tags", "watching")
    here = f"{SOURCES}/{found['id']}"
    is_page(form := await browser.get(f"{here}/edit"))
    assert 'value="10"' in form.text
    is_page(answer := await browser.post(f"{here}/edit", data={"name": "Scans", "every_seconds": "1"}), 422)
    assert "Enter a number of seconds" in words(answer)
    changes = {"name": "Scans", "every_seconds": "90", "subfolders": "collections", "after": "move"}
    went_to(await browser.post(f"{here}/edit", data=changes), f"{SOURCES}?said=source_edit")
    is_page(shown := await browser.get(SOURCES))
    assert "every 90 seconds" in words(shown)
    (found,) = (await browser.get("/api/v1/sources")).json()["items"]
    assert (found["name"], found["every_seconds"], found["options"]["subfolders"]) == ("Scans", 90, "collections")
    assert (found["options"]["after"], found["options"]["changed"]) == ("move", "version")
    went_to(await browser.post(f"{here}/pause"), f"{SOURCES}?said=source_pause")
    assert "Paused" in words(await browser.get(SOURCES))
    went_to(await browser.post(f"{here}/resume"), f"{SOURCES}?said=source_resume")
    went_to(await browser.post(f"{here}/run"), f"{SOURCES}?said=source_run")
    is_page(await browser.get(f"{here}/delete"))
    went_to(await browser.post(f"{here}/delete"), f"{SOURCES}?said=source_delete")
    assert (await browser.get("/api/v1/sources")).json()["items"] == []


async def test_an_administrator_watches_a_mailbox(open_house: OpenHouse) -> None:
    house = await open_house(secret_key="of this installation, long enough")
    browser = await administrator(house)
    is_page(form := await browser.get(f"{SOURCES}?kind=imap"))
    assert "Only emails with attachments" in words(form)
    box = {"kind": "imap", "path": "imaps://mail.example.org/Scans", "user": "ann", "password": "correct horse"}
    for changed, reason in (
        ({"path": "mail.example.org"}, "such as imaps://"),
        ({"path": "imap://mail.example.org/Scans"}, "only over TLS"),
        ({"path": "imaps://192.168.1.7/Scans"}, "Private addresses are blocked"),
        ({"user": ""}, "Enter the user"),
        ({"after": "move"}, "to which emails are moved"),
        ({"subfolders": "tags"}, "does not apply"),
    ):
        is_page(answer := await browser.post(SOURCES, data=box | changed), 422)
        assert reason in words(answer)
        assert "correct horse" not in answer.text
    went_to(await browser.post(SOURCES, data=box | {"after": "seen", "attachments": "yes"}), f"{SOURCES}?said=source")
    assert "Are marked as seen" in words(await browser.get(SOURCES))
    (found,) = (await browser.get("/api/v1/sources")).json()["items"]
    assert (found["path"], found["access"]["user"]) == ("imaps://ann@mail.example.org:993/Scans", "ann")
    assert found["options"]["attachments"]
    here = f"/api/v1/sources/{found['id']}"
    assert (await browser.patch(here, json={"options": {"subfolders": "tags"}})).status_code == 422
    assert (await browser.patch(here, json={"every_seconds": 5})).status_code == 422
    changed = await browser.patch(here, json={"options": {"after": "keep"}, "password": "new"})
    assert (changed.json()["options"]["after"], changed.json()["options"]["attachments"]) == ("keep", True)
    (stored,) = await house.rows("SELECT secret FROM sources")
    assert "new" not in stored[0]
    # On the page, an empty password keeps the stored one, and an empty option is cleared.
    page = f"{SOURCES}/{found['id']}/edit"
    edited = {"name": "Box", "every_seconds": "120", "after": "seen", "sender": "bob"}
    went_to(await browser.post(page, data=edited), f"{SOURCES}?said=source_edit")
    assert await house.rows("SELECT secret FROM sources") == [stored]
    is_page(refused := await browser.post(page, data=edited | {"after": "move", "password": "horse battery"}), 422)
    assert "to which emails are moved" in words(refused)
    assert "horse battery" not in refused.text
    went_to(await browser.post(page, data={"name": "Box", "password": "newer"}), f"{SOURCES}?said=source_edit")
    assert await house.rows("SELECT secret FROM sources") != [stored]
    options = (await browser.get(here)).json()["options"]
    assert (options["after"], options["sender"], options["attachments"]) == ("keep", None, False)


@dataclass(frozen=True, slots=True)
class Connecting:
    """An administrator who connects the account of a mailbox at a provider."""

    house: House
    browser: httpx.AsyncClient
    provider: ConsentServer

    @property
    def form(self) -> dict[str, str]:
        urls = {"authorize_url": f"{self.provider.url}/authorize", "token_url": f"{self.provider.url}/token"}
        named = {"client_id": "octavo", "client_secret": "of the client", "scope": "imap", "user": "ann@example.org"}
        return {"kind": "imap", "path": "imaps://mail.example.org/INBOX", "connect": "yes"} | urls | named

    async def begin(self, path: str = SOURCES, data: dict[str, str] | None = None) -> str:
        """Start at a form. Returns the address of the provider's page."""
        is_page(page := await self.browser.post(path, data=self.form if data is None else data))
        return html.unescape(page.text.partition('class="button primary" href="')[2].partition('"')[0])

    async def come_back(self, query: dict[str, str]) -> httpx.Response:
        return await self.browser.get(f"{SOURCES}/callback", params=query)

    async def sources(self) -> list[dict[str, Any]]:
        return (await self.browser.get("/api/v1/sources")).json()["items"]


@pytest.fixture
async def connecting(open_house: OpenHouse) -> AsyncGenerator[Connecting]:
    async with consent_server() as provider:
        allowed = f"127.0.0.1:{provider.port}"
        house = await open_house(secret_key="of this installation, long enough", fetch_allow=[allowed])
        yield Connecting(house, await administrator(house), provider)


async def test_an_account_is_connected_at_the_provider_and_its_token_is_stored_encrypted(
    connecting: Connecting,
) -> None:
    asked = await connecting.begin()
    assert asked.startswith(f"{connecting.provider.url}/authorize?")
    assert await connecting.sources() == []
    went_to(await connecting.come_back(connecting.provider.allow(asked)), f"{SOURCES}?said=source")
    (form,) = connecting.provider.exchanged
    assert (form["client_id"], form["client_secret"]) == ("octavo", "of the client")
    assert form["redirect_uri"].endswith("/settings/sources/callback")
    (found,) = await connecting.sources()
    assert found["access"]["scope"] == "imap"
    ((stored,),) = await connecting.house.rows("SELECT secret FROM sources")
    settings = Settings(secret_key=SecretStr("of this installation, long enough"))
    assert open_secret(settings, stored) == SourceSecret("r-1", "of the client")
    assert "r-1" not in stored
    # The account can be connected again, without entering the client secret.
    again = await connecting.begin(f"{SOURCES}/{found['id']}/connect", {})
    went_to(await connecting.come_back(connecting.provider.allow(again)), f"{SOURCES}?said=source")
    assert len(await connecting.sources()) == 1
    assert connecting.provider.exchanged[1]["client_secret"] == "of the client"
    assert await connecting.house.rows("SELECT FROM source_consents") == []


async def test_a_wrong_state_a_replayed_code_and_an_error_of_the_provider_are_refused(connecting: Connecting) -> None:
    provider = connecting.provider
    back = provider.allow(await connecting.begin())
    is_page(wrong := await connecting.come_back(back | {"state": "x" * 43}), 422)
    assert "not started in this browser" in words(wrong)
    went_to(await connecting.come_back(back), f"{SOURCES}?said=source")
    is_page(replayed := await connecting.come_back(back), 422)  # the state was used
    assert "already complete" in words(replayed)
    (first,) = await connecting.sources()
    await connecting.browser.delete(f"/api/v1/sources/{first['id']}")
    later = provider.allow(await connecting.begin())
    is_page(used := await connecting.come_back(later | {"code": back["code"]}), 422)  # the code was used
    assert "rejected the code" in words(used)
    denied = provider.allow(await connecting.begin())
    is_page(refused := await connecting.come_back({"state": denied["state"], "error": "access_denied"}), 422)
    assert "You cancelled the sign-in" in words(refused)
    is_page(await connecting.come_back(denied), 422)
    provider.has_refresh_token = False
    is_page(short := await connecting.come_back(provider.allow(await connecting.begin())), 422)
    assert "no refresh token" in words(short)
    assert await connecting.sources() == []


async def test_only_the_browser_that_started_can_connect_the_account(connecting: Connecting) -> None:
    back = connecting.provider.allow(await connecting.begin())
    other = await administrator(connecting.house)
    is_page(await other.get(f"{SOURCES}/callback", params=back), 422)
    member = await person(connecting.house, "ann@example.org")
    assert (await member.get(f"{SOURCES}/callback", params=back)).status_code == 403
    assert (await member.post(SOURCES, data=connecting.form)).status_code == 403
    assert connecting.provider.exchanged == []
    for changed, reason in (
        ({"authorize_url": "javascript:alert(1)"}, ""),
        ({"authorize_url": "https://192.168.1.7/authorize"}, "Private addresses are blocked"),
        ({"client_id": ""}, "OAuth needs both"),
    ):
        is_page(page := await connecting.browser.post(SOURCES, data=connecting.form | changed), 422)
        assert reason in words(page)
    is_page(page := await connecting.browser.post(SOURCES, data=connecting.form | {"provider": "google"}))
    assert "https://accounts.google.com/o/oauth2/v2/auth?" in page.text


async def test_the_page_says_where_a_mail_server_must_deliver(open_house: OpenHouse) -> None:
    set_up = "deliver emails to 127.0.0.1:8024 over LMTP"
    for place, text in ((None, "Octavo does not receive emails yet"), ("127.0.0.1:8024", set_up)):
        browser = await administrator(await open_house(lmtp_listen=place))
        is_page(form := await browser.get(f"{SOURCES}?kind=lmtp"))
        assert text in words(form)


async def test_a_shared_page_is_added_only_after_a_question(house: House) -> None:
    browser = await guest(house)
    manifest = await browser.get("/manifest.webmanifest")
    target = manifest.json()["share_target"]
    assert (target["action"], target["method"], manifest.headers["content-type"]) == (
        "/share",
        "GET",
        "application/manifest+json",
    )
    is_page(setup := await browser.get("/share"))
    assert "javascript:void(window.open(" in setup.text
    shared = {"text": 'The <b>ferry</b> "leaves" at nine.', "title": "Ferries"}
    is_page(asked := await browser.get("/share", params=shared))
    assert "<b>ferry</b>" not in asked.text
    assert (await browser.get("/api/v1/documents")).json()["items"] == []
    went_to(await browser.post("/actions/add", data=shared), "/library")
    (found,) = (await browser.get("/api/v1/documents")).json()["items"]
    assert found["title"] == "Ferries"


async def test_nobody_else_reads_folders_of_the_server(house: House, tmp_path: Path) -> None:
    body = {"kind": "folder", "path": str(tmp_path)}
    for browser in (await guest(house), await person(house, "ann@example.org")):
        assert (await browser.get("/api/v1/sources")).json()["items"] == []  # known from here on
        assert (await browser.post("/api/v1/sources", json=body)).status_code == 403
        assert (await browser.post(SOURCES, data={"path": str(tmp_path)})).status_code == 403
        assert "Add a source" not in words(await browser.get(SOURCES))
    machine = await administrator(house)
    key = (await machine.post("/api/v1/keys", json={"name": "k", "scope": "write"})).json()["key"]
    program = await house.program(key)
    assert (await program.post("/api/v1/sources", json=body)).status_code == 403
    assert (await program.get("/api/v1/sources")).json()["items"] == []


async def test_a_field_is_added_set_and_deleted(house: House) -> None:
    browser = await guest(house)
    assert "No custom fields yet" in words(await browser.get(FIELDS))
    went_to(await browser.post(FIELDS, data={"name": "Project", "type": "text"}), f"{FIELDS}?said=field")
    for wrong in ({"name": "project"}, {"name": "a:b"}, {"name": ""}, {"name": "Status", "type": "choice"}):
        is_page(await browser.post(FIELDS, data=wrong), 422)
    went_to(
        await browser.post(FIELDS, data={"name": "Status", "type": "choice", "choices": "Open, Paid"}),
        f"{FIELDS}?said=field",
    )
    document = (await browser.post("/api/v1/documents", json={"text": "The ferry."})).json()["document_id"]
    edit, api = f"/documents/{document}/edit", f"/api/v1/documents/{document}"
    assert "Status" in words(await browser.get(edit))
    went_to(await browser.post(edit, data={"field:Project": "Coast", "field:Status": "Paid"}), f"/documents/{document}")
    assert (await browser.get(api)).json()["fields"] == {"Project": "Coast", "Status": "Paid"}
    is_page(answer := await browser.post(edit, data={"field:Status": "Lost"}), 422)
    assert "must be one of Open, Paid" in words(answer)
    went_to(await browser.post(edit, data={"field:Status": ""}), f"/documents/{document}")
    assert (await browser.get(api)).json()["fields"] == {"Project": "Coast"}
    assert "The ferry" in words(await browser.get("/library?field=Project:Coast"))
    assert (await browser.patch(api, json={"fields": {"Nothing": "x"}})).status_code == 422
    field, status = (await browser.get("/api/v1/fields")).json()["items"]
    choices = {"name": "Status", "choices": "Open, Paid, Late"}
    went_to(await browser.post(f"{FIELDS}/{status['id']}/edit", data=choices), f"{FIELDS}?said=field_edit")
    assert (await browser.get("/api/v1/fields")).json()["items"][1]["choices"] == ["Open", "Paid", "Late"]
    is_page(await browser.get(edit := f"{FIELDS}/{field['id']}/edit"))
    is_page(answer := await browser.post(edit, data={"name": "status"}), 422)
    assert "already taken" in words(answer)
    went_to(await browser.post(edit, data={"name": "Site"}), f"{FIELDS}?said=field_edit")
    assert (await browser.get(api)).json()["fields"] == {"Site": "Coast"}
    assert "The ferry" in words(await browser.get("/search?q=ferry&field=Site:Coast"))
    assert "No documents match" in words(await browser.get("/search?q=ferry&field=Site:Inland"))
    is_page(await browser.get(f"{FIELDS}/{field['id']}/delete"))
    went_to(await browser.post(f"{FIELDS}/{field['id']}/delete"), f"{FIELDS}?said=field_deleted")
    assert (await browser.get(api)).json()["fields"] == {}


async def test_a_rule_is_tried_applied_undone_and_moved(house: House) -> None:
    browser = await guest(house)
    document = (await browser.post("/api/v1/documents", json={"text": "Bay 7 has a lighthouse."})).json()["document_id"]
    await put_passage(house.run, UUID(document), "Bay 7 has a lighthouse.")
    is_page(answer := await browser.post(RULES, data={"name": "Nothing", "text": "bay"}), 422)
    assert "at least one action" in words(answer)
    made = await browser.post(RULES, data={"name": "Bays", "text": "bay 7", "then_tags": "bay, sea"})
    assert made.status_code == 303
    (rule,) = (await browser.get("/api/v1/rules")).json()["items"]
    here = f"{RULES}/{rule['id']}"
    is_page(shown := await browser.get(here))
    assert "Apply to 1 document" in words(shown)
    assert "bay, sea" in words(shown)
    went_to(await browser.post(f"{here}/apply"), f"{here}?said=rule_apply")
    assert (await browser.get(f"/api/v1/documents/{document}")).json()["tags"] == ["bay", "sea"]
    went_to(await browser.post(f"{here}/undo"), f"{here}?said=rule_undo")
    assert (await browser.get(f"/api/v1/documents/{document}")).json()["tags"] == []
    assert "Undone" in words(await browser.get(here))
    went_to(await browser.post(f"{here}/enable"), f"{here}?said=rule_enable")
    await browser.post(RULES, data={"name": "Later", "kind": "letter", "then_collection": "Mail"})
    later = (await browser.get("/api/v1/rules")).json()["items"][1]["id"]
    went_to(await browser.post(f"{RULES}/{later}/up"), f"{RULES}?said=rule_up")
    assert [one["name"] for one in (await browser.get("/api/v1/rules")).json()["items"]] == ["Later", "Bays"]
    is_page(listed := await browser.get(RULES))
    assert "kind is “letter”" in words(listed)
    went_to(await browser.post(f"{here}/delete"), f"{RULES}?said=rule_delete")


async def test_a_rule_that_sends_and_expires_documents_is_added_on_the_page(house: House) -> None:
    browser = await person(house, "ann@example.org")
    hook = (await browser.post("/api/v1/webhooks", json={"address": "https://example.org/hook"})).json()["id"]
    added = await browser.post("/api/v1/documents", json={"text": "Bay 7 has a lighthouse."})
    document = added.json()["document_id"]
    await put_passage(house.run, UUID(document), "Bay 7 has a lighthouse.")
    form = {"name": "Bays", "text": "bay 7", "then_deliver": hook, "then_days": "10", "then_after": "added"}
    is_page(answer := await browser.post(RULES, data=form | {"then_days": "ten"}), 422)
    assert "Enter the retention period as a number of days" in words(answer)
    assert (await browser.post(RULES, data=form)).status_code == 303
    (rule,) = (await browser.get("/api/v1/rules")).json()["items"]
    assert rule["then"]["deliver"] == [hook]
    assert rule["then"]["retention"] == {"days": 10, "after": "added"}
    here = f"{RULES}/{rule['id']}"
    is_page(shown := await browser.get(here))
    for text in ("send to webhook https://example.org/hook", "move to the trash 10 days after it was added"):
        assert text in words(shown)
    went_to(await browser.post(f"{here}/apply"), f"{here}?said=rule_apply")
    assert "1 message sent" in words(await browser.get(here))
    expires = (await browser.get(f"/api/v1/documents/{document}")).json()["expires_on"]
    assert expires in words(await browser.get(f"/documents/{document}?panel=about"))
    kept = await browser.patch(f"/api/v1/documents/{document}", json={"expires_on": None})
    assert kept.json()["expires_on"] is None
    wrong = {"name": "Theirs", "when": {"kind": "x"}, "then": {"deliver": [str(uuid4())]}}
    assert (await browser.post("/api/v1/rules", json=wrong)).status_code == 422


async def test_all_of_a_rule_can_be_set_and_edited_on_the_page(house: House) -> None:
    browser = await person(house, "ann@example.org")
    for name in ("Project", "Status"):
        await browser.post("/api/v1/fields", json={"name": name, "type": "text"})
    hooks = [
        (await browser.post("/api/v1/webhooks", json={"address": f"https://example.org/{name}"})).json()["id"]
        for name in "ab"
    ]
    form: dict[str, str | list[str]] = {
        "name": "All",
        "text": "bay 7",
        "kind": "invoice",
        "sender": "Ann",
        "tag": "sea",
        "amount_min": "1,000",
        "amount_max": "2000.5",
        "currency": "EUR",
        "when_field": ["Project", "Status", ""],
        "when_value": ["Coast", "", ""],
        "then_tags": "a, b",
        "then_collection": "Box",
        "then_title": "{kind}",
        "then_days": "30",
        "then_field": ["", "Status"],
        "then_value": ["", "Paid"],
        "then_deliver": hooks,
        "then_after": "date",
    }
    made = await browser.post(RULES, data=form)
    here = made.headers["location"].partition("?")[0]
    wanted = {
        "when": {
            "text": "bay 7",
            "kind": "invoice",
            "sender": "Ann",
            "source": None,
            "tag": "sea",
            "field": {"Project": "Coast", "Status": None},
            "amount": {"min": 1000.0, "max": 2000.5, "currency": "EUR"},
        },
        "then": {
            "tags": ["a", "b"],
            "collection": "Box",
            "fields": {"Status": "Paid"},
            "title": "{kind}",
            "analyse": None,
            "convert": None,
            "deliver": hooks,
            "retention": {"days": 30, "after": "date"},
        },
    }
    (rule,) = (await browser.get("/api/v1/rules")).json()["items"]
    assert {name: rule[name] for name in wanted} == wanted
    # The form for editing contains all values: saving it unchanged changes nothing, in no language.
    for language in ("en", "de"):
        own = {"accept-language": language}
        is_page(page := await browser.get(f"{here}/edit", headers=own))
        sent = values_of(page.text)
        went_to(await browser.post(f"{here}/edit", data=sent, headers=own), f"{here}?said=rule_edit")
        (rule,) = (await browser.get("/api/v1/rules")).json()["items"]
        assert {name: rule[name] for name in wanted} == wanted
    assert sent["amount_max"] == ["2000,5"]
    went_to(
        await browser.post(f"{here}/edit", data={"name": "B", "kind": "x", "then_tags": "y"}), f"{here}?said=rule_edit"
    )
    (rule,) = (await browser.get("/api/v1/rules")).json()["items"]
    assert (rule["name"], rule["when"]["text"], rule["then"]["tags"], rule["then"]["deliver"]) == (
        "B",
        None,
        ["y"],
        None,
    )
    is_page(
        answer := await browser.post(f"{here}/edit", data={"name": "B", "when_field": "Gone", "when_value": "x"}), 422
    )
    assert "at least one action" in words(answer)
    others = await guest(house)
    assert (await others.get(f"{here}/edit")).status_code == 404


def values_of(page: str) -> dict[str, list[str]]:
    """The values that a browser sends for the form that edits a rule."""
    form: Any = cast("Any", lxml_html).fromstring(page).xpath("//form[contains(@action, '/edit')]")[0]
    given: dict[str, list[str]] = {}
    for name, value in form.form_values():
        given.setdefault(name, []).append(value)
    return given
