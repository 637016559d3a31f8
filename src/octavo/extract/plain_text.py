"""Converts plain text to Markdown.

The text is split into groups of lines, and each group is a heading, a list, code or prose. Lines of prose that a
program has wrapped are joined. Only obvious headings are recognised; a doubtful line is treated as prose. The items of
a list have bullets or consecutive numbers.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import NamedTuple

from octavo.extract.markdown.escape import escape, fence

RULE = "* * *"
MOST_PAGES = 50_000

# Narrower lines were broken by the author, as in verse and addresses.
_LEAST_WIDTH = 50
_WIDTH_SHARE = 0.95
_MOST_UNWRAPPED = 0.2
_RAGGED = 0.85
_LEAST_VERSES = 4
_VERSE_SHARE = 0.8

_ENDS_LINE = re.compile(r"[.!?:;]$")
_FIRST_WORD = re.compile(r"\s*(\S{1,100})")
_HYPHENATED = re.compile(r"[^\W\d_]-$")
_WITHOUT_SPACES = "\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uff00-\uffef"
_ENDS_WITHOUT_SPACE = re.compile(f"[{_WITHOUT_SPACES}]$")
_BEGINS_WITHOUT_SPACE = re.compile(f"[{_WITHOUT_SPACES}]")

_RULE = re.compile(r"\s*(?:[-=_*~#+·•.]\s*+){3,}+")
# Signs of code: columns separated by spaces or borders, and program statements.
_ALIGNED = re.compile(r"\S(?: {3,}|\t+)\S|^\s*[|+].*[|+]$|[\u2500-\u257f]|[{};]$")
_LEAST_ALIGNED = 0.5
_ITEM = re.compile(r"([ \t]*)(?:([-*+•‣◦▪●·\u2013])|(\d{1,3})([.)]))[ \t]+(?=\S)")


class _Block(NamedTuple):
    """The Markdown of one block. `is_code` is true if the text is code that has no fence yet."""

    text: str
    page: int
    is_code: bool = False


class ConvertedText(NamedTuple):
    """Converted text. `pages` contains the start and end of each page. It is empty if the text has no form feeds."""

    markdown: str
    pages: list[tuple[int, int]]


def convert(text: str) -> ConvertedText:
    pages = split_pages(text)
    contents = [""] * len(pages)
    blocks = _fence_code(_Converter(list(split_groups(pages))).blocks())
    for page, on_page in groupby(blocks, key=lambda block: block.page):
        contents[page - 1] = "\n\n".join(block.text for block in on_page)
    return ConvertedText("\n\n".join(filter(None, contents)), list(_ranges(contents)) if len(contents) > 1 else [])


def _ranges(contents: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each page in the joined text. Pages with text are separated by an empty line."""
    end = 0
    for content in contents:
        start = end + 2 if end and content else end
        end = start + len(content)
        yield start, end


def _fence_code(blocks: Iterator[_Block]) -> Iterator[_Block]:
    """Put code into fences. Adjacent blocks of code become one block, with empty lines between them."""
    for (page, is_code), same in groupby(blocks, key=lambda block: (block.page, block.is_code)):
        if not is_code:
            yield from same
            continue
        content = textwrap.dedent("\n\n".join(block.text for block in same))
        yield _Block(fence(content.split("\n")), page)


class _Converter:
    def __init__(self, groups: Sequence[Group]) -> None:
        self._groups = groups
        self._width = wrap_width(groups)
        self._last_item: Item | None = None  # the last item of the list that has just ended

    def blocks(self) -> Iterator[_Block]:
        for place, group in enumerate(self._groups):
            last_item, self._last_item = self._last_item, None
            start = 0
            while title := underlined(group.lines[start : start + 2]):
                yield _Block(_heading(title), group.page)
                start += title.lines
            title = heading_of(group, self._group(place + 1), is_first=not place) if not start else None
            if title:
                yield _Block(_heading(title), group.page)
                start += title.lines
            lines = group.lines[start:] if start else group.lines
            yield from (_Block(text, group.page, is_code) for text, is_code in self._render(lines, place, last_item))

    def _render(self, lines: Sequence[str], place: int, last_item: Item | None) -> Iterator[tuple[str, bool]]:
        if not lines:
            return
        if len(lines) == 1 and _RULE.fullmatch(lines[0]):
            yield RULE, False
        elif _is_aligned(lines):
            yield "\n".join(lines), True
        else:
            is_whole = lines is self._groups[place].lines
            near = (self._group(place - 1), self._group(place + 1)) if is_whole else ()
            yield from ((text, False) for text in self._prose(lines, [group for group in near if group], last_item))

    def _group(self, place: int) -> Group | None:
        return self._groups[place] if 0 <= place < len(self._groups) else None

    def _prose(self, lines: Sequence[str], neighbours: Sequence[Group], last_item: Item | None) -> Iterator[str]:
        """Write lines as a paragraph, as a list, or as an introductory paragraph followed by a list."""
        start = first_item(lines)
        items = read_items(lines[start:]) if start is not None else []
        is_list = form_list(items, neighbours if start == 0 else ())
        if is_list and start == 0 and last_item and would_merge(last_item, items[0]):
            is_list = False
        if not is_list:
            yield self._paragraph(lines)
            return
        if start:
            yield self._paragraph(lines[:start])
        yield render_list(items, self._width)
        self._last_item = next(item for item in reversed(items) if item.indent <= items[0].indent)

    def _paragraph(self, lines: Sequence[str]) -> str:
        return "  \n".join(map(escape, unwrap(lines, self._width)))


