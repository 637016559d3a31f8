"""`octavo add`, `ls`, `show`, `rm`, `restore`, `retry`, `reembed`, `watch` and `keys` on a running installation."""

from __future__ import annotations

import asyncio
import io
import json
import signal
import subprocess
import sys
import zipfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from octavo.cli import main
from octavo.database.embedded import DataFolder, EmbeddedPostgres
from tests.integration.client.servers import cutting
from tests.support.connections import connect, put_vector
from tests.support.instance import Instance, free_port, instance_in
from tests.support.pdf import Pdf, Words
from tests.support.postgres import open_folder
from tests.support.processes import PATIENCE_SECONDS, running, running_octavo, wait_until


@dataclass(frozen=True, slots=True)
class Said:
    returncode: int
    stdout: str
    stderr: str


class Console:
    """A person at a folder of files. Commands run in this process, which saves a second for each."""

    def __init__(self, instance: Instance, patch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]) -> None:
        self.instance = instance
        self._patch = patch
        self._capture = capture

    def run(self, *arguments: str, stdin: bytes = b"") -> Said:
        self._patch.setattr(sys, "argv", ["octavo", *arguments])
        self._patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as ended:
            main()
        captured = self._capture.readouterr()
        return Said(int(ended.value.code or 0), captured.out, captured.err)

    def say(self, *arguments: str, code: int = 0) -> str:
        result = self.run(*arguments)
        assert result.returncode == code, result
        return result.stdout

    def read(self, *arguments: str, code: int = 0, stdin: bytes = b"") -> Any:  # noqa: ANN401 - whatever it prints
        result = self.run(*arguments, "--json", stdin=stdin)
        assert (result.returncode, result.stderr) == (code, ""), result
        return json.loads(result.stdout)

    def refuse(self, *arguments: str) -> str:
        """One clear line and nothing else."""
        result = self.run(*arguments)
        lines = result.stderr.strip().splitlines()
        assert (result.returncode, result.stdout, len(lines)) == (1, "", 1), result
        return lines[0]

    def add(self, *paths: Path) -> list[str]:
        """The ids of documents made of these files."""
        return [item["document_id"] for item in self.read("add", *map(str, paths))["items"]]

    def query(self, statement: str, *values: object) -> Any:  # noqa: ANN401 - whatever is in the database
        info = EmbeddedPostgres(DataFolder(self.instance.data)).connection_info()
        with psycopg.connect(info) as connection:
            return connection.execute(statement.encode(), values).fetchall()


@pytest.fixture(scope="module")
def instance() -> Iterator[Instance]:
    """Without a worker, so that documents stay as they are until a test starts one."""
    with open_folder() as folder, instance_in(folder, workers=0, upload_bytes=9_000_000) as instance:
        instance.start()
        yield instance


@pytest.fixture(scope="module")
def key(instance: Instance) -> str:
    made = instance.octavo("keys", "add", "test", "--scope", "admin")
    assert made.returncode == 0, made
    return made.stdout.strip()


