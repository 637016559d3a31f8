"""Settings by plain forms: who one is, keys, webhooks and looks; nobody sees or changes what is another's."""

from __future__ import annotations

import re
from uuid import UUID

import httpx
import pytest

from tests.api.rooms.conftest import administrator, guest, heading, is_page, person, went_to, words
from tests.support.passwords import PASSWORD
from tests.support.visitors import House, me, refused

ROOMS = ("account", "keys", "webhooks", "appearance")
ADA, BOB, CAROL = (f"{name}@example.org" for name in ("ada", "bob", "carol"))
ADDRESS = "https://hooks.example.org/octavo"


async def reader_of(
    house: House, owner: httpx.AsyncClient, email: str = CAROL, role: str = "reader"
) -> httpx.AsyncClient:
    """Somebody who acts for another's owner."""
    browser = await person(house, email)
    owner_id = (await me(owner))["owner_id"]
    assert (await owner.post("/settings/account/members", data={"email": email, "role": role})).status_code == 303
    went_to(await browser.post("/settings/account/owner", data={"owner_id": owner_id}), "/settings/account?said=owner")
    return browser


async def make_key(browser: httpx.AsyncClient, **given: str) -> str:
    answer = await browser.post("/settings/keys", data={"name": "Script", "scope": "read", "days": "", **given})
    is_page(answer, 201)
    return re.findall(r'value="(octavo_[^"]+)"', answer.text)[0]


async def add_hook(browser: httpx.AsyncClient, **given: str | list[str]) -> UUID:
    wanted = {"channel": "webhook", "address": ADDRESS, "events": ["document.completed", "document.failed"]}
    is_page(await browser.post("/settings/webhooks", data={**wanted, **given}), 201)
    (hook,) = (await browser.get("/api/v1/webhooks")).json()["items"]
    return UUID(hook["id"])


# Who sees what -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("caller", "statuses"),
    [
        ("newcomer", (200, 403, 403, 200)),
        ("person", (200, 200, 200, 200)),
        ("reader", (200, 200, 200, 200)),
        ("administrator", (200, 200, 200, 200)),
    ],
)
async def test_everybody_has_their_rooms(house: House, caller: str, statuses: tuple[int, ...]) -> None:
    owner = await person(house, ADA)
    browser = {
        "newcomer": lambda: guest(house),
        "person": lambda: person(house, BOB),
        "reader": lambda: reader_of(house, owner),
        "administrator": lambda: administrator(house),
    }[caller]
    client = await browser()
    went_to(await client.get("/settings"), "/settings/account")
    for room, status in zip(ROOMS, statuses, strict=True):
        answer = await client.get(f"/settings/{room}")
        is_page(answer, status)
        if status == 200:
            assert f'href="/settings/{room}" aria-current="page"' in answer.text
        else:
            assert 'href="/sign-in"' in answer.text


async def test_no_link_can_make_a_page_say_something(house: House) -> None:
    browser = await person(house, ADA)
    said = "Your account is in danger"
    assert said not in (await browser.get("/settings/account", params={"said": said})).text
    assert "API key revoked." in (await browser.get("/settings/keys?said=revoked")).text


# The account -------------------------------------------------------------------------------------------------------


async def test_a_visitor_sees_a_note_about_documents_tied_to_the_browser(house: House) -> None:
    answer = await (await guest(house)).get("/settings/account")
    assert "Your documents are tied to this browser" in words(answer)
    assert 'action="/settings/account/password"' not in answer.text
    assert 'id="members"' not in answer.text


async def test_a_password_change_requires_the_old_password(house: House) -> None:
    browser = await person(house, ADA)
    path = "/settings/account/password"
    wrong = await browser.post(path, data={"password": "not this", "new_password": PASSWORD + "!"})
    is_page(wrong, 401)
    assert "Wrong password." in words(wrong)
    short = await browser.post(path, data={"password": PASSWORD, "new_password": "short"})
    is_page(short, 422)
    assert 'aria-describedby="new_password-wrong"' in short.text
    went_to(
        await browser.post(path, data={"password": PASSWORD, "new_password": PASSWORD + "!"}),
        "/settings/account?said=password",
    )
    other = await guest(house)
    assert (await other.post("/sign-in", data={"email": ADA, "password": PASSWORD})).status_code == 401
    went_to(await other.post("/sign-in", data={"email": ADA, "password": PASSWORD + "!"}), "/")


async def test_people_are_added_given_a_role_and_removed(house: House) -> None:
    owner = await person(house, ADA)
    browser = await reader_of(house, owner)
    assert (await me(browser))["role"] == "reader"
    page = await browser.get("/settings/account")
    assert "Owners" in page.text
    assert 'action="/settings/account/members"' not in page.text
    (carol,) = [one["user_id"] for one in (await owner.get("/api/v1/members")).json()["items"] if one["email"] == CAROL]
    path = f"/settings/account/members/{carol}"
    went_to(await owner.post(f"{path}/role", data={"role": "member"}), "/settings/account?said=role#members")
    assert (await me(browser))["role"] == "member"
    assert heading(await owner.get(f"{path}/remove")) == f"Remove {CAROL}?"
    went_to(await owner.post(f"{path}/remove"), "/settings/account?said=removed#members")
    assert (await me(browser))["owner_id"] != (await me(owner))["owner_id"]


