"""Parses untrusted XML and HTML. Declared entities are not expanded, and neither DTDs nor the network are used.

Tag names get the usual short prefixes, such as "w:".
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from functools import lru_cache
from html.parser import HTMLParser
from importlib import import_module
from typing import Any, Protocol

from octavo.core.errors import BadInput
from octavo.extract.decode import decode
from octavo.extract.zips import DAMAGED

etree: Any = import_module("lxml.etree")  # lxml has no types; the `Element` protocol covers the methods that are used

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
    _OOXML + "drawingml/2006/chart": "c",
    _STRICT + "drawingml/chart": "c",
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

HEADING_TAGS = {f"h{level}": level for level in range(1, 7)}
BLOCK_TAGS = re.compile(
    r"address|article|aside|blockquote|body|center|d[dlt]|div|figcaption|figure|footer|form|h[1-6]|header|hr|li|main|nav|ol|"
    r"p|pre|section|table|tr|ul"
)
_UNSHOWN = frozenset({"script", "style", "title"})
_ENTITY = re.compile(rb"&([A-Za-z][A-Za-z0-9]{1,31});")
_OF_XML = frozenset({b"amp", b"lt", b"gt", b"quot", b"apos"})
_NAME = re.compile(r"[a-z_][\w.:-]*", re.ASCII)
_DECLARES_ENTITY = re.compile(rb"<!ENTITY", re.IGNORECASE)


class Element(Protocol):
    """An lxml element, with only the members that Octavo uses.

    The parser removes comments and processing instructions.
    """

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
    def getnext(self) -> Element | None: ...
    def remove(self, element: Element) -> None: ...
    def append(self, element: Element) -> None: ...
    def makeelement(self, tag: str) -> Element: ...


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
    """Parse XML.

    Rejects damaged XML. Also rejects XML that declares entities: office programs never declare them, but attacks such
    as entity bombs do.
    """
    try:
        root: Any = etree.fromstring(data, secure_parser())
    except (etree.XMLSyntaxError, ValueError) as error:
        raise BadInput(f"{DAMAGED}its XML cannot be read.") from error
    declared: Any = root.getroottree().docinfo.internalDTD
    if declared is not None and declared.entities():
        raise BadInput("The file's XML declares entities, which Octavo does not expand.")
    return root


@lru_cache(maxsize=8192)
def short(tag: str) -> str:
    """Return a tag with its usual prefix, such as "w:p" for a Word paragraph. Unknown namespaces get the prefix "?".

    The transitional and the strict edition of the OOXML standard get the same prefixes.
    """
    namespace, brace, name = tag[1:].rpartition("}") if tag.startswith("{") else ("", "", tag)
    return f"{PREFIXES.get(namespace, '?')}:{name}" if brace else name


def name_of(element: Element) -> str:
    return short(element.tag)


def local_name(element: Element) -> str:
    return short(element.tag).rpartition(":")[2]


def child(element: Element | None, *path: str) -> Element | None:
    """Find an element by a path of tag names, starting below this element.

    Returns the first match. Returns None if there is no match.
    """
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
    """Return an attribute by its prefixed name, such as "w:val".

    Also finds the attribute if the file omits the prefix. Returns None if there is no such attribute.
    """
    if element is None:
        return None
    found = next((value for key, value in element.attrib.items() if short(key) == name), None)
    return element.get(name.rpartition(":")[2]) if found is None else found


def text_of(element: Element | None) -> str:
    return " ".join("".join(element.itertext()).split()) if element is not None else ""


def read_page(data: bytes) -> Element:
    """Parse an HTML or XHTML page.

    Well-formed XHTML is parsed as XML, and everything else as a browser would parse it.
    """
    if not _DECLARES_ENTITY.search(data):
        try:
            return without_namespaces(etree.fromstring(without_html_entities(data), secure_parser()))
        except (etree.XMLSyntaxError, ValueError):
            pass
    return read_html(decode(data))


def without_html_entities(data: bytes) -> bytes:
    """Replace named HTML entities, which XML does not define, with their characters."""
    if data[:2] in {b"\xff\xfe", b"\xfe\xff"} or b"&" not in data:
        return data
    return _ENTITY.sub(_character, data)


def _character(found: re.Match[bytes]) -> bytes:
    text = html.unescape(found.group().decode())
    is_known = found[1] not in _OF_XML and not text.endswith(";")
    return text.encode("ascii", "xmlcharrefreplace") if is_known else found.group()


def read_html(text: str) -> Element:
    """Parse HTML. If the elements are nested too deeply for the parser, flatten the HTML and parse it again."""
    parser: Any = _html_parser()
    try:
        root: Any = etree.fromstring(text.encode(errors="replace") or b"<p/>", parser)
        if any("depth" in error.message for error in parser.error_log):
            root = etree.fromstring(_flattened(text).encode(errors="replace"), _html_parser())
    except (etree.XMLSyntaxError, ValueError) as error:
        raise BadInput(f"{DAMAGED}its HTML cannot be read.") from error
    return without_namespaces(root if root is not None else etree.fromstring(b"<html/>", _html_parser()))


def _html_parser() -> object:
    """Return an HTML parser.

    `huge_tree` raises the parser's depth limit from 256 to 2,048. Callers must limit the size of the input.
    """
    return etree.HTMLParser(no_network=True, remove_comments=True, remove_pis=True, huge_tree=True, encoding="utf-8")


class _FlatReader(HTMLParser):
    """Collects the paragraphs and headings of an HTML page in a flat list, ignoring how elements are nested."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[tuple[str, list[str]]] = [("p", [])]
        self._skipped = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self._skipped += tag in _UNSHOWN
        if BLOCK_TAGS.fullmatch(tag) or tag == "br":
            self._begin(tag if tag in HEADING_TAGS else "p")

    def handle_endtag(self, tag: str) -> None:
        self._skipped -= tag in _UNSHOWN and self._skipped > 0
        if BLOCK_TAGS.fullmatch(tag):
            self._begin("p")

    def handle_data(self, data: str) -> None:
        if not self._skipped:
            self.blocks[-1][1].append(data)

    def _begin(self, tag: str) -> None:
        if self.blocks[-1][1]:
            self.blocks.append((tag, []))
        else:
            self.blocks[-1] = (tag, self.blocks[-1][1])


