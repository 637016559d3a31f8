"""Clients of other projects work with a running server: a generated one, and libraries that speak others' protocols.

They run in an environment of their own, which `make test-long` installs.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.support.passwords import PASSWORD
from tests.support.pdf import Pdf, Words
from tests.support.postgres import Server
from tests.support.processes import PATIENCE_SECONDS
from tests.support.web import running_web

pytestmark = pytest.mark.long
CLIENTS = Path(sys.prefix) / "clients/bin"
LEASE = "# Lease\n\nThe monthly fee for the flat is 120 euros.\n"
SECONDS = 300


@dataclass(frozen=True, slots=True)
class Place:
    address: str
    key: str
    folder: Path

    def run(self, *command: str | Path) -> str:
        """Run a program of the clients' environment, and return what it printed."""
        environment = {"PATH": str(CLIENTS), "HAYSTACK_TELEMETRY_ENABLED": "False", "NO_PROXY": "127.0.0.1"}
        done = subprocess.run(
            [str(CLIENTS / command[0]), *map(str, command[1:])],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def python(self, script: str) -> list[str]:
        begin = f"address, key = {self.address!r}, {self.key!r}\n"
        return self.run("python", "-c", begin + script).splitlines()


@pytest.fixture(scope="module")
def place(newest_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    assert CLIENTS.is_dir(), "Run `make test-long`, which installs the clients."
    with (
        running_web(newest_server) as web,
        httpx.Client(base_url=web.address, timeout=PATIENCE_SECONDS, trust_env=False) as person,
    ):
        assert person.post("/api/v1/account", json={"email": "ada@example.org", "password": PASSWORD}).is_success
        key = person.post("/api/v1/keys", json={"name": "k", "scope": "write"}).json()["key"]
        added = person.post("/api/v1/documents", content=LEASE, headers={"x-upload-filename": "lease.md"})
        assert added.is_success
        web.process_documents()
        folder = tmp_path_factory.mktemp("clients")
        (folder / "openapi.json").write_text(person.get("/api/openapi.json").text)
        (folder / "lease.md").write_text(LEASE)
        (folder / "gulls.pdf").write_bytes(Pdf([[Words("The gull flies at dawn.")]]).write())
        yield Place(web.address, key, folder)


GENERATED = """
import importlib, pkgutil, uuid, generated
from generated.client import AuthenticatedClient

for one in pkgutil.walk_packages(generated.__path__, "generated."):
    importlib.import_module(one.name)
from generated.api.documents import add_collection, get_document, list_documents
from generated.models import CollectionName, Problem

with AuthenticatedClient(address, token=key, raise_on_unexpected_status=True) as client:
    (lease,) = list_documents.sync(client=client).items
    print(get_document.sync(lease.id, client=client).title)
    print([one.name for one in add_collection.sync(client=client, body=CollectionName(name="Flat")).items])
    missing = get_document.sync(uuid.uuid4(), client=client)
    print(isinstance(missing, Problem), missing.code)
"""


def test_a_client_generated_from_openapi_can_be_imported_and_works(place: Place) -> None:
    said = place.run(
        "openapi-python-client", "generate", "--path", "openapi.json", "--output-path", "generated", "--meta", "none"
    )
    assert "ERROR" not in said
    # The generator knows no pictures and archives; calls that return these give the bytes.
    assert all("Unsupported content_type" in line for line in said.splitlines() if line.startswith("Cannot parse"))
    assert place.python(GENERATED) == ["Lease", "['Flat']", "True NOT_FOUND"]


HAYSTACK = """
from haystack.utils import Secret
from haystack_integrations.components.converters.docling_serve import DoclingServeConverter

converter = DoclingServeConverter(base_url=address, api_key=Secret.from_token(key))
for one in converter.run(sources=["gulls.pdf", "lease.md"])["documents"]:
    print(repr(one.content))
"""


def test_haystack_converts_files_as_with_docling_serve(place: Place) -> None:
    assert place.python(HAYSTACK) == [repr("The gull flies at dawn.\n"), repr(LEASE)]


LANGCHAIN = """
from langchain_openai import ChatOpenAI

model = ChatOpenAI(model="octavo", base_url=f"{address}/v1", api_key=key)
print(repr(model.invoke("What is the monthly fee for the flat?").content))
print(repr("".join(one.content for one in model.stream("What is the monthly fee for the flat?"))))
"""


def test_langchain_asks_as_with_openai(place: Place) -> None:
    whole, streamed = place.python(LANGCHAIN)
    assert whole == streamed
    assert "The monthly fee for the flat is 120 euros. [1]" in whole
    assert "Sources:" in whole
