"""A web process that is killed while it answers leaves a whole thread, whose last turn says that it is unfinished."""

from __future__ import annotations

import json

import httpx
import psycopg

from tests.support.fake_ai import FakeOpenAI, Trouble
from tests.support.fake_ai.server import SECRET
from tests.support.instance import fetch
from tests.support.passwords import PASSWORD
from tests.support.postgres import Server, open_folder
from tests.support.processes import PATIENCE_SECONDS, wait_until
from tests.support.site import Site, site_in

TEXT = "# Tides\n\nThe moon causes the tides of the sea. The sun makes them stronger."


def answers(site: Site) -> bool:
    try:
        return fetch(f"http://127.0.0.1:{site.port}/healthz")[0] == 200
    except OSError:
        return False


def test_a_killed_answer_stays_unfinished_and_can_be_answered_again(newest_server: Server) -> None:
    with (
        FakeOpenAI() as openai,
        open_folder() as folder,
        newest_server.database() as info,
        site_in(
            folder,
            info,
            providers="local,openai",
            task_models="answer_question=openai:gpt-5-mini",
            openai_key=SECRET,
            openai_url=f"{openai.url}/v1",
        ) as site,
        httpx.Client(base_url=f"http://127.0.0.1:{site.port}", timeout=PATIENCE_SECONDS) as client,
    ):
        web = site.start_web()
        site.start_worker()
        wait_until(lambda: answers(site), "it answers")
        assert client.post("/api/v1/account", json={"email": "ada@example.org", "password": PASSWORD}).is_success
        added = client.post("/api/v1/documents", json={"text": TEXT, "title": "Tides"}).json()["document_id"]
        wait_until(lambda: client.get(f"/api/v1/documents/{added}").json()["embeddings_ready"], "it can be asked")
        openai.answer = lambda _asked: json.dumps({"statements": [{"text": "The moon.", "citations": []}]})
        question = {"question": "What causes the tides?"}
        first = client.post("/api/v1/ask", json=question).text
        thread = json.loads(first.partition("data: ")[2].partition("\n")[0])["thread_id"]
        openai.script.append(Trouble.SLOW)
        asked = len(openai.asked)
        more = {"question": "What makes the tides of the sea stronger?", "thread_id": thread}
        try:
            with client.stream("POST", "/api/v1/ask", json=more) as stream:
                lines = stream.iter_lines()
                assert next(lines) == "event: thread"
                wait_until(lambda: len(openai.asked) > asked, "the model is asked", 60)
                web.kill()
                web.wait()
                list(lines)
        except httpx.HTTPError:
            pass
        site.start_web()
        wait_until(lambda: answers(site), "it answers again")
        turns = client.get(f"/api/v1/threads/{thread}").json()["turns"]
        assert [(one["number"], one["status"], one["found"]) for one in turns] == [
            (1, "answered", True),
            (2, "unfinished", None),
        ]
        assert "This answer was not finished." in client.get(f"/ask/{thread}").text
        again = more | {"again": turns[1]["id"]}
        assert "event: citations" in client.post("/api/v1/ask", json=again).text
        statuses = [one["status"] for one in client.get(f"/api/v1/threads/{thread}").json()["turns"]]
        assert statuses == ["answered", "answered"]
        with psycopg.connect(info) as connection:
            assert connection.execute(b"SELECT count(*) FROM turns").fetchone() == (2,)
