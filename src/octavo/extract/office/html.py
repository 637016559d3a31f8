"""Converts HTML inside other formats (books, emails) to Markdown. Keeps all of the text, not only an article.

html-to-markdown does the conversion. It silently drops text inside more than a thousand nested elements. So the words
are counted, and if many are missing, a simpler conversion without recursion is used instead.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

from octavo.core.errors import BadInput
from octavo.core.languages import count_words
from octavo.extract.decode import clean, decode
from octavo.extract.markdown.escape import escape, escape_inline
from octavo.extract.markdown.inline import safe_link
from octavo.extract.office.xml import Element, attribute, etree, local_name, secure_parser
from octavo.extract.zips import DAMAGED

# Placeholder for a backslash, which html-to-markdown would double.
_ESCAPE = "\ufdd2"
_BACKSLASH = "\ufdd3"
_BRACKETS = {"[": "\ufdd4", "]": "\ufdd5"}  # in the text of a link, which html-to-markdown would cut there
_LEAST_WORDS = 0.85
_FEW_WORDS = 5

_ENTITY = re.compile(rb"&[A-Za-z][A-Za-z0-9]{1,31};")
_OF_XML = frozenset({"amp", "lt", "gt", "quot", "apos"})
_DECLARES_ENTITY = re.compile(rb"<!ENTITY", re.IGNORECASE)
_SPACES = re.compile(r"[ \t\r\n\f\v\x85\xa0\u2028\u2029]+")
_UNDERLINE = re.compile(r"(\s*)(=+|-+)(\s*)")
_EMPTY_LINES = re.compile(r"\n{3,}")
_SPACES_AT_END = re.compile(r"(?<! ) $|(?<=\S) {3,}$", re.MULTILINE)

_NO_TEXT = frozenset({"script", "style", "head", "template", "iframe", "audio", "video", "canvas"})
_UNSHOWN = frozenset({"script", "style", "title"})
_AS_IT_IS = frozenset({"pre", "code", "kbd", "samp", "tt"})
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS = re.compile(
    r"address|article|aside|blockquote|body|center|d[dlt]|div|figcaption|figure|footer|form|h[1-6]|header|hr|li|main|nav|ol|"
    r"p|pre|section|table|tr|ul"
)


def read_page(data: bytes) -> Element:
    """Parse a page: well-formed XHTML as XML, everything else as a browser would parse it."""
    if not _DECLARES_ENTITY.search(data):
        try:
            return _without_namespaces(etree.fromstring(_without_entities(data), secure_parser()))
        except (etree.XMLSyntaxError, ValueError):
            pass
    return read_html(decode(data))


def read_html(text: str) -> Element:
    """Parse HTML. If elements are nested too deeply for the parser, parse it again without the nesting."""
    parser: Any = _html_parser()
    try:
        root: Any = etree.fromstring(text.encode(errors="replace") or b"<p/>", parser)
        if any("depth" in error.message for error in parser.error_log):
            root = etree.fromstring(_flattened(text).encode(errors="replace"), _html_parser())
    except (etree.XMLSyntaxError, ValueError) as error:
        raise BadInput(f"{DAMAGED}its HTML cannot be read.") from error
    return _without_namespaces(root if root is not None else etree.fromstring(b"<html/>", _html_parser()))


def _html_parser() -> object:
    """A parser for HTML.

    `huge_tree` raises the depth limit of the parser from 256 to 2,048. Callers limit the size of the input.
    """
    return etree.HTMLParser(no_network=True, remove_comments=True, remove_pis=True, huge_tree=True, encoding="utf-8")


class _FlatReader(HTMLParser):
    """Collects the paragraphs and headings of a page, ignoring nesting."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[tuple[str, list[str]]] = [("p", [])]
        self._skipped = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self._skipped += tag in _UNSHOWN
        if _BLOCKS.fullmatch(tag) or tag == "br":
            self._begin(tag if tag in _HEADINGS else "p")

    def handle_endtag(self, tag: str) -> None:
        self._skipped -= tag in _UNSHOWN and self._skipped > 0
        if _BLOCKS.fullmatch(tag):
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


def _without_entities(data: bytes) -> bytes:
    """Replace named HTML entities, which XML does not know, with their characters."""
    if data[:2] in {b"\xff\xfe", b"\xfe\xff"} or b"&" not in data:
        return data
    return _ENTITY.sub(_character, data)


def _character(found: re.Match[bytes]) -> bytes:
    name = found.group().decode()
    text = name if name[1:-1] in _OF_XML else html.unescape(name)
    return text.encode("ascii", "xmlcharrefreplace") if text != name else found.group()


def _without_namespaces(root: Element) -> Element:
    for element in root.iter("*"):
        element.tag = local_name(element).lower()
    return root


def body_of(root: Element) -> Element:
    return next(root.iter("body"), root)


