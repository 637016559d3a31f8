"""Reads EPUB books chapter by chapter, so that only one chapter's element tree is in memory at a time."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from octavo.extract.decode import clean
from octavo.extract.detect import Hints, Processor
from octavo.extract.extracted import Extracted, Metadata, OutlineEntry, Page, SourceType
from octavo.extract.formats.epub.package import Chapter, Contents, Entry, read_contents, read_package, resolve
from octavo.extract.office.assemble import Figures, add_page_numbers, to_extracted
from octavo.extract.office.html import Picture, body_of, read_page, to_markdown
from octavo.extract.office.xml import Element, attribute, caption_of
from octavo.extract.zips import Archive, read_picture, reject_deep_nesting

_PAGES = frozenset(
    {"application/xhtml+xml", "text/html", "image/svg+xml", "application/x-dtbook+xml", "text/x-oeb1-document"}
)
_NOT_PICTURES = (".svg", ".svgz", ".xhtml", ".html", ".mp4", ".mp3")
_NONCHARACTERS = re.compile("[\ufdd0-\ufddf]")
# A number between two noncharacters, which Unicode reserves for internal use.
_TARGET_MARK = re.compile("\ufdd0(\\d{1,7})\ufdd1")
_LONE_MARKS = re.compile("^((?:[ \t>]*\ufdd0\\d{1,7}\ufdd1)+)[ \t]*\n+", re.MULTILINE)
_HEADING = re.compile(r"h[1-6]")
_TEXT_TAGS = re.compile(r"h[1-6]|p|li|td|th|dt|dd|a|span|em|strong|i|b|blockquote|figcaption|cite|small|sup|sub|code")
_PARAGRAPH_TAGS = frozenset({"p", "li", "td"})
_DEEPEST = 6
_VERSE = re.compile(r"(?<![\w-])(?:verse|verseline|line|poem-?line)(?![\w-])", re.IGNORECASE)
_LINE_NUMBER = re.compile(r"(?<![\w-])(?:ln|line-?(?:no|nr|num|number)s?)(?![\w-])", re.IGNORECASE)
_NOT_A_WORD = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class BookText:
    """The text of a book.

    `outline` is None if the book has no table of contents. `pages` are the pages of the printed edition, if the book
    lists them.
    """

    markdown: str
    pages: list[Page]
    outline: tuple[OutlineEntry, ...] | None
    metadata: Metadata
    figures: Figures


def extract(path: Path, _hints: Hints) -> Extracted:
    with Archive(path) as archive, reject_deep_nesting():
        book = convert(archive)
    return to_extracted(
        SourceType.EPUB,
        book.markdown,
        book.metadata,
        pages=book.pages,
        outline=add_page_numbers(book.outline, book.pages),
        figures=book.figures,
    )


def convert(archive: Archive) -> BookText:
    book = read_package(archive)
    contents = read_contents(archive, book)
    targets = _targets(contents)
    figures = Figures()
    parts: list[str] = []
    starts: dict[int, int] = {}
    length = 0
    for chapter in book.chapters:
        markdown = _chapter(archive, chapter, targets.pop(chapter.path, []), figures)
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
    return BookText(markdown, pages, _outline(contents, starts, markdown), book.metadata, figures)


def _targets(contents: Contents) -> dict[str, list[Target]]:
    """Map each file of the book to its link targets.

    A link target is a position that the table of contents or the list of printed pages links to. Targets are numbered,
    starting with those of the table of contents.
    """
    targets: dict[str, list[Target]] = {}
    entries = [(entry, entry) for entry in contents.entries] + [(page, None) for page in contents.pages]
    for number, (place, entry) in enumerate(entries):
        targets.setdefault(place.place[0], []).append(Target(number, place.place[1], entry))
    return targets


def _chapter(archive: Archive, chapter: Chapter, targets: list[Target], figures: Figures) -> str:
    data = archive.find(chapter.path) if chapter.media_type in _PAGES or not chapter.media_type else None

    def picture(element: Element) -> str | None:
        member, _ = resolve(posixpath.dirname(chapter.path), _source(element))
        alternative = element.get("alt") or ""
        is_shown = member in archive and not member.lower().endswith(_NOT_PICTURES)
        kind = "cover" if "cover" in posixpath.basename(member).lower() else "picture"
        return figures.add(member, alternative, kind=kind, caption=caption_of(element)) if is_shown else None

    return convert_chapter(data, targets, picture) if data and data.strip() else ""


def _source(element: Element) -> str:
    return element.get("src") or attribute(element, "xlink:href") or element.get("href") or ""


def _take_marks(marked: str) -> tuple[str, dict[int, int]]:
    """Remove the markers of link targets from the text of a chapter.

    Returns the text and the offset of each target.
    """
    first, *others = _TARGET_MARK.split(marked.strip())
    parts = [_clean(first)]
    found: dict[int, int] = {}
    length = len(parts[0])
    for number, text in zip(others[::2], others[1::2], strict=True):
        found.setdefault(int(number), length)
        parts.append(_clean(text))
        length += len(parts[-1])
    return "".join(parts).rstrip(), found


def _clean(text: str) -> str:
    return _NONCHARACTERS.sub("", clean(text))


def _pages(contents: Contents, starts: dict[int, int], length: int) -> list[Page]:
    first = len(contents.entries)
    begins = [(starts[number], page.title) for number, page in enumerate(contents.pages, first) if number in starts]
    begins.sort(key=lambda begin: begin[0])
    ends = [*(start for start, _ in begins[1:]), length]
    return [Page(n, label, start, end) for n, ((start, label), end) in enumerate(zip(begins, ends, strict=False), 1)]


def _outline(contents: Contents, starts: dict[int, int], markdown: str) -> tuple[OutlineEntry, ...] | None:
    """Make the outline from the table of contents. Each entry starts at the beginning of the line that it links to."""
    found = [
        OutlineEntry(entry.level, entry.title, None, _line_start(markdown, starts[number]))
        for number, entry in enumerate(contents.entries)
        if number in starts
    ]
    # Books name the same place twice, for example as a part and as its first chapter.
    unique = {(entry.title, entry.start): entry for entry in reversed(found)}
    return tuple(reversed(unique.values())) or None


def _line_start(markdown: str, place: int) -> int:
    return markdown.rfind("\n", 0, place) + 1


@dataclass(frozen=True, slots=True)
class Target:
    """A link target in a chapter. `entry` is the entry of the table of contents that points to it, if any."""

    number: int
    fragment: str
    entry: Entry | None = None


def convert_chapter(data: bytes, targets: Sequence[Target], picture: Picture | None = None) -> str:
    """Convert a chapter to Markdown, with a marker at each link target."""
    body = body_of(read_page(data))
    places = _places(body, {target.fragment for target in targets})
    starts = {target: places.get(target.fragment, body) for target in targets}
    _set_levels(body, {starts[target]: target.entry for target in targets if target.entry})
    _remove_lists(body)
    marks: dict[Element, list[str]] = {}
    for target, element in starts.items():
        marks.setdefault(element, []).append(f"\ufdd0{target.number}\ufdd1")
    for element, numbers in marks.items():
        _mark(element, "".join(numbers))
    _join_verses(body)
    return _LONE_MARKS.sub(r"\1", to_markdown(body, picture))


def _places(body: Element, fragments: set[str]) -> dict[str, Element]:
    found: dict[str, Element] = {}
    for element in body.iter():
        for name in (element.get("id"), element.get("name")):
            if name and name in fragments:
                found.setdefault(name, element)
    return found


def _remove_lists(body: Element) -> None:
    """Remove the lists of printed pages and landmarks, which are meant for programs, not for people."""
    for element in list(body.iter("nav")):
        parent = element.getparent()
        if attribute(element, "epub:type") in {"page-list", "landmarks"} and parent is not None:
            parent.remove(element)


def _join_verses(body: Element) -> None:
    """Join the lines of a stanza into one paragraph with line breaks, and separate line numbers from the words."""
    for element in list(body.iter("span", "a", "small")):
        text = (element.text or "").strip()
        if text.isdecimal() and _LINE_NUMBER.search(element.get("class") or ""):
            element.text = f" {text}"
    for element in list(body.iter("div", "p")):
        before, parent = element.getprevious(), element.getparent()
        if before is None or parent is None or (before.tail or "").strip():
            continue
        if _is_verse(element) and _is_verse(before):
            line_break = before.makeelement("br")
            line_break.tail = element.text
            for one in (line_break, *element):
                before.append(one)
            before.tail = element.tail
            parent.remove(element)


def _is_verse(element: Element) -> bool:
    return element.tag in {"div", "p"} and _VERSE.search(element.get("class") or "") is not None


def _set_levels(body: Element, entries: Mapping[Element, Entry]) -> None:
    """Give each heading the level that its entry has in the table of contents.

    A heading without an entry gets a deeper level than the last heading before it that has an entry.
    """
    named = dict(_named_headings(body, entries))
    original, assigned = 0, 0
    for element in list(body.iter()):
        is_heading = _HEADING.fullmatch(element.tag) is not None
        level = int(element.tag[1]) if is_heading else original or 1
        if element in named:
            original, assigned = level, named[element].level
            element.tag = f"h{min(assigned, _DEEPEST)}"
        elif original and is_heading:
            element.tag = f"h{min(max(assigned + level - original, assigned + 1), _DEEPEST)}"


def _named_headings(body: Element, entries: Mapping[Element, Entry]) -> Iterator[tuple[Element, Entry]]:
    """Find the heading for each entry of the table of contents.

    It is the first heading at or after the entry's link target, unless other text comes first. A paragraph with the
    same words as the entry is treated as a heading.
    """
    waiting: Entry | None = None
    for element in body.iter():
        waiting = entries.get(element, waiting)
        if waiting is None:
            continue
        text = _words("".join(element.itertext())) if element.tag in _PARAGRAPH_TAGS else ""
        if _HEADING.fullmatch(element.tag) or (text and text == _words(waiting.title)):
            yield element, waiting
            waiting = None
        elif text:
            waiting = None


def _words(text: str) -> str:
    return _NOT_A_WORD.sub("", text).casefold()


def _mark(element: Element, mark: str) -> None:
    """Insert a marker into the text at an element, so that its offset can be found later.

    In a list or table, it is inserted into the first element that can contain text.
    """
    inner = next((one for one in element.iter() if _TEXT_TAGS.fullmatch(one.tag)), None)
    if inner is None and len(element):
        inner = element
    if inner is not None:
        inner.text = mark + (inner.text or "")
        return
    parent = element.getparent()
    if parent is None or element.tag in {"div", "section", "body", "p"}:
        element.text = mark + (element.text or "")
        return
    before = element.getprevious()
    if before is not None:
        before.tail = (before.tail or "") + mark
    else:
        parent.text = (parent.text or "") + mark


PROCESSOR = Processor((SourceType.EPUB,), extract, read_picture)
