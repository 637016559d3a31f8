"""What the how-to page about agents shows is right."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer

from octavo.cli.app import app
from octavo.mcp.server import ONE_DOCUMENT, ONE_PAGE
from octavo.mcp.tools import TOOLS

PAGE = (Path(__file__).parents[3] / "docs/how-to/agents.md").read_text()
COMMANDS = [words[words.index("octavo mcp") :] for words in re.findall(r"`?(octavo mcp[^`\n]*)", PAGE)]


def examples(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_page_lists_every_tool_with_its_scope() -> None:
    rows = re.findall(r"^\| (`.*?`) \| .* \| (read|write) \|$", PAGE, re.MULTILINE)
    listed = {name: scope for names, scope in rows for name in re.findall(r"`(\w+)`", names)}
    assert listed == {name: "write" if one.writes else "read" for name, one in TOOLS.items()}


def test_the_page_names_the_addresses_of_resources() -> None:
    assert ONE_DOCUMENT.removesuffix("{?cursor}") in PAGE
    assert ONE_PAGE in PAGE


def servers() -> list[dict[str, Any]]:
    written = [json.loads(one) for one in examples("json")]
    read = [one.get("mcpServers") or one["servers"] for one in written]
    return [one["octavo"] for one in [*read, *(tomllib.loads(one)["mcp_servers"] for one in examples("toml"))]]


def test_every_configuration_starts_the_command_or_names_the_route() -> None:
    assert len(servers()) == 6
    for one in servers():
        if "url" in one:
            assert one["url"] == "https://docs.example.org/mcp"
        else:
            assert [one["command"], *one["args"]] == ["octavo", "mcp"]


@pytest.mark.parametrize("command", sorted(set(COMMANDS)))
def test_every_command_on_the_page_is_understood(command: str) -> None:
    _, name, *options = shlex.split(command.replace("URL", "https://docs.example.org"))
    commands: Any = typer.main.get_command(app)
    commands.commands[name].make_context(name, options)
