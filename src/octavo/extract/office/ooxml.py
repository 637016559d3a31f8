"""The parts of a document by Microsoft's standard: how they refer to each other, and what it says of itself."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from urllib.parse import unquote

from octavo.core.errors import BadInput
from octavo.extract.contract import Metadata
from octavo.extract.office.assemble import clean_date, clean_language, clean_line, clean_title, non_empty
from octavo.extract.office.xml import Element, children, descendants, local_name, name_of, parse, text_of
from octavo.extract.zips import DAMAGED, Archive


@dataclass(frozen=True, slots=True)
class Relation:
    """`target` is the name of a part, or an address if it is `external`. `kind` is the last word of its type."""

    kind: str
    target: str
    external: bool


@dataclass(slots=True)
class Package:
    """Parts that are not there are None, because most may be left out."""

    archive: Archive
    _relations: dict[str, dict[str, Relation]] = field(default_factory=dict[str, dict[str, Relation]])

    def part(self, name: str | None) -> Element | None:
        data = self.archive.find(name) if name else None
        return parse(data) if data else None

    def main(self, usual: str) -> tuple[str, Element]:
        """The part that the others belong to."""
        named = self.related("", "officeDocument")
        name = named if named and named in self.archive else usual
        root = self.part(name)
        if root is None:
            raise BadInput(f"{DAMAGED}the part with the text is missing.")
        return name, root

    def relations(self, part: str) -> dict[str, Relation]:
        """By their ids. Those of the whole file are those of the part ""."""
        if part not in self._relations:
            folder, name = posixpath.split(part)
            root = self.part(posixpath.join(folder, "_rels", f"{name}.rels"))
            self._relations[part] = {
                one.get("Id") or "": _relation(one, folder) for one in children(root, "rel:Relationship")
            }
        return self._relations[part]

    def related(self, part: str, kind: str) -> str | None:
        """The first part that is related in this way."""
        found = (one.target for one in self.relations(part).values() if one.kind == kind and not one.external)
        return next(found, None)

    def metadata(self) -> Metadata:
        root = self.part(self.related("", "core-properties") or "docProps/core.xml")
        told = {local_name(one): text_of(one) for one in root} if root is not None else {}
        return Metadata(
            title=clean_title(told.get("title")),
            author=clean_line(told.get("creator")),
            date=clean_date(told.get("created")) or clean_date(told.get("modified")),
            language=clean_language(told.get("language")),
            extra=non_empty(
                subject=told.get("subject"), keywords=told.get("keywords"), description=told.get("description")
            ),
        )

    def page_count(self) -> int | None:
        """As the program that wrote it counted them."""
        root = self.part(self.related("", "extended-properties") or "docProps/app.xml")
        counted = next((text_of(one) for one in descendants(root, "app:Pages") if name_of(one)), "")
        return int(counted) if counted.isdecimal() and len(counted) < 7 else None  # noqa: PLR2004 - no book has more


def _relation(element: Element, folder: str) -> Relation:
    kind = (element.get("Type") or "").rpartition("/")[2]
    target = element.get("Target") or ""
    if element.get("TargetMode") == "External":
        return Relation(kind, target, external=True)
    path = unquote(target.partition("#")[0])
    return Relation(kind, posixpath.normpath(posixpath.join("/", folder, path)).lstrip("/"), external=False)