@pytest.fixture
def console(
    instance: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Console:
    monkeypatch.setenv("OCTAVO_DATA_DIR", str(instance.data))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return Console(instance, monkeypatch, capsys)


def write(name: str, size: int = 40) -> Path:
    """A file of a content that no other test has."""
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{uuid4()} ".ljust(size, "x"))
    return path


@contextmanager
def working(instance: Instance) -> Generator[None]:
    """A worker for a while; asked to end, it says that it is gone."""
    with running_octavo(["worker"], instance.environment) as worker:
        yield
        worker.terminate()
        worker.wait(PATIENCE_SECONDS)


COMMANDS = [
    *("add", "ls", "show", "rm", "restore", "retry", "cancel", "reembed", "watch"),
    *("edit", "connections", "verdict", "weights", "related", "highlights"),
    *("keys", "keys add", "keys ls", "keys rm"),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(console: Console, command: str) -> None:
    said = console.say(*command.split(), "--help")
    assert f"octavo {command} " in said
    assert command == "keys" or "--json" in said


# With a worker: first, because it processes what other tests add and leave alone ------------------------------------


def test_waiting_ends_when_the_documents_are_processed(console: Console) -> None:
    write("a.md")
    with working(console.instance):
        (item,) = console.read("add", "a.md", "--wait")["items"]
        assert item["status"] == "completed"
        write("b.md")
        lines = console.say("add", "b.md", "--wait").splitlines()
    assert lines[0].startswith("added")
    assert lines[1] == "1 added."
    assert lines[-2].endswith("b.md: completed")
    assert lines[-1] == "1 completed."


def test_the_parts_of_an_archive_are_shown(console: Console) -> None:
    with zipfile.ZipFile("parts.zip", "w") as file:
        file.writestr("folder/inner.md", f"# Inner\n\nWords {uuid4()}.")
    (document,) = console.add(Path("parts.zip"))
    with working(console.instance):
        wait_until(lambda: "folder/inner.md" in console.say("show", document), "the part is shown")
    (part,) = console.query("SELECT document_id FROM document_parts WHERE parent_id = %s", document)[0]
    assert f"{part} folder/inner.md" in console.say("show", document)
    assert f"{document} (folder/inner.md)" in console.say("show", str(part))
    assert console.read("show", str(part))["parent_id"] == document


def test_watching_ends_when_all_have_ended_and_tells_what_failed(console: Console) -> None:
    good, bad = console.add(write("good.md"))[0], console.add(write("bad.md"))[0]
    console.say("cancel", bad)
    with working(console.instance):
        lines = console.say("watch", good, bad[-12:], code=1).splitlines()
    ended = {line.split(maxsplit=2)[1]: line.split(maxsplit=2)[2] for line in lines if line[2:3] == ":"}
    assert ended[good[-8:]] == "good.md: completed"
    assert ended[bad[-8:]] == "bad.md: failed: Stopped by you. (CANCELLED)"
    assert lines[-1] == "1 completed, 1 failed."
    items = console.read("watch", good, bad, code=1)["items"]
    assert {one["id"]: one["status"] for one in items} == {good: "completed", bad: "failed"}


# Adding ------------------------------------------------------------------------------------------------------------


def test_files_folders_and_patterns_are_added(console: Console) -> None:
    for name in ("a.md", "folder/b.md", "folder/deep/c.md", "folder/.hidden.md", "more/d.txt", "more/e.txt"):
        write(name)
    Path("folder/link.md").symlink_to("b.md")
    found = console.read("add", "a.md", "folder", "more/*.txt")
    assert (found["added"], found["existing"], found["refused"]) == (5, 0, 0)
    assert {item["path"] for item in found["items"]} == {
        *("a.md", "folder/b.md", "folder/deep/c.md", "more/d.txt", "more/e.txt")
    }
    assert {item["state"] for item in found["items"]} == {"uploaded"}
    assert {one["path"]: one["reason"] for one in found["skipped"]} == {
        "folder/.hidden.md": "hidden",
        "folder/link.md": "link",
    }
    names = {one["filename"] for one in console.read("ls", "--limit", "5")["items"]}
    assert names == {"a.md", "b.md", "c.md", "d.txt", "e.txt"}


def test_without_a_terminal_every_file_is_a_line_and_the_end_is_a_summary(console: Console) -> None:
    write("folder/a.md")
    write("folder/.b.md")
    Path("folder/c.md").write_text(Path("folder/a.md").read_text())
    lines = console.say("add", "folder", "--jobs", "1").splitlines()
    document = console.read("ls", "--limit", "1")["items"][0]["id"]
    assert lines == [
        f"added          {document}  folder/a.md",
        f"already there  {document}  folder/c.md",
        "1 added, 1 already there.",
        "Skipped 1 hidden file (name a file explicitly to add it).",
    ]


def test_a_refused_file_is_reported_with_its_code_and_the_rest_is_added(console: Console) -> None:
    write("good.md")
    Path("empty.md").touch()
    write("large.bin", 9_000_001)
    result = console.run("add", "good.md", "empty.md", "large.bin", "missing.md")
    assert result.returncode == 1
    assert result.stdout.splitlines()[-1] == "1 added, 3 refused."
    assert sorted(result.stderr.splitlines()) == [
        "refused        empty.md: The content is empty. (EMPTY)",
        "refused        large.bin: Larger than the limit. The limit is 8.6 MB. (TOO_LARGE)",
        "refused        missing.md: File or folder not found. (NO_SUCH_FILE)",
    ]
    found = console.read("add", "good.md", "empty.md", code=1)
    (refused,) = (item for item in found["items"] if item["state"] == "refused")
    assert refused["error"] == {"code": "EMPTY", "message": "The content is empty."}
    assert (found["existing"], found["refused"]) == (1, 1)


def test_refused_uploads_are_listed_with_their_reason(console: Console) -> None:
    (first,) = console.add(write("there already.md"))
    console.run("add", "there already.md", "--duplicates", "reject")
    said = console.say("uploads", "ls")
    assert any("there already.md" in line and first in line and "(DUPLICATE)" in line for line in said.splitlines())
    (newest, *_) = console.read("uploads", "ls", "--state", "rejected")["items"]
    found = newest["filename"], newest["state"], newest["error"]["code"]
    assert found == ("there already.md", "rejected", "DUPLICATE")
    assert console.say("uploads", "ls", "--state", "deleted") == "No deleted uploads.\n"


def test_a_file_that_is_there_already_is_treated_as_was_asked(console: Console) -> None:
    (first,) = console.add(write("a.md"))
    (reused,) = console.read("add", "a.md")["items"]
    assert (reused["state"], reused["document_id"], reused["duplicate_of"]) == ("deduplicated", first, first)
    (copy,) = console.read("add", "a.md", "--duplicates", "new")["items"]
    assert (copy["state"], copy["duplicate_of"]) == ("uploaded", first)
    (refused,) = console.read("add", "a.md", "--duplicates", "reject", code=1)["items"]
    assert refused["error"]["code"] == "DUPLICATE"
    assert first in refused["error"]["message"]


def test_standard_input_is_added_under_a_name(console: Console) -> None:
    text = f"# {uuid4()}".encode()
    (item,) = console.read("add", "-", "--name", "notes.md", stdin=text)["items"]
    document = console.read("show", item["document_id"])
    assert (document["filename"], document["bytes"]) == ("notes.md", len(text))
    assert "--name" in console.refuse("add", "-")
    (refused,) = console.read("add", "-", "--name", "n", code=1)["items"]
    assert refused["error"]["code"] == "EMPTY"
    (refused,) = console.read("add", "-", "--name", "n", code=1, stdin=bytes(9_000_001))["items"]
    assert refused["error"]["code"] == "TOO_LARGE"


def test_title_tags_and_collection_are_set_and_a_document_keeps_the_tags_it_has(console: Console) -> None:
    path = str(write("a.md"))
    given = ("--title", "My title", "--tag", "red", "--tag", "blue", "--collection", "Inbox")
    (item,) = console.read("add", path, *given)["items"]
    document = console.read("show", item["document_id"])
    assert (document["title"], document["tags"], document["collection"]) == ("My title", ["blue", "red"], "Inbox")
    console.say("add", path, "--tag", "green")
    document = console.read("show", item["document_id"])
    assert (document["title"], document["tags"]) == ("My title", ["blue", "green", "red"])
    assert "--title" in console.refuse("add", path, str(write("b.md")), "--title", "Both")


def test_a_document_that_was_added_but_not_edited_is_reported(console: Console) -> None:
    write("a.md")
    (item,) = console.read("add", "a.md", "--tag", " ", code=1)["items"]
    assert (item["state"], item["error"]["code"]) == ("uploaded", "VALIDATION")
    result = console.run("add", "a.md", "--tag", " ")
    assert (result.returncode, result.stdout.splitlines()[-1]) == (1, "0 added, 1 already there.")
    assert result.stderr.startswith("not changed    a.md: ")


@pytest.mark.parametrize("name", ["data.json", "page.html", "form.mht", "[red]\x1b[2J.md", "Ü資.md", "no-ending"])
def test_a_file_of_any_name_and_kind_is_a_file(console: Console, name: str) -> None:
    Path(name).write_text(f'{{"url": "http://127.0.0.1/{uuid4()}"}}')
    result = console.run("add", "--", name)
    assert (result.returncode, result.stdout.splitlines()[-1]) == (0, "1 added."), result
    assert "\x1b" not in result.stdout
    (document,) = console.read("ls", "--limit", "1")["items"]
    assert document["filename"] == name.replace("\x1b", "")


def test_an_empty_folder_is_not_an_error(console: Console) -> None:
    Path("folder").mkdir()
    assert console.say("add", "folder") == "Nothing to add.\n"
    assert console.read("add", "folder")["items"] == []


# Reading -----------------------------------------------------------------------------------------------------------


def test_documents_are_listed_with_filters_and_in_pages(console: Console) -> None:
    first, second = console.add(write("one special.md")), console.add(write("two special.md"))
    console.say("add", "one special.md", "--tag", "chosen", "--collection", "Shelf")

    def listed(*filters: str) -> list[str]:
        return [one["id"] for one in console.read("ls", *filters)["items"]]

    assert listed("-q", "SPECIAL") == second + first
    assert listed("--tag", "chosen") == listed("--collection", "shelf") == first
    assert listed("--q", "special", "--status", "failed") == []
    assert listed("--q", "special", "--status", "pending") == second + first
    page = console.read("ls", "--q", "special", "--limit", "1")
    assert [one["id"] for one in page["items"]] == second
    assert listed("--q", "special", "--limit", "1", "--cursor", page["next_cursor"]) == first
    rows = console.say("ls", "--q", "special").splitlines()
    assert rows[0].split() == ["ID", "TITLE", "STATUS", "QUALITY", "LENGTH", "ADDED"]
    assert rows[1].startswith(f"{second[0]}  two special.md  pending")
    assert "There are more" in console.say("ls", "--q", "special", "--limit", "1")


def test_a_list_of_nothing_says_what_to_do(console: Console) -> None:
    assert "To list all, use `octavo ls`." in console.say("ls", "--tag", "nobody has this")
    assert "To list all, use `octavo ls --trashed`." in console.say("ls", "--trashed", "--tag", "nobody has this")
    assert console.read("ls", "--tag", "nobody has this") == {"items": [], "next_cursor": None}


def test_a_document_is_shown_by_some_of_its_id(console: Console) -> None:
    (document,) = console.add(write("shown.md"))
    for part in (document, document[-8:], document[-12:].upper(), document[:35], document[-8:][:6]):
        assert console.read("show", part)["id"] == document
    facts = dict(line.split(maxsplit=1) for line in console.say("show", document).splitlines())
    assert (facts["Id"], facts["Status"], facts["Stage"]) == (document, "pending", "queued, no worker is running")
    assert "at least 4" in console.refuse("show", document[:3])
    assert "No document's id" in console.refuse("show", "ffffffff")
    assert "Not found" in console.refuse("show", str(uuid4()))
    console.add(write("other.md"))
    ambiguous = console.refuse("show", document[:4])
    assert "matches more than one document: " in ambiguous
    assert "(other.md)" in ambiguous


# Changing ----------------------------------------------------------------------------------------------------------


def test_documents_go_to_the_trash_and_come_back(console: Console) -> None:
    first, second = console.add(write("a.md"))[0], console.add(write("b.md"))[0]
    assert console.say("rm", first[-10:], second, first).endswith("(undo with `octavo restore`): 2.\n")
    assert {first, second} <= {one["id"] for one in console.read("ls", "--trashed")["items"]}
    assert "Not found" in console.refuse("rm", first)
    assert "No document's id" in console.refuse("show", first[-10:])
    assert console.read("restore", first[-10:], second) == {"changed": 2}
    assert console.read("show", first)["deleted_at"] is None


def test_all_are_changed_or_none(console: Console) -> None:
    (document,) = console.add(write("a.md"))
    assert "Not found" in console.refuse("rm", document, str(uuid4()))
    assert console.read("show", document)["deleted_at"] is None


def test_deleting_for_good_needs_a_yes(console: Console) -> None:
    first, second = console.add(write("a.md"))[0], console.add(write("b.md"))[0]
    assert "--yes" in console.refuse("rm", first, "--purge")
    console.say("rm", second)
    assert console.say("rm", first[-12:], second[-12:], "--purge", "--yes") == "Deleted permanently: 2.\n"
    assert "Not found" in console.refuse("show", first)
    assert "Not found" in console.refuse("restore", second)


def test_a_cancelled_document_fails_and_a_retry_resumes_it(console: Console) -> None:
    (document,) = console.add(write("a.md"))
    assert console.say("cancel", document[-12:]) == "Cancelled: 1.\n"
    shown = console.read("show", document)
    assert (shown["status"], shown["error"]["code"]) == ("failed", "CANCELLED")
    assert "Stopped by you. (CANCELLED)" in console.say("show", document)
    console.refuse("cancel", document)
    assert "no finished stage" in console.refuse("retry", document, "--from-stage", "chunked")
    assert console.say("retry", document) == "Queued again: 1.\n"
    (again,) = console.read("retry", document)["items"]
    assert (again["state"], console.read("show", document)["status"]) == ("pending", "pending")


def test_vectors_that_nothing_lacks_are_not_made_and_unknown_models_are_refused(console: Console) -> None:
    console.add(write("a.md"))  # nobody has read it yet, so there is nothing to make vectors of
    assert console.read("reembed", "--model", "local") == {"queued": 0}
    assert "Unknown model" in console.refuse("reembed", "--model", "nobody:nothing")


def test_a_locked_pdf_is_retried_with_its_password(console: Console) -> None:
    file = Path("locked.pdf")
    file.write_bytes(Pdf([[Words(f"{uuid4()}")]]).write("sesame"))
    (document,) = console.add(file)
    console.say("cancel", document)
    assert "The password is wrong." in console.refuse("retry", document, "--password", "wrong")
    assert console.run("retry", document, "--password", "-", stdin=b"sesame\n").stdout == "Queued again: 1.\n"


def test_watching_everything_tells_why_it_waits(console: Console) -> None:
    (document,) = console.add(write("waits.md"))
    command = [sys.executable, "-u", "-m", "octavo", "watch"]
    with running(command, console.instance.environment) as watching:
        assert watching.stdout
        line = next(line for line in watching.stdout if document[-8:] in line)
        assert "waits.md: waiting: no worker is running" in line
        watching.send_signal(signal.SIGINT)
        assert watching.wait(60) == 130
        assert "Traceback" not in watching.stdout.read()


# Keys and other servers --------------------------------------------------------------------------------------------


def test_keys_are_made_listed_and_revoked(console: Console) -> None:
    result = console.run("keys", "add", "laptop", "--scope", "read", "--days", "7")
    secret = result.stdout.strip()
    assert (result.returncode, secret.startswith("octavo_")) == (0, True)
    assert "not be shown again" in result.stderr
    made = console.read("keys", "add", "phone")
    assert (made["name"], made["scope"]) == ("phone", "write")
    listed = {one["name"]: one for one in console.read("keys", "ls")["items"]}
    assert (listed["laptop"]["scope"], listed["phone"]["id"]) == ("read", made["id"])
    assert "key" not in listed["phone"]
    assert secret not in console.say("keys", "ls")
    assert console.say("keys", "rm", "laptop", made["id"][-8:]) == "Revoked: 2.\n"
    assert {"laptop", "phone"}.isdisjoint(one["name"] for one in console.read("keys", "ls")["items"])
    assert "unknown, revoked or expired" in console.refuse("ls", "--key", secret)
    assert "No key's id" in console.refuse("keys", "rm", "ffffffff")


def test_another_server_is_used_with_a_key(
    console: Console, key: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OCTAVO_DATA_DIR", str(folder / "nothing runs here"))
    server = ("--server", console.instance.address)
    (document,) = console.read("add", str(write("a.md")), *server, "--key", key)["items"]
    monkeypatch.setenv("OCTAVO_SERVER", console.instance.address)
    assert "OCTAVO_KEY" in console.refuse("ls")
    monkeypatch.setenv("OCTAVO_KEY", key)
    assert console.read("show", document["document_id"])["filename"] == "a.md"
    assert not (folder / "nothing runs here").exists()
    line = console.refuse("ls", "--server", "docs.example.org")
    assert "must look like https://" in line
    assert key not in line


def test_a_read_only_key_stops_adding_immediately(console: Console) -> None:
    secret = console.read("keys", "add", "reader", "--scope", "read")["key"]
    for number in range(20):
        write(f"folder/{number}.md")
    result = console.run("add", "folder", "--key", secret)
    assert (result.returncode, result.stdout) == (1, "0 added, 20 not sent.\n")
    assert len(result.stderr.splitlines()) == 1
    assert "does not allow this" in result.stderr


def test_the_commands_leave_no_session_behind(console: Console) -> None:
    before = console.query("SELECT count(*) FROM sessions")
    console.say("ls")
    console.refuse("show", str(uuid4()))
    assert console.query("SELECT count(*) FROM sessions") == before


def test_when_nothing_runs_it_says_how_to_start(
    console: Console, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("a.md")
    monkeypatch.setenv("OCTAVO_DATA_DIR", str(folder / "data"))
    for arguments in (["ls"], ["add", "a.md"], ["watch"], ["keys", "ls"], ["rm", str(uuid4())]):
        line = console.refuse(*arguments)
        assert "`octavo up`" in line
        assert "--server" in line
    assert not (folder / "data").exists()


def test_a_server_that_is_away_is_one_line(console: Console, key: str) -> None:
    write("folder/a.md")
    write("folder/b.md")
    away = ("--server", f"http://127.0.0.1:{free_port()}", "--key", key)
    line = console.refuse("add", "folder", *away)
    assert "could not be reached" in line
    assert "does not accept connections" in line


# Broken connections and stops --------------------------------------------------------------------------------------


def test_files_arrive_once_over_connections_that_break(console: Console, key: str) -> None:
    for number in range(12):
        write(f"folder/{number}.md", 200_000 if number % 3 else 8_500_000)
    # Of the first connection and each after it, most are cut, some in the middle of a file and some before an answer.
    cuts = [50_000, 400_000, -1, 20_000, 5_000_000, 100, -1, 300_000, 250_000]
    with cutting(console.instance.address, *cuts) as cutter:
        found = console.read("add", "folder", "--server", cutter.address, "--key", key, "--jobs", "3")
        assert cutter.connections > len(cuts)
    assert (found["added"] + found["existing"], found["refused"]) == (12, 0)
    made = console.query(
        "SELECT count(*), count(DISTINCT sha256) FROM documents WHERE id = ANY (%s)",
        [UUID(item["document_id"]) for item in found["items"]],
    )
    assert made == [(12, 12)]


def test_stopping_ends_cleanly_and_reports_the_results(console: Console, key: str) -> None:
    write("folder/a.md")
    with cutting(console.instance.address) as through:
        for number in range(3):
            write(f"folder/large{number}.bin", 8_900_000)
        environment = {**console.instance.environment, "OCTAVO_SERVER": through.address, "OCTAVO_KEY": key}
        command = [sys.executable, "-m", "octavo", "add", "folder", "--jobs", "1", "--wait"]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True) as process:
            try:
                assert process.stdout
                assert process.stdout.readline().startswith("added")
                process.send_signal(signal.SIGINT)
                stdout, stderr = process.communicate(timeout=60)
            finally:
                process.kill()
    assert process.returncode == 130
    assert "Traceback" not in stdout + stderr
    assert stderr.splitlines()[-1].startswith("Stopped. ")


# Links and text ----------------------------------------------------------------------------------------------------


def test_links_are_added_as_an_option_and_as_plain_arguments(console: Console) -> None:
    page, other = f"https://example.org/{uuid4()}", f"https://example.org/{uuid4()}"
    file = write("beside.md")
    found = console.read("add", str(file), page, "--url", other, "--url", page)
    assert (found["added"], found["existing"], found["refused"]) == (3, 1, 0)
    assert {item["path"] for item in found["items"]} == {str(file), page, other}
    urls = {one["source_url"] for one in console.read("ls", "--limit", "3")["items"]}
    assert urls == {page, other, None}


def test_a_link_that_leads_inside_is_refused_like_a_bad_file(console: Console) -> None:
    good = f"https://example.org/{uuid4()}"
    found = console.read("add", "http://127.0.0.1:1/", good, code=1)
    assert (found["added"], found["refused"]) == (1, 1)
    (refused,) = [item for item in found["items"] if item["state"] == "refused"]
    assert (refused["path"], refused["error"]["code"]) == ("http://127.0.0.1:1/", "FETCH_REFUSED")


def test_text_is_added_with_its_title_and_source(console: Console) -> None:
    words = f"Some words about {uuid4()}."
    found = console.read("add", "--text", words, "--title", "Rivers", "--source", "A talk in Rome")
    shown = console.read("show", found["items"][0]["document_id"])
    assert (shown["title"], shown["source_type"]) == ("Rivers", "paste")
    assert shown["metadata"] == {"source": "A talk in Rome"}
    piped = console.read("add", "--text", "-", stdin=f"Piped words {uuid4()}.".encode())
    assert console.read("show", piped["items"][0]["document_id"])["source_type"] == "paste"


@pytest.mark.parametrize("policy", ["reuse", "new"])  # in one request, and announced first
def test_files_and_links_are_added_with_their_source(console: Console, policy: str) -> None:
    link = f"https://example.org/{uuid4()}"
    given = ["--source", "A letter & more", "--duplicates", policy]
    found = console.read("add", str(write(f"{uuid4()}.txt")), link, *given)
    for item in found["items"]:
        assert console.read("show", item["document_id"])["metadata"]["source"] == "A letter & more"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["add"], "Nothing to add"),
        (["add", "--title", "x", "https://example.org/", "--text", "y"], "--title works only with a single document"),
        (["add", "-", "--name", "a.md", "--text", "-"], "Standard input can be read only once"),
    ],
    ids=["nothing", "title", "standard input"],
)
def test_incompatible_options_are_refused_in_one_line(console: Console, arguments: list[str], said: str) -> None:
    assert said in console.refuse(*arguments)