@pytest.mark.parametrize(
    ("given", "status", "said"),
    [
        ({"email": "nobody@example.org"}, 404, "There is no account with this address."),
        ({"email": "nobody"}, 422, "Enter a valid email address."),
        ({"email": ADA}, 409, "This person is already a member."),
    ],
    ids=["unknown", "no address", "twice"],
)
async def test_an_error_in_a_new_member_is_shown_next_to_its_field(
    house: House, given: dict[str, str], status: int, said: str
) -> None:
    answer = await (await person(house, ADA)).post("/settings/account/members", data=given)
    is_page(answer, status)
    assert said in words(answer)


async def test_the_last_owner_stays(house: House) -> None:
    browser = await person(house, ADA)
    (ada,) = [one["user_id"] for one in (await browser.get("/api/v1/members")).json()["items"]]
    for path, given in ((f"{ada}/role", {"role": "reader"}), (f"{ada}/remove", {})):
        answer = await browser.post(f"/settings/account/members/{path}", data=given)
        is_page(answer, 409)
        assert "There must be at least one owner." in words(answer)


async def test_a_member_without_the_owner_role_cannot_change_members(house: House) -> None:
    owner = await person(house, ADA)
    member = await reader_of(house, owner, role="member")
    (ada, *_) = [one["user_id"] for one in (await owner.get("/api/v1/members")).json()["items"]]
    await person(house, BOB)
    answers = [
        await member.post("/settings/account/members", data={"email": BOB}),
        await member.post(f"/settings/account/members/{ada}/role", data={"role": "reader"}),
        await member.post(f"/settings/account/members/{ada}/remove"),
    ]
    assert [answer.status_code for answer in answers] == [403, 403, 403]
    assert len((await owner.get("/api/v1/members")).json()["items"]) == 2


# Keys --------------------------------------------------------------------------------------------------------------


async def test_a_key_is_shown_once_works_and_is_revoked_after_a_question(house: House) -> None:
    browser = await person(house, ADA)
    key = await make_key(browser, name="My <b>script</b>", days="30")
    program = await house.program(key)
    assert (await program.get("/api/v1/jobs")).status_code == 200
    page = await browser.get("/settings/keys")
    assert key not in page.text
    assert key[:12] in page.text
    assert "My &lt;b&gt;script&lt;/b&gt;" in page.text
    (link,) = re.findall(r'href="(/settings/keys/[^"]+/revoke)"', page.text)
    assert heading(await browser.get(link)) == "Revoke “My <b>script</b>”?"
    assert (await program.get("/api/v1/jobs")).status_code == 200
    went_to(await browser.post(link), "/settings/keys?said=revoked")
    refused(await program.get("/api/v1/jobs"), 401, "UNAUTHENTICATED")


@pytest.mark.parametrize(
    ("given", "field"),
    [({"name": " "}, "name"), ({"name": "a" * 101}, "name"), ({"name": "a\x00"}, "name"), ({"scope": "all"}, "scope"),
     ({"days": "0"}, "days"), ({"days": "soon"}, "days")],
    ids=["nameless", "long", "control", "scope", "zero days", "no number"],
)  # fmt: skip
async def test_an_error_in_a_new_key_is_shown_next_to_its_field(
    house: House, given: dict[str, str], field: str
) -> None:
    browser = await person(house, ADA)
    answer = await browser.post("/settings/keys", data={"name": "Script", "scope": "read", "days": "", **given})
    is_page(answer, 422)
    assert f'aria-describedby="{field}-wrong"' in answer.text
    assert (await browser.get("/api/v1/keys")).json()["items"] == []


async def test_nobody_makes_a_key_above_their_role_or_revokes_another_owners(house: House) -> None:
    owner, stranger = await person(house, ADA), await person(house, BOB)
    await make_key(owner)
    (key,) = (await owner.get("/api/v1/keys")).json()["items"]
    reader = await reader_of(house, owner)
    answers = [
        await reader.post("/settings/keys", data={"name": "Script", "scope": "write"}),
        await (await guest(house)).post("/settings/keys", data={"name": "Script", "scope": "read"}),
        await stranger.post(f"/settings/keys/{key['id']}/revoke"),
        await stranger.get(f"/settings/keys/{key['id']}/revoke"),
        await reader.post(f"/settings/keys/{key['id']}/revoke"),
    ]
    assert [answer.status_code for answer in answers] == [403, 403, 404, 404, 404]
    assert (await owner.get("/api/v1/keys")).json()["items"] == [key]
    await make_key(reader)


# Webhooks ----------------------------------------------------------------------------------------------------------


