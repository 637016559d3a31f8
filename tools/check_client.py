"""Checks that a client generated from the OpenAPI description works: `python tools/check_client.py SERVER KEY`.

It installs openapi-python-client from the package registry into a temporary environment, generates a client from the
description of the running server, compiles every module, and lists the documents of the account with it.
"""

from __future__ import annotations

import compileall
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.request import urlopen

GENERATOR = "openapi-python-client"
LIST = """
import sys
from octavo_client import AuthenticatedClient
from octavo_client.api.documents import list_documents
from octavo_client.models import Problem

found = list_documents.sync(client=AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2]))
if found is None or isinstance(found, Problem):
    sys.exit(f"the documents were not listed: {found}")
print(len(found.items), [one.title for one in found.items[:3]])
"""


def run(*command: str | Path, folder: Path) -> str:
    done = subprocess.run([str(one) for one in command], cwd=folder, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command[0]} failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout + done.stderr


def main(server: str, key: str) -> None:
    with tempfile.TemporaryDirectory(prefix="octavo-client-") as name:
        folder, started = Path(name), time.monotonic()
        run(sys.executable, "-m", "venv", "venv", folder=folder)
        python = folder / "venv/bin/python"
        run(python, "-m", "pip", "install", "--quiet", GENERATOR, "httpx", "attrs", "python-dateutil", folder=folder)
        with urlopen(f"{server}/api/openapi.json") as answer:
            description = json.load(answer)
        (folder / "openapi.json").write_text(json.dumps(description))
        (folder / "config.yaml").write_text(
            "package_name_override: octavo_client\nproject_name_override: octavo-client\n"
        )
        generator = folder / "venv/bin" / GENERATOR
        said = run(
            generator, "generate", "--path", "openapi.json", "--config", "config.yaml", "--meta", "none", folder=folder
        )
        modules = list((folder / "octavo_client").rglob("*.py"))
        if not compileall.compile_dir(str(folder / "octavo_client"), quiet=1):
            sys.exit("a module cannot be compiled")
        problems = [one for one in modules if "problem" in one.stem]
        seconds = time.monotonic() - started
        print(
            f"{len(modules)} modules, {len(problems)} for problems, {said.count('WARNING')} warnings, {seconds:.0f} s"
        )
        print(said.strip()[-2000:])
        print(run(python, "-c", LIST, server, key, folder=folder).strip())


if __name__ == "__main__":
    main(*sys.argv[1:3])
