"""`octavo login`, `get`, `tags`, `collections` and `webhooks` on a running installation, and output without colours."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.integration.cli.test_documents_commands import Console, console
from tests.support import preloaded
from tests.support.instance import Instance, free_port, instance_in
from tests.support.postgres import open_folder
from tests.support.processes import PATIENCE_SECONDS, octavo_environment

__all__ = ["console"]
TEXT = "# Gulls\n\nThe gull flies over the harbour at dawn.\n"
COLOUR = re.compile(rb"\x1b\[[0-9;]*(?:3[0-9]|4[0-9]|9[0-7])[0-9;]*m")


@pytest.fixture(scope="module")
def instance() -> Iterator[Instance]:
    with open_folder() as folder, instance_in(folder, workers=1) as instance:
        instance.start()
        yield instance


@pytest.fixture
def document(console: Console) -> str:
    Path("gulls.md").write_text(TEXT)
    (added,) = console.read("add", "gulls.md", "--wait", "--json")["items"]
    return added["document_id"]


# Getting documents --------------------------------------------------------------------------------------------------


def test_a_document_is_got_as_text_file_data_and_archive(console: Console, document: str) -> None:
    assert "harbour at dawn" in console.say("get", document)
    assert console.say("get", document, "--markdown") == console.say("get", document[-8:])
    console.say("get", document, "--source", "-o", "copy.md")
    assert Path("copy.md").read_text() == TEXT
    assert json.loads(console.say("get", document, "--json"))["document"]["id"] == document
    Path("folder").mkdir()
    said = console.run("get", document, "--export", "--out", "folder")
    assert said.stderr == "Written to folder/gulls.md.zip.\n"
    assert zipfile.is_zipfile("folder/gulls.md.zip")


def test_what_cannot_be_got_is_refused_in_one_line(console: Console, document: str) -> None:
    assert "one of" in console.refuse("get", document, "--source", "--json")
    assert "does not exist" in console.refuse("get", document, "-o", "none/x.md")
    assert "No document's id" in console.refuse("get", "ffffffff")
    assert sorted(one.name for one in Path().iterdir()) == ["gulls.md"]


# Profiles -----------------------------------------------------------------------------------------------------------


def test_a_profile_is_used_until_its_owner_logs_out(console: Console) -> None:
    key = console.say("keys", "add", "laptop").strip()
    said = console.read("login", console.instance.address, "--profile", "work", "--json", stdin=f"{key}\n".encode())
    assert (said["profile"], said["scope"]) == ("work", "write")
    file = Path("config/octavo/profiles.json")
    assert file.stat().st_mode & 0o777 == 0o600
    # It is the key and not the local account: a key cannot make keys.
    assert console.run("keys", "add", "other").returncode == 1
    assert console.run("keys", "ls", "--profile", "local").returncode == 0
    assert console.say("profiles").split() == ["NAME", "SERVER", "*", "work", console.instance.address]
    assert console.run("ls", "--profile", "work").returncode == 0
    assert "profile 'home'" in console.refuse("ls", "--profile", "home")
    console.say("profiles", "--use", "local")
    assert console.run("keys", "ls").returncode == 0
    console.say("logout", "--profile", "work")
    assert key not in file.read_text()
    assert "No profile is in use" in console.refuse("logout")


def test_a_wrong_key_or_address_is_not_saved(console: Console) -> None:
    wrong = console.run("login", console.instance.address, "--key", "octavo_wrong")
    away = console.run("login", f"http://127.0.0.1:{free_port()}", "--key", "octavo_wrong")
    assert (wrong.returncode, away.returncode) == (1, 1)
    assert "does not accept connections" in away.stderr
    assert "cannot be the name" in console.refuse("login", console.instance.address, "--profile", "local")
    assert not Path("config").exists()


# Tags, collections and webhooks -------------------------------------------------------------------------------------


def test_tags_are_listed_with_their_documents(console: Console, document: str) -> None:
    console.say("edit", document, "--tag", "sea", "--tag", "birds")
    tags = {one["name"]: one["documents"] for one in console.read("tags")["items"]}
    assert tags.keys() >= {"sea", "birds"}
    assert "birds" in console.say("tags")
    assert "items" in console.read("tags", "--similar", "sea")


def test_collections_are_made_changed_and_deleted(console: Console) -> None:
    assert console.say("collections", "add", "Taxes") == "The collection Taxes is ready.\n"
    assert console.read("collections", "add", "Taxes")["id"] == console.read("collections", "ls")["items"][0]["id"]
    changed = console.read("collections", "set", "taxes", "--name", "Taxes 2026", "--keep-days", "30")
    assert (changed["name"], changed["keep_days"]) == ("Taxes 2026", 30)
    assert "30 days" in console.say("collections", "ls")
    assert console.read("collections", "set", changed["id"], "--keep-days", "0")["keep_days"] is None
    assert "--keep-days" in console.refuse("collections", "set", "Taxes 2026")
    console.say("collections", "rm", "Taxes 2026")
    assert "Taxes" not in console.say("collections", "ls")


def test_collections_are_granted_to_members_and_groups(console: Console) -> None:
    person = {"email": "bob@example.org", "password": "correct horse battery"}
    assert httpx.post(f"{console.instance.address}/api/v1/account", json=person, trust_env=False).status_code == 201
    key = console.say("keys", "add", "people", "--scope", "admin").strip()
    body = {"email": "bob@example.org", "role": "reader"}
    headers = {"authorization": f"Bearer {key}"}
    added = httpx.post(f"{console.instance.address}/api/v1/members", json=body, headers=headers, trust_env=False)
    assert added.status_code == 201, added.text
    console.say("collections", "add", "Invoices")
    assert "granted collections only" in console.say("members", "edit", "bob@example.org", "--limited")
    assert console.say("groups", "add", "Accounting", "bob@example.org").strip() == "Accounting: 1 member."
    assert "bob@example.org: read Invoices." in console.say("grants", "add", "Invoices", "--to", "bob@example.org")
    console.say("grants", "add", "Invoices", "--group", "accounting", "--access", "write")
    grants = console.read("grants", "ls", "--json")["items"]
    assert [(one["group_name"], one["email"], one["access"]) for one in grants] == [
        *[("Accounting", None, "write"), (None, "bob@example.org", "read")]
    ]
    assert "There is no collection" in console.refuse("grants", "add", "None", "--group", "Accounting")
    assert "is not a member" in console.refuse("groups", "add", "Accounting", "eve@example.org")
    assert console.say("grants", "rm", grants[1]["id"]).strip() == "Withdrawn: 1."
    console.say("groups", "rm", "Accounting")
    assert console.read("grants", "ls", "--json")["items"] == []
    console.say("members", "rm", "bob@example.org")
    assert "bob@example.org: fr" in console.say("users", "language", "bob@example.org", "fr")
    assert '"language": "de"' in console.say("users", "language", "bob@example.org", "de", "--json")
    assert "bob@example.org: browser" in console.say("users", "language", "bob@example.org", "browser")


def test_webhooks_are_added_rotated_tested_replayed_and_deleted(console: Console) -> None:
    address = "https://example.org/hook"
    said = console.run("webhooks", "add", address, "--event", "document.completed")
    assert said.stdout.strip()
    assert "not be shown again" in said.stderr
    (found,) = console.read("webhooks", "ls")["items"]
    assert (found["address"], found["events"]) == (address, ["document.completed"])
    assert console.run("webhooks", "rotate", found["id"][-8:]).stdout != said.stdout
    assert console.read("webhooks", "test", found["id"])["job_id"]
    assert "items" in console.read("webhooks", "deliveries", found["id"])
    assert "No delivery's id" in console.refuse("webhooks", "replay", found["id"], "ffffffff")
    assert console.run("webhooks", "add", address, "--event", "nonsense").returncode == 1
    assert console.say("webhooks", "rm", found["id"]) == "Deleted: 1.\n"
    assert "No recipients yet" in console.say("webhooks", "ls")


# Colours ------------------------------------------------------------------------------------------------------------


def on_a_terminal(instance: Instance, *arguments: str, **variables: str) -> bytes:
    ours, theirs = pty.openpty()
    environment = octavo_environment(instance.data) | {"TERM": "xterm-256color"} | variables
    environment.pop("NO_COLOR", None) if "NO_COLOR" not in variables else None
    command = preloaded.start(arguments, environment, theirs, given=theirs)
    os.close(theirs)
    said = io.BytesIO()
    while piece := read_piece(ours):
        said.write(piece)
    os.close(ours)
    command.wait(PATIENCE_SECONDS)
    return said.getvalue()


def read_piece(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the other side is closed
        return b""


@pytest.mark.parametrize("arguments", [("ls",), ("--help",), ("ls", "--nonsense")])
def test_output_has_colours_unless_no_color_is_set(console: Console, document: str, arguments: tuple[str, ...]) -> None:
    assert COLOUR.search(on_a_terminal(console.instance, *arguments))
    assert not COLOUR.search(on_a_terminal(console.instance, *arguments, NO_COLOR="1"))
