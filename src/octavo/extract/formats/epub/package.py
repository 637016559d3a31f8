"""Reads the package of an EPUB book: reading order (spine), metadata, table of contents and list of printed pages."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import unquote

from octavo.core.errors import BadInput, Encrypted
from octavo.extract.extracted import Metadata
from octavo.extract.markdown.blocks import shorten
from octavo.extract.office.assemble import clean_date, clean_language, clean_line, clean_title, non_empty
from octavo.extract.office.html import read_page
from octavo.extract.office.xml import Element, attribute, local_name, parse, text_of
from octavo.extract.zips import DAMAGED, Archive

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
# These algorithms only obfuscate embedded fonts. The text is readable.
_FONT_METHODS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
_OTHER_FIELDS = {
    "publisher": "publisher",
    "subject": "subject",
    "description": "description",
    "identifier": "identifier",
}
_NCX = "application/x-dtbncx+xml"
_MOST_ENTRIES = 50_000
_MOST_DEPTH = 20


@dataclass(frozen=True, slots=True)
class Chapter:
    path: str
    media_type: str


@dataclass(frozen=True, slots=True)
class Book:
    """A book. `contents` lists the files that contain a table of contents; files in the newer format come first."""

    chapters: list[Chapter]
    contents: list[Chapter]
    metadata: Metadata


def read_package(archive: Archive) -> Book:
    _reject_drm(archive)
    path = _package_path(archive)
    root = parse(archive.read(path))
    folder = posixpath.dirname(path)
    items = {one.get("id") or "": one for one in _named(root, "item")}
    spine = next(iter(_named(root, "spine")), None)
    references = [one.get("idref") or "" for one in (spine if spine is not None else ())]
    chapters = [_chapter(items[one], folder) for one in references if one in items]
    if not chapters:
        raise BadInput(f"{DAMAGED}its list of chapters is empty.")
    navigation = [one for one in items.values() if "nav" in (one.get("properties") or "").split()]
    older = items.get((spine.get("toc") if spine is not None else None) or "")
    if older is None:
        older = next((one for one in items.values() if one.get("media-type") == "application/x-dtbncx+xml"), None)
    contents = [_chapter(one, folder) for one in [*navigation[:1], older] if one is not None]
    return Book(chapters, contents, _metadata(root))


def resolve(folder: str, reference: str) -> tuple[str, str]:
    """Split a reference into the name of a file in the archive and the fragment (element id) in that file."""
    path, _, fragment = reference.partition("#")
    return posixpath.normpath(posixpath.join("/", folder, unquote(path))).lstrip("/"), unquote(fragment)


def _package_path(archive: Archive) -> str:
    data = archive.find(_CONTAINER)
    if data:
        named = [one.get("full-path") or "" for one in _named(parse(data), "rootfile")]
        found = next((path for path in named if path in archive), None)
        if found:
            return found
    found = next((name for name in archive if name.lower().endswith(".opf")), None)
    if found is None:
        raise BadInput(f"{DAMAGED}its list of chapters is missing.")
    return found


def _chapter(item: Element, folder: str) -> Chapter:
    path, _ = resolve(folder, item.get("href") or "")
    return Chapter(path, (item.get("media-type") or "").lower())


def _named(root: Element, name: str) -> list[Element]:
    return [one for one in root.iter() if local_name(one) == name]


def _reject_drm(archive: Archive) -> None:
    data = archive.find(_ENCRYPTION)
    methods = [one.get("Algorithm") or "" for one in _named(parse(data), "EncryptionMethod")] if data else []
    if any(method not in _FONT_METHODS for method in methods):
        raise Encrypted("The book is protected by a shop's DRM. Only that shop's reading app can open it.")


def _metadata(root: Element) -> Metadata:
    about = next(iter(_named(root, "metadata")), None)
    fields: dict[str, list[str]] = {}
    for one in about.iter() if about is not None else ():
        text = text_of(one)
        if text and local_name(one) not in {"metadata", "meta", "dc-metadata", "x-metadata"}:
            fields.setdefault(local_name(one), []).append(text)
    dates = [date for text in fields.get("date", []) if (date := clean_date(text))]
    return Metadata(
        title=clean_title(next(iter(fields.get("title", [])), None)),
        author=clean_line(", ".join(dict.fromkeys(_authors(about)))),
        date=min(dates, default=None),
        language=clean_language(next(iter(fields.get("language", [])), None)),
        extra=non_empty(**{name: ", ".join(fields.get(source, [])) for source, name in _OTHER_FIELDS.items()}),
    )


def _authors(about: Element | None) -> list[str]:
    """Return the names of all creators whose role is author, or who have no role."""
    return [text for one in (about.iter() if about is not None else ()) if _is_author(one) and (text := text_of(one))]


def _is_author(element: Element) -> bool:
    return local_name(element) == "creator" and (attribute(element, "opf:role") or "aut") == "aut"


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a table of contents.

    Level 1 is the top level. `place` is the link target: the name of a file, and the id of an element in that file.
    """

    level: int
    title: str
    place: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Contents:
    entries: list[Entry] = field(default_factory=list[Entry])
    pages: list[Entry] = field(default_factory=list[Entry])


