"""A conversion as XML, with the places of its values or plain; the mapping's own schema; and whether the two agree."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import import_module
from typing import Any

from octavo.convert.contract import Conversion, Value
from octavo.convert.mapping import Column, Field, Mapping
from octavo.convert.types import FIELD_TYPES
from octavo.core.errors import Defect

PROVENANCE = "urn:octavo:provenance:1"
_XS = "http://www.w3.org/2001/XMLSchema"
_XSI = "http://www.w3.org/2001/XMLSchema-instance"
# What no XML document may hold.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_etree: Any = import_module("lxml.etree")  # it has no types
Element = Any


def render(conversion: Conversion, mapping: Mapping, *, plain: bool = False) -> bytes:
    """Deterministic: the same values make the same bytes. What is required and missing is there, and nil."""
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
    said = {"confidence": f"{value.confidence:.2f}", "verified": "true" if value.verified else "false"}
    if place := value.place:
        box = " ".join(f"{side:.1f}" for side in place.box)
        said = {"page": str(place.page), "box": box, "quote": _FORBIDDEN.sub("", place.quote), **said}
    for key, text in said.items():
        element.set(f"{{{PROVENANCE}}}{key}", text)


def schema_of(mapping: Mapping) -> bytes:
    """XML Schema for both forms: attributes of the provenance namespace are allowed everywhere and never needed."""
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
    """The values in their one form, and around them what allows provenance."""
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
    """Raises `Defect` if the XML is not what its schema says: both are ours, so that is our mistake."""
    schema = _schema(schema_of(mapping))
    if not schema.validate(_etree.fromstring(document)):
        raise Defect(f"The XML of {mapping.name} does not fit its schema: {str(schema.error_log.last_error)[:300]}")


@lru_cache(maxsize=32)
def _schema(text: bytes) -> Any:  # noqa: ANN401
    return _etree.XMLSchema(_etree.fromstring(text))


def _xs(parent: Element, kind: str, /, **attributes: str) -> Element:
    return _etree.SubElement(parent, f"{{{_XS}}}{kind}", attributes)


def _tag(mapping: Mapping, name: str) -> str:
    return f"{{{mapping.namespace}}}{name}"


def _written(root: Element) -> bytes:
    return _etree.tostring(root, xml_declaration=True, encoding="UTF-8", pretty_print=True)
