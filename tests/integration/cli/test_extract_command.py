"""`octavo extract` prints the text of any file, and needs nothing else for it: no database, server or data folder."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from octavo.core.errors import Encrypted
from octavo.extract import extract
from octavo.extract.extracted import Quality, SourceType
from octavo.extract.file_reader import preload_for
from tests.support.pdf import Bookmark, Pdf, Words
from tests.support.processes import octavo_environment, run_octavo

PROGRAM = b"\x7fELF" + bytes(range(256))


def run(*arguments: str, cwd: Path, given: bytes = b"") -> tuple[int, str, str]:
    """One command to its end; the data folder that it is told of must not be made."""
    data = cwd / "no data folder"
    environment = octavo_environment(data, database_url="postgresql://nobody@127.0.0.1:1/none")
    done = run_octavo(["extract", *arguments], environment, cwd=cwd, given=given, seconds=60)
    assert not data.exists()
    return done.returncode, done.stdout, done.stderr


def locked(folder: Path) -> Path:
    file = folder / "locked.pdf"
    file.write_bytes(Pdf([[Words("Behind the door.")]]).write("sesame"))
    return file


def test_markdown_is_printed_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("ANNUAL REPORT\n\nThe café did well.\n")
    assert run("notes.txt", cwd=tmp_path) == (0, "# ANNUAL REPORT\n\nThe café did well.\n", "")


def test_json_has_pages_blocks_and_outline(tmp_path: Path) -> None:
    title = Words("1 Chapter", top=90, size=18, font="bold")
    pdf = Pdf([[title, Words("Some words.", top=130)], [Words("More words.")]], [Bookmark(1, "1 Chapter", 1)])
    (tmp_path / "book.pdf").write_bytes(pdf.write())
    code, out, err = run("book.pdf", "--json", cwd=tmp_path)
    assert (code, err, out.count("\n")) == (0, "", 1)
    document = json.loads(out)
    assert (document["path"], document["source_type"], document["quality"]) == ("book.pdf", "pdf", "full")
    assert [page["number"] for page in document["pages"]] == [1, 2]
    assert document["outline"][0].items() >= {"level": 1, "title": "1 Chapter", "page": 1}.items()
    kinds = [(block["kind"], block["level"], block["page"], len(block["box"])) for block in document["blocks"]]
    assert kinds[0] == ("heading", 1, 1, 4)
    assert (document["word_count"], document["metadata"]["title"]) == (6, "1 Chapter")


def test_what_cannot_be_read_is_one_line_each_and_the_others_are_printed(tmp_path: Path) -> None:
    (tmp_path / "good.md").write_text("Good.")
    (tmp_path / "program.pdf").write_bytes(PROGRAM)
    (tmp_path / "nothing.txt").touch()
    locked(tmp_path)
    names = ("missing.pdf", "locked.pdf", "good.md", "nothing.txt", "program.pdf")
    code, out, err = run(*names, cwd=tmp_path)
    assert (code, out) == (1, "<!-- good.md -->\n\nGood.\n\n")
    lines = err.splitlines()
    assert [line.split(": ")[1] for line in lines] == ["missing.pdf", "locked.pdf", "nothing.txt", "program.pdf"]
    codes = [line.rpartition(" ")[2] for line in lines]
    assert codes == ["(NO_SUCH_FILE)", "(ENCRYPTED)", "(EMPTY)", "(NOT_SUPPORTED)"]


def test_standard_input_is_a_file_too(tmp_path: Path) -> None:
    code, out, err = run("-", "--name", "numbers.csv", cwd=tmp_path, given=b"name,number\nfirst,1\n")
    assert (code, err) == (0, "")
    assert "| first | 1 |" in out


def test_a_password_opens_what_is_locked(tmp_path: Path) -> None:
    file = locked(tmp_path)
    assert run("locked.pdf", "--password", "sesame", cwd=tmp_path) == (0, "Behind the door.\n", "")
    code, out, err = run("locked.pdf", "--password", "wrong", cwd=tmp_path)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "The password is wrong." in err
    assert run("locked.pdf", "--password", "-", cwd=tmp_path, given=b"sesame\n") == (0, "Behind the door.\n", "")
    assert extract(file, password="sesame").markdown == "Behind the door."
    with pytest.raises(Encrypted):
        extract(file)


def test_a_file_is_written_only_when_there_is_something_for_it(tmp_path: Path) -> None:
    (tmp_path / "good.md").write_text("Good.")
    kept = tmp_path / "out.md"
    kept.write_text("Before.")
    assert run("missing.md", "--out", "out.md", cwd=tmp_path)[0] == 1
    assert kept.read_text() == "Before."
    assert run("good.md", "--out", "out.md", cwd=tmp_path) == (0, "", "")
    assert kept.read_text() == "Good.\n"
    code, _, err = run("good.md", "--out", "no folder/out.md", cwd=tmp_path)
    assert (code, err.count("\n")) == (1, 1)


def test_how_far_a_long_pdf_is_read_is_shown_on_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "long.pdf").write_bytes(Pdf([[Words(f"Page {number}.")] for number in range(1, 151)]).write())
    terminal, theirs = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "octavo", "extract", "long.pdf"],
        env=octavo_environment(tmp_path / "data") | {"TERM": "xterm"},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=theirs,
        timeout=60,
        check=True,
    )
    os.close(theirs)
    shown = os.read(terminal, 1 << 16).decode()
    os.close(terminal)
    assert "of 150 pages" in shown
    assert done.stdout.decode().startswith("Page 1.\n\nPage 2.")


def test_a_program_gets_the_text_of_a_file_with_one_call(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# One\n\nText.\n")
    extracted = extract(str(tmp_path / "notes.md"))
    assert (extracted.source_type, extracted.quality, extracted.word_count) == (SourceType.MARKDOWN, Quality.FULL, 2)
    with pytest.raises(FileNotFoundError):
        extract(tmp_path / "missing.md")


def test_html_shows_each_page_beside_its_text(tmp_path: Path) -> None:
    title = Words("1 Chapter", top=90, size=18, font="bold")
    pdf = Pdf([[title, Words("A <script>alert(1)</script> & more.", top=130)], [Words("The second page.")]])
    (tmp_path / "book.pdf").write_bytes(pdf.write())
    (tmp_path / "<b>notes.txt").write_text("Plain & simple.")
    assert run("book.pdf", "<b>notes.txt", "--html", "out.html", cwd=tmp_path) == (0, "", "")
    page = (tmp_path / "out.html").read_text()
    assert page.startswith("<!doctype html>")
    assert page.endswith("</body></html>\n")
    assert page.count('src="data:image/jpeg;base64,/9j/') == 2
    assert page.index("&lt;script&gt;alert(1)") < page.index("The second page.") < page.index("Plain &amp; simple.")
    assert "<script" not in page
    assert "<b>" not in page
    assert '<div class="box heading" style="left:' in page


def test_html_needs_its_own_file(tmp_path: Path) -> None:
    (tmp_path / "good.md").write_text("Good.")
    for other in (["--json"], ["--out", "out.md"]):
        code, out, err = run("good.md", "--html", "out.html", *other, cwd=tmp_path)
        assert (code, out) == (1, "")
        assert "--html writes its own file" in err
    assert not (tmp_path / "out.html").exists()


def test_libraries_are_loaded_once_and_only_for_the_files_that_need_them(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<h1>Title</h1><p>Words of a page.</p>")
    (tmp_path / "notes.txt").write_text("Plain text.")
    paths = {name: tmp_path / name for name in ("page.html", "notes.txt", "missing.pdf")}
    modules = {name: preload_for([(path, name)]) for name, path in paths.items()}
    assert "trafilatura" in modules["page.html"]
    assert modules["notes.txt"] == modules["missing.pdf"] == ()
    both = preload_for([(path, name) for name, path in paths.items()])
    assert both == modules["page.html"]
