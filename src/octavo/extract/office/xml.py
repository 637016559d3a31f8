"""Parses untrusted XML without entities, network or DTD. Tags get the short prefixes used in the standards."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from typing import Any, Protocol

from octavo.core.errors import BadInput
from octavo.extract.zips import DAMAGED

etree: Any = import_module("lxml.etree")  # untyped; the `Element` protocol covers what is used

_OOXML = "http://schemas.openxmlformats.org/"
_STRICT = "http://purl.oclc.org/ooxml/"
_OPEN = "urn:oasis:names:tc:opendocument:xmlns:"

PREFIXES = {
    _OOXML + "wordprocessingml/2006/main": "w",
    _STRICT + "wordprocessingml/main": "w",
    _OOXML + "drawingml/2006/main": "a",
    _STRICT + "drawingml/main": "a",
    _OOXML + "presentationml/2006/main": "p",
    _STRICT + "presentationml/main": "p",
    _OOXML + "officeDocument/2006/math": "m",
    _STRICT + "officeDocument/math": "m",
    _OOXML + "officeDocument/2006/relationships": "r",
    _STRICT + "officeDocument/relationships": "r",
    _OOXML + "drawingml/2006/wordprocessingDrawing": "wp",
    _STRICT + "drawingml/wordprocessingDrawing": "wp",
    _OOXML + "drawingml/2006/diagram": "dgm",
    _STRICT + "drawingml/diagram": "dgm",
    _OOXML + "markup-compatibility/2006": "mc",
    _OOXML + "package/2006/relationships": "rel",
    _OOXML + "officeDocument/2006/extended-properties": "app",
    _STRICT + "officeDocument/extendedProperties": "app",
    "urn:schemas-microsoft-com:vml": "v",
    _OPEN + "office:1.0": "office",
    _OPEN + "text:1.0": "text",
    _OPEN + "table:1.0": "table",
    _OPEN + "style:1.0": "style",
    _OPEN + "drawing:1.0": "draw",
    _OPEN + "xsl-fo-compatible:1.0": "fo",
    _OPEN + "svg-compatible:1.0": "svg",
    _OPEN + "meta:1.0": "meta",
    _OPEN + "manifest:1.0": "manifest",
    _OPEN + "presentation:1.0": "presentation",
    "http://www.w3.org/1999/xlink": "xlink",
    "http://www.w3.org/XML/1998/namespace": "xml",
    "http://purl.org/dc/elements/1.1/": "dc",
    "http://purl.org/dc/terms/": "dcterms",
    "http://www.idpf.org/2007/ops": "epub",
    "http://www.idpf.org/2007/opf": "opf",
}


class Element(Protocol):
    """The methods of lxml elements that Octavo uses. The parser removes comments and processing instructions."""

    tag: str
    text: str | None
    tail: str | None

    @property
    def attrib(self) -> dict[str, str]: ...
    def __iter__(self) -> Iterator[Element]: ...
    def __len__(self) -> int: ...
    def get(self, key: str) -> str | None: ...
    def set(self, key: str, value: str) -> None: ...
    def iter(self, *tags: str) -> Iterator[Element]: ...
    def itertext(self) -> Iterator[str]: ...
    def getparent(self) -> Element | None: ...
    def getprevious(self) -> Element | None: ...
    def remove(self, element: Element) -> None: ...


def secure_parser() -> object:
    return etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )


def parse(data: bytes) -> Element:
    """Parse XML. Rejects damaged XML and entity declarations, which entity bombs use and office programs do not."""
    try:
        root: Any = etree.fromstring(data, secure_parser())
    except (etree.XMLSyntaxError, ValueError) as error:
        raise BadInput(f"{DAMAGED}its XML cannot be read.") from error
    declared: Any = root.getroottree().docinfo.internalDTD
    if declared is not None and declared.entities():
        raise BadInput("Its XML declares entities, which Octavo does not expand.")
    return root


@lru_cache(maxsize=8192)
def short(tag: str) -> str:
    """A tag with its short prefix, such as "w:p" for a Word paragraph in every edition of the standard.

    Unknown namespaces get the prefix "?".
    """
    namespace, brace, name = tag[1:].rpartition("}") if tag.startswith("{") else ("", "", tag)
    return f"{PREFIXES.get(namespace, '?')}:{name}" if brace else name


def name_of(element: Element) -> str:
    return short(element.tag)


def local_name(element: Element) -> str:
    return short(element.tag).rpartition(":")[2]


def child(element: Element | None, *path: str) -> Element | None:
    """Follow a path of tag names down from an element. Returns the first match, or None."""
    for name in path:
        if element is None:
            return None
        element = next((one for one in element if name_of(one) == name), None)
    return element


def children(element: Element | None, name: str) -> Iterator[Element]:
    return (one for one in element if name_of(one) == name) if element is not None else iter(())


def descendants(element: Element | None, *names: str) -> Iterator[Element]:
    return (one for one in element.iter() if name_of(one) in names) if element is not None else iter(())


def attribute(element: Element | None, name: str) -> str | None:
    """Read an attribute by its short name, such as "w:val". Files in which the prefix is missing can be read too."""
    if element is None:
        return None
    found = next((value for key, value in element.attrib.items() if short(key) == name), None)
    return element.get(name.rpartition(":")[2]) if found is None else found


def text_of(element: Element | None) -> str:
    return " ".join("".join(element.itertext()).split()) if element is not None else ""
