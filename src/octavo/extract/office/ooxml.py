"""Reads Office Open XML packages (DOCX, PPTX, XLSX): parts, relationships, charts and metadata.

Also contains code shared by the readers of all OpenDocument files: styles, metadata, encryption.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from functools import lru_cache
from urllib.parse import unquote

from octavo.core.errors import BadInput, Encrypted
from octavo.extract.extracted import Metadata
from octavo.extract.markdown.block_writer import DocumentBlock, Paragraph, Table
from octavo.extract.markdown.escape import escape, escape_inside
from octavo.extract.office.assemble import clean_date, clean_language, clean_line, clean_title, non_empty
from octavo.extract.office.xml import (
    Element,
    attribute,
    child,
    children,
    descendants,
    local_name,
    name_of,
    parse,
    text_of,
)
from octavo.extract.zips import DAMAGED, Archive

_MOST_SERIES = 50
_MOST_POINTS = 1000
_CHART_NAMES = {"ofPie": "Pie", "stock": "Stock", "surface3D": "Surface", "doughnut": "Doughnut"}


@dataclass(frozen=True, slots=True)
class Relation:
    """A relationship from one part (file) of a package to another part or to a URL.

    `target` is the name of a part, or a URL if `external` is true. `kind` is the last segment of the relationship type.
    """

    kind: str
    target: str
    external: bool


@dataclass(slots=True)
class Package:
    """An office document, which is a ZIP package of parts (files).

    A missing part is read as None, because most parts are optional.
    """

    archive: Archive
    _relations: dict[str, dict[str, Relation]] = field(default_factory=dict[str, dict[str, Relation]])

    def part(self, name: str | None) -> Element | None:
        data = self.archive.find(name) if name else None
        return parse(data) if data else None

    def main(self, default: str) -> tuple[str, Element]:
        """Return the name and the content of the main document part."""
        named = self.related("", "officeDocument")
        name = named if named and named in self.archive else default
        root = self.part(name)
        if root is None:
            raise BadInput(f"{DAMAGED}the part with the text is missing.")
        return name, root

    def relations(self, part: str) -> dict[str, Relation]:
        """Return the relationships of a part, keyed by id. The part name "" means the whole package."""
        if part not in self._relations:
            folder, name = posixpath.split(part)
            root = self.part(posixpath.join(folder, "_rels", f"{name}.rels"))
            self._relations[part] = {
                one.get("Id") or "": _relation(one, folder) for one in children(root, "rel:Relationship")
            }
        return self._relations[part]

    def related(self, part: str, kind: str) -> str | None:
        """Follow the first relationship of this kind from `part` to another part of the package.

        Returns the name of the other part. Returns None if there is no such relationship.
        """
        found = (one.target for one in self.relations(part).values() if one.kind == kind and not one.external)
        return next(found, None)

    def target(self, part: str, identifier: str | None) -> str | None:
        """Return the name of the part to which the relationship with this id points.

        Returns None if there is no such relationship, or if its target is outside the file.
        """
        relation = self.relations(part).get(identifier or "")
        return relation.target if relation and not relation.external else None

    def metadata(self) -> Metadata:
        root = self.part(self.related("", "core-properties") or "docProps/core.xml")
        fields = {local_name(one): text_of(one) for one in root} if root is not None else {}
        return Metadata(
            title=clean_title(fields.get("title")),
            author=clean_line(fields.get("creator")),
            date=clean_date(fields.get("created")) or clean_date(fields.get("modified")),
            language=clean_language(fields.get("language")),
            extra=non_empty(
                subject=fields.get("subject"), keywords=fields.get("keywords"), description=fields.get("description")
            ),
        )

    def page_count(self) -> int | None:
        """Return the page count that is stored in the file. Returns None if it is missing or invalid."""
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


def read_chart(root: Element | None) -> Iterator[DocumentBlock]:
    """Convert a chart to text: a caption, and a table with one row per category and one column per series.

    Yields nothing if there is no chart.
    """
    area = next((one for one in root.iter() if local_name(one) == "plotArea"), None) if root is not None else None
    if root is None or area is None:
        return
    kinds = [name.removesuffix("Chart") for one in area if (name := local_name(one)).endswith("Chart")]
    series = [one for one in area.iter() if local_name(one) == "ser"][:_MOST_SERIES]
    kind = f"{_CHART_NAMES.get(kinds[0], kinds[0].removesuffix('3D').capitalize())} chart" if kinds else "Chart"
    title = _chart_title(root)
    yield Paragraph("  \n".join(filter(None, [escape(title), kind])))
    categories = _points(series[0], "cat", "xVal") if series else {}
    columns = [_points(one, "val", "yVal") for one in series]
    places = sorted({place for column in [categories, *columns] for place in column})[:_MOST_POINTS]
    if places:
        names = (next(iter(_points(one, "tx").values()), f"Series {number}") for number, one in enumerate(series, 1))
        rows = [[categories.get(place, str(place + 1)), *(one.get(place, "") for one in columns)] for place in places]
        yield Table([[escape_inside(cell) for cell in row] for row in [["", *names], *rows]])


def _chart_title(root: Element) -> str:
    chart = next((one for one in root.iter() if local_name(one) == "chart"), root)
    title = next((one for one in chart if local_name(one) == "title"), None)
    parts = (one.text or "" for one in title.iter() if local_name(one) in {"t", "v"}) if title is not None else ()
    return " ".join("".join(parts).split())


def _points(series: Element, *names: str) -> dict[int, str]:
    """Return the stored values of a chart series, such as its categories, by index.

    `names` are the names of the XML elements that contain these values.
    """
    found: dict[int, str] = {}
    for part in (one for one in series if local_name(one) in names):
        values = [one for one in part.iter() if local_name(one) == "v"]
        for number, value in enumerate(values):
            parent = value.getparent()
            place = (parent.get("idx") if parent is not None else None) or str(number)
            if place.isdecimal() and len(place) < 7:  # noqa: PLR2004 - no chart has more points
                found[int(place)] = " ".join((value.text or "").split())
    return found


# Number formats -----------------------------------------------------------------------------------------------------

# Formats that files do not define, by their number. Dates are not among them: they are read as dates.
BUILT_IN_FORMATS = {
    "1": "0", "2": "0.00", "3": "#,##0", "4": "#,##0.00", "9": "0%", "10": "0.00%", "11": "0.00E+00", "48": "##0.0E+0",
    "37": "#,##0;(#,##0)", "38": "#,##0;(#,##0)", "39": "#,##0.00;(#,##0.00)", "40": "#,##0.00;(#,##0.00)",
}  # fmt: skip
_FORMAT_PART = re.compile(
    r'"(?P<text>[^"]*)"|\\(?P<literal>.)|[_*].|\[\$(?P<currency>[^\]-]*)[^\]]*\]|\[(?P<other>[^\]]*)\]'
    r"|(?P<number>[0#?][0#?,.]*(?:E[+-]0+)?|\.[0#?]+)|(?P<end>;)|(?P<sign>.)",
    re.DOTALL,
)
_COLOURS = re.compile(r"(?:black|blue|cyan|green|magenta|red|white|yellow|color ?\d+)", re.IGNORECASE)
_MOST_DECIMALS = 15
_LONGEST_FORMAT = 200


@dataclass(frozen=True, slots=True)
class _NumberFormat:
    """One section of a spreadsheet number format such as `0.00 €`: the text before and after the number, and the
    pattern of its digits.
    """

    before: str
    pattern: str
    after: str

    def write(self, value: Decimal) -> str:
        scaled = value * 100 ** (self.before + self.after).count("%")
        digits = self.pattern.rstrip(",")
        scaled /= 1000 ** self.pattern.count(",", len(digits))
        return f"{self.before}{_write_digits(scaled, digits)}{self.after}".strip() if digits else self.before.strip()


def format_number(value: float, code: str) -> str | None:
    """Format a number as a workbook displays it. Returns None for unsupported formats, such as fractions."""
    sections = _read_format(code[:_LONGEST_FORMAT])
    try:
        exact = Decimal(repr(value))
        first, negative, zero = (*sections, None, None, None)[:3]
        if not first or not exact.is_finite() or abs(exact) >= Decimal(10) ** _MOST_DECIMALS:
            return None
        if zero and not exact:
            return zero.write(exact)
        if negative and exact < 0:
            return negative.write(-exact)
        return ("-" if exact < 0 else "") + first.write(abs(exact))
    except InvalidOperation:
        return None


@lru_cache(maxsize=256)
def _read_format(code: str) -> tuple[_NumberFormat, ...]:
    """Parse the sections of a number format, for positive numbers, negative numbers and zero.

    Returns an empty tuple for an unsupported format.
    """
    sections = [["", "", ""]]
    for part in _FORMAT_PART.finditer(code):
        if part["end"]:
            if len(sections) == 3:  # noqa: PLR2004 - the fourth section is for text
                break
            sections.append(["", "", ""])
            continue
        section = sections[-1]
        if part["number"]:
            if section[1]:
                return ()
            section[1] = part["number"]
        elif _is_unsupported(part["other"], part["sign"] or ""):
            return ()
        section[2 if section[1] else 0] += next(filter(None, part.group("text", "literal", "currency", "sign")), "")
    return tuple(_NumberFormat(*one) for one in sections) if sections[0][1] else ()


def _is_unsupported(condition: str | None, sign: str) -> bool:
    """Whether a number format contains something that is not supported: a condition, a fraction, a date or text."""
    return bool(condition and not _COLOURS.fullmatch(condition)) or sign.isalpha() or sign in {"/", "@"}


def _write_digits(value: Decimal, pattern: str) -> str:
    whole, _, rest = pattern.partition("E")[0].partition(".")
    decimals = min(sum(rest.count(mark) for mark in "0#?"), _MOST_DECIMALS)
    if "E" in pattern:
        number, _, power = f"{value:.{decimals}E}".partition("E")
        return f"{number}E{int(power):+03}"
    rounded = value.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)
    text = f"{rounded:,f}" if "," in whole else f"{rounded:f}"
    integer, _, fraction = text.partition(".")
    kept = max(len(fraction.rstrip("0")), len(rest.rstrip("#")))
    integer = integer.zfill(whole.count("0")) if integer != "0" or "0" in whole else ""
    return integer + (f".{fraction[:kept]}" if kept else "")


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
