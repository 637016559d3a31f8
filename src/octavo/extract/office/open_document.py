"""Code shared by the readers of all OpenDocument files: styles, metadata, encryption."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from octavo.core.errors import Encrypted
from octavo.extract.extracted import Metadata
from octavo.extract.office.assemble import clean_date, clean_language, clean_line, clean_title, non_empty
from octavo.extract.office.xml import Element, attribute, child, children, descendants, name_of, parse, text_of
from octavo.extract.zips import Archive

_MOST_ANCESTORS = 30


@dataclass(frozen=True, slots=True)
class Style:
    parent: str = ""
    bold: bool | None = None
    italic: bool | None = None
    struck: bool | None = None
    raised: bool | None = None


@dataclass(slots=True)
class Styles:
    """The styles of an OpenDocument file: text styles by name, and the numbered levels of each list style."""

    texts: dict[str, Style] = field(default_factory=dict[str, Style])
    numbered: dict[str, set[int]] = field(default_factory=dict[str, set[int]])

    def read(self, root: Element | None) -> None:
        for one in descendants(root, "style:style"):
            properties = child(one, "style:text-properties")
            line = attribute(properties, "style:text-line-through-style")
            weight = attribute(properties, "fo:font-weight")
            slant = attribute(properties, "fo:font-style")
            position = attribute(properties, "style:text-position")
            self.texts[attribute(one, "style:name") or ""] = Style(
                attribute(one, "style:parent-style-name") or "",
                weight not in {"normal", "400"} if weight else None,
                slant != "normal" if slant else None,
                line != "none" if line else None,
                _is_raised(position) if position else None,
            )
        for one in descendants(root, "text:list-style"):
            levels = children(one, "text:list-level-style-number")
            shown = [level for level in levels if attribute(level, "style:num-format")]
            depths = {number(attribute(level, "text:level"), 1) - 1 for level in shown}
            self.numbered[attribute(one, "style:name") or ""] = depths

    def ancestry(self, name: str) -> Iterator[tuple[str, Style]]:
        """Yield the style and all styles that it is based on, with their names."""
        for _ in range(_MOST_ANCESTORS):
            style = self.texts.get(name)
            if style is None:
                if name:
                    yield name, Style()
                return
            yield name, style
            name = style.parent

    def is_named(self, name: str, *words: str) -> bool:
        names = (one.replace("_20_", " ").replace("_", " ").lower() for one, _ in self.ancestry(name))
        return any(one.startswith(words) for one in names)


def _is_raised(position: str) -> bool:
    """Whether a text position such as "super 58%" or "33% 58%" is superscript."""
    return position.startswith("super") or (position[:1].isdigit() and not position.startswith("0%"))


def reject_encrypted(archive: Archive) -> None:
    manifest = archive.find("META-INF/manifest.xml")
    if manifest and any(True for _ in descendants(parse(manifest), "manifest:encryption-data")):
        raise Encrypted("Octavo cannot open encrypted OpenDocument files yet. Save the file without a password.")


def read_metadata(archive: Archive) -> Metadata:
    data = archive.find("meta.xml")
    about = child(parse(data), "office:meta") if data else None
    fields = {name_of(one): text_of(one) for one in about} if about is not None else {}
    return Metadata(
        title=clean_title(fields.get("dc:title")),
        author=clean_line(fields.get("meta:initial-creator") or fields.get("dc:creator")),
        date=clean_date(fields.get("meta:creation-date")) or clean_date(fields.get("dc:date")),
        language=clean_language(fields.get("dc:language")),
        extra=non_empty(
            subject=fields.get("dc:subject"),
            keywords=fields.get("meta:keyword"),
            description=fields.get("dc:description"),
        ),
    )


def page_count(archive: Archive) -> int | None:
    data = archive.find("meta.xml")
    found = next(descendants(parse(data), "meta:document-statistic"), None) if data else None
    return number(attribute(found, "meta:page-count"), 0) or None


def number(written: str | None, default: int) -> int:
    return int(written) if written and written.isdecimal() and len(written) < 7 else default  # noqa: PLR2004