# Editing and connections -------------------------------------------------------------------------------------------


def test_fields_of_documents_can_be_edited_and_cleared(console: Console) -> None:
    one, other = console.add(write("one.txt"), write("other.txt"))
    said = console.say(
        *("edit", one, "--title", "Crane lease", "--author", "Ada", "--date", "2024-02-29"),
        *("--tag", "Law", "--tag", "Cranes", "--collection", "Contracts"),
    )
    assert said == "Edited 1 document: Crane lease.\n"
    shown = console.read("show", one)
    assert (shown["title"], shown["author"], shown["document_date"]) == ("Crane lease", "Ada", "2024-02-29")
    assert (sorted(shown["tags"]), shown["collection"]) == (["Cranes", "Law"], "Contracts")
    # Tags are added to the others, and two documents are edited like one.
    edited = console.read("edit", one, other, "--tag", "law", "--tag", "2024", "--remove-tag", "CRANES")["items"]
    assert [sorted(item["tags"], key=str.lower) for item in edited] == [["2024", "Law"], ["2024", "Law"]]
    (edited,) = console.read("edit", one, "--clear", "author", "--clear", "date", "--clear", "collection")["items"]
    assert (edited["title"], edited["author"], edited["document_date"], edited["collection"]) == (
        *("Crane lease", None, None),
        None,
    )
    (edited,) = console.read("edit", one, "--clear", "tags", "--tag", "New")["items"]
    assert edited["tags"] == ["New"]