def _heading(heading: Heading) -> str:
    text = escape(heading.text)
    if text.endswith("#"):  # otherwise this character would close the heading
        text = text[:-1] + "\\#"
    return f"{'#' * heading.level} {text}"


def _is_aligned(lines: Sequence[str]) -> bool:
    aligned = sum(_ALIGNED.search(line) is not None for line in lines)
    return len(lines) > 1 and aligned >= _LEAST_ALIGNED * len(lines)


# Headings -----------------------------------------------------------------------------------------------------------

_MOST_CHARACTERS = 80
_MOST_WORDS = 12
_MOST_LINES = 3
_LEAST_LETTERS = 4
_BODY_CHARACTERS = 60
_DEEPEST = 6
_CENTRED_INDENT = 8

_UNDERLINES = {"=": 1, "-": 2, "~": 3, "^": 3, "*": 3, "#": 1}
_UNDERLINE = re.compile(r"([=\-~^*#])\1{2,}")
_NUMBERED = re.compile(r"(\d{1,2}(?:\.\d{1,2}){0,4})[.)]?\s+(?=[^\W\d_])")
_CHAPTER = re.compile(
    r"(?:chapter|part|section|appendix|book|kapitel|teil|abschnitt|anhang|chapitre|partie|annexe|cap[ií]tulo|parte|"
    r"capitolo|hoofdstuk|глава|часть)\s+(?:\d{1,3}|[ivxlcdm]{1,7}|[a-z])\b",
    re.IGNORECASE,
)
_ENDS_SENTENCE = re.compile(r"[.,;:!?…]$")
_LETTER = re.compile(r"[^\W\d_]")
_SMALL_WORD = 3


class Heading(NamedTuple):
    """A heading. `lines` is the number of lines that it occupies, including the underline."""

    level: int
    text: str
    lines: int = 1


