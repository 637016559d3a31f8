"""The manual page has every command, and formats without complaints."""

from __future__ import annotations

import shutil
import subprocess

import pytest
import typer

from octavo.cli.app import app
from tests.support.tree import ROOT
from tools.make_man_page import commands, escape, man_page

PAGE = ROOT / "docs/manual/share/man/man1/octavo.1"


def test_the_page_is_that_of_the_commands() -> None:
    """`make docs` writes it again."""
    assert PAGE.read_text() == man_page()


def test_every_command_has_a_section() -> None:
    sections = {line.removeprefix(".SS ") for line in PAGE.read_text().splitlines() if line.startswith(".SS ")}
    assert sections == {escape(path) for path, _ in commands(typer.main.get_command(app))}


def test_no_text_is_taken_for_an_instruction() -> None:
    assert escape(".toml and C:\\x") == "\\&.toml and C:\\ex"
    assert escape("use `--json`") == "use \\fB\\-\\-json\\fR"


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
def test_it_formats_without_warnings() -> None:
    done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", str(PAGE)], check=True, capture_output=True, text=True)
    assert done.stderr == ""
    assert "Print JSON." in done.stdout