def test_all_documents_that_match_are_edited_and_the_edit_is_undone(console: Console) -> None:
    one, other, apart = console.add(write("one.txt"), write("other.txt"), write("apart.txt"))
    console.say("edit", one, other, "--tag", "imported", "--kind", "letter")
    said = console.say(
        "edit", "--where", "tag=imported", "--where", "kind=letter", "--collection", "Quay", "--tag", "moved"
    )
    assert said.startswith("Edited 2 documents. Undo with `octavo edit --undo ")
    found = [console.read("show", name) for name in (one, other, apart)]
    assert [(item["collection"], sorted(item["tags"])) for item in found] == [
        *[("Quay", ["imported", "moved"])] * 2,
        (None, []),
    ]
    assert console.say("edit", "--undo", said.split("`")[1].split()[-1]) == "Restored 2 documents.\n"
    shown = console.read("show", one)
    assert (shown["collection"], shown["tags"], shown["kind"]) == (None, ["imported"], "letter")
    assert "Specify documents, or select them with --where" in console.refuse("edit", "--title", "A")
    assert "use NAME=VALUE" in console.refuse("edit", "--where", "imported", "--title", "A")
    assert "nonsense" in console.refuse("edit", "--where", "nonsense=1", "--title", "A")


def test_all_documents_that_match_are_deleted_and_the_deletion_is_undone(console: Console) -> None:
    one, other = console.add(write("one.txt"), write("other.txt"))
    console.say("edit", one, other, "--tag", "draft")
    said = console.say("rm", "--where", "tag=draft")
    assert said.startswith("Moved to the trash: 2 documents. Undo with `octavo edit --undo ")
    assert console.read("ls", "--tag", "draft")["items"] == []
    assert console.say("edit", "--undo", said.split("`")[1].split()[-1]) == "Restored 2 documents.\n"
    assert len(console.read("ls", "--tag", "draft")["items"]) == 2
    assert "Specify documents, or select them with --where" in console.refuse("rm")
    assert "--purge cannot be combined with --where" in console.refuse("rm", "--where", "tag=draft", "--purge", "--yes")


