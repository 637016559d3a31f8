"""`octavo models` in a terminal, against a real web server and a provider of ours."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from octavo.cli import main
from tests.support.fake_ai import FakeOpenAI
from tests.support.fake_ai.server import SECRET
from tests.support.postgres import Server
from tests.support.web import WebProcess, running_web


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as opened:
        yield opened


@pytest.fixture(scope="module")
def web(newest_server: Server, provider: FakeOpenAI) -> Iterator[WebProcess]:
    allowed = urlsplit(provider.url).netloc
    with running_web(newest_server, secret_key="of this installation, long enough", fetch_allow=allowed) as process:
        yield process


def test_a_provider_is_set_up_tested_and_removed_in_a_terminal(
    web: WebProcess, provider: FakeOpenAI, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    key = web.machine_key()

    def models(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["octavo", "models", *arguments, "--server", web.address, "--key", key])
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"{SECRET}\n"))
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        return " ".join(capsys.readouterr().out.split())

    assert "Order local" in models("show")
    said = models("set", "compatible", "--url", f"{provider.url}/v1", "--model", "llama", "--api-key", "-")
    assert "Order compatible, local" in said
    assert f"…{SECRET[-4:]}" in said
    assert SECRET not in said
    assert "compatible:llama answered in" in models("test", "compatible")
    assert json.loads(models("test", "compatible", "--json"))["cost_usd"] == 0
    chosen = json.loads(models("choose", "--task", "answer=local", "--json"))
    assert {"name": "answer", "models": ["local"], "is_set": True} in chosen["tasks"]
    usual = json.loads(models("choose", "--task", "answer=default", "--json"))
    assert {"name": "answer", "models": ["compatible:llama", "local"], "is_set": False} in usual["tasks"]
    assert json.loads(models("rm", "compatible", "--json"))["order"] == ["local"]
    assert SECRET not in web.log()