def _flattened(text: str) -> str:
    flat = _FlatReader()
    flat.feed(text)
    flat.close()
    blocks = ((tag, html.escape("".join(texts))) for tag, texts in flat.blocks)
    return f"<html><body>{''.join(f'<{tag}>{block}</{tag}>' for tag, block in blocks)}</body></html>"


def without_namespaces(root: Element) -> Element:
    """Replace the name of each element with its lower-case name without a namespace.

    A name that lxml does not accept, which damaged HTML can produce, becomes "span".
    """
    for element in root.iter("*"):
        name = local_name(element).lower()
        # The parser produces names from damaged HTML that lxml would not accept.
        element.tag = name if _NAME.fullmatch(name) else "span"
    return root


def flat_blocks(body: Element) -> Iterator[tuple[int, str]]:
    """Yield the heading level (0 for a paragraph) and the text of each block in document order, ignoring nesting.

    This function is not recursive, because it is used when elements are nested too deeply for recursion.
    """
    texts: list[str] = []
    level = 0
    for event, element in etree.iterwalk(body, events=("start", "end")):
        if BLOCK_TAGS.fullmatch(element.tag):
            yield level, "".join(texts)
            texts = []
            level = HEADING_TAGS.get(element.tag, 0) if event == "start" else 0
        text = element.text if event == "start" else element.tail if element is not body else None
        texts.append(text or "")
    yield 0, "".join(texts)


def body_of(root: Element) -> Element:
    """Return the body of a page. If the root is an SVG drawing, wrap it in a new body."""
    if root.tag != "svg":
        return next(root.iter("body"), root)
    body: Any = etree.Element("body")
    body.append(root)
    return body


def caption_of(image: Element) -> str:
    """Return the caption of the `figure` element that contains an image. Returns an empty string if there is none."""
    parent = image.getparent()
    while parent is not None and parent.tag not in {"figure", "body"}:
        parent = parent.getparent()
    return text_of(next(parent.iter("figcaption"), None)) if parent is not None and parent.tag == "figure" else ""


def text_before(element: Element) -> str:
    """Return the text directly before an element.

    If there is none, return the text at the end of the previous element.
    """
    before: Element | None = element.getprevious()
    if before is None:
        parent = element.getparent()
        return (parent.text if parent is not None else None) or ""
    return before.tail or "".join(before.itertext())[-10:]


def remove(element: Element) -> None:
    """Remove an XML element and its content. The text after it is kept."""
    replace(element, "")


def replace(element: Element, text: str) -> None:
    """Replace an XML element and its content with text. The text after the element is kept."""
    parent = element.getparent()
    if parent is None:
        return
    text += element.tail or ""
    before: Element | None = element.getprevious()
    if before is not None:
        before.tail = (before.tail or "") + text
    else:
        parent.text = (parent.text or "") + text
    parent.remove(element)


def is_spacer(element: Element) -> bool:
    """Whether an image is displayed only a few pixels wide or high."""
    return any(
        (element.get(name) or "").strip().removesuffix("px") in {"0", "1", "2", "3"} for name in ("width", "height")
    )