def test_fields_rules_and_sources_are_edited_and_documents_found_by_their_fields(console: Console) -> None:
    one, _ = console.add(write("pier.txt"), write("dune.txt"))
    console.say("fields", "add", "Site")
    console.say("fields", "add", "State", "--type", "choice", "--choice", "Open")
    assert console.say("edit", one, "--field", "Site=North coast", "--field", "State=Open").startswith("Edited 1")
    assert "North coast" in console.say("show", one)
    assert "must be one of Open" in console.refuse("edit", one, "--field", "State=Paid")
    assert "Changed the field" in console.say("fields", "edit", "State", "--choice", "Open", "--choice", "Paid")
    console.say("edit", "--where", "field=Site", "--field", "State=Paid")
    for wanted in ("Site", "site:north COAST", "State:Paid"):
        assert [item["id"] for item in console.read("ls", "--field", wanted)["items"]] == [one]
    assert console.read("search", "pier", "--field", "State:Open")["items"] == []

    rule = ("rules", "add", "Coast", "--when", "field:Site=North coast", "--then", "field:State=Open")
    console.say(*rule)
    console.say("rules", "add", "Later", "--when", "kind=x", "--then", "tag=y")
    # Rules follow a field that is renamed.
    assert console.say("fields", "edit", "Site", "--name", "Place") == "Changed the field Place.\n"
    assert console.say("rules", "try", "Coast").endswith("The rule would change 1 document.\n")
    console.say("rules", "apply", "Coast")
    assert "applied: 1 document" in console.say("rules", "log", "Coast")
    assert console.say("rules", "log", "Later") == "No runs yet.\n"
    console.say("rules", "edit", "Later", "--position", "1", "--name", "First", "--then", "tag=z")
    first, coast = console.read("rules", "ls")["items"]
    assert (first["name"], first["when"]["kind"], first["then"]["tags"], coast["name"]) == (
        "First",
        "x",
        ["z"],
        "Coast",
    )
    assert "Nothing to change" in console.refuse("rules", "edit", "First")

    console.say("sources", "add", "lmtp", "scans", "--name", "Post")
    console.say("rules", "edit", "First", "--when", "source=Post")
    console.say("sources", "edit", "Post", "--name", "Letters")
    assert console.read("rules", "ls")["items"][0]["when"]["source"] == "Letters"
    assert "Nothing to change" in console.refuse("sources", "edit", "Letters")
    actions = {item["action"] for item in console.read("audit")["items"]}
    assert "rule.edit" in actions
    assert "account.sign_out" not in actions  # each command opens and ends a session


