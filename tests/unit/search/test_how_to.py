"""What the page about searching shows can be typed as it stands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from octavo.cli import search
from octavo.cli.app import app
from octavo.records.search import SearchPage

PAGE = (Path(__file__).parents[3] / "docs/how-to/search.md").read_text()
COMMANDS = re.findall(r"^    octavo (.+)$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_of_the_page_are_understood(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def find_nothing(*_: object) -> SearchPage:
        return SearchPage([], "hybrid", None)

    monkeypatch.setattr(search, "call", find_nothing)
    answer = CliRunner().invoke(app, shlex.split(command))
    assert answer.exit_code == 0, answer.output
