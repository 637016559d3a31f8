"""Only packages with licences that can be shipped are installed with Octavo, and each is listed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, requires

import pytest
from packaging.requirements import Requirement

from tests.support.tree import ROOT
from tools.third_party import LINKED, REQUIREMENTS, Package, read_packages, write_page

INSTALLED = list(read_packages(REQUIREMENTS.read_text().splitlines()))


def test_every_installed_package_has_a_licence_that_can_be_shipped() -> None:
    assert len(INSTALLED) > 80
    assert [one for one in INSTALLED if not one.is_allowed] == []


def test_the_list_is_that_of_the_installed_packages() -> None:
    """Run `python tools/third_party.py THIRD_PARTY.md` after a change of the dependencies."""
    assert (ROOT / "THIRD_PARTY.md").read_text() == write_page(INSTALLED)
    assert {one.name for one in INSTALLED if one.is_linked} == set(LINKED)


@pytest.mark.parametrize(
    ("licence", "allowed"),
    [
        ("MIT", True),
        ("BSD-3-Clause AND MIT", True),
        ("MPL-1.1 OR GPL-2.0-only", True),
        ("GPL-3.0-only", False),
        ("AGPL-3.0", False),
        ("LGPL-3.0-only", False),
        ("MIT AND GPL-2.0-only", False),
        ("BSD-3-Clause, GPL-2.0-only", False),
        ("Commercial", False),
        ("", False),
    ],
)
def test_a_licence_is_judged(licence: str, allowed: bool) -> None:
    assert Package("something", licence).is_allowed is allowed


def test_everything_that_the_packages_need_is_in_the_lock_file() -> None:
    """Otherwise an installer would bring packages whose licences were never looked at."""
    known = {one.name for one in INSTALLED}
    for package in INSTALLED:
        for text in requires(package.name) or ():
            need = Requirement(text)
            if not need.marker or need.marker.evaluate({"extra": ""}):
                assert need.name.lower().replace("_", "-").replace(".", "-") in known, (
                    f"{package.name} needs {need.name}"
                )


def test_packages_of_other_systems_are_left_out() -> None:
    with pytest.raises(PackageNotFoundError):
        requires("pywin32")
    assert "pywin32" not in {one.name for one in INSTALLED}