def test_an_edit_that_changes_nothing_or_contradicts_itself_is_refused(console: Console) -> None:
    (one,) = console.add(write("one.txt"))
    assert "Nothing to change. Use --title" in console.refuse("edit", one)
    assert "--clear title and --title cannot be used together" in console.refuse(
        "edit", one, "--title", "A", "--clear", "title"
    )
    assert console.run("edit", one, "--date", "29.02.2024").returncode == 2
    assert "ends with ffff" in console.refuse("edit", "ffff", "--title", "A")


def connect_two(console: Console) -> tuple[str, str, str]:
    """Two documents and a connection between them, written straight into the database."""
    one, other = console.add(write("one.txt"), write("other.txt"))
    ((owner,),) = console.query("SELECT owner_id FROM documents WHERE id = %s", one)
    info = EmbeddedPostgres(DataFolder(console.instance.data)).connection_info()
    with psycopg.connect(info) as database:

        async def execute(statement: str, *values: object) -> None:
            database.execute(statement.encode(), values)

        async def make() -> UUID:
            made = await connect(execute, owner, UUID(one), UUID(other))
            for document in (one, other):
                ((passage,),) = database.execute(b"SELECT id FROM chunks WHERE document_id = %s", [document]).fetchall()
                await put_vector(execute, passage, [1.0, 0.5])
            return made

        return one, other, str(asyncio.run(make()))


