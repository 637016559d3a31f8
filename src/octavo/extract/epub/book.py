"""A whole book, chapter by chapter, so that only one of them is a tree in memory at a time."""

from __future__ import annotations

import re
from dataclasses import dataclass

from octavo.extract.contract import Metadata, OutlineEntry, Page
from octavo.extract.decode import clean
from octavo.extract.epub.chapters import MARK, Target, convert_chapter
from octavo.extract.epub.contents import Contents, read_contents
from octavo.extract.epub.package import Chapter, read_package
from octavo.extract.zips import Archive

_PAGES = frozenset(
    {"application/xhtml+xml", "text/html", "image/svg+xml", "application/x-dtbook+xml", "text/x-oeb1-document"}
)
_STRAY = re.compile("[\ufdd0-\ufddf]")


@dataclass(frozen=True, slots=True)
class Converted:
    """`outline` is None if the book has no table of contents; `pages` are those of the printed edition, if it says."""

    markdown: str
    pages: list[Page]
    outline: tuple[OutlineEntry, ...] | None
    metadata: Metadata


def convert(archive: Archive) -> Converted:
    book = read_package(archive)
    contents = read_contents(archive, book)
    targets = _targets(contents)
    parts: list[str] = []
    starts: dict[int, int] = {}
    length = 0
    for chapter in book.chapters:
        markdown = _chapter(archive, chapter, targets.pop(chapter.path, []))
        text, found = _take_marks(markdown)
        if text:
            length += 2 if parts else 0
            starts |= {number: length + min(offset, len(text)) for number, offset in found.items()}
            parts.append(text)
            length += len(text)
        else:
            starts |= dict.fromkeys(found, length)
    markdown = "\n\n".join(parts)
    pages = _pages(contents, starts, length)
    return Converted(markdown, pages, _outline(contents, starts, markdown), book.metadata)


def _targets(contents: Contents) -> dict[str, list[Target]]:
    """By file. Numbers count entries first and pages after them."""
    targets: dict[str, list[Target]] = {}
    entries = [(entry, entry) for entry in contents.entries] + [(page, None) for page in contents.pages]
    for number, (place, entry) in enumerate(entries):
        targets.setdefault(place.place[0], []).append(Target(number, place.place[1], entry))
    return targets


def _chapter(archive: Archive, chapter: Chapter, targets: list[Target]) -> str:
    data = archive.find(chapter.path) if chapter.media_type in _PAGES or not chapter.media_type else None
    return convert_chapter(data, targets) if data and data.strip() else ""


def _take_marks(marked: str) -> tuple[str, dict[int, int]]:
    """The text of a chapter, and where in it the numbered places are."""
    first, *others = MARK.split(marked.strip())
    parts = [_clean(first)]
    found: dict[int, int] = {}
    length = len(parts[0])
    for number, piece in zip(others[::2], others[1::2], strict=True):
        found.setdefault(int(number), length)
        parts.append(_clean(piece))
        length += len(parts[-1])
    return "".join(parts).rstrip(), found


def _clean(text: str) -> str:
    return _STRAY.sub("", clean(text))


def _pages(contents: Contents, starts: dict[int, int], length: int) -> list[Page]:
    first = len(contents.entries)
    begins = [(starts[number], page.title) for number, page in enumerate(contents.pages, first) if number in starts]
    begins.sort(key=lambda begin: begin[0])
    ends = [*(start for start, _ in begins[1:]), length]
    return [Page(n, label, start, end) for n, ((start, label), end) in enumerate(zip(begins, ends, strict=False), 1)]


def _outline(contents: Contents, starts: dict[int, int], markdown: str) -> tuple[OutlineEntry, ...] | None:
    """Entries begin with the line that they point into."""
    found = [
        OutlineEntry(entry.level, entry.title, None, _line_start(markdown, starts[number]))
        for number, entry in enumerate(contents.entries)
        if number in starts
    ]
    return tuple(found) if found else None


def _line_start(markdown: str, place: int) -> int:
    return markdown.rfind("\n", 0, place) + 1
