"""The example extension is installed beside Octavo, and all that it adds works."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.instance import Instance, instance_in
from tests.support.postgres import open_folder
from tests.support.processes import THE_USUAL_WAY, wait_until
from tests.support.tree import ROOT

UV = Path(sys.executable).with_name("uv")
CALENDAR = """BEGIN:VCALENDAR
BEGIN:VEVENT
SUMMARY:Harbour inspection
DTSTART:20240312T093000Z
LOCATION:Pier 4
DESCRIPTION:Bring the drawings\\, please.
END:VEVENT
END:VCALENDAR
"""
ORDER = "The purchase order PO-2024-0117 asks for forty bollards of cast iron for the quay of the harbour."
INVOICE = "The invoice for forty bollards of cast iron for the quay of the harbour refers to PO-2024-0117."


@pytest.fixture(scope="module")
def instance() -> Iterator[Instance]:
    """In an environment that has the extension, and all packages of this one."""
    with open_folder() as folder, pytest.MonkeyPatch.context() as patch:
        venv.create(folder / "env", with_pip=False)
        python, packages = folder / "env/bin/python", Path(sysconfig.get_path("purelib"))
        site = folder / "env" / packages.relative_to(sys.prefix)
        (site / "all.pth").write_text(f"import site; site.addsitedir({str(packages)!r})\n")
        command = [UV, "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--python", python]
        subprocess.run([*command, ROOT / "examples" / "octavo-example"], check=True)
        patch.setattr(sys, "executable", str(python))
        with instance_in(folder) as instance:
            instance.start(THE_USUAL_WAY)
            yield instance
            assert instance.stop() == 0
            assert instance.everything() == []
            assert "database system is shut down" in (instance.data / "logs/postgres.log").read_text()


@pytest.fixture(scope="module")
def api(instance: Instance) -> Iterator[httpx.Client]:
    key = instance.octavo("keys", "add", "test", "--scope", "admin").stdout.strip()
    with httpx.Client(base_url=f"{instance.address}/api/v1", headers={"Authorization": f"Bearer {key}"}) as client:
        yield client


def ask(api: httpx.Client, method: str, path: str, **more: Any) -> Any:  # noqa: ANN401 - as for a request
    answer = api.request(method, path, **more)
    assert answer.is_success, answer.text
    return answer.json()


def documents(api: httpx.Client) -> dict[str, dict[str, Any]]:
    return {one["filename"]: one for one in ask(api, "GET", "/documents")["items"]}


def test_an_installed_extension_reads_connects_watches_and_delivers(instance: Instance, api: httpx.Client) -> None:
    journal, archive = instance.data.with_name("journal.jsonl"), instance.data.with_name("files.zip")
    ask(api, "POST", "/webhooks", json={"channel": "journal", "address": str(journal)})
    with zipfile.ZipFile(archive, "w") as files:
        files.writestr("2024/inspection.ics", CALENDAR)
        files.writestr("order.txt", ORDER)
        files.writestr("invoice.txt", INVOICE)
    ask(api, "POST", "/sources", json={"kind": "extension", "path": f"zip://{archive}", "every_seconds": 10})

    wait_until(lambda: len(documents(api)) == 3, "all files of the source are there")
    wait_until(lambda: all(one["status"] == "completed" for one in documents(api).values()), "all are processed")
    calendar, order = documents(api)["inspection.ics"], documents(api)["order.txt"]
    assert calendar["source_type"] == "extension"
    text = api.get(f"/documents/{calendar['id']}/markdown").text
    assert text == "# Harbour inspection\n\n2024-03-12 09:30 · Pier 4\n\nBring the drawings, please."

    def explanations() -> list[str]:
        return [one["explanation"] for one in ask(api, "GET", f"/documents/{order['id']}/connections")["items"]]

    wait_until(lambda: "Both passages mention PO-2024-0117." in explanations(), "the passages are connected")
    ask(api, "POST", "/documents", content=b"A note.", headers={"x-upload-filename": "note.txt"})
    wait_until(lambda: journal.exists() and "document.completed" in journal.read_text(), "events are written down")


def test_the_command_lists_what_is_installed(instance: Instance) -> None:
    command = [sys.executable, "-m", "octavo", "extensions", "--json"]
    said = subprocess.run(command, env=instance.environment, capture_output=True, text=True, check=True).stdout
    assert [(one["kind"], one["name"]) for one in json.loads(said)] == [
        ("octavo.formats", ".ics"),
        ("octavo.connections", "references"),
        ("octavo.sources", "zip"),
        ("octavo.channels", "journal"),
    ]


def test_what_no_extension_handles_is_refused(api: httpx.Client) -> None:
    no_source = api.post("/sources", json={"kind": "extension", "path": "ftp://server/folder"})
    assert (no_source.status_code, no_source.json()["code"]) == (422, "BAD_SOURCE")
    no_channel = api.post("/webhooks", json={"channel": "pager", "address": "x"})
    assert (no_channel.status_code, no_channel.json()["code"]) == (422, "VALIDATION")
    relative = api.post("/webhooks", json={"channel": "journal", "address": "journal.jsonl"})
    assert (relative.status_code, relative.json()["code"]) == (422, "BAD_ADDRESS")
