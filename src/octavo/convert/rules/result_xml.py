"""Writes, validates and reads the XML of a conversion, and makes the XML Schema of a mapping.

XML from a remote conversion service must match the same schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from math import isfinite
from threading import Lock
from typing import Any

from octavo.convert.mappings.mapping import FIELD_TYPES, Column, Field, Mapping
from octavo.convert.rules.embedded_invoice import parse_safely
from octavo.convert.rules.engine import finish
from octavo.convert.values import Conversion, Status, Value
from octavo.core.errors import Defect
from octavo.facts.words import Box, Place

PROVENANCE = "urn:octavo:provenance:1"
_XS = "http://www.w3.org/2001/XMLSchema"
_XSI = "http://www.w3.org/2001/XMLSchema-instance"
_SIDES = 4
# Characters that are not allowed in XML.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_etree: Any = import_module("lxml.etree")  # the library has no types
# The first schema fills libxml2's table of types. If two threads did that at the same moment, the process crashed.
_VALIDATING = Lock()
Element = Any


def render(conversion: Conversion, mapping: Mapping, *, plain: bool = False) -> bytes:
    """Write the XML. Identical values give identical bytes. A missing required field becomes a nil element."""
    names = {None: mapping.namespace, "xsi": _XSI} | ({} if plain else {"p": PROVENANCE})
    root = _etree.Element(_tag(mapping, mapping.root), nsmap=names)
    if not plain:
        root.set(f"{{{PROVENANCE}}}mapping", mapping.name)
        root.set(f"{{{PROVENANCE}}}source", conversion.source)
    for field in mapping.fields:
        if field.is_table:
            _add_table(root, conversion, mapping, field, plain=plain)
        elif value := conversion.single(field.name):
            _add_value(root, mapping, field.xml, value, plain=plain)
        elif field.required:
            _etree.SubElement(root, _tag(mapping, field.xml)).set(f"{{{_XSI}}}nil", "true")
    return _written(root)


def _add_table(root: Element, conversion: Conversion, mapping: Mapping, field: Field, *, plain: bool) -> None:
    rows = conversion.table(field.name)
    if not rows and not field.required:
        return
    table = _etree.SubElement(root, _tag(mapping, field.xml))
    for row in rows:
        made = _etree.SubElement(table, _tag(mapping, field.row_xml))
        for column in field.columns:
            if column.name in row:
                _add_value(made, mapping, column.xml, row[column.name], plain=plain)


def _add_value(parent: Element, mapping: Mapping, name: str, value: Value, *, plain: bool) -> None:
    element = _etree.SubElement(parent, _tag(mapping, name))
    element.text = _FORBIDDEN.sub("", value.value)
    if plain:
        return
    verified = "true" if value.verified else "false"
    attributes = {"confidence": f"{value.confidence:.2f}", "status": str(value.status), "verified": verified}
    if place := value.place:
        box = " ".join(f"{side:.1f}" for side in place.box)
        attributes = {"page": str(place.page), "box": box, "quote": _FORBIDDEN.sub("", place.quote), **attributes}
    elif value.page:
        attributes = {"page": str(value.page), **attributes}
    if value.by:
        attributes |= {"by": _FORBIDDEN.sub("", value.by), "at": value.at or ""}
    for key, text in attributes.items():
        element.set(f"{{{PROVENANCE}}}{key}", text)


def schema_of(mapping: Mapping) -> bytes:
    """Return the XML Schema of a mapping.

    The attributes for the position and confidence of a value are always optional.
    """
    root = _etree.Element(f"{{{_XS}}}schema", nsmap={"xs": _XS, "m": mapping.namespace})
    root.set("targetNamespace", mapping.namespace)
    root.set("elementFormDefault", "qualified")
    kinds = {field.type for field in mapping.singles} | {one.type for table in mapping.tables for one in table.columns}
    for kind in sorted(kinds):
        _add_type(root, kind)
    top = _xs(root, "element", name=mapping.root)
    sequence, holder = _sequence(top)
    for field in mapping.fields:
        if field.is_table:
            _describe_table(sequence, field)
        else:
            _describe(sequence, field, required=field.required)
    _allow_provenance(holder)
    return _written(root)


def _add_type(root: Element, kind: str) -> None:
    """Add the XML Schema types for one type of field: a simple type for its standard form, and a complex type that also
    allows attributes for the position of a value.
    """
    known = FIELD_TYPES[kind]
    base = _xs(_xs(root, "simpleType", name=f"{kind}Value"), "restriction", base=known.schema)
    if known.pattern:
        _xs(base, "pattern", value=known.pattern)
    content = _xs(_xs(root, "complexType", name=kind), "simpleContent")
    _allow_provenance(_xs(content, "extension", base=f"m:{kind}Value"))


def _describe(sequence: Element, field: Field | Column, *, required: bool) -> None:
    element = _xs(sequence, "element", name=field.xml, type=f"m:{field.type}")
    if required:
        element.set("nillable", "true")
    else:
        element.set("minOccurs", "0")


def _describe_table(sequence: Element, field: Field) -> None:
    table = _xs(sequence, "element", name=field.xml)
    if not field.required:
        table.set("minOccurs", "0")
    rows, _ = _sequence(table)
    row = _xs(rows, "element", name=field.row_xml, minOccurs="0", maxOccurs="unbounded")
    columns, _ = _sequence(row)
    for column in field.columns:
        _describe(columns, column, required=False)


def _sequence(element: Element) -> tuple[Element, Element]:
    holder = _xs(element, "complexType")
    return _xs(holder, "sequence"), holder


def _allow_provenance(element: Element) -> None:
    _xs(element, "anyAttribute", namespace=PROVENANCE, processContents="skip")


def validate(document: bytes, mapping: Mapping) -> None:
    """Validate XML against the mapping's schema. Raises `Defect`, because invalid XML from Octavo is a bug.

    For XML from a remote service, `read_xml` raises `SchemaMismatch` instead.
    """
    with _VALIDATING:
        schema = _schema(schema_of(mapping))
        is_valid, problem = schema.validate(_etree.fromstring(document)), str(schema.error_log.last_error)
    if not is_valid:
        raise Defect(f"The XML of {mapping.name} does not match its schema: {problem[:300]}")


@lru_cache(maxsize=32)
def _schema(text: bytes) -> Any:  # noqa: ANN401
    return _etree.XMLSchema(_etree.fromstring(text))


def _xs(parent: Element, kind: str, /, **attributes: str) -> Element:
    return _etree.SubElement(parent, f"{{{_XS}}}{kind}", attributes)


def _tag(mapping: Mapping, name: str) -> str:
    return f"{{{mapping.namespace}}}{name}"


def _written(root: Element) -> bytes:
    return _etree.tostring(root, xml_declaration=True, encoding="UTF-8", pretty_print=True)


class SchemaMismatch(Exception):
    """The XML does not match the mapping's schema."""