def underlined(lines: Sequence[str]) -> Heading | None:
    """Return the heading if the lines start with a line of text and an underline of similar length, such as "=====".

    Otherwise return None.
    """
    title, signs = (line.strip() for line in lines) if len(lines) > 1 else ("", "")
    if not _UNDERLINE.fullmatch(signs) or not _LETTER.search(title) or len(title) > _MOST_CHARACTERS:
        return None
    is_as_long = abs(len(signs) - len(title)) <= max(2, len(title) // 4)
    return Heading(_UNDERLINES[signs[0]], title, 2) if is_as_long else None


def heading_of(group: Group, following: Group | None, *, is_first: bool) -> Heading | None:
    """Return the heading at the start of a group of lines. Returns None if there is no heading.

    Text must follow a heading, except for a centred title at the beginning of the document.
    """
    text, first = group.text, group.lines[0]
    if is_first and _is_centred(first) and len(group.lines) <= _MOST_LINES and _is_name(first.strip()):
        return Heading(1, first.strip())
    if following is None or len(group.lines) > _MOST_LINES or not _is_short(text):
        return None
    if is_first and _is_name(text):
        return Heading(1, text, len(group.lines))
    if _is_in_capitals(text):
        return Heading(2, text, len(group.lines))
    return _of_line(first, following) if len(group.lines) == 1 else None


def _of_line(line: str, following: Group) -> Heading | None:
    title = line.strip()
    if _CHAPTER.match(title):
        return Heading(2, title)
    is_alone = " " not in title and not _is_centred(line)
    if _is_title(title) and not is_alone and len(following.text) >= _BODY_CHARACTERS:
        return Heading(3, title)
    return _numbered(title, following)


def _numbered(text: str, following: Group) -> Heading | None:
    """Return the heading if the text is numbered like "1.2 Something". Otherwise return None.

    The first item of a numbered list is not a heading.
    """
    number = _NUMBERED.match(text)
    title = text[number.end() :].removesuffix(".") if number else ""
    if not number or _ENDS_SENTENCE.search(title) or not title[0].isupper():
        return None
    is_level = "." in number[1] and not text.endswith(".")
    if not (is_level or _is_title(title)) or _is_next_number(number[1], following):
        return None
    return Heading(min(2 + number[1].count("."), _DEEPEST), text)


def _is_next_number(number: str, following: Group) -> bool:
    after = _NUMBERED.match(following.text)
    return after is not None and "." not in number and "." not in after[1] and int(after[1]) == int(number) + 1


def _is_centred(line: str) -> bool:
    return line.startswith((" " * _CENTRED_INDENT, "\t\t"))


def _is_name(text: str) -> bool:
    return _is_short(text) and (_is_in_capitals(text) or _is_title(text))


def _is_short(text: str) -> bool:
    return len(text) <= _MOST_CHARACTERS and len(text.split()) <= _MOST_WORDS


def _is_in_capitals(text: str) -> bool:
    return text.isupper() and len(_LETTER.findall(text)) >= _LEAST_LETTERS and not text.endswith((",", ";"))


def _is_title(text: str) -> bool:
    """Whether a line looks like a title: every long word starts with a capital, and there are no digits, commas or
    final punctuation.
    """
    if _ENDS_SENTENCE.search(text) or "," in text or any(character.isdigit() for character in text):
        return False
    words = [word for word in text.split() if _LETTER.match(word)]
    if not words or not words[0][0].isupper():
        return False
    return all(word[0].isupper() or len(word) <= _SMALL_WORD for word in words)


# Lists --------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Item:
    """A list item. `number` is None for a bullet.

    In `lines`, spaces replace the marker, so that the lines keep their length.
    """

    indent: int
    number: int | None
    sign: str
    lines: list[str] = field(default_factory=list[str])

    @property
    def mark(self) -> str:
        return "-" if self.number is None else f"{self.number}{self.sign}"


def read_items(lines: Sequence[str]) -> list[Item]:
    """Read list items. Returns an empty list if the first line does not start an item.

    A line without a marker continues the previous item.
    """
    items: list[Item] = []
    for line in lines:
        found = _ITEM.match(line)
        if found:
            number = int(found[3]) if found[3] else None
            content = " " * found.end() + line[found.end() :]
            items.append(Item(len(found[1].expandtabs(4)), number, found[4] or found[2], [content]))
        elif items:
            items[-1].lines.append(line)
        else:
            return []
    return items


def first_item(lines: Sequence[str]) -> int | None:
    """Return the index of the first line with a list marker. Returns None if there is no such line."""
    return next((place for place, line in enumerate(lines) if _ITEM.match(line)), None)


def form_list(items: Sequence[Item], neighbours: Sequence[Group]) -> bool:
    """Whether the items form a list whose numbers stay the same in Markdown.

    A single item is a list only if the lines before or after it continue the list.
    """
    outer = [item for item in items if item.indent <= items[0].indent] if items else []
    if not outer or any(item.sign != outer[0].sign for item in outer) or not _counts_up(items):
        return False
    return len(items) > 1 or any(_continues(outer[0], group) for group in neighbours)


def _counts_up(items: Sequence[Item]) -> bool:
    """Whether the numbers are consecutive. Markdown renumbers list items, so other numbers would be changed."""
    last: dict[int, int] = {}
    for item in items:
        last = {indent: number for indent, number in last.items() if indent <= item.indent}
        if item.number is None:
            continue
        if item.indent in last and item.number != last[item.indent] + 1:
            return False
        last[item.indent] = item.number
    return True


def would_merge(last: Item, item: Item) -> bool:
    """Whether Markdown would add the item to the previous list and give it a wrong number."""
    return item.number is not None and last.sign == item.sign and last.number not in {None, item.number - 1}


def _continues(item: Item, group: Group) -> bool:
    """Whether the neighbouring group of lines starts with the previous or next item of the same list."""
    other = read_items(group.lines[:1])
    if not other or other[0].sign != item.sign or other[0].indent != item.indent:
        return False
    return item.number is None or other[0].number in {item.number - 1, item.number + 1}


def render_list(items: Sequence[Item], width: int) -> str:
    """Write the list as Markdown. Items with a deeper indent are nested in the item above."""
    rendered: list[str] = []
    parents: list[tuple[int, int]] = []  # the original indent of the item, and the indent of its children
    for item in items:
        while parents and parents[-1][0] >= item.indent:
            parents.pop()
        indent = parents[-1][1] if parents else 0
        inner = indent + len(item.mark) + 1
        parents.append((item.indent, inner))
        lines = f"  \n{' ' * inner}".join(map(escape, unwrap(item.lines, width)))
        rendered.append(f"{' ' * indent}{item.mark} {lines}")
    return "\n".join(rendered)


@dataclass(frozen=True, slots=True)
class Group:
    """Neighbouring lines without an empty line between them. Indents are kept, and trailing spaces are removed."""

    lines: list[str]
    page: int

    @property
    def text(self) -> str:
        return " ".join(line.strip() for line in self.lines)


def split_pages(text: str) -> list[str]:
    """Split a text at form feeds. If there are too many pages, the last page contains the rest."""
    pages = text.split("\f", MOST_PAGES - 1)
    return [*pages[:-1], pages[-1].replace("\f", "\n\n")]


def split_groups(pages: Iterable[str]) -> Iterator[Group]:
    """Split pages into groups of lines. Pages are numbered from 1."""
    for number, page in enumerate(pages, 1):
        lines: list[str] = []
        for line in page.split("\n"):
            line = line.rstrip()  # noqa: PLW2901 - trailing white space is invisible
            if line:
                lines.append(line)
            elif lines:
                yield Group(lines, number)
                lines = []
        if lines:
            yield Group(lines, number)


def wrap_width(groups: Sequence[Group]) -> int:
    """Return the width at which the text is wrapped.

    It is the 95th percentile of line lengths, ignoring the last line of each group.
    """
    lengths = sorted(len(line) for group in groups for line in group.lines[:-1])
    return lengths[int(len(lengths) * _WIDTH_SHARE)] if lengths else 0


def unwrap(lines: Sequence[str], width: int) -> list[str]:
    """Join lines that a program wrapped at `width`, so that the author's original lines are restored."""
    width = min(width, max(map(len, lines)))
    if len(lines) == 1 or width < _LEAST_WIDTH or _is_verse(lines):
        return [line.strip() for line in lines]
    is_full = [_is_full(line, following, _RAGGED * width) for line, following in pairwise(lines)]
    if is_full.count(False) <= _MOST_UNWRAPPED * len(is_full) and len(is_full) > 1:
        return [join(lines)]
    joined: list[list[str]] = [[lines[0]]]
    for line, follows_full in zip(lines[1:], is_full, strict=True):
        if follows_full and _goes_on(joined[-1][-1], line):
            joined[-1].append(line)
        else:
            joined.append([line])
    return [join(part) for part in joined]


def _is_verse(lines: Sequence[str]) -> bool:
    """Whether nearly every line starts with a capital, as in verse, lists of names and logs."""
    capitals = sum(line.lstrip()[0].isupper() for line in lines)
    return capitals >= max(_LEAST_VERSES, _VERSE_SHARE * len(lines)) and not all(map(str.isupper, lines))


def _is_full(line: str, following: str, width: float) -> bool:
    """Whether the line is full: the first word of the next line would not have fitted on it."""
    word = _FIRST_WORD.match(following)
    return len(line) + 1 + (len(word[1]) if word else 0) >= width


def _goes_on(line: str, following: str) -> bool:
    """Whether the sentence continues on the next line: it has not ended, and the next line starts in lower case."""
    return following.lstrip()[0].islower() and not _ENDS_LINE.search(line)


def join(lines: Sequence[str]) -> str:
    """Join lines with spaces. No space is added between ideographs, or after a hyphen, which may be part of a word."""
    parts: list[str] = []
    for line in map(str.strip, lines):
        if parts and _needs_space(parts[-1], line):
            parts.append(" ")
        parts.append(line)
    return "".join(parts)


def _needs_space(before: str, after: str) -> bool:
    if _HYPHENATED.search(before):
        return False
    return not (_ENDS_WITHOUT_SPACE.search(before) and _BEGINS_WITHOUT_SPACE.match(after))
