"""XML of a mapping back to values: what a gateway elsewhere answers is held to the same schema as our own."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import Any

from octavo.convert.contract import Box, Conversion, Place, Value
from octavo.convert.embedded import parse_safely
from octavo.convert.engine import finish
from octavo.convert.mapping import Mapping
from octavo.convert.xml import PROVENANCE, validate
from octavo.core.errors import Defect

_SIDES = 4


class NotOfMapping(Exception):
    """The XML is not what the mapping's schema says."""


def read_xml(document: bytes, mapping: Mapping, source: str) -> Conversion:
    """Raises `NotOfMapping`. A value without provenance has no place and is not verified."""
    root = parse_safely(document)
    if root is None:
        raise NotOfMapping("it is not XML, or declares entities")
    try:
        validate(document, mapping)
    except Defect as error:
        raise NotOfMapping(error.detail or "") from None
    return finish(mapping, list(_values(root, mapping)), source=source)


def _values(root: Any, mapping: Mapping) -> Iterator[Value]:  # noqa: ANN401
    for field in mapping.fields:
        for element in root.findall(f"{{{mapping.namespace}}}{field.xml}"):
            if not field.is_table:
                yield from _value(element, field.name)
                continue
            for number, row in enumerate(element, 1):
                for column in field.columns:
                    for cell in row.findall(f"{{{mapping.namespace}}}{column.xml}"):
                        yield from _value(cell, column.name, field.name, number)


def _value(element: Any, name: str, table: str | None = None, row: int | None = None) -> Iterator[Value]:  # noqa: ANN401
    text = (element.text or "").strip()
    if not text:
        return
    said = {key.removeprefix(f"{{{PROVENANCE}}}"): value for key, value in element.attrib.items()}
    place = _place(said)
    verified = place is not None and said.get("verified") == "true"
    yield Value(name, text, _share(said.get("confidence")), place, verified, table, row)


def _place(said: dict[str, str]) -> Place | None:
    try:
        sides = [float(side) for side in said["box"].split()]
        page = int(said["page"])
    except (KeyError, ValueError):
        return None
    if len(sides) != _SIDES or page < 1 or not all(map(isfinite, sides)):
        return None
    return Place(page, Box(*sides), said.get("quote", ""))


def _share(text: str | None) -> float:
    """How certain it says that it is; nothing said is a coin's throw."""
    try:
        share = float(text or "")
    except ValueError:
        return 0.5
    return min(max(share, 0.0), 1.0) if isfinite(share) else 0.5
