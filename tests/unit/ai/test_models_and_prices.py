"""Which models are asked and what they cost, as settings say it; what cannot be is refused before the first job."""

from __future__ import annotations

import json
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from octavo.ai.faults import TokenUsage
from octavo.ai.gateway_setup import check_models, parse_rate_limits
from octavo.ai.models import Model, Price, Prices, model_chain
from octavo.ai.vectors import cut_windows, pack, pool, unpack
from octavo.core.errors import BadSetting
from octavo.core.settings import Settings, load_settings


def settings_of(**more: Any) -> Settings:  # noqa: ANN401
    keys = {"gemini_key": "a", "openai_key": "b", "anthropic_key": "c"}
    return Settings.model_validate({**keys, **more})


def test_without_settings_everything_is_done_here() -> None:
    line = model_chain(Settings())
    assert [str(one) for one in line.of("enrich_chunks")] == ["local"]
    assert str(line.embedding) == "local"


def test_models_stand_in_the_order_of_their_providers() -> None:
    line = model_chain(settings_of(providers="anthropic,openai,local", task_models="classify_image=openai:gpt-5|local"))
    names = ["anthropic:claude-haiku-4-5", "openai:gpt-5-mini", "local"]
    assert [str(one) for one in line.of("enrich_chunks")] == names
    assert [str(one) for one in line.of("classify_image")] == ["openai:gpt-5", "local"]
    assert str(line.embedding) == "openai:text-embedding-3-small"
    assert str(model_chain(settings_of(providers="anthropic")).embedding) == "local"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"task_models": "paint=gemini:x"}, "unknown task paint. Tasks: answer_"),
        (
            {"task_models": "classify_image=openai:gpt-5"},
            "The provider of openai:gpt-5 is missing from OCTAVO_PROVIDERS",
        ),
        ({"embedding_model": "openai:text-embedding-3-small"}, "is missing from OCTAVO_PROVIDERS"),
        ({"prices_file": "/nowhere/prices.json"}, "OCTAVO_PRICES_FILE: /nowhere/prices.json cannot be read"),
        ({"provider_limits": "gemini=0/5"}, "is invalid. Example: gemini=1000/1000000"),
        ({"provider_limits": "gemni=5/5"}, "is invalid. Example: gemini=1000/1000000"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_starts(more: dict[str, str], said: str) -> None:
    with pytest.raises(BadSetting) as refused:
        check_models(settings_of(providers="gemini", **more))
    assert said in refused.value.line


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("OCTAVO_PROVIDERS", "gemini", "gemini requires OCTAVO_GEMINI_KEY"),
        ("OCTAVO_PROVIDERS", "compatible", "compatible requires OCTAVO_COMPATIBLE_URL"),
        ("OCTAVO_PROVIDERS", "gemni", "unknown provider gemni; use gemini, openai"),
        ("OCTAVO_TASK_MODELS", "gpt-5", "must look like classify_image=openai:gpt-5|local"),
        ("OCTAVO_PRICES", "gpt-9=cheap", "must look like name=1.5/10"),
        ("OCTAVO_GEMINI_URL", "google.com", "must look like https://host"),
        ("OCTAVO_MONTH_BUDGET", "-1", "OCTAVO_MONTH_BUDGET: "),
    ],
)
def test_a_wrong_setting_names_the_missing_part(
    name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(BadSetting) as refused:
        load_settings()
    assert said in refused.value.line


def test_rates_are_read() -> None:
    rates = parse_rate_limits(["gemini=60/1000000", "openai=0.5/10"])
    assert (rates["gemini"].requests, rates["gemini"].tokens, rates["openai"].requests) == (60, 1_000_000, 0.5)


@pytest.mark.parametrize(
    ("provider", "model", "usage", "cost"),
    [
        ("gemini", "gemini-2.5-flash", TokenUsage(1_000_000, 1_000_000), "2.8"),
        ("gemini", "gemini-2.5-flash", TokenUsage(1_000_000, 0, 1_000_000), "0.03"),
        # Long calls of some models cost more, all of them.
        ("gemini", "gemini-2.5-pro", TokenUsage(200_000, 0), "0.25"),
        ("gemini", "gemini-2.5-pro", TokenUsage(200_001, 0), "0.5000025"),
        ("openai", "gpt-5-mini-2025-08-07", TokenUsage(1_000_000, 0), "0.25"),
        ("anthropic", "claude-haiku-4-5-20251001", TokenUsage(0, 1_000_000), "5"),
        ("gemini", "gemini-embedding-001", TokenUsage(1_000_000), "0.15"),
        ("openai", "gpt-99", TokenUsage(1_000_000, 1_000_000), "11"),
    ],
)
def test_a_call_costs_the_price_of_its_tokens(provider: str, model: str, usage: TokenUsage, cost: str) -> None:
    price = Prices(["gpt-99=1/10"]).find(Model(provider, model))
    assert price is not None
    assert price.cost(usage) == Decimal(cost)


def test_a_model_that_only_begins_like_another_has_no_price() -> None:
    assert Prices().find(Model("openai", "gpt-5-giant")) is None


@pytest.mark.parametrize(
    ("url", "prices", "price"),
    [
        ("http://127.0.0.1:11434/v1", "", "0"),
        ("http://localhost:11434/v1", "", "0"),
        ("http://[::1]:11434/v1", "", "0"),
        ("http://localhost:4000/v1", "llama=1/2", "3"),  # forwards to a paid service
        ("https://models.example.org/v1", "", None),
        ("http://10.0.0.7:11434/v1", "", None),
        ("http://10.0.0.7:11434/v1", "llama=0/0", "0"),
        ("http://localhost.example.org/v1", "", None),
    ],
)
def test_a_compatible_server_is_free_only_on_this_machine_or_if_the_settings_say_so(
    url: str, prices: str, price: str | None
) -> None:
    settings = settings_of(compatible_url=url, compatible_model="llama", providers="compatible", prices=prices)
    found = Prices.of(settings).find(Model("compatible", "llama"))
    assert (found and found.input + found.output) == (price and Decimal(price))
    check_models(settings)  # an unknown price does not keep Octavo from starting
    missing = Prices.of(settings).missing(model_chain(settings))
    assert list(map(str, missing)) == ([] if price else ["compatible:llama"])


def test_newer_prices_are_read_from_a_file_whenever_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "prices.json"

    def write(price: float, changed: int) -> None:
        file.write_text(json.dumps({"models": {"openai": {"gpt-99": {"input": price, "output": 2}}}}))
        os.utime(file, (changed, changed))

    write(1.5, 1)
    prices = Prices(file=file)
    new = Model("openai", "gpt-99-2027-01-01")
    assert prices.find(new) == Price(Decimal("1.5"), Decimal(2), Decimal("1.5"))
    write(2.5, 2)
    assert prices.find(new) == Price(Decimal("2.5"), Decimal(2), Decimal("2.5"))
    file.write_text("{")  # half written
    assert prices.find(new) == Price(Decimal("2.5"), Decimal(2), Decimal("2.5"))
    assert prices.find(Model("openai", "gpt-5-mini")) == Prices().find(Model("openai", "gpt-5-mini"))


def test_long_texts_are_cut_at_words_and_nothing_is_lost() -> None:
    text = "word " * 3000 + "x" * 9000
    windows = cut_windows(text)
    assert "".join(windows) == text
    assert max(map(len, windows)) <= 6000
    assert windows[0].endswith("word ")
    assert cut_windows("") == [""]


def test_vectors_become_one_and_survive_being_kept() -> None:
    assert pool([[1.0, 0.0], [0.0, 1.0]], [300, 100]) == pytest.approx([0.9487, 0.3162], abs=1e-4)
    assert unpack(pack([[0.5, -0.25], [1.0, 0.0]])) == [[0.5, -0.25], [1.0, 0.0]]
