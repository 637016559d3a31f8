"""Providers of models that an administrator sets up while Octavo runs: page, API, encryption and who may do it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from pydantic import SecretStr

from octavo.ai import model_checks
from octavo.ai.calls import Caller
from octavo.ai.gateway_setup import LiveGateway, LiveModels
from octavo.ai.model_settings import TASK_GROUPS, KeySeal
from octavo.ai.tasks import CLASSIFY_DOCUMENT, TASKS
from octavo.core.settings import Settings
from octavo.database import Database
from octavo.language.insights import ChunkText, DocumentSource
from tests.api.rooms.conftest import administrator, is_page, person, went_to, words
from tests.support.fake_ai import FakeOpenAI, Trouble
from tests.support.fake_ai.server import SECRET
from tests.support.sites import Answer, running_site
from tests.support.visitors import House, OpenHouse, me, refused

MODELS = "/api/v1/models"
PAGE = "/settings/models"
INSTALLATION = "a secret of this installation, long enough"
MODEL = "llama"


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as opened:
        yield opened


@pytest.fixture(autouse=True)
def as_new(provider: FakeOpenAI) -> None:
    provider.clear()


def host_of(provider: FakeOpenAI) -> str:
    return urlsplit(provider.url).netloc


def settings_for(provider: FakeOpenAI, **others: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"secret_key": INSTALLATION, "fetch_allow": (host_of(provider),), **others}


def server_of(provider: FakeOpenAI) -> dict[str, Any]:
    return {"url": f"{provider.url}/v1", "model": MODEL, "key": SECRET, "context": 32768}


async def set_up(open_house: OpenHouse, provider: FakeOpenAI, **others: Any) -> tuple[House, httpx.AsyncClient]:  # noqa: ANN401
    house = await open_house(**settings_for(provider, **others))
    admin = await administrator(house)
    answer = await admin.put(f"{MODELS}/compatible", json=server_of(provider))
    assert answer.status_code == 200, answer.text
    return house, admin


def of(answer: httpx.Response, name: str = "compatible") -> dict[str, Any]:
    return next(one for one in answer.json()["providers"] if one["name"] == name)


async def test_a_saved_provider_is_in_use_and_its_key_is_not_shown(
    open_house: OpenHouse, provider: FakeOpenAI, caplog: pytest.LogCaptureFixture
) -> None:
    house, admin = await set_up(open_house, provider)
    shown = await admin.get(MODELS)
    assert shown.json()["order"] == ["compatible", "local"]
    assert (of(shown)["key"], of(shown)["key_end"], of(shown)["context"]) == ("set", SECRET[-4:], 32768)
    assert shown.json()["embedding"] == "local"  # vectors are not made again, and not paid for, unless chosen
    page = await admin.get(PAGE)
    is_page(page)
    assert f"ends with {SECRET[-4:]}" in words(page)
    rows = await house.rows("SELECT plain::text, sealed::text FROM model_settings")
    told = await house.rows("SELECT detail FROM events WHERE kind = 'models'")
    assert told == [({"provider": "compatible", "changed": ["context", "key", "model", "url"]},)]
    for text in (shown.text, page.text, str(rows), str(told), caplog.text):
        assert SECRET not in text


async def test_a_key_is_read_only_with_the_secret_it_was_saved_with(tmp_path: Path) -> None:
    one = Settings(data_dir=tmp_path / "one")
    sealed = KeySeal(one).seal(SECRET)
    assert KeySeal(one).open(sealed) == SECRET
    assert SECRET not in str(sealed)
    file = tmp_path / "one" / "secrets" / "model-keys"
    assert file.stat().st_mode & 0o777 == 0o600
    assert KeySeal(Settings(data_dir=tmp_path / "other")).open(sealed) is None
    assert KeySeal(Settings(data_dir=tmp_path / "one", secret_key=SecretStr("x" * 32))).open(sealed) is None


async def test_a_key_that_cannot_be_read_is_reported_and_its_provider_not_used(
    open_house: OpenHouse, provider: FakeOpenAI
) -> None:
    house, _ = await set_up(open_house, provider)
    await house.run("UPDATE model_settings SET plain = plain || '{\"providers\": [\"gemini\", \"local\"]}', sealed = "
                    "jsonb_build_object('gemini_key', sealed -> 'compatible_key'), version = version + 1")  # fmt: skip
    other = await open_house(**settings_for(provider) | {"secret_key": "another secret, which is long enough too"})
    admin = await administrator(other)
    shown = await admin.get(MODELS)
    assert (of(shown, "gemini")["key"], of(shown, "gemini")["in_use"], shown.json()["order"]) == (
        "unreadable",
        False,
        ["local"],
    )
    assert "cannot be decrypted on this machine. Enter it again." in words(await admin.get(PAGE))


async def test_without_a_shared_secret_no_key_is_saved_in_a_shared_database(
    open_house: OpenHouse, provider: FakeOpenAI
) -> None:
    house = await open_house(fetch_allow=(host_of(provider),))
    admin = await administrator(house)
    answer = await admin.put(f"{MODELS}/compatible", json=server_of(provider))
    assert "OCTAVO_SECRET_KEY" in refused(answer, 409, "NO_SECRET_KEY")["title"]
    assert await house.rows("SELECT FROM model_settings") == []


async def test_what_the_environment_defines_cannot_be_changed(open_house: OpenHouse, provider: FakeOpenAI) -> None:
    house = await open_house(**settings_for(provider, openai_model="gpt-5", openai_key=SecretStr(SECRET)))
    admin = await administrator(house)
    for wanted in ({"model": "gpt-5-mini"}, {"key": "sk-other-key-0000"}, {"url": "https://elsewhere.example.org"}):
        answer = refused(await admin.put(f"{MODELS}/openai", json=wanted), 409, "FIXED_SETTING")
        assert "OCTAVO_OPENAI_" in answer["detail"]
    used = await admin.put(f"{MODELS}/openai", json={})  # only takes it into use
    assert used.json()["order"] == ["openai", "local"]
    assert of(used, "openai")["fixed_by"] == {
        "key": "OCTAVO_OPENAI_KEY",
        "model": "OCTAVO_OPENAI_MODEL",
        "url": "OCTAVO_OPENAI_KEY",
    }
    page = words(await admin.get(PAGE))
    assert "Set by OCTAVO_OPENAI_KEY . It cannot be changed here." in page
    fixed = await open_house(**settings_for(provider, providers=("local",)))
    admin = await administrator(fixed)
    assert "Set by OCTAVO_PROVIDERS . It cannot be changed here." in words(await admin.get(PAGE))
    refused(await admin.put(MODELS, json={"order": ["local"]}), 409, "FIXED_SETTING")


async def test_a_stored_key_is_not_sent_to_another_address(open_house: OpenHouse, provider: FakeOpenAI) -> None:
    _, admin = await set_up(open_house, provider)
    elsewhere = {"url": "https://elsewhere.example.org/v1"}
    refused(await admin.put(f"{MODELS}/compatible", json=elsewhere), 409, "KEY_NEEDED")
    refused(await admin.post(f"{MODELS}/compatible/test", json=elsewhere), 409, "KEY_NEEDED")
    assert (
        await admin.put(f"{MODELS}/compatible", json={**elsewhere, "key": "sk-other-0000", "price": "0/0"})
    ).status_code == 200


@pytest.mark.parametrize("url", ["http://10.0.0.7:11434/v1", "http://127.0.0.1:22", "http://169.254.169.254/latest"])
async def test_a_private_address_is_refused_with_the_setting_that_allows_it(
    open_house: OpenHouse, provider: FakeOpenAI, url: str
) -> None:
    admin = await administrator(await open_house(**settings_for(provider)))
    problem = refused(await admin.put(f"{MODELS}/compatible", json={"url": url, "model": MODEL}), 422, "FETCH_REFUSED")
    assert "OCTAVO_FETCH_ALLOW" in problem["title"]


async def test_a_server_on_a_usual_port_of_this_machine_needs_no_permission(open_house: OpenHouse) -> None:
    admin = await administrator(await open_house())
    wanted = {"url": "http://127.0.0.1:11434/v1", "model": "qwen3:8b"}
    assert (await admin.put(f"{MODELS}/compatible", json=wanted)).json()["order"] == ["compatible", "local"]


async def test_only_an_administrator_can_see_addresses_and_change_providers(
    open_house: OpenHouse, provider: FakeOpenAI
) -> None:
    house, _ = await set_up(open_house, provider)
    owner = await person(house, "ada@example.org")
    seen = await owner.get(MODELS)
    assert seen.json()["order"] == ["compatible", "local"]
    assert (of(seen)["url"], of(seen)["key_end"], of(seen)["model"]) == (None, None, MODEL)
    page = await owner.get(PAGE)
    is_page(page)
    assert 'method="post" action="/settings/models' not in page.text
    for method, path in (("PUT", ""), ("PUT", "/gemini"), ("DELETE", "/compatible"), ("POST", "/compatible/test")):
        refused(await owner.request(method, MODELS + path, json={}), 403, "FORBIDDEN")
    refused(await owner.post("/api/v1/model-servers"), 403, "FORBIDDEN")


async def test_a_test_call_reports_its_time_and_cost_and_is_counted(
    open_house: OpenHouse, provider: FakeOpenAI
) -> None:
    house, admin = await set_up(open_house, provider, prices=(f"{MODEL}=1000/1000",))
    made = (await admin.post(f"{MODELS}/compatible/test")).json()
    assert made["model"] == f"compatible:{MODEL}"
    assert 0 <= made["seconds"] < 30
    (bill,) = provider.bills
    assert made["cost_usd"] == pytest.approx((bill.read + bill.written) / 1000)
    assert (await admin.get(MODELS)).json()["spent_usd"] == pytest.approx(made["cost_usd"])
    assert await house.rows("SELECT purpose, state FROM ai_calls") == [("test", "settled")]


async def test_the_price_of_an_unknown_model_is_asked_for(open_house: OpenHouse, provider: FakeOpenAI) -> None:
    house = await open_house(**settings_for(provider))
    admin = await administrator(house)
    typed = {"key": "sk-0000-0000-0000", "model": "gpt-99", "action": "save"}
    asked = await admin.post(f"{PAGE}/openai", data=typed)
    is_page(asked, 422)
    assert "The price of this model is unknown. Enter the price, or 0/0 if the model is free." in words(asked)
    refused(
        await admin.put(f"{MODELS}/openai", json={"key": "sk-0000-0000-0000", "model": "gpt-99"}), 422, "PRICE_NEEDED"
    )
    went_to(await admin.post(f"{PAGE}/openai", data={**typed, "price": "1.50/6"}), f"{PAGE}?said=provider")
    assert price_of(await admin.get(MODELS), "openai") == "1.5/6"
    await admin.put(f"{MODELS}/openai", json={"model": "gpt-5-mini"})  # the price of the other model is forgotten
    assert price_of(await admin.get(MODELS), "openai") == "0.25/2"


async def test_a_configured_model_without_a_price_is_not_called_and_the_page_says_so(
    open_house: OpenHouse, provider: FakeOpenAI
) -> None:
    named = {**settings_for(provider), "compatible_url": "https://models.example.org/v1", "compatible_model": MODEL}
    house = await open_house(**named, providers=("compatible",))
    admin = await administrator(house)
    shown = (await admin.get(MODELS)).json()
    assert shown["unpriced"] == [f"compatible:{MODEL}"]
    assert f"Not used, because the price is unknown: compatible:{MODEL}." in words(await admin.get(PAGE))
    refused(await admin.post(f"{MODELS}/compatible/test"), 402, "AI_NO_PRICE")
    assert (await admin.get("/api/v1/estimate?words=1000&pages=1")).json()["describe"]["usd"] == 0
    assert (await admin.put(f"{MODELS}/compatible", json={"price": "1/1"})).json()["unpriced"] == []
    assert (await admin.get("/api/v1/estimate?words=1000&pages=1")).json()["describe"]["usd"] > 0
    assert provider.bills == []


def price_of(answer: httpx.Response, provider: str) -> str | None:
    return next(one["price"] for one in answer.json()["providers"] if one["name"] == provider)


async def test_nothing_is_saved_if_the_test_fails(open_house: OpenHouse, provider: FakeOpenAI) -> None:
    house = await open_house(**settings_for(provider))
    admin = await administrator(house)
    provider.outage = Trouble.BAD_KEY
    sent = {**server_of(provider), "key": "sk-wrong-wrong-wrong"}
    wrong = await admin.post(f"{PAGE}/compatible", data=sent)
    is_page(wrong, 502)
    assert "rejected the API key" in words(wrong)
    assert "sk-wrong" not in wrong.text
    assert f'value="{MODEL}"' in wrong.text  # what was typed is kept, except for the key
    assert (await admin.get(MODELS)).json()["order"] == ["local"]
    provider.outage = None
    saved = await admin.post(f"{PAGE}/compatible", data=server_of(provider))
    assert saved.status_code == 303
    told = words(await admin.get(saved.headers["location"]))
    assert "compatible server answered in" in told
    assert "This test cost nothing." in told


async def test_forms_save_order_tasks_and_removal(open_house: OpenHouse, provider: FakeOpenAI) -> None:
    house, admin = await set_up(open_house, provider, openai_key=SecretStr(SECRET))
    went_to(await admin.post(f"{PAGE}/openai", data={"action": "save"}), f"{PAGE}?said=provider")
    assert (await admin.get(MODELS)).json()["order"] == ["openai", "compatible", "local"]
    went_to(await admin.post(f"{PAGE}/compatible/first"), f"{PAGE}?said=first")
    chosen = {"answer": "openai:gpt-5-mini", "describe": "local", "embedding": "local"}
    went_to(await admin.post(f"{PAGE}/tasks", data=chosen), f"{PAGE}?said=tasks")
    tasks = {one["name"]: one for one in (await admin.get(MODELS)).json()["tasks"]}
    assert (tasks["answer"]["models"], tasks["answer"]["is_set"]) == (["openai:gpt-5-mini"], True)
    assert tasks["analyse"] == {"name": "analyse", "models": [f"compatible:{MODEL}", "openai:gpt-5-mini", "local"],
                                "is_set": False}  # fmt: skip
    is_page(await admin.get(f"{PAGE}/openai/remove"))
    went_to(await admin.post(f"{PAGE}/compatible/remove"), f"{PAGE}?said=no_provider")
    assert await house.rows("SELECT sealed FROM model_settings") == [({},)]
    assert (await admin.get(MODELS)).json()["order"] == ["openai", "local"]


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("", {"tasks": {"answer": "gemini:gemini-2.5-pro"}}),  # not set up
        ("", {"order": ["gemini", "local"]}),
        ("", {"tasks": {"cook": "local"}}),
        ("/openai", {"key": "sk-0000-0000-0000", "model": "nobody-knows-its-price"}),
        ("/gemini", {"model": "gemini-2.5-pro"}),  # without a key
        ("/gemini", {"key": "sk-0000-0000-0000", "context": 4096}),
        ("/compatible", {"url": "ftp://example.org", "model": "x"}),
        ("/compatible", {"context": 1}),
    ],
)
async def test_settings_that_cannot_work_are_refused(
    open_house: OpenHouse, provider: FakeOpenAI, path: str, wanted: dict[str, Any]
) -> None:
    house = await open_house(**settings_for(provider))
    answer = await (await administrator(house)).put(MODELS + path, json=wanted)
    assert answer.status_code == 422, answer.text
    assert await house.rows("SELECT FROM model_settings WHERE version > 0") == []


async def test_a_running_worker_uses_a_change_at_its_next_call(
    open_house: OpenHouse, provider: FakeOpenAI, database_info: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("octavo.ai.gateway_setup.CHECK_SECONDS", 0.0)
    house = await open_house(**settings_for(provider))
    admin = await administrator(house)
    caller = Caller((await me(admin))["owner_id"])
    source = DocumentSource([ChunkText("A note about bogs and moss.")])
    async with Database(database_info) as database:
        models = LiveModels(house.app.state.services.own_settings, database)
        gateway = LiveGateway(models)
        assert (await gateway.ask(CLASSIFY_DOCUMENT, source, caller)).made_by == "local"
        await admin.put(f"{MODELS}/compatible", json=server_of(provider))
        assert (await gateway.ask(CLASSIFY_DOCUMENT, source, caller)).made_by == f"compatible:{MODEL}"
        assert models.settings.providers == ("compatible", "local")
        await admin.delete(f"{MODELS}/compatible")
        await gateway.maintain(database)
        assert models.settings.providers == ("local",)
        await models.aclose()


async def test_another_web_process_uses_a_change_without_a_restart(
    open_house: OpenHouse, provider: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("octavo.ai.gateway_setup.CHECK_SECONDS", 0.0)
    other = await open_house(**settings_for(provider))
    browser = await person(other, "ada@example.org")
    assert "clean" not in (await browser.get("/api/v1/settings")).json()["extraction"]
    await set_up(open_house, provider)
    assert "clean" in (await browser.get("/api/v1/settings")).json()["extraction"]


async def test_servers_on_this_machine_are_found_on_request_only(
    open_house: OpenHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = {"object": "list", "data": [{"id": "qwen3:8b", "max_model_len": 40960}, {"id": "llama3.2"}]}
    with running_site() as site:
        site.elsewhere = lambda _: Answer(200, json.dumps(listed).encode(), {"Content-Type": "application/json"})
        port = urlsplit(site.url).port or 0
        monkeypatch.setattr(model_checks, "LOCAL_SERVERS", {port: "Ollama", 9: "Nothing"})
        admin = await administrator(await open_house())
        assert "qwen3" not in words(await admin.get(PAGE))
        assert site.asked == []
        found = (await admin.post("/api/v1/model-servers")).json()["items"]
        page = await admin.post(f"{PAGE}/servers")
    assert found == [
        {"name": "Ollama", "url": f"http://127.0.0.1:{port}/v1", "models": ["qwen3:8b", "llama3.2"], "context": 40960}
    ]
    is_page(page)
    assert "<option>llama3.2</option>" in page.text


def test_every_task_belongs_to_one_group_on_the_page() -> None:
    assert sorted(task for tasks in TASK_GROUPS.values() for task in tasks) == sorted(TASKS.names)
