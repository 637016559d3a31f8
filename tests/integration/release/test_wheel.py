"""The wheel contains the program and nothing else, and plain installers install everything that it needs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from tests.support.tree import ROOT
from tools.third_party import REQUIREMENTS, read_packages

MOST_BYTES = 95_000_000
OLDEST_PIP = "23.2.1"
UV = Path(sys.executable).with_name("uv")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([UV, "build", "--quiet", "--wheel", "--out-dir", folder], cwd=ROOT, check=True)
    (built,) = folder.glob("octavo-*.whl")
    return built


def test_the_wheel_contains_the_package_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert all(name.startswith(("octavo/", "octavo-")) for name in names)
    tracked = subprocess.run(["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert {name.removeprefix("src/") for name in tracked.stdout.splitlines()} <= set(names)
    assert "octavo/py.typed" in names
    assert any(name.endswith(".data/data/share/man/man1/octavo.1") for name in names)
    assert wheel.stat().st_size <= MOST_BYTES


def test_the_wheel_names_what_plain_installers_would_miss(wheel: Path) -> None:
    """Nothing in its metadata depends on the overrides that only uv reads."""
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    needs = {
        match[1].lower()
        for match in re.finditer(r"^Requires-Dist: ([\w.-]+)", archive.read(name).decode(), re.MULTILINE)
    }
    assert "lxml-html-clean" in needs
    assert needs.isdisjoint({"tokenizers", "huggingface-hub"})


@pytest.mark.long
@pytest.mark.parametrize("platform", ["x86_64-manylinux_2_28", "aarch64-manylinux_2_28"])
@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13", "3.14"])
def test_each_pinned_package_has_a_wheel_for_every_python_and_processor(python: str, platform: str) -> None:
    """Needs a package registry. The resolver looks at the tags of the wheels; nothing is installed."""
    target = ["--python-version", python, "--python-platform", platform, "--only-binary", ":all:"]
    command = [UV, "pip", "compile", "--quiet", "--no-header", "--no-annotate", *target, REQUIREMENTS]
    environment = {**os.environ, "UV_SYSTEM_CERTS": "1"}
    found = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    resolved = {line.partition("==")[0].partition("[")[0] for line in found.stdout.splitlines() if "==" in line}
    assert resolved == {one.name for one in read_packages(REQUIREMENTS.read_text().splitlines())}


@pytest.mark.long
@pytest.mark.parametrize("installer", [f"pip=={OLDEST_PIP}", "pip", "uv"])
def test_an_empty_environment_with_the_wheel_reads_searches_and_answers(
    wheel: Path, tmp_path: Path, installer: str
) -> None:
    """Needs a package registry. It takes minutes with pip, which unpacks everything."""
    python = tmp_path / "environment/bin/python"
    venv.create(tmp_path / "environment", with_pip=installer != "uv")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("OCTAVO_", "PYTHON", "VIRTUAL"))}
    if installer == "uv":
        commands = [[UV, "pip", "install", "--quiet", "--python", python, wheel]]
    else:
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        commands = [[*pip, "--upgrade", installer], [*pip, wheel]]
    for command in commands:
        subprocess.run(command, env=clean, check=True)
    packages = python.parent.parent.glob("lib/python*/site-packages/*.dist-info")
    assert not [one.name for one in packages if one.name.startswith(("huggingface", "hf_xet", "tokenizers"))]
    tried = subprocess.run(
        [python, ROOT / "tools/try_installation.py"],
        env=clean,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert tried.returncode == 0, tried.stderr
    assert "start" in json.loads(tried.stdout)["seconds"]