def to_markdown(body: Element) -> str:
    """The Markdown of an element. Modifies the tree."""
    _simplify(body)
    words = count_words(" ".join(body.itertext()))
    if not words:
        return ""
    written: str = etree.tostring(body, encoding="unicode", method="html")
    markdown = _tidy(_convert(written))
    if count_words(markdown) < words * _LEAST_WORDS - _FEW_WORDS:
        markdown = _tidy("\n\n".join(_plain_blocks(body)))
    return markdown


def _convert(written: str) -> str:
    # Imported late: only the sandbox needs it.
    from html_to_markdown import ConversionOptions, PreprocessingOptions, convert

    options = ConversionOptions(
        autolinks=False,
        bullets="-",
        compact_tables=True,
        expand_abbreviations=False,
        extract_metadata=False,
        highlight_style="none",
        hidden_content="reachable",
        include_blockquote_citations=False,
        preprocessing=PreprocessingOptions(enabled=False),
    )
    return convert(written, options).content or ""


def _tidy(markdown: str) -> str:
    text = clean(markdown).replace(_ESCAPE, "\\").replace(_BACKSLASH, "\\")
    for bracket, stand_in in _BRACKETS.items():
        text = text.replace(stand_in, f"\\{bracket}")
    return _EMPTY_LINES.sub("\n\n", _SPACES_AT_END.sub("", text)).strip("\n")


def _simplify(body: Element) -> None:
    """Remove elements without text, replace images with their descriptions, and escape Markdown characters."""
    for element in list(body.iter()):
        name = element.tag
        if name in _NO_TEXT and element is not body:
            _replace(element, "")
        elif name in {"img", "image"}:
            alt = " ".join((element.get("alt") or "").split())
            _replace(element, f"[Image: {alt}]" if alt else "")
        elif name in {"svg", "math"}:
            text = element.get("alttext") or " ".join(" ".join(_drawing_texts(element)).split())
            _replace(element, f" {text} " if text else "")
        elif name == "object":
            element.tag = "div"  # its content is the fallback for programs that cannot show the object
        elif name == "a":
            _simplify_link(element)
    _escape_texts(body)


def _drawing_texts(drawing: Element) -> Iterator[str]:
    """The text of a drawing or formula, without its style sheet."""
    for element in drawing.iter():
        if element.text and element.tag not in {"script", "style"}:
            yield element.text
        if element.tail and element is not drawing:
            yield element.tail


def _simplify_link(element: Element) -> None:
    """Keep links to web, FTP and mail addresses. Other links become plain text."""
    link = safe_link(element.get("href"))
    if link:
        element.set("href", link)
    else:
        element.tag = "span"
    if attribute(element, "epub:type") == "noteref" or element.get("role") == "doc-noteref":
        shown = " ".join("".join(element.itertext()).split())
        if shown.isalnum():
            for inside in list(element):
                element.remove(inside)
            element.text = f"[{shown}]"


def _replace(element: Element, text: str) -> None:
    """Replace an element with text."""
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


def _escape_texts(body: Element) -> None:
    codes = links = 0
    before = ""
    for event, element in etree.iterwalk(body, events=("start", "end")):
        step = 1 if event == "start" else -1
        codes += step * (element.tag in _AS_IT_IS)
        links += step * (element.tag == "a")
        text = element.text if event == "start" else element.tail if element is not body else None
        if not text:
            continue
        if not codes:
            text = _escaped(text, before, in_link=links > 0)
            setattr(element, "text" if event == "start" else "tail", text)
        before = text


def _escaped(text: str, before: str, *, in_link: bool) -> str:
    """Escape a text. `before` is the text that precedes it: the two together could look like a link."""
    text = escape_inline(_SPACES.sub(" ", text), _ESCAPE).replace("\\", _BACKSLASH)
    if before.endswith("]") and text[0] in "(:":
        text = _ESCAPE + text
    if in_link:
        text = text.replace(f"{_ESCAPE}]", "]").translate(str.maketrans(_BRACKETS))
    return _UNDERLINE.sub(rf"\1{_ESCAPE}\2\3", text) if _UNDERLINE.fullmatch(text) else text


def _plain_blocks(body: Element) -> Iterator[str]:
    """Yield the text blocks in document order, ignoring nesting.

    Not recursive, because this function is used when elements are nested too deeply for recursion.
    """
    texts: list[str] = []
    level = 0
    for event, element in etree.iterwalk(body, events=("start", "end")):
        if _BLOCKS.fullmatch(element.tag):
            yield from _block(texts, level)
            texts = []
            level = _HEADINGS.get(element.tag, 0) if event == "start" else 0
        text = element.text if event == "start" else element.tail if element is not body else None
        texts.append(text or "")
    yield from _block(texts, 0)


def _block(texts: list[str], level: int) -> Iterator[str]:
    text = " ".join("".join(texts).replace(_ESCAPE, "").replace(_BACKSLASH, "\\").split())
    for bracket, stand_in in _BRACKETS.items():
        text = text.replace(stand_in, bracket)
    if text:
        yield f"{'#' * level} {escape(text)}" if level else escape(text)