def test_connections_are_listed_with_their_id_and_judged_by_it(console: Console) -> None:
    one, _, connection = connect_two(console)
    # It was not compared yet, so the list may not be whole.
    listed = console.say("connections", one)
    assert listed.startswith(f"{connection[-8:]}  Contradiction 0.80, possible: Both say it.")
    assert listed.endswith("Not compared yet: the text is still being indexed.\n")
    assert console.read("connections", one)["comparison"]["state"] == "not_indexed"
    assert ", confirmed: " in console.say("verdict", "confirm", connection[-8:])
    (judged,) = console.read("verdict", "dismiss", connection)["items"]
    assert judged["status"] == "dismissed"
    assert "Contradiction" not in console.say("connections", one)
    assert "dismissed" in console.say("connections", one, "--dismissed")
    assert ", possible: " in console.say("verdict", "undo", connection[-12:])
    assert "`octavo connections` lists them" in console.refuse("verdict", "undo", "xyz")
    assert "No connection's id begins or ends with ffff" in console.refuse("verdict", "undo", "ffff")
    assert console.run("verdict", "praise", connection).returncode == 2


def test_weights_are_shown_and_only_those_given_are_changed(console: Console) -> None:
    usual = {"semantic_similarity": 60, "contradiction_detection": 80, "thematic_bridge": 40}
    assert console.read("weights") == usual
    assert console.read("weights", "--bridge", "95") == {**usual, "thematic_bridge": 95}
    assert [line.split() for line in console.say("weights").splitlines()] == [
        *(["Similar", "60"], ["Contradictions", "80"], ["Bridges", "95"]),
    ]
    assert console.run("weights", "--similar", "101").returncode == 2
    console.say("weights", "--bridge", "40")


