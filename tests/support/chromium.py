"""Finds a Chromium for the browser tests, or brings one: `python -m tests.support.chromium`, as `make test` calls it.

One that is installed is used as it is. Else whoever may installs Debian's package; whoever may not gets the same
package unpacked beside the virtual environment's other tools, where nothing of the system changes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# The one without a window first: it takes half of the processor time.
PACKAGE = "chromium-headless-shell"
NAMES = (PACKAGE, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PLACE = Path(sys.prefix) / "chromium"
INSTALLED = Path("/var/lib/dpkg/status")
ADVICE = "The browser tests need Chromium: install it, or name a Chromium or Chrome in the variable CHROMIUM."


@dataclass(frozen=True, slots=True)
class Browser:
    path: Path
    arguments: tuple[str, ...]


def find_chromium(place: Path = PLACE) -> Browser | None:
    """The one that CHROMIUM names, one on the PATH, or the one that was unpacked."""
    named = os.environ.get("CHROMIUM")
    found = shutil.which(named) if named else next(filter(None, map(shutil.which, NAMES)), None)
    if found:
        return Browser(Path(found), () if has_own_sandbox() else ("--no-sandbox",))
    wrapper = place / "run"
    # The helper that sandboxes without user namespaces belongs to root, which nothing that is unpacked does.
    return Browser(wrapper, ("--no-sandbox",)) if wrapper.is_file() else None


def has_own_sandbox() -> bool:
    """Chromium refuses to start as root, and where it may neither make user namespaces nor has its helper."""
    if os.getuid() == 0:
        return False
    if Path("/usr/lib/chromium/chrome-sandbox").is_file():
        return True
    return subprocess.run(["unshare", "--user", "true"], check=False, capture_output=True).returncode == 0


def main(place: Path = PLACE, installed: Path = INSTALLED) -> int:
    if find_chromium(place):
        return 0
    if not shutil.which("apt-get"):
        return _refuse(ADVICE)
    try:
        if os.getuid() == 0:
            _run("apt-get", "-q", "update")
            _run("apt-get", "-q", "-y", "install", "--no-install-recommends", PACKAGE)
        else:
            unpack(place, installed)
    except subprocess.CalledProcessError as error:
        return _refuse(f"{ADVICE} Getting Debian's package failed: {_last_line(error)}")
    return 0 if find_chromium(place) else _refuse(ADVICE)


def unpack(place: Path, installed: Path = INSTALLED) -> None:
    """Debian's package with all that it needs and the system does not have, without any rights."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as folder:
        scratch = Path(folder)
        for part in ("state/lists/partial", "cache/archives/partial", "new"):
            (scratch / part).mkdir(parents=True)
        places = {"Dir::State": scratch / "state", "Dir::Cache": scratch / "cache", "Dir::State::status": installed}
        options = [f"-o{name}={value}" for name, value in {**places, "Debug::NoLocking": "true"}.items()]
        _run("apt-get", "-q", *options, "update")
        _run("apt-get", "-q", "-y", *options, "install", "--download-only", "--no-install-recommends", PACKAGE)
        for package in sorted((scratch / "cache/archives").glob("*.deb")):
            _run("dpkg", "-x", str(package), str(scratch / "new"))
        write_wrapper(scratch / "new", place)
        shutil.rmtree(place, ignore_errors=True)
        (scratch / "new").rename(place)


def write_wrapper(made: Path, place: Path) -> None:
    """Libraries and fonts are found where they were unpacked."""
    libraries = [
        path.relative_to(made) for path in [*made.glob("usr/lib/*-linux-gnu*"), *made.glob("lib/*-linux-gnu*")]
    ]
    libraries += [path.relative_to(made) for path in made.glob("usr/lib/*-linux-gnu*/*/") if list(path.glob("*.so*"))]
    search = ":".join(str(place / path) for path in libraries)
    fonts = "".join(f"<dir>{path}</dir>" for path in (place / "usr/share/fonts", "/usr/share/fonts"))
    (made / "fonts.conf").write_text(f"<fontconfig>{fonts}<cachedir>{place / 'font-cache'}</cachedir></fontconfig>\n")
    settings = f"LD_LIBRARY_PATH='{search}' FONTCONFIG_FILE='{place / 'fonts.conf'}'"
    wrapper = made / "run"
    wrapper.write_text(f"#!/bin/sh\nexec env {settings} '{place / 'usr/lib/chromium' / PACKAGE}' \"$@\"\n")
    wrapper.chmod(0o755)


def _run(*command: str) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(command, env=environment, check=True, capture_output=True, text=True)


def _last_line(error: subprocess.CalledProcessError) -> str:
    said: Sequence[str] = (error.stderr or error.stdout or "").strip().splitlines()
    return said[-1] if said else f"{error.cmd[0]} answered {error.returncode}"


def _refuse(why: str) -> int:
    sys.stderr.write(f"{why}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
