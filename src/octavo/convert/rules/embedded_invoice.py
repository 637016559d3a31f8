"""Reads an invoice that is embedded in a PDF as XML (Factur-X, ZUGFeRD).

Its values are exact, so no rules are needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from octavo.convert.mappings.mapping import Mapping

_etree: Any = import_module("lxml.etree")  # the library has no types
NAMES = {"factur-x.xml", "zugferd-invoice.xml", "xrechnung.xml", "cii.xml"}
_CROSS_INDUSTRY = "CrossIndustry"
_DAY = re.compile(r"(\d{4})(\d\d)(\d\d)")
_MOST_ROWS = 2000


class EmbeddedInvoice:
    """The parsed XML of an embedded invoice.

    A path consists of element names without namespaces and starts at the root. `ID@VA` is an `ID` element whose scheme
    is `VA`.
    """

    def __init__(self, root: Any) -> None:  # noqa: ANN401
        self._root = root

    def single(self, paths: Sequence[str]) -> str | None:
        return next((text for path in paths for text in _texts(self._root, path)), None)

    def rows(self, paths: Sequence[str]) -> list[Any]:
        found = (list(_walk(self._root, path.split("/"))) for path in paths)
        return next((rows[:_MOST_ROWS] for rows in found if rows), list[Any]())

    @staticmethod
    def cell(row: Any, paths: Sequence[str]) -> str | None:  # noqa: ANN401
        return next((text for path in paths for text in _texts(row, path)), None)


def open_embedded(mapping: Mapping, attachments: Sequence[tuple[str, bytes]]) -> EmbeddedInvoice | None:
    """Parse the embedded invoice.

    Returns None if there is no such attachment or the mapping has no paths for reading it.
    """
    if not any(field.embedded for field in mapping.fields):
        return None
    for name, body in attachments:
        if name.lower() in NAMES and (root := parse_safely(body)) is not None and _CROSS_INDUSTRY in str(root.tag):
            return EmbeddedInvoice(root)
    return None


def parse_safely(body: bytes) -> Any:  # noqa: ANN401
    """Parse untrusted XML. Returns None if it is not well-formed, or declares entities or a document type."""
    parser = _etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True
    )
    try:
        root = _etree.fromstring(body, parser)
    except _etree.XMLSyntaxError:
        return None
    return None if root.getroottree().docinfo.doctype else root


def as_day(text: str) -> str:
    """Convert a date such as 20240815 to 2024-08-15."""
    found = _DAY.fullmatch(text)
    return "-".join(found.groups()) if found else text


def _texts(element: Any, path: str) -> Iterator[str]:  # noqa: ANN401
    found = (one.text for one in _walk(element, path.split("/")))
    return (text.strip() for text in found if text and text.strip())


def _walk(element: Any, names: Sequence[str]) -> Iterator[Any]:  # noqa: ANN401
    if not names:
        yield element
        return
    name, _, scheme = names[0].partition("@")
    for child in element:
        if not isinstance(child.tag, str) or child.tag.rpartition("}")[2] != name:
            continue
        if not scheme or child.get("schemeID") == scheme:
            yield from _walk(child, names[1:])
