"""How the web server is divided: rooms without each other's weight, and files that every page finds."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter

from octavo.web.http.assets import FILES
from octavo.web.shell.frame import FOLDERS
from tests.support.tree import SOURCE

WEB = SOURCE / "octavo/web"
ROOMS = sorted(path.name for path in (WEB / "rooms").iterdir() if (path / "__init__.py").exists())
# The rows of conversions and their errors; everything else of the package makes conversions.
WITHOUT_ENGINE = {"octavo.convert", "octavo.convert.conversions", "octavo.convert.errors"}
LOADED = "import sys, {}; print(*(name for name in sys.modules if name.startswith('octavo.convert')))"


def test_only_the_conversions_room_imports_the_conversion_engine() -> None:
    rooms = ", ".join(f"octavo.web.rooms.{name}" for name in ROOMS if name != "conversions")
    run = subprocess.run([sys.executable, "-c", LOADED.format(rooms)], capture_output=True, text=True, check=True)
    assert set(run.stdout.split()) <= WITHOUT_ENGINE


def test_template_names_are_unique() -> None:
    names = Counter(path.name for folder in FOLDERS for path in folder.glob("*.html"))
    assert [name for name, count in names.items() if count > 1] == []


def test_every_asset_that_a_template_names_is_served() -> None:
    templates = [path.read_text() for path in WEB.rglob("*.html")]
    named = {name for text in templates for name in re.findall(r"""asset\(['"]([^'"]+\.\w+)['"]\)""", text)}
    assert len(named) > 20
    assert named <= set(FILES)


def test_scripts_import_files_that_are_there() -> None:
    for script in WEB.rglob("*.js"):
        for name in re.findall(r'^import [^"]*"([^"]+)"', script.read_text(), re.MULTILINE):
            assert (script.parent / name).resolve().is_file(), f"{script.name} imports {name}"


def test_only_what_browsers_need_is_served() -> None:
    assert {name.rpartition(".")[2] for name in FILES} == {"js", "css", "svg", "woff2"}
