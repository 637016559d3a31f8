"""What the how-to page about models shows is what the settings and the prices say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from octavo.ai.models import Model, Prices
from octavo.core.errors import BadModelKey, OverBudget
from octavo.core.settings import PROVIDERS, Settings, load_settings, variable_name

PAGE = (Path(__file__).parents[3] / "docs/how-to/models.md").read_text()
EXPORT = re.compile(r"^    export (OCTAVO_\w+)=(\S+)", re.MULTILINE)
ROW = re.compile(r"^\| `(\w+)` \| (.*?) \|(.*?)\|$", re.MULTILINE)


def test_every_setting_on_the_page_exists() -> None:
    named = set(re.findall(r"OCTAVO_\w+", PAGE))
    assert named <= {variable_name(field) for field in Settings.model_fields}


def test_the_table_has_every_provider_with_what_it_needs() -> None:
    rows = {name: (needs, model) for name, needs, model in ROW.findall(PAGE)}
    assert set(rows) == set(PROVIDERS)
    for name, (needs, model) in rows.items():
        assert re.findall(r"OCTAVO_\w+", needs) == [variable_name(need) for need in PROVIDERS[name]]
        if name in {"gemini", "openai", "anthropic", "mistral", "vertex"}:
            assert model.strip() == f"`{Settings.model_fields[f'{name}_model'].default}`"
            assert Prices().find(Model(name, model.strip(" `")))


def test_the_examples_are_settings_that_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block by itself, as somebody would paste it."""
    blocks = re.findall(r"(?:^    export .*\n)+", PAGE, re.MULTILINE)
    assert len(blocks) == 5
    for block in blocks:
        with monkeypatch.context() as shell:
            for name, value in EXPORT.findall(block):
                shell.setenv(name, value)
            load_settings()


def test_the_codes_are_those_of_the_errors() -> None:
    assert BadModelKey.code in PAGE
    assert OverBudget.code in PAGE