def test_related_documents_are_listed_most_similar_first(console: Console) -> None:
    one, other, _ = connect_two(console)
    found = console.read("related", one)["items"]
    assert other in [item["document_id"] for item in found]
    assert found[0]["score"] == max(item["score"] for item in found)
    assert other in console.say("related", one)
    (alone,) = console.add(write("alone.txt"))
    assert console.say("related", alone) == "No related documents.\n"


def test_highlights_are_listed_of_one_document_or_of_all_and_by_their_words(console: Console) -> None:
    assert console.say("highlights", "--q", "ospreys") == "No highlights.\n"
    (one,), (other,) = console.add(write("lease.txt")), console.add(write("letter.txt"))
    info = EmbeddedPostgres(DataFolder(console.instance.data)).connection_info()
    marked = b"""INSERT INTO highlights (id, document_id, quote, text_before, text_after, colour, note, lost)
                 VALUES (gen_random_uuid(), %s, %s, '', '', 'green', %s, true)"""
    with psycopg.connect(info) as database:
        database.execute(marked, (one, "ninety days", "ask Tomas about ospreys"))
        database.execute(marked, (other, "the deposit", ""))
    said = console.say("highlights", one[-8:])
    assert said.startswith(f"lease.txt · green · lost: the current text does not contain this passage · {one[-8:]}\n")
    assert said.endswith("    “ninety days”\n    Note: ask Tomas about ospreys\n")
    assert [item["quote"] for item in console.read("highlights", "--q", "OSPREYS")["items"]] == ["ninety days"]
    assert {item["document_id"] for item in console.read("highlights")["items"]} == {one, other}
    assert "either a document id or --q" in console.refuse("highlights", one, "--q", "deposit")