def read_contents(archive: Archive, book: Book) -> Contents:
    """Read the table of contents and the list of printed pages, each from the first file that contains one.

    Damaged files are skipped, because a book can be read without a table of contents.
    """
    entries: list[Entry] = []
    pages: list[Entry] = []
    for file in book.contents:
        found = _read(archive, file)
        entries = entries or found.entries
        pages = pages or found.pages
    return Contents(entries[:_MOST_ENTRIES], pages[:_MOST_ENTRIES])


def _read(archive: Archive, file: Chapter) -> Contents:
    data = archive.find(file.path)
    folder = posixpath.dirname(file.path)
    try:
        if data is None:
            return Contents()
        return _read_ncx(parse(data), folder) if file.media_type == _NCX else _read_navigation(read_page(data), folder)
    except BadInput:
        return Contents()


def _read_navigation(root: Element, folder: str) -> Contents:
    lists = {(attribute(nav, "epub:type") or "toc"): nav for nav in reversed(list(root.iter("nav")))}
    entries = list(_list_entries(lists["toc"], folder, 1)) if "toc" in lists else []
    pages = list(_list_entries(lists["page-list"], folder, 1)) if "page-list" in lists else []
    return Contents(entries, pages)


def _list_entries(element: Element, folder: str, level: int) -> Iterator[Entry]:
    """Yield the entries of a table of contents that is written as nested lists.

    If the label of an item is not a link, the first link in the item is used.
    """
    if level > _MOST_DEPTH:
        return
    for one in element:
        if one.tag == "li":
            label = next((inside for inside in one.iter("a", "span")), None)
            title = shorten(text_of(label))
            target = (label.get("href") if label is not None else None) or _first_link(one)
            if title and target:
                yield Entry(level, title, resolve(folder, target))
            for inside in one:
                if inside.tag in {"ol", "ul"}:
                    yield from _list_entries(inside, folder, level + 1)
        elif one.tag not in {"a", "h1", "h2", "h3", "h4", "h5", "h6"}:
            yield from _list_entries(one, folder, level)


def _first_link(element: Element) -> str:
    return next((href for one in element.iter("a") if (href := one.get("href"))), "")


def _read_ncx(root: Element, folder: str) -> Contents:
    entries = [entry for one in root if local_name(one) == "navMap" for entry in _points(one, folder, 1)]
    pages = [entry for one in root if local_name(one) == "pageList" for entry in _points(one, folder, 1)]
    return Contents(entries, pages)


def _points(element: Element, folder: str, level: int) -> Iterator[Entry]:
    if level > _MOST_DEPTH:
        return
    for one in element:
        if local_name(one) in {"navPoint", "pageTarget"}:
            parts = {local_name(inside): inside for inside in reversed(list(one))}
            title = shorten(text_of(parts.get("navLabel")))
            content = parts.get("content")
            target = content.get("src") if content is not None else None
            if title and target:
                yield Entry(level, title, resolve(folder, target))
            yield from _points(one, folder, level + 1)
