"""A release is refused until everything names its version, and its list of parts has every pinned package."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from octavo import __version__
from tools import release
from tools.audit import read_pins
from tools.third_party import REQUIREMENTS

DIGEST = "a" * 64


# A change after a release adds a line to the changelog, and perhaps a migration. The next release includes both.
SINCE_RELEASE = ("belong to no version", "migrations.sha256")


def test_this_version_can_be_released() -> None:
    assert release.read_version() == __version__
    problems = release.find_problems(__version__)
    assert [one for one in problems if not any(text in one for text in SINCE_RELEASE)] == []


@pytest.mark.parametrize(
    ("unreleased", "refused"), [("\n", False), ("\n\n\n", False), ("\n### Added\n- A lamp.\n\n", True)]
)
def test_unreleased_changes_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unreleased: str, refused: bool
) -> None:
    for name in ("THIRD_PARTY.md", "deploy", "tests"):
        (tmp_path / name).symlink_to(release.ROOT / name)
    text = f"# Changelog\n\n## Unreleased\n{unreleased}## {__version__} (2026-11-18)\n\n### Added\n- A pier.\n"
    (tmp_path / "CHANGELOG.md").write_text(text)
    monkeypatch.setattr(release, "ROOT", tmp_path)
    assert any("belong to no version" in one for one in release.find_problems(__version__)) is refused


def test_another_version_is_refused_with_the_files_to_change() -> None:
    problems = "\n".join(release.find_problems("9.9.9"))
    for name in ("CHANGELOG.md", "Chart.yaml", "compose.yaml", "compose.cluster.yaml"):
        assert name in problems


def test_a_changed_migration_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "0001_initial.sql").write_text("SELECT 1")
    monkeypatch.setattr(release, "MIGRATIONS", tmp_path)
    assert any("migrations.sha256" in one for one in release.find_problems(__version__))


def test_the_list_of_parts_has_every_pinned_package_with_its_hashes() -> None:
    text = f"one==1.0 ; python_version < '3.12' \\\n    --hash=sha256:{DIGEST}\n    # via octavo\ntwo[extra]==2.0\n"
    parts = release.list_parts("0.2.0", text, {"one": "MIT"})
    one, two = parts["components"]
    assert (one["purl"], two["purl"]) == ("pkg:pypi/one@1.0", "pkg:pypi/two@2.0")
    assert one["licenses"] == [{"license": {"name": "MIT"}}]
    assert [file["hashes"][0]["content"] for file in one["externalReferences"]] == [DIGEST]
    assert parts["metadata"]["component"]["version"] == "0.2.0"


def test_the_list_of_parts_of_this_version_is_complete() -> None:
    text = REQUIREMENTS.read_text()
    parts = release.list_parts(__version__, text, {})
    assert (
        len(parts["components"]) == len(read_pins(text.splitlines())) == len(re.findall(r"^\S+==", text, re.MULTILINE))
    )
    assert all(one["externalReferences"] for one in parts["components"])
