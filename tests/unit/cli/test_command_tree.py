"""Every command can be used by a program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from octavo.cli.app import app

# They run until somebody ends them.
LASTING = {"up", "web", "worker", "mcp", "lmtp"}


def commands(group: Any, path: str = "") -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - the library's own kinds
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


def test_every_command_that_ends_prints_data_for_programs_and_all_explain_themselves() -> None:
    found = dict(commands(typer.main.get_command(app)))
    assert {name for name, one in found.items() if not one.help} == set()
    assert {name for name, one in found.items() if not any("--json" in p.opts for p in one.params)} == LASTING
