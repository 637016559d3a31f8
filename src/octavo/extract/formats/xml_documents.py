"""Reads XML documents.

Articles (JATS), manuals (DocBook) and books (FictionBook) become text, and other XML becomes a list of values. The
elements of a known vocabulary are renamed to HTML elements. The result is converted like a chapter of an EPUB book.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from octavo.core.errors import BadInput, Empty
from octavo.extract.decode import clean, decode
from octavo.extract.detect import Hints, Processor
from octavo.extract.extracted import Extracted, Metadata, SourceType
from octavo.extract.markdown.block_writer import Item, write_blocks
from octavo.extract.markdown.escape import escape_inside, fence
from octavo.extract.office.assemble import clean_date, clean_language, clean_line, non_empty, to_extracted
from octavo.extract.office.html import to_markdown
from octavo.extract.office.xml import Element, attribute, etree, local_name, parse, without_html_entities
from octavo.extract.zips import MEBIBYTE, reject_deep_nesting

MOST_BYTES = 64 * MEBIBYTE
MOST_ITEMS = 50_000
_DEEPEST_ITEM = 8
_MOST_ATTRIBUTES = 20

_BEFORE_COMMA = re.compile(r" ([,;.])")
# Parts of an article that journals print with a heading, even if the file contains no heading.
_NAMED = {"ack": "Acknowledgments", "ref-list": "References"}
_CITATIONS = frozenset({"mixed-citation", "element-citation", "product", "biblioentry", "nlm-citation", "citation"})
_TITLES = frozenset({"title", "article-title"})
# Elements that files write next to each other without spaces.
_SPACED = _CITATIONS | {"surname", "given-names", "firstname", "collab", "source", "year", "pub-id"}
# Special targets: drop the element, replace it with its children, or make it a section or a heading.
_DROP, _OPEN, _SECTION, _TITLE = "drop", "span", "section", "title"


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    """Maps element names of an XML vocabulary to HTML elements."""

    names: dict[str, str]


def _table(**names: str) -> dict[str, str]:
    return {name: target.rstrip("_") for target, listed in names.items() for name in listed.split()}


_COMMON = {
    "p": "p",
    "sup": "sup",
    "sub": "sub",
    "superscript": "sup",
    "subscript": "sub",
    "table": "table",
    "tr": "tr",
    "td": "td",
    "th": "th",
    "thead": "thead",
    "tbody": "tbody",
}
_DROPPED = _table(
    drop="binary description stylesheet indexterm info articleinfo bookinfo chapterinfo sectioninfo sect1info "
    "imageobject videoobject remark graphic inline-graphic media image object-id"
)
_JATS = _Vocabulary(
    _COMMON
    | _DROPPED
    | _table(
        section="sec abstract trans-abstract ack app ref-list glossary notes boxed-text",
        title="title article-title",
        p="subtitle trans-title attrib ref",
        strong="bold",
        em="italic",
        del_="strike",
        code="monospace",
        pre="preformat code",
        blockquote="disp-quote",
        div="fig table-wrap caption disp-formula supplementary-material contrib-group statement fn fn-group "
        "table-wrap-foot disp-formula-group verse-group def-list",
        li="list-item",
    )
)
_DOCBOOK = _Vocabulary(
    _COMMON
    | _DROPPED
    | _table(
        section="article book part chapter appendix preface section sect1 sect2 sect3 sect4 sect5 simplesect refsect1 "
        "refsect2 glossary bibliography refentry dedication colophon",
        title="title refname",
        p="para simpara formalpara refpurpose bridgehead caption",
        em="emphasis replaceable firstterm citetitle",
        code="literal code command filename option varname function userinput computeroutput constant envar parameter "
        "classname type tag sgmltag systemitem keycap methodname",
        pre="programlisting screen literallayout synopsis",
        blockquote="blockquote note tip warning caution important epigraph sidebar",
        ul="itemizedlist simplelist",
        ol="orderedlist procedure",
        li="listitem member step",
        dl="variablelist glosslist",
        dt="term glossterm",
        dd="glossdef",
        tr="row",
        td="entry",
        table="tgroup informaltable",
        div="figure informalfigure example informalexample mediaobject textobject",
    )
)
_FICTION = _Vocabulary(
    _COMMON
    | _DROPPED
    | _table(
        section="section body",
        title="title",
        p="subtitle text-author v date",
        em="emphasis",
        strong="strong",
        del_="strikethrough",
        code="code",
        blockquote="cite epigraph annotation poem",
        div="stanza",
    ),
)


def extract(path: Path, hints: Hints) -> Extracted:
    data = path.read_bytes()
    try:
        with reject_deep_nesting():
            root = parse(without_html_entities(data)) if len(data) <= MOST_BYTES else None
            found = _read(root, hints.source_type) if root is not None else None
    except BadInput as error:
        if isinstance(error, Empty):
            raise
        found = None
    return found or _as_code(data, hints.source_type)


def _read(root: Element, source_type: SourceType) -> Extracted | None:
    match source_type:
        case SourceType.JATS:
            return _document(root, source_type, _JATS, _article_metadata(root))
        case SourceType.DOCBOOK:
            return _document(root, source_type, _DOCBOOK, _manual_metadata(root))
        case SourceType.FB2:
            return _document(root, source_type, _FICTION, _book_metadata(root))
        case _:
            return _values(root)


def _as_code(data: bytes, source_type: SourceType) -> Extracted:
    text = decode(data).strip("\n")
    return to_extracted(source_type, fence(text.split("\n"), "xml"), Metadata(), has_title=False)


# Known vocabularies -------------------------------------------------------------------------------------------------


def _document(root: Element, source_type: SourceType, vocabulary: _Vocabulary, metadata: Metadata) -> Extracted:
    body = etree.Element("body")
    converter = _Converter(vocabulary)
    if source_type is SourceType.JATS:
        _article(root, body, converter, metadata)
    elif source_type is SourceType.DOCBOOK:
        if metadata.title and not any(local_name(one) == "title" for one in root):
            etree.SubElement(body, "h1").text = metadata.title
        converter.convert(root, body, 0)
    else:
        for one in root:
            converter.convert(one, body, 0)
    return to_extracted(source_type, clean(to_markdown(body)), metadata)


def _article(root: Element, body: Element, converter: _Converter, metadata: Metadata) -> None:
    """Write the printed parts of an article: title, authors with their affiliations, abstracts, text and appendices."""
    etree.SubElement(body, "h1").text = metadata.title or ""
    about = _first(root, "article-meta")
    authors = list(_contributors(about)) if about is not None else []
    # The metadata contains only the first authors of a long list.
    etree.SubElement(body, "p").text = ", ".join(filter(None, map(_person, authors)))
    named = {one.get("rid") for author in authors for one in author.iter("*") if local_name(one) == "xref"}
    for one in root.iter("*"):
        name = local_name(one)
        if name == "aff" and (one.get("id") in named or not named - {None}):
            etree.SubElement(body, "p").text = _affiliation(one)
        elif name in {"abstract", "trans-abstract"}:
            if not any(local_name(inside) == "title" for inside in one):
                etree.SubElement(body, "h2").text = "Abstract"
            converter.convert(one, body, 1)
    for one in root:
        if local_name(one) in {"body", "back", "floats-group", "sub-article", "response"}:
            converter.convert(one, body, 1)


def _affiliation(element: Element) -> str:
    """Return the text of an affiliation, without the ids of the institution."""
    parts = [element.text or ""]
    for one in element:
        parts += ["" if local_name(one) == "institution-id" else _affiliation(one), one.tail or ""]
    return _BEFORE_COMMA.sub(r"\1", " ".join(" ".join(parts).split()))


@dataclass(frozen=True, slots=True)
class _Converter:
    vocabulary: _Vocabulary

    def convert(self, source: Element, parent: Element, level: int) -> None:
        """Convert an element to HTML and append it to `parent`.

        Text that follows the element is not included. `level` is the heading level.
        """
        name = local_name(source)
        target = self._target(source, name)
        if target == _DROP:
            return
        if target == _SECTION:
            level += 1
        if name in _NAMED and not any(local_name(one) == "title" for one in source):
            etree.SubElement(parent, f"h{min(max(level, 1), 6)}").text = _NAMED[name]
        made = etree.SubElement(parent, self._tag(source, target, level))
        if target == "a":
            made.set("href", attribute(source, "xlink:href") or source.get("url") or "")
        made.text = f" {source.text or ''}" if name in _SPACED else source.text
        if target == _TITLE and (number := _label(source)):
            made.text = f"{number} {made.text or ''}"
        previous: Element | None = None
        for one in source:
            before = len(made)
            self.convert(one, made, level)
            previous = made[-1] if len(made) > before else previous
            _add_tail(made, previous, one.tail)

    def _target(self, source: Element, name: str) -> str:
        parent = source.getparent()
        inside = local_name(parent) if parent is not None else ""
        special = _special(source, name, inside)
        return self.vocabulary.names.get(name, _OPEN) if special is None else special

    def _tag(self, source: Element, target: str, level: int) -> str:
        if target == _TITLE:
            parent = source.getparent()
            inside = self.vocabulary.names.get(local_name(parent), "") if parent is not None else ""
            headed = inside == _SECTION or local_name(source) == "article-title"
            return f"h{min(max(level, 1), 6)}" if headed else "p"
        return "div" if target == _SECTION else target


def _label(title: Element) -> str:
    """Return the section number that the XML contains before this title. Returns an empty string if there is none."""
    before = title.getprevious()
    return _words(before) if before is not None and local_name(before) == "label" else ""


def _add_tail(made: Element, previous: Element | None, tail: str | None) -> None:
    if previous is None:
        made.text = (made.text or "") + (tail or "")
    else:
        previous.tail = (previous.tail or "") + (tail or "")


def _special(source: Element, name: str, inside: str) -> str | None:
    """Return the HTML element for an element whose meaning depends on more than its name.

    Returns None for all other elements.
    """
    if name in {"ext-link", "uri", "ulink", "link", "a"}:
        return "a"
    if name == "list":
        return "ol" if (source.get("list-type") or "").startswith(("order", "alpha", "roman")) else "ul"
    if name in {"table", "informaltable"} and any(local_name(one) == "tgroup" for one in source):
        return "div"
    if name == "emphasis" and (source.get("role") or "") in {"bold", "strong"}:
        return "strong"
    if name == "label" and inside in {"sec", "app"}:
        return _DROP
    is_inline = (name in {"p", "para"} and inside == "title") or (name in _TITLES and inside in _CITATIONS)
    return _OPEN if is_inline else None


# Metadata -----------------------------------------------------------------------------------------------------------


def _first(root: Element, *names: str) -> Element | None:
    return next((one for one in root.iter("*") if local_name(one) in names), None)


def _words(element: Element | None) -> str:
    return " ".join("".join(element.itertext()).split()) if element is not None else ""


def _article_metadata(root: Element) -> Metadata:
    about = _first(root, "article-meta")
    if about is None:
        return Metadata()
    journal = _words(_first(root, "journal-title"))
    doi = next((_words(one) for one in about.iter("*") if one.get("pub-id-type") == "doi"), "")
    return Metadata(
        title=clean_line(_words(_first(about, "article-title"))),
        author=clean_line(", ".join(filter(None, map(_person, _contributors(about))))),
        date=clean_date(_date(_first(about, "pub-date"))),
        language=clean_language(attribute(root, "xml:lang")),
        extra=non_empty(journal=journal, doi=doi),
    )


def _contributors(about: Element) -> Iterator[Element]:
    for one in about.iter("*"):
        if local_name(one) == "contrib" and (one.get("contrib-type") or "author") == "author":
            yield one


def _person(element: Element) -> str:
    given = _words(_first(element, "given-names", "first-name", "firstname", "givenname"))
    family = _words(_first(element, "surname", "last-name"))
    return " ".join(filter(None, (given, family))) or _words(_first(element, "personname", "collab", "nickname"))


def _date(element: Element | None) -> str:
    if element is None:
        return ""
    parts = {local_name(one): _words(one) for one in element}
    numbers = [parts.get(name, "") for name in ("year", "month", "day")]
    dated = [number.zfill(2) for number in numbers if number.isdecimal()]
    return "-".join(dated) if numbers[0].isdecimal() else _words(element)


def _manual_metadata(root: Element) -> Metadata:
    about = next((one for one in root if local_name(one) in {"info", "articleinfo", "bookinfo"}), root)
    title = next((_words(one) for place in (root, about) for one in place if local_name(one) == "title"), "")
    authors = (_person(one) for one in about.iter("*") if local_name(one) == "author") if about is not root else ()
    dated = _first(about, "pubdate", "date") if about is not root else None
    return Metadata(
        title=clean_line(title),
        author=clean_line(", ".join(filter(None, authors))),
        date=clean_date(_words(dated)),
        language=clean_language(attribute(root, "xml:lang") or root.get("lang")),
    )


def _book_metadata(root: Element) -> Metadata:
    about = _first(root, "title-info")
    if about is None:
        return Metadata()
    authors = (_person(one) for one in about if local_name(one) == "author")
    dated = _first(about, "date")
    return Metadata(
        title=clean_line(_words(_first(about, "book-title"))),
        author=clean_line(", ".join(filter(None, authors))),
        date=clean_date((dated.get("value") if dated is not None else None) or _words(dated)),
        language=clean_language(_words(_first(about, "lang"))),
    )


# Other XML ----------------------------------------------------------------------------------------------------------


def _values(root: Element) -> Extracted | None:
    """Make a list of the values of all elements.

    Returns None if the file is too long, or if it is prose in an unknown vocabulary.
    """
    items: list[Item] = []
    for item in _items([(root, 0)]):
        if item is None or len(items) == MOST_ITEMS:
            return None
        items.append(item)
    return to_extracted(SourceType.XML, clean(write_blocks(items)), Metadata(), has_title=False)


def _items(waiting: list[tuple[Element, int]]) -> Iterator[Item | None]:
    while waiting:
        element, depth = waiting.pop()
        inside = list(element)
        text = " ".join((element.text or "").split())
        if inside and (text or any((one.tail or "").strip() for one in inside)):
            yield None
            return
        yield Item(min(depth, _DEEPEST_ITEM), "", _line(element, text))
        waiting += [(one, depth + 1) for one in reversed(inside)]


def _line(element: Element, text: str) -> str:
    given: Iterable[tuple[str, str]] = list(element.attrib.items())[:_MOST_ATTRIBUTES]
    listed = ", ".join(f"{name.rpartition('}')[2]}: {' '.join(value.split())}" for name, value in given if value)
    label = f"**{escape_inside(local_name(element))}**"
    named = f"{label} ({escape_inside(listed)})" if listed else label
    return f"{named}: {escape_inside(text)}" if text else named


PROCESSOR = Processor((SourceType.JATS, SourceType.DOCBOOK, SourceType.FB2, SourceType.XML), extract)