def read_xml(document: bytes, mapping: Mapping, source: str) -> Conversion:
    """Parse XML from a remote service.

    Raises `SchemaMismatch` if the XML is invalid. A value without attributes for its position has no position and is
    not verified.
    """
    root = parse_safely(document)
    if root is None:
        raise SchemaMismatch("it is not well-formed XML, or declares entities")
    try:
        validate(document, mapping)
    except Defect as error:
        raise SchemaMismatch(error.detail or "") from None
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
    attributes = {key.removeprefix(f"{{{PROVENANCE}}}"): value for key, value in element.attrib.items()}
    place = _place(attributes)
    checked = place is not None and (attributes.get("status") == Status.CHECKED or attributes.get("verified") == "true")
    status = Status.CHECKED if checked else Status.FOUND
    yield Value(name, text, _confidence(attributes.get("confidence")), place, status, table, row)


def _place(attributes: dict[str, str]) -> Place | None:
    try:
        sides = [float(side) for side in attributes["box"].split()]
        page = int(attributes["page"])
    except (KeyError, ValueError):
        return None
    if len(sides) != _SIDES or page < 1 or not all(map(isfinite, sides)):
        return None
    return Place(page, Box(*sides), attributes.get("quote", ""))


def _confidence(text: str | None) -> float:
    """Return the confidence stated in the XML, limited to the range from 0 to 1. Returns 0.5 if none is stated."""
    try:
        share = float(text or "")
    except ValueError:
        return 0.5
    return min(max(share, 0.0), 1.0) if isfinite(share) else 0.5
