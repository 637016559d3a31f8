"""Webhooks and notifications as programs manage them."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from octavo.deliver.messages import DEFAULT_EVENTS
from octavo.deliver.subscribers import MOST_SUBSCRIBERS
from tests.support.passwords import hash_fast
from tests.support.visitors import House, house_on, me, refused

HOOK = "https://example.org/hook"
HOW_TO = Path(__file__).parents[2] / "docs/how-to/webhooks.md"


@pytest.fixture
async def house(database_info: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    hash_fast(monkeypatch)
    async with house_on(database_info, folder, smtp_url="smtp://127.0.0.1:9", fetch_allow=("127.0.0.1:8401",)) as one:
        yield one


@pytest.fixture
async def ada(house: House) -> httpx.AsyncClient:
    return await house.person("ada@example.org")


async def add(browser: httpx.AsyncClient, **wanted: object) -> httpx.Response:
    return await browser.post("/api/v1/webhooks", json={"address": HOOK, **wanted})


async def test_the_secret_is_shown_once_and_never_again(ada: httpx.AsyncClient) -> None:
    made = (await add(ada)).json()
    assert made["secret"].startswith("whsec_")
    assert (made["channel"], made["active"], made["events"]) == ("webhook", True, list(DEFAULT_EVENTS))
    shown = [
        await ada.get("/api/v1/webhooks"),
        await ada.get(f"/api/v1/webhooks/{made['id']}"),
        await ada.patch(f"/api/v1/webhooks/{made['id']}", json={"events": ["document.failed"]}),
    ]
    for answer in shown:
        assert answer.status_code == 200
        assert made["secret"] not in answer.text
    assert shown[0].json()["items"][0]["id"] == made["id"]
    assert shown[2].json()["events"] == ["document.failed"]


async def test_the_command_of_the_how_to_page_makes_one(ada: httpx.AsyncClient) -> None:
    (body,) = re.findall(r"-d '(.*?)'", HOW_TO.read_text())
    answer = await ada.post("/api/v1/webhooks", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 201
    assert answer.json()["events"] == json.loads(body)["events"]


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        ({"address": "http://127.0.0.1/"}, "FETCH_REFUSED"),
        ({"address": "http://169.254.169.254/latest"}, "FETCH_REFUSED"),
        ({"address": "http://2130706433/"}, "FETCH_REFUSED"),
        ({"address": "http://[::1]/"}, "FETCH_REFUSED"),
        ({"address": "http://localhost:8400/"}, "FETCH_REFUSED"),
        ({"address": "https://10.1.2.3/", "channel": "slack"}, "FETCH_REFUSED"),
        ({"address": "ftp://example.org/"}, "BAD_URL"),
        ({"address": "example.org"}, "BAD_URL"),
        ({"address": "https://user:password@example.org/"}, "BAD_URL"),
        ({"address": "ada at example.org", "channel": "mail"}, "VALIDATION"),
        ({"address": "ada@example.org,eve@example.org", "channel": "mail"}, "BAD_ADDRESS"),
        ({"channel": "pigeon"}, "VALIDATION"),
        ({"events": []}, "VALIDATION"),
        ({"events": ["document.read"]}, "VALIDATION"),
        ({"secret": "mine"}, "VALIDATION"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(map(str, value.values())),
)
async def test_what_cannot_be_sent_to_is_refused_and_leaves_nothing(
    house: House, ada: httpx.AsyncClient, wanted: dict[str, object], code: str
) -> None:
    refused(await add(ada, **wanted), 422, code)
    assert await house.rows("SELECT FROM subscribers") == []


async def test_an_edit_is_checked_like_a_new_one(house: House, ada: httpx.AsyncClient) -> None:
    hook = (await add(ada)).json()["id"]
    answer = await ada.patch(f"/api/v1/webhooks/{hook}", json={"address": "http://127.0.0.1/", "active": False})
    refused(answer, 422, "FETCH_REFUSED")
    assert await house.rows("SELECT active, address FROM subscribers") == [(True, HOOK)]


async def test_what_the_installation_allows_may_be_inside(ada: httpx.AsyncClient) -> None:
    assert (await add(ada, address="http://127.0.0.1:8401/hook")).status_code == 201


async def test_a_chats_address_is_not_given_away(ada: httpx.AsyncClient) -> None:
    made = await add(ada, channel="slack", address="https://hooks.example.com/services/T1/B1/verysecret")
    listed = await ada.get("/api/v1/webhooks")
    assert made.status_code == 201
    assert made.json()["secret"] is None
    assert "verysecr" not in made.text + listed.text


async def test_mail_needs_a_mail_server(database_info: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hash_fast(monkeypatch)
    async with house_on(database_info, folder) as house:
        ada = await house.person("ada@example.org")
        refused(await add(ada, channel="mail", address="ada@example.org"), 422, "MAIL_NOT_SET")


async def test_visitors_have_none(house: House) -> None:
    visitor = await house.browser()
    refused(await add(visitor), 401, "UNAUTHENTICATED")
    await me(visitor)
    refused(await add(visitor), 403, "NOT_ALLOWED")
    assert (await visitor.get("/api/v1/notifications")).json() == {"items": [], "next_cursor": None, "unread": 0}


async def test_nobody_has_too_many(ada: httpx.AsyncClient) -> None:
    for _ in range(MOST_SUBSCRIBERS):
        assert (await add(ada)).status_code == 201
    refused(await add(ada), 409, "TOO_MANY_WEBHOOKS")


async def test_stopping_drops_what_waits_and_starting_again_forgets_why(house: House, ada: httpx.AsyncClient) -> None:
    hook = (await add(ada)).json()["id"]
    await house.run(
        "INSERT INTO outgoing (subscriber_id, event_id, process_id, type) VALUES (%s, 1, %s, 'job.failed')",
        *(hook, uuid4()),
    )
    path = f"/api/v1/webhooks/{hook}"
    assert (await ada.get(path)).json()["waiting"] == 1
    stopped = (await ada.patch(path, json={"active": False})).json()
    assert (stopped["active"], stopped["waiting"]) == (False, 0)
    await house.run("UPDATE subscribers SET stopped_because = 'RECEIVER_GONE'")
    assert (await ada.get(path)).json()["stopped_because"] == "RECEIVER_GONE"
    again = (await ada.patch(path, json={"active": True})).json()
    assert (again["active"], again["stopped_because"]) == (True, None)


async def test_a_test_answers_the_job_that_sends_it(ada: httpx.AsyncClient) -> None:
    hook = (await add(ada)).json()["id"]
    answer = await ada.post(f"/api/v1/webhooks/{hook}/test")
    assert answer.status_code == 202
    job = await ada.get(f"/api/v1/jobs/{answer.json()['job_id']}")
    assert (job.json()["kind"], job.json()["max_attempts"]) == ("deliver", 1)


async def test_the_log_is_read_page_by_page_newest_first(house: House, ada: httpx.AsyncClient) -> None:
    hook = (await add(ada)).json()["id"]
    for number in range(5):
        await house.run(
            "INSERT INTO deliveries (id, subscriber_id, job_id, attempt, event_id, type, status, answer, seconds)"
            " VALUES (gen_random_uuid(), %s, gen_random_uuid(), 1, %s, 'document.completed', 'delivered', 200, 0.1)",
            *(hook, number),
        )
    seen: list[int] = []
    cursor: str | None = None
    while cursor or not seen:
        query = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        page = (await ada.get(f"/api/v1/webhooks/{hook}/deliveries", params=query)).json()
        seen += [one["event_id"] for one in page["items"]]
        cursor = page["next_cursor"]
    assert seen == [4, 3, 2, 1, 0]


async def test_deleting_one_takes_everything_along(house: House, ada: httpx.AsyncClient) -> None:
    hook = (await add(ada)).json()["id"]
    await ada.post(f"/api/v1/webhooks/{hook}/test")
    assert (await ada.delete(f"/api/v1/webhooks/{hook}")).status_code == 204
    refused(await ada.get(f"/api/v1/webhooks/{hook}"), 404, "NOT_FOUND")
    assert await house.rows("SELECT FROM subscribers") == []


async def test_a_resolved_error_records_the_user_and_the_time(house: House, ada: httpx.AsyncClient) -> None:
    owner = (await me(ada))["owner_id"]
    person = (await house.rows("SELECT id FROM users"))[0][0]
    kinds = [("document.completed", "news"), ("document.failed", "error")]
    for number, (kind, level) in enumerate(kinds):
        await house.run(
            "INSERT INTO notifications (id, owner_id, event_id, process_id, type, level, created_at)"
            " VALUES (gen_random_uuid(), %s, %s, gen_random_uuid(), %s, %s, now())",
            *(owner, number, kind, level),
        )
    told = (await ada.get("/api/v1/notifications")).json()
    assert told["unread"] == 2
    error, news = told["items"]
    solved = (await ada.post(f"/api/v1/notifications/{error['id']}/resolve")).json()
    assert (solved["resolved_by"], bool(solved["resolved_at"]), bool(solved["read_at"])) == (str(person), True, True)
    refused(await ada.post(f"/api/v1/notifications/{news['id']}/resolve"), 409, "NOT_AN_ERROR")
    unread = (await ada.get("/api/v1/notifications", params={"unread": True})).json()
    assert [one["id"] for one in unread["items"]] == [news["id"]]
    assert (await ada.post("/api/v1/notifications/read")).json() == {"marked": 1}
    assert (await ada.get("/api/v1/notifications")).json()["unread"] == 0


async def test_starting_an_analysis_makes_its_person_a_recipient_of_its_end(
    house: House, ada: httpx.AsyncClient
) -> None:
    added = await ada.post("/api/v1/documents", content=b"A text.", headers={"x-upload-filename": "a.txt"})
    document = added.json()["document_id"]
    await house.run("UPDATE documents SET text_ready = true, revision = 1 WHERE id = %s", document)
    answer = await ada.post("/api/v1/analyses", json={"document_id": document})
    assert answer.status_code == 202, answer.text
    (recipient,) = (await ada.get("/api/v1/webhooks")).json()["items"]
    assert (recipient["channel"], recipient["address"], recipient["personal"]) == ("mail", "ada@example.org", True)
    assert recipient["events"] == ["analysis.completed", "analysis.failed", "analysis.stalled", "analysis.abandoned"]
    assert str((await house.rows("SELECT process_id FROM requesters"))[0][0]) == answer.json()["id"]