async def test_a_webhook_is_added_tested_paused_resumed_and_deleted(house: House) -> None:
    browser = await person(house, ADA)
    made = await browser.post("/settings/webhooks", data={"address": ADDRESS, "events": ["document.completed"]})
    is_page(made, 201)
    (secret,) = re.findall(r'id="new-secret" value="([^"]+)"', made.text)
    (hook,) = (await browser.get("/api/v1/webhooks")).json()["items"]
    here = f"/settings/webhooks/{hook['id']}"
    for page in (await browser.get("/settings/webhooks"), await browser.get(here)):
        is_page(page)
        assert ADDRESS in page.text
        assert secret not in page.text
    went_to(await browser.post(f"{here}/test"), f"{here}?said=tested")
    assert await house.rows("SELECT kind FROM jobs") == [("deliver",)]
    went_to(await browser.post(f"{here}/pause"), f"{here}?said=paused")
    assert (await browser.get(f"/api/v1/webhooks/{hook['id']}")).json()["active"] is False
    went_to(await browser.post(f"{here}/resume"), f"{here}?said=resumed")
    assert (await browser.get(f"/api/v1/webhooks/{hook['id']}")).json()["active"] is True
    assert heading(await browser.get(f"{here}/delete")) == f"Delete {ADDRESS}?"
    went_to(await browser.post(f"{here}/delete"), "/settings/webhooks?said=deleted")
    assert (await browser.get(here)).status_code == 404


async def test_the_log_tells_how_deliveries_went(house: House) -> None:
    browser = await person(house, ADA)
    hook = await add_hook(browser)
    insert = (
        "INSERT INTO deliveries (id, subscriber_id, job_id, attempt, type, status, answer, seconds, error_code)"
        " VALUES (gen_random_uuid(), %s, gen_random_uuid(), %s, 'document.failed', %s, %s, 0.25, %s)"
    )
    await house.run(insert, hook, 1, "failed", 503, "GW_5XX")
    await house.run(insert, hook, 2, "delivered", 204, None)
    await house.run("UPDATE subscribers SET active = false, stopped_because = 'GONE'")
    page = words(await browser.get(f"/settings/webhooks/{hook}"))
    for part in ("Failed GW_5XX HTTP 503", "Delivered HTTP 204", "Stopped: GONE"):
        assert part in page


@pytest.mark.parametrize(
    ("given", "field"),
    [({"address": "not an address"}, "address"), ({"address": "ftp://example.org"}, "address"), ({"events": []}, None),
     ({"channel": "pigeon"}, "channel"), ({"address": "http://127.0.0.1/"}, "address")],
    ids=["spaces", "scheme", "no events", "channel", "inside"],
)  # fmt: skip
async def test_an_error_in_a_webhook_is_shown_next_to_its_field(
    house: House, given: dict[str, str | list[str]], field: str | None
) -> None:
    browser = await person(house, ADA)
    wanted = {"channel": "webhook", "address": ADDRESS, "events": ["document.completed"]}
    answer = await browser.post("/settings/webhooks", data=wanted | given)
    assert answer.status_code in {400, 422}
    assert f'aria-describedby="{field}-wrong"' in answer.text if field else "Choose at least one event." in answer.text
    assert (await browser.get("/api/v1/webhooks")).json()["items"] == []


async def test_nobody_touches_another_owners_webhooks(house: House) -> None:
    owner, stranger = await person(house, ADA), await person(house, BOB)
    here = f"/settings/webhooks/{await add_hook(owner)}"
    reader = await reader_of(house, owner)
    assert (await reader.get(here)).status_code == 200
    assert "Send a test" not in (await reader.get(here)).text
    for verb in ("pause", "resume", "test", "delete"):
        assert (await stranger.post(f"{here}/{verb}")).status_code == 404
        assert (await reader.post(f"{here}/{verb}")).status_code == 403
    assert (await stranger.get(here)).status_code == 404
    assert (await guest(house)).cookies.get("octavo_session") is None
    assert (await (await guest(house)).post("/settings/webhooks", data={"address": ADDRESS})).status_code in {403, 422}
    assert len((await owner.get("/api/v1/webhooks")).json()["items"]) == 1


# Appearance --------------------------------------------------------------------------------------------------------


async def test_this_browser_remembers_how_it_wants_things(house: House) -> None:
    browser = await guest(house)
    here = "/settings/appearance"
    assert "data-theme" not in (await browser.get(here)).text
    went_to(await browser.post(here, data={"theme": "dark"}), f"{here}?said=appearance")
    assert (browser.cookies["octavo_theme"], browser.cookies["octavo_keys"]) == ("dark", "off")
    for path in (here, "/library", "/sign-in"):
        assert '<html lang="en" data-theme="dark">' in (await browser.get(path)).text
    went_to(await browser.post(here, data={"theme": "system", "keys": "on"}), f"{here}?said=appearance")
    assert {"octavo_theme", "octavo_keys"}.isdisjoint(browser.cookies)
    assert (await browser.post(here, data={"theme": "pink"})).status_code == 422
