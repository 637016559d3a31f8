"""Divides the text of a document into windows of at most twenty pages, and finds its headings and link definitions.

The same text always has the same windows. A window starts where a block starts. A block that is too large to render,
such as a table of a million cells, is split into separate windows that show its Markdown source.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from octavo.extract.extracted import Block, BlockKind
from octavo.extract.markdown import read_blocks, read_front_matter
from octavo.web.markdown.render import References, read_references

PAGES = 20
CHARACTERS = 60_000
CHARACTERS_OF_PAGES = 150_000
LARGE_BLOCK = 100_000
MOST_DEFINITIONS = 60_000
_DEFINES = frozenset({BlockKind.PARAGRAPH, BlockKind.QUOTE, BlockKind.LIST})


@dataclass(frozen=True, slots=True)
class Sheet:
    """A page of the document. `start` is where its text begins in the Markdown; sizes are in points.

    `bookmarks` are the entries of the file's table of contents that start on this page and are not headings of the
    text. `unsure` is the reason why the text of the page may be wrong.
    """

    number: int
    label: str | None
    start: int
    end: int
    width: float | None = None
    height: float | None = None
    bookmarks: Sequence[tuple[int, str]] = ()
    unsure: str | None = None

    @property
    def is_empty(self) -> bool:
        return self.start == self.end


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading in the outline. `number` is its position among the headings of the text, counted from 1.

    `number` is None if the heading is only in the file's table of contents.
    """

    number: int | None
    level: int
    title: str
    start: int
    page: int | None


@dataclass(frozen=True, slots=True)
class Window:
    """A section of the text that is loaded in one request.

    If `plain` is true, the Markdown source is shown instead of rendered Markdown.
    """

    number: int
    start: int
    end: int
    plain: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """How a text is divided into windows (sections that are loaded one at a time).

    `places` contains the position of the first block of each page.
    """

    windows: tuple[Window, ...]
    headings: tuple[Heading, ...]
    sheets: tuple[Sheet, ...]
    places: tuple[int, ...]
    references: References
    front_end: int

    @property
    def outline(self) -> list[Heading]:
        """The headings in the text, and entries of the file's table of contents that are not headings in the text."""
        beside = [
            Heading(None, level, title, place, sheet.number)
            for place, sheet in zip(self.places, self.sheets, strict=True)
            for level, title in sheet.bookmarks
        ]
        return sorted([*beside, *self.headings], key=lambda one: one.start)

    def window_at(self, position: int) -> Window:
        """Return the window (section) that contains the character at `position`, or the nearest window."""
        place = bisect_right([window.start for window in self.windows], position) - 1
        return self.windows[max(place, 0)]

    def window_of_page(self, number: int) -> Window:
        place = bisect_left([sheet.number for sheet in self.sheets], number)
        return self.window_at(self.places[min(place, len(self.places) - 1)]) if self.places else self.windows[0]

    def sheet_of(self, number: int) -> Sheet | None:
        place = bisect_left(self.sheets, number, key=lambda sheet: sheet.number)
        return self.sheets[place] if place < len(self.sheets) and self.sheets[place].number == number else None

    def breaks_in(self, window: Window) -> list[tuple[int, Sheet]]:
        """Return the page breaks in a window. The last window also has the page breaks after the end of the text."""
        first = bisect_left(self.places, window.start)
        is_last = window.number == len(self.windows)
        last = len(self.places) if is_last else bisect_left(self.places, window.end)
        return list(zip(self.places[first:last], self.sheets[first:last], strict=True))

    def page_at(self, position: int) -> int | None:
        place = bisect_right(self.places, position)
        return self.sheets[max(place - 1, 0)].number if self.sheets else None


def make_plan(markdown: str, sheets: Sequence[Sheet] = ()) -> Plan:
    front = read_front_matter(markdown)
    front_end = front.end if front else 0
    blocks = list(read_blocks(markdown, front_end))
    starts = [block.start for block in blocks]
    places = tuple(_place(starts, sheet, len(markdown)) for sheet in sheets)
    plan = Plan((), (), tuple(sheets), places, {}, front_end)
    return Plan(
        windows=tuple(_windows(markdown, blocks, places)),
        headings=tuple(_headings(blocks, plan)),
        sheets=plan.sheets,
        places=places,
        references=read_references(list(_definitions(markdown, blocks))),
        front_end=front_end,
    )


def _place(starts: Sequence[int], sheet: Sheet, length: int) -> int:
    place = bisect_left(starts, sheet.start)
    return starts[place] if place < len(starts) else length


def _windows(markdown: str, blocks: Sequence[Block], places: Sequence[int]) -> Iterator[Window]:
    cuts = _cuts(markdown, blocks, places)
    ends = [start for start, _ in cuts[1:]] + [len(markdown)]
    for number, ((start, plain), end) in enumerate(zip(cuts, ends, strict=True), 1):
        yield Window(number, start, end, plain)


def _cuts(markdown: str, blocks: Sequence[Block], places: Sequence[int]) -> list[tuple[int, bool]]:
    """Decide where each window (section of the text) starts.

    Returns the start positions. Each comes with a flag that is true if the window shows the unrendered Markdown source.
    """
    longest = CHARACTERS_OF_PAGES if places else CHARACTERS
    cuts: list[tuple[int, bool]] = []
    begun = 0
    for block in blocks:
        twenty = max(bisect_right(places, block.start) - 1, 0) // PAGES
        if block.end - block.start > LARGE_BLOCK:
            cuts += [(start, True) for start in _window_starts(markdown, block)]
        elif not cuts or cuts[-1][1] or twenty != begun or block.end - cuts[-1][0] > longest:
            cuts.append((block.start, False))
        begun = twenty
    return [(0, cuts[0][1]), *cuts[1:]] if cuts else [(0, False)]


def _window_starts(markdown: str, block: Block) -> Iterator[int]:
    """Yield the start positions of the windows of a large block. If possible, a window starts after a line break or
    space.
    """
    start = block.start
    while start < block.end:
        yield start
        wanted = start + CHARACTERS
        if wanted >= block.end:
            return
        breaks = (markdown.rfind(mark, start, wanted) + 1 for mark in "\n ")
        start = next((place for place in breaks if place > start), wanted)


def _headings(blocks: Sequence[Block], plan: Plan) -> Iterator[Heading]:
    number = 0
    for block in blocks:
        if block.kind is BlockKind.HEADING and block.text:
            number += 1
            yield Heading(number, block.level or 1, block.text, block.start, plan.page_at(block.start))


def _definitions(markdown: str, blocks: Sequence[Block]) -> Iterator[str]:
    """Yield the Markdown of blocks that may contain link definitions, up to `MOST_DEFINITIONS` characters in total."""
    left = MOST_DEFINITIONS
    for block in blocks:
        length = block.end - block.start
        if block.kind in _DEFINES and length <= left and "]:" in markdown[block.start : block.end]:
            left -= length
            yield markdown[block.start : block.end]
