"""The table of contents of a book and its list of printed pages, in the new way (XHTML) or the old one (NCX)."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, field

from octavo.core.errors import BadInput
from octavo.extract.epub.package import Book, Chapter, resolve
from octavo.extract.office.html import read_page
from octavo.extract.office.xml import Element, attribute, local_name, parse, text_of
from octavo.extract.structure.headings import shorten
from octavo.extract.zips import Archive

_NCX = "application/x-dtbncx+xml"
_MOST_ENTRIES = 50_000
_MOST_DEPTH = 20


@dataclass(frozen=True, slots=True)
class Entry:
    """`level` is 1 for the highest. `place` is a file and what is called so in it."""

    level: int
    title: str
    place: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Contents:
    entries: list[Entry] = field(default_factory=list[Entry])
    pages: list[Entry] = field(default_factory=list[Entry])


def read_contents(archive: Archive, book: Book) -> Contents:
    """From whichever table has something; damaged ones are passed over, because a book can be read without."""
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
    """Items of nested lists; an item without a link is the heading of those below it."""
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
