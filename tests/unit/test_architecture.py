"""docs/architecture.md describes the packages and stages that exist."""

from __future__ import annotations

import re
import tomllib

from octavo.describe import stages as describing
from octavo.pipeline import process_document
from tests.support.tree import ROOT, SOURCE

PAGE = (ROOT / "docs/architecture.md").read_text()


def layers() -> list[list[str]]:
    """The contract that `make lint` enforces, from the top to the bottom."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contract = settings["tool"]["importlinter"]["contracts"][0]
    return [[name.strip().removeprefix("octavo.") for name in layer.split("|")] for layer in contract["layers"]]


def test_the_table_of_packages_is_the_contract_of_imports() -> None:
    rows = re.findall(r"^\| (`[a-z]+`(?: · `[a-z]+`)*) \|", PAGE, re.MULTILINE)
    packages = [[name.strip("` ") for name in row.split("·")] for row in rows]
    assert packages[: len(layers())] == layers()


def test_every_package_is_in_the_contract() -> None:
    names = {
        path.stem for path in (SOURCE / "octavo").iterdir() if path.name[0] not in "_." and path.name != "py.typed"
    }
    assert names == {name for layer in layers() for name in layer}


def test_the_path_of_a_document_has_its_stages_in_order() -> None:
    drawn = re.search(r"^ +(fetched(?: --> [a-z_]+)+)$", PAGE, re.MULTILINE)
    assert drawn
    names = drawn[1].split(" --> ")
    before = re.findall(r"^- `([a-z_]+)`:", process_document.__doc__ or "", re.MULTILINE)
    done = [*(name for name in before if name in names), *(name for name in describing.STAGES if name in names)]
    assert names == done
