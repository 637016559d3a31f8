"""Questions and answers are kept in threads, follow-up questions are understood, and only the owner reads them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import httpx
import psycopg
import pytest

from octavo.cli import main
from octavo.client import Client
from octavo.records.search import AskScope, FoundPassages, ThreadReference
from tests.support.fake_ai import Asked, FakeOpenAI, Trouble
from tests.support.fake_ai.server import SECRET
from tests.support.passwords import PASSWORD
from tests.support.postgres import Server
from tests.support.processes import PATIENCE_SECONDS
from tests.support.web import WebProcess, running_web

CRANE = """# Crane lease

The lease of the tower crane at Quarry Lane begins on 1 April 2024. Either party may end the lease of the crane with a
notice period of ninety days. The deposit for the crane is 12,500 EUR and is paid before delivery.
"""
OFFICE = """# Office lease

The lease of the office in Mill Street begins on 1 May 2023. The tenant may end the lease of the office with a notice
period of six months. The deposit for the office is 9,000 EUR and is held in a separate account.
"""
PERIOD = "How long is the notice period of the crane lease?"
DEPOSIT = "And how much is the deposit?"
MODEL = "openai:gpt-5-mini"


@dataclass(frozen=True, slots=True)
class Place:
    web: WebProcess
    openai: FakeOpenAI
    visitor: httpx.Client
    person: httpx.Client
    stranger: httpx.Client
    crane: str
    office: str

    def ask(self, question: str, who: httpx.Client | None = None, **more: object) -> dict[str, Any]:
        """The data of all events of an answer, and its text."""
        response = (who or self.visitor).post("/api/v1/ask", json={"question": question, **more})
        assert response.status_code == 200, response.text
        blocks = [block.split("\n") for block in response.text.split("\n\n") if block]
        events = [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in blocks]
        assert (events[0][0], events[-1][0] in {"citations", "error"}) == ("thread", True)
        text = "".join(data["text"] for name, data in events if name == "text")
        return {name: value for _, data in events if "text" not in data for name, value in data.items()} | {
            "text": text
        }

    def thread(self, thread: str, who: httpx.Client | None = None) -> dict[str, Any]:
        response = (who or self.visitor).get(f"/api/v1/threads/{thread}")
        assert response.status_code == 200, response.text
        return response.json()

    def run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.web.database_info, autocommit=True) as connection:
            found = connection.execute(statement.encode(), values)
            return found.fetchall() if found.description else []


def add(client: httpx.Client, name: str, text: str) -> str:
    added = client.post("/api/v1/documents", content=text, headers={"x-upload-filename": name})
    assert added.status_code == 202, added.text
    return added.json()["document_id"]


@pytest.fixture(scope="module")
def place(newest_server: Server) -> Iterator[Place]:
    """Visitors are answered offline, and a model understands and answers the questions of a person."""
    with (
        FakeOpenAI() as openai,
        running_web(
            newest_server,
            providers="local,openai",
            task_models=f"answer_question={MODEL},rewrite_question={MODEL}",
            openai_key=SECRET,
            openai_url=f"{openai.url}/v1",
        ) as web,
        httpx.Client(base_url=web.address, timeout=PATIENCE_SECONDS) as visitor,
        httpx.Client(base_url=web.address, timeout=PATIENCE_SECONDS) as person,
        httpx.Client(base_url=web.address, timeout=PATIENCE_SECONDS) as stranger,
    ):
        assert person.post("/api/v1/account", json={"email": "ada@example.org", "password": PASSWORD}).is_success
        stranger.get("/api/v1/session")
        crane, office = add(visitor, "crane.md", CRANE), add(visitor, "office.md", OFFICE)
        add(person, "crane.md", CRANE)
        web.process_documents()
        yield Place(web, openai, visitor, person, stranger, crane, office)


@pytest.fixture(autouse=True)
def forget(place: Place) -> None:
    place.openai.clear()


def test_a_follow_up_question_knows_what_was_asked_before(place: Place) -> None:
    first = place.ask(PERIOD)
    assert (first["understood_as"], "ninety days" in first["text"]) == (None, True)
    second = place.ask(DEPOSIT, thread_id=first["thread_id"])
    assert second["thread_id"] == first["thread_id"]
    assert second["understood_as"] == "How much is the deposit of the crane lease?"
    assert second["answer"] == "12,500 EUR"
    assert second["citations"][0]["document_id"] == place.crane
    other = place.ask("And for the office?", thread_id=first["thread_id"])
    assert other["answer"] == "9,000 EUR"
    assert place.ask(DEPOSIT)["understood_as"] is None


def test_a_thread_keeps_questions_answers_and_citations(place: Place) -> None:
    first = place.ask(PERIOD)
    place.ask(DEPOSIT, thread_id=first["thread_id"])
    thread = place.thread(first["thread_id"])
    assert (thread["title"], [one["number"] for one in thread["turns"]]) == (PERIOD, [1, 2])
    one, two = thread["turns"]
    assert (one["question"], one["status"], one["found"], one["error"]) == (PERIOD, "answered", True, None)
    assert (one["citations"], one["made_by"]) == (first["citations"], "local")
    assert (two["question"], two["answer"]) == (DEPOSIT, "12,500 EUR")
    assert two["understood_as"] == "How much is the deposit of the crane lease?"
    assert "notice period of ninety days" in one["citations"][0]["quote"].replace("\n", " ")


def test_threads_are_listed_by_their_last_question(place: Place) -> None:
    with httpx.Client(base_url=place.web.address, timeout=PATIENCE_SECONDS) as nobody:
        made = [place.ask(f"Who wrote letter {number}?", nobody)["thread_id"] for number in range(3)]
        place.ask("And when?", nobody, thread_id=made[0])
        page = nobody.get("/api/v1/threads?limit=2").json()
        assert [(one["id"], one["turns"]) for one in page["items"]] == [(made[0], 2), (made[2], 1)]
        rest = nobody.get(f"/api/v1/threads?limit=2&cursor={page['next_cursor']}").json()
        assert ([one["id"] for one in rest["items"]], rest["next_cursor"]) == ([made[1]], None)
        assert nobody.get("/api/v1/threads?cursor=no").status_code == 422


def test_a_stranger_neither_reads_continues_nor_deletes_a_thread(place: Place) -> None:
    thread = place.ask(PERIOD)["thread_id"]
    for missing in (thread, str(uuid4())):
        for path in (f"/api/v1/threads/{missing}", f"/api/v1/threads/{missing}/markdown", f"/ask/{missing}"):
            assert place.stranger.get(path).status_code == 404
        body = {"question": DEPOSIT, "thread_id": missing}
        assert place.stranger.post("/api/v1/ask", json=body).status_code == 404
        assert place.stranger.delete(f"/api/v1/threads/{missing}").status_code == 404
    assert place.stranger.get("/api/v1/threads").json()["items"] == []
    assert len(place.thread(thread)["turns"]) == 1
    assert place.visitor.delete(f"/api/v1/threads/{thread}").status_code == 204
    assert place.visitor.get(f"/api/v1/threads/{thread}").status_code == 404


def test_a_scope_limits_the_documents_and_stays_for_the_thread(place: Place) -> None:
    place.visitor.patch(f"/api/v1/documents/{place.office}", json={"collection": "Rooms"})
    question = "How much is the deposit?"
    for scope in ({"collection": "rooms"}, {"query": "mill street"}, {"document_ids": [place.office]}):
        asked = place.ask(question, scope=scope)
        assert {one["document_id"] for one in asked["passages"]} == {place.office}, scope
        again = place.ask("How long is the notice period?", thread_id=asked["thread_id"])
        assert {one["document_id"] for one in again["passages"]} == {place.office}
        everything = place.ask("Which leases begin in 2024?", thread_id=asked["thread_id"], scope=None)
        assert place.crane in {one["document_id"] for one in everything["passages"]}
        assert place.thread(asked["thread_id"])["scope"] == {"collection": None, "query": None, "document_ids": None}


def test_a_scope_that_does_not_exist_is_refused_with_the_reason(place: Place) -> None:
    secret = add(place.stranger, "secret.md", "# Secret\n\nA stranger's lease.")
    for scope, code, words in (
        ({"collection": "Nowhere"}, 404, "Collection Nowhere"),
        ({"document_ids": [secret]}, 404, secret),
        ({"query": "from:nobody"}, 422, "no document matches from:nobody"),
    ):
        before = len(place.visitor.get("/api/v1/threads").json()["items"])
        refused = place.visitor.post("/api/v1/ask", json={"question": "Why?", "scope": scope})
        assert (refused.status_code, words in refused.json()["detail"]) == (code, True), refused.text
        assert len(place.visitor.get("/api/v1/threads").json()["items"]) == before


def test_a_thread_about_a_deleted_document_says_so(place: Place) -> None:
    with httpx.Client(base_url=place.web.address, timeout=PATIENCE_SECONDS) as tenant:
        document = add(tenant, "crane.md", CRANE)
        place.web.process_documents()
        asked = place.ask(PERIOD, tenant, document_ids=[document])
        assert tenant.delete(f"/api/v1/documents/{document}").status_code == 204
        cited = place.thread(asked["thread_id"], tenant)["turns"][0]["citations"]
        assert (cited[0]["gone"], cited[0]["quote"]) == (True, asked["citations"][0]["quote"])
        assert "Document deleted" in tenant.get(f"/ask/{asked['thread_id']}").text
        refused = tenant.post("/api/v1/ask", json={"question": DEPOSIT, "thread_id": asked["thread_id"]})
        assert (refused.status_code, "were deleted" in refused.json()["detail"]) == (422, True)
        # Deleted for good, the document must not live on in quotes.
        assert tenant.delete(f"/api/v1/documents/{document}?purge=true").status_code == 204
        turn = place.thread(asked["thread_id"], tenant)["turns"][0]
        assert (turn["question"], turn["status"], turn["citations"], turn["answer"]) == (PERIOD, "removed", [], None)
        assert "ninety" not in json.dumps(turn)


def test_a_citation_opens_the_text_after_a_document_was_processed_again(place: Place) -> None:
    with httpx.Client(base_url=place.web.address, timeout=PATIENCE_SECONDS) as tenant:
        document = add(tenant, "crane.md", CRANE)
        place.web.process_documents()
        asked = place.ask(PERIOD, tenant)
        tenant.post(f"/api/v1/documents/{document}/retry", json={"from_stage": ""})
        place.web.process_documents()
        chunks = {one["id"] for one in tenant.get(f"/api/v1/documents/{document}/chunks").json()["items"]}
        assert asked["citations"][0]["chunk_id"] not in chunks
        assert place.thread(asked["thread_id"], tenant)["turns"][0]["citations"][0]["chunk_id"] in chunks


# With a model ------------------------------------------------------------------------------------------------------


def model(rewritten: str, said: str = "Yes.") -> Callable[[Asked], str]:
    """A model that rewrites each question to `rewritten`, and answers everything with `said`."""

    def answer(asked: Asked) -> str:
        if "Rewrite the" in asked.instructions:
            return json.dumps({"question": rewritten, "same_documents": True, "source": None})
        return json.dumps({"statements": [{"text": said, "citations": []}]})

    return answer


def purposes(place: Place) -> list[str]:
    return [row[0] for row in place.run("SELECT purpose FROM ai_calls WHERE state = 'settled' ORDER BY created_at")]


def test_a_model_rewrites_the_question_within_the_budget(place: Place) -> None:
    place.openai.answer = model("What is the deposit for the tower crane?")
    first = place.ask("How long is the period?", place.person)
    paid = purposes(place)
    second = place.ask(DEPOSIT, place.person, thread_id=first["thread_id"])
    assert second["understood_as"] == "What is the deposit for the tower crane?"
    assert purposes(place)[len(paid) :] == ["rewrite_question", "answer_question"]
    shown = place.openai.asked[-2].text
    assert "How long is the period?" in shown
    assert "tower crane?" in place.openai.asked[-1].text


def test_a_question_is_answered_by_rules_if_the_model_cannot_rewrite_it(place: Place) -> None:
    place.openai.answer = model("unused")
    first = place.ask("What is the rent of the crane lease?", place.person)
    place.openai.script.append(Trouble.BAD_KEY)
    second = place.ask("And who pays for storms?", place.person, thread_id=first["thread_id"])
    assert (second["understood_as"], second["text"]) == ("Who pays for storms (the crane lease)?", "Yes.\n")


def test_an_answer_is_replaced_only_when_another_one_is_complete(place: Place) -> None:
    place.openai.answer = model("unused", "The first.")
    first = place.ask("Is there a crane?", place.person)
    same = {"thread_id": first["thread_id"], "again": first["turn_id"]}
    place.openai.script.append(Trouble.BAD_KEY)
    assert place.ask("Is there a crane?", place.person, **same)["code"] == "AI_BAD_KEY"
    (turn,) = place.thread(first["thread_id"], place.person)["turns"]
    assert (turn["status"], turn["statements"][0]["text"]) == ("answered", "The first.")
    place.openai.answer = model("unused", "The second.")
    assert place.ask("Is there a crane?", place.person, **same)["turn_id"] == first["turn_id"]
    (turn,) = place.thread(first["thread_id"], place.person)["turns"]
    assert (turn["question"], turn["statements"][0]["text"]) == ("Is there a crane?", "The second.")
    place.ask("Is there a roof?", place.person, thread_id=first["thread_id"])
    refused = place.person.post("/api/v1/ask", json={"question": "Is there a crane?", **same})
    assert (refused.status_code, "last question" in refused.json()["detail"]) == (404, True)


def test_a_failed_question_keeps_the_reason(place: Place) -> None:
    place.openai.script.append(Trouble.BAD_KEY)
    thread = place.ask("Is there a key?", place.person)["thread_id"]
    (turn,) = place.thread(thread, place.person)["turns"]
    assert (turn["status"], turn["error"]["code"], turn["found"]) == ("failed", "AI_BAD_KEY", None)


# Owners ------------------------------------------------------------------------------------------------------------


def test_threads_follow_a_visitor_into_an_account(place: Place) -> None:
    for path in ("/api/v1/account", "/api/v1/session"):
        with httpx.Client(base_url=place.web.address, timeout=PATIENCE_SECONDS) as guest:
            thread = place.ask("Is there a lease?", guest)["thread_id"]
            # The first makes an account, and the second signs in to it, with another thread.
            signed = guest.post(path, json={"email": "bo@example.org", "password": PASSWORD})
            assert signed.is_success, signed.text
            assert place.thread(thread, guest)["title"] == "Is there a lease?"
    assert (
        len(place.run("SELECT t.id FROM threads t JOIN users u USING (owner_id) WHERE u.email = 'bo@example.org'")) == 2
    )


def test_threads_are_deleted_with_their_owner(place: Place) -> None:
    with httpx.Client(base_url=place.web.address, timeout=PATIENCE_SECONDS) as guest:
        thread = UUID(place.ask("Is there a lease?", guest)["thread_id"])
    (owner,) = place.run("SELECT owner_id FROM threads WHERE id = %s", thread)[0]
    place.run("DELETE FROM sessions WHERE owner_id = %s", owner)
    place.run("DELETE FROM owners WHERE id = %s", owner)
    assert place.run("SELECT id FROM turns WHERE thread_id = %s", thread) == []


# Client, command and pages -----------------------------------------------------------------------------------------


async def test_the_client_continues_lists_and_deletes_threads(place: Place) -> None:
    key = place.person.post("/api/v1/keys", json={"name": "k", "scope": "write"}).json()["key"]
    place.openai.answer = model("Is there a crane at Quarry Lane?")
    async with Client(place.web.address, key=key) as client:
        first, *_ = [one async for one in client.ask("Is there a crane?", scope=AskScope(query="crane"))]
        assert isinstance(first, ThreadReference)
        parts = [one async for one in client.ask("And there?", thread=first.thread_id)]
        assert isinstance(parts[1], FoundPassages)
        assert parts[1].understood_as == "Is there a crane at Quarry Lane?"
        assert (await client.list_threads(limit=1)).items[0].scope == AskScope(query="crane")
        assert [one.question for one in (await client.show_thread(first.thread_id)).turns] == [
            *("Is there a crane?", "And there?"),
        ]
        await client.delete_thread(first.thread_id)
        assert first.thread_id not in {one.id for one in (await client.list_threads()).items}


def test_the_command_continues_a_thread(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    key = place.person.post("/api/v1/keys", json={"name": "k", "scope": "write"}).json()["key"]

    def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["octavo", *arguments, "--server", place.web.address, "--key", key])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code in {None, 0}
        return capsys.readouterr().out

    place.openai.answer = model("Is there a crane at Quarry Lane?")
    thread = json.loads(run("ask", "Is there a crane at all?", "--json"))["thread_id"]
    assert "Understood as: Is there a crane at Quarry Lane?" in run("ask", "And there?", "--thread", thread[-8:])
    assert json.loads(run("ask", "And again?", "--continue", "--json"))["thread_id"] == thread
    assert f"{thread[-8:]}  " in run("threads", "--limit", "1")
    assert json.loads(run("threads", "--json"))["items"][0]["turns"] == 3


def test_a_thread_is_exported_as_markdown(place: Place) -> None:
    first = place.ask(PERIOD)
    second = place.ask(DEPOSIT, thread_id=first["thread_id"])
    whole = place.visitor.get(f"/api/v1/threads/{first['thread_id']}/markdown")
    assert whole.headers["content-type"].startswith("text/markdown")
    assert whole.headers["content-disposition"].startswith("attachment")
    assert whole.text.startswith(f"## {PERIOD}\n\n**ninety days**")
    assert "*Understood as: How much is the deposit of the crane lease?*\n\n**12,500 EUR**" in whole.text
    assert "” — Crane lease" in whole.text
    one = place.visitor.get(f"/api/v1/threads/{first['thread_id']}/markdown?turn={second['turn_id']}").text
    assert (PERIOD in one, DEPOSIT in one) == (False, True)
    assert place.visitor.get(f"/api/v1/threads/{first['thread_id']}/markdown?turn={uuid4()}").status_code == 404


def test_a_thread_works_without_scripts(place: Place) -> None:
    asked = place.visitor.post("/ask", data={"question": PERIOD}, follow_redirects=True)
    address = asked.url.path
    assert (asked.status_code, address.startswith("/ask/")) == (200, True)
    assert asked.text.count("notice period of ninety days") + asked.text.count("notice\nperiod of ninety days") <= 2
    page = place.visitor.post(address, data={"question": DEPOSIT}, follow_redirects=True)
    assert (page.url.path, "Understood as:" in page.text) == (address, True)
    assert "Quotes found offline." in page.text
    assert 'href="/settings/models"' in page.text
    assert "No model is set up" not in place.visitor.get("/settings/models").text
    turn = page.text.rpartition('name="turn" value="')[2].partition('"')[0]
    again = place.visitor.post(f"{address}/again", data={"turn": turn}, follow_redirects=True)
    assert (again.status_code, again.url.path) == (200, address)
    assert f'href="{address}"' in place.visitor.get("/ask").text
    confirm = place.visitor.post(f"{address}/delete")
    assert "Delete thread?" in confirm.text
    gone = place.visitor.post(f"{address}/delete", data={"confirmed": "true"}, follow_redirects=True)
    assert (gone.url.path, place.visitor.get(address).status_code) == ("/ask", 404)


def test_a_link_with_a_question_asks_it_only_from_this_site(place: Place) -> None:
    for site, asks in (("none", True), ("same-origin", True), ("cross-site", False)):
        page = place.visitor.get("/ask", params={"q": "A <lease>?"}, headers={"sec-fetch-site": site}).text
        assert ('value="A &lt;lease&gt;?"' in page, "data-ask-now" in page) == (True, asks)
    assert "data-ask-now" not in place.visitor.get("/ask").text


@pytest.mark.parametrize(
    ("form", "status", "words"),
    [
        ({"question": "  "}, 422, "Enter a question"),
        ({"question": "Why?", "collection": "A", "query": "b"}, 422, "Choose only one of these"),
        ({"question": "Why?", "collection": "Nowhere"}, 404, "Collection Nowhere"),
    ],
)
def test_a_refused_question_is_shown_with_the_reason(
    place: Place, form: dict[str, str], status: int, words: str
) -> None:
    page = place.visitor.post("/ask", data=form)
    assert (page.status_code, words in page.text) == (status, True)
