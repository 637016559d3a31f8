"""What the how-to page about `octavo extract` shows does what the page says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pdf import Bookmark, Pdf, Words
from tests.support.processes import octavo_environment, run_octavo

PAGE = (Path(__file__).parents[3] / "docs/how-to/extract.md").read_text()
COMMANDS = re.findall(r"^octavo extract .*$", PAGE, re.MULTILINE)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    chapter = Words("1 Chapter", top=90, size=18, font="bold")
    pdf = Pdf([[chapter, Words("Some words.", top=130)]], [Bookmark(1, "1 Chapter", 1)])
    (tmp_path / "report.pdf").write_bytes(pdf.write())
    (tmp_path / "locked.pdf").write_bytes(pdf.write("sesame"))
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a.md").write_text("Some notes.")
    (tmp_path / "letters.eml").write_text("From: a@example.org\nSubject: Hello\n\nSome lines.\n")
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    return tmp_path


def printed_by(done: subprocess.CompletedProcess[str]) -> str:
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("shown", COMMANDS)
def test_commands(shown: str, files: Path) -> None:
    command, _, source = shown.partition("#")[0].partition("<")
    given = (files / source.strip()).read_bytes() if source else b"sesame\n"
    program, *arguments = shlex.split(command)
    assert program == "octavo"
    printed = printed_by(run_octavo(arguments, octavo_environment(files / "data"), cwd=files, given=given))
    if "--html" in arguments:
        assert "Some words." in (files / "report.html").read_text()
    else:
        assert printed or (files / "report.md").read_text() == "# 1 Chapter\n\nSome words.\n"


def test_python(files: Path) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    environment = octavo_environment(files / "data")
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, cwd=files, capture_output=True, text=True, check=False)
    assert printed_by(done) == "full 4\n1 1 Chapter 1\n"


def test_every_field_is_explained(files: Path) -> None:
    from octavo.extract import extract
    from octavo.extract.extracted import to_document

    names = {"path", *to_document(extract(files / "report.pdf"))}
    explained = {
        name for row in re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE) for name in re.findall("`(.*?)`", row)
    }
    assert explained == names
