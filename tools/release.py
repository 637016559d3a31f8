"""Makes the files of a release: the wheel, the source archive, the list of parts and the checksums.

    python tools/release.py dist

Run it in an environment in which Octavo and its requirements are installed. It refuses a version that is not ready: the
changelog needs a section for it and no unreleased changes, the chart and the image need the same version, and the list
of third-party packages and the digests of the migrations must be current. It publishes nothing. Afterwards:

    git tag --sign v0.2.0
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from tools.audit import PINNED
from tools.third_party import REQUIREMENTS, Package, read_packages, write_page

ROOT = Path(__file__).parents[1]
UV = Path(sys.executable).with_name("uv")
MIGRATIONS = ROOT / "src/octavo/database/migrations"
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def read_version() -> str:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def find_problems(version: str) -> Iterator[str]:
    """Return what must be changed before this version can be released."""
    named = {
        "CHANGELOG.md": rf"^## {re.escape(version)}\b",
        "deploy/helm/octavo/Chart.yaml": rf"^appVersion: {re.escape(version)}$",
        "deploy/compose.yaml": rf"image: octavo:{re.escape(version)}$",
        "deploy/compose.cluster.yaml": rf"image: octavo:{re.escape(version)}$",
    }
    for name, pattern in named.items():
        if not re.search(pattern, (ROOT / name).read_text(), re.MULTILINE):
            yield f"{name} does not name version {version}"
    if re.search(r"^## Unreleased\s+(?!## |\s)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE):
        yield "CHANGELOG.md has changes that belong to no version: move them from Unreleased to a version"
    if (ROOT / "THIRD_PARTY.md").read_text() != write_page(packages()):
        yield "THIRD_PARTY.md is out of date: run tools/third_party.py"
    frozen = (ROOT / "tests/data/migrations.sha256").read_text().splitlines()
    if frozen != list(digest_lines(MIGRATIONS.glob("*.sql"))):
        yield "tests/data/migrations.sha256 does not list the migrations of this version"


def packages() -> list[Package]:
    return list(read_packages(REQUIREMENTS.read_text().splitlines()))


def digest_lines(files: Iterator[Path]) -> Iterator[str]:
    for file in sorted(files):
        yield f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}"


def list_parts(version: str, requirements: str, licences: dict[str, str]) -> dict[str, Any]:
    """Return the software bill of materials (CycloneDX 1.6): all pinned packages with their licences and hashes."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": _component("application", "octavo", version, "Apache-2.0")},
        "components": [
            _component("library", name, release, licences.get(name, ""), hashes)
            for name, release, hashes in read_pins(requirements)
        ],
    }


def read_pins(requirements: str) -> Iterator[tuple[str, str, list[str]]]:
    blocks = re.split(r"\n(?=\S)", requirements)
    for block in blocks:
        if match := PINNED.match(block):
            yield match[1].lower(), match[2].strip(), HASH.findall(block)


def _component(kind: str, name: str, version: str, licence: str, hashes: list[str] | None = None) -> dict[str, Any]:
    """The hashes of the files of a package are references, because each platform has another file."""
    package = f"pkg:pypi/{name}@{version}"
    found: dict[str, Any] = {"type": kind, "name": name, "version": version, "purl": package, "bom-ref": package}
    if licence:
        found["licenses"] = [{"license": {"name": licence}}]
    if hashes:
        files = [{"alg": "SHA-256", "content": digest} for digest in hashes]
        address = f"https://pypi.org/project/{name}/{version}/"
        found["externalReferences"] = [{"type": "distribution", "url": address, "hashes": [one]} for one in files]
    return found


def main() -> None:
    version, folder = read_version(), Path(sys.argv[1])
    if problems := list(find_problems(version)):
        sys.exit("\n".join(problems))
    if folder.exists() and any(folder.iterdir()):
        sys.exit(f"{folder} is not empty.")
    subprocess.run([UV, "build", "--quiet", "--out-dir", folder], cwd=ROOT, check=True)
    (folder / ".gitignore").unlink(missing_ok=True)
    parts = list_parts(version, REQUIREMENTS.read_text(), {one.name: one.licence for one in packages()})
    (folder / f"octavo-{version}.cdx.json").write_text(json.dumps(parts, indent=1) + "\n")
    files = (file for file in folder.iterdir() if file.name != "SHA256SUMS")
    (folder / "SHA256SUMS").write_text("\n".join(digest_lines(files)) + "\n")
    print("\n".join(f"{file.stat().st_size:>12,}  {file.name}" for file in sorted(folder.iterdir())))


if __name__ == "__main__":
    main()
