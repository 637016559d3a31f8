"""Turns the contents of a page into blocks in reading order.

Blocks are body text, text boxes, tables, figures, footnotes, headers and footers.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from octavo.extract.extracted import BlockKind, Box, RegionKind
from octavo.extract.pdf import markup
from octavo.extract.pdf.columns import Columns, Flow, Layout, Stack, find_columns, text_columns
from octavo.extract.pdf.content import PageContent, TextRun
from octavo.extract.pdf.diagrams import with_diagrams, with_plots
from octavo.extract.pdf.doubts import layout_doubts
from octavo.extract.pdf.figures import FigureArea, find_captioned, find_figures, may_show_figures
from octavo.extract.pdf.item_tables import is_figure
from octavo.extract.pdf.label_rows import LabelRows, Terms, find_label_rows, find_terms
from octavo.extract.pdf.letters import clean_letters, has_right_to_left, is_right_to_left, join_lines
from octavo.extract.pdf.lines import (
    Segment,
    box_around,
    frames_of,
    in_logical_order,
    in_right_order,
    is_inside,
    is_inside_any,
    is_monospaced,
    line_numbers,
    lines_of,
    segments_of,
    size_of,
)
from octavo.extract.pdf.page_batches import PageBlock
from octavo.extract.pdf.paragraphs import Part, parts_of, usual_leading
from octavo.extract.pdf.running_headers import NOTE, PAGE_NUMBER, TYPED_RULE, split_edges, with_notes
from octavo.extract.pdf.table_geometry import text_lines
from octavo.extract.pdf.table_rows import Cell, Table, with_currencies
from octavo.extract.pdf.tables import overlaps, page_tables, to_markdown

_UPRIGHT = 5.0  # degrees
_MANY_LINES = 5
_ACROSS, _MOST_RULES = 0.95, 1000  # as a share of the width of the text; shapes
_TINY = 1.5  # points; smaller text cannot be seen
_SURE_FIGURE = 0.75
_LEAST_LEFT = 0.6  # as a share of the height of a picture that overlaps a table
_INSET = 3.0  # points
_LEAST_FRAMED = 60.0
_TITLE_WORDS = 3
_TITLE = 1.15  # as a multiple of the size of the other text
_PLOTTED = frozenset({"chart", "formula"})
_FEW_RULINGS = 2
_FEW_ROWS = 2
_BAND = 8.0  # points; twice the height of a band for a quick search
_LEAST_CELLS = 4  # of a row that is not in a table
_LEAST_FIGURES = 3
_NEXT_IN_BOX = 30.0
_LABEL = 25  # letters
_SHORT_LABEL = 9
_FEW_OVER = 2  # lines of text over an image
_LARGE = 1.3  # as a multiple of the size of the body text; larger lines are titles
_MOST_CHARACTERS = 150
_FAR_OUT = 0.08  # as a share of the page height
_MOST_OF_SMALL = 80
_NEXT_TO_NUMBER = 3.0  # the most space between a section number and its title, as a multiple of the letter size
_MANUAL_PAGE = re.compile(r"(\S+ ?\(\w{1,8}\))\s(?:.*\s)?\1")  # the first line of a manual page, with its name twice
_NUMBER_AT_END = re.compile(r"^\s*\d{1,4}\s|\s\d{1,4}\s*$")
_PAGE_OF_PAGES = re.compile(
    r"(?:page|seite|pagina|página|sida|side|strona|blatt|стр\.)\s*:?\s*\d{1,4}\s*(?:/|of|von|de|van|sur|di|av|z)\s*\d{1,4}",
    re.IGNORECASE,
)
_PAGE_EDGE = 0.12  # as a share of the page height
_STAMP = 3.0  # as a multiple of the size of the other text; larger slanted words are watermarks
_TEXT = frozenset({RegionKind.BODY, RegionKind.BOX})
_NEXT_SENTENCE = re.compile(r"[^\W\d_][.!?]\s+[^\W\d_]")
_LONGEST_SENTENCE = 300  # letters
_TYPED = 0.9  # as a share of the letters of a page
_MOSTLY_TYPED = 0.5
_MOSTLY_PROSE = 0.7
_RULED_TABLE = 0.8  # confidence of tables with drawn lines
_PROMPT = re.compile(r">>> |[>$#] \w|\[1\] |In \[\d+\]:|.*\w<-|[{}]\Z")
_PROGRAM = re.compile(r"[{};]\s*\Z|\w\(\)|\A\s*(?:def|class|import|return|if|for|while)\b.*[:;{]\Z|[=!<>]=|::|->|//")
_LEAST_PROGRAM, _LONG_PROGRAM, _MOSTLY_PROGRAM = 3, 10, 0.7  # lines; lines; share of the lines
_LEAST_TERMS = 5  # pieces of text
_MOST_OF_LABEL = 30  # letters
_FEW_LOST = 6  # letters
_MAIL = re.compile(r"\S@\S+\.\w")
_FEW_AUTHORS, _MOST_AUTHOR_ROWS = 2, 8
_LOST_SHARE = 0.02  # of the letters of a page
_INCOMPLETE = "Some text on this page may be missing."
RightText = Callable[[Box], str]


@dataclass(frozen=True, slots=True)
class PageLayout:
    """The blocks of a page in reading order. `unsure` lists the reasons why the blocks may be wrong."""

    number: int
    width: float
    height: float
    blocks: tuple[PageBlock, ...] = ()
    unsure: tuple[str, ...] = ()


def turn_of(page: PageContent) -> int:
    """Return the rotation, in degrees, that most of the text on a page has: 0, 90, 180 or 270."""
    if not any(run.rotation for run in page.runs):
        return 0
    letters: Counter[int] = Counter()
    for run in page.runs:
        letters[round(run.rotation / 90) % 4 * 90] += len(run.text)
    return letters.most_common(1)[0][0] if letters else 0


def lay_out(page: PageContent, images: Sequence[Box] = (), right_text: RightText | None = None) -> PageLayout:
    """Arrange the contents of a page into blocks in reading order.

    `right_text` is a function that takes a box and returns the text inside it in reading order.
    """
    upright = page.runs
    turned = [run for run in page.runs if run.rotation and not _is_upright(run)]
    if turned:
        upright = tuple(run for run in page.runs if _is_upright(run))
        page = replace(page, runs=upright)
    aside = [group for group in (_tiny(page.runs), line_numbers(page.runs), _watermarks(page.runs)) if group]
    if aside:
        page = replace(page, runs=tuple(run for run in page.runs if not any(run in group for group in aside)))
    angled = [run.box for run in turned]
    areas = find_figures(page, images, angled) if may_show_figures(page, images) else ()
    areas = with_plots(page, areas, angled)
    maker = _PageMaker(page, right_text)
    tables = maker.without_authors(maker.without_listings(maker.tables(areas)))
    maker.read_typed_text(has_tables=bool(tables))
    boxes = [table.box for table in tables]
    areas = with_diagrams(page, areas, boxes)
    areas = tuple(part for area in areas if (part := _beside_tables(area, boxes)))
    if may_show_figures(page, images):
        pictures = [area.box for area in areas if area.kind != "formula"]
        captioned = tuple(find_captioned(page, images, [*boxes, *pictures]))
        areas = (*(area for area in areas if not is_inside_any(area.box, [one.box for one in captioned])), *captioned)
    parts = maker.parts(tables, areas)
    parts += [
        part for run in turned if not is_inside_any(run.box, [area.box for area in areas]) for part in _aside(run, page)
    ]
    blocks = tuple(part.block for part in parts if part.block.text or part.block.figure)
    blocks += tuple(map(_beside_text, aside))
    doubts = tuple(layout_doubts(page, tables, blocks, misses_rows=maker.misses_rows(tables, areas)))
    if maker.misses_letters(blocks, areas):
        doubts = (*doubts, _INCOMPLETE)
    return PageLayout(page.number, page.width, page.height, blocks, doubts)


def _tiny(runs: Sequence[TextRun]) -> list[TextRun]:
    return [run for run in runs if run.box.bottom - run.box.top < _TINY]


def _watermarks(runs: Sequence[TextRun]) -> list[TextRun]:
    """Find watermarks: very large words that are printed across several lines of text."""
    height = median(run.box.bottom - run.box.top for run in runs) if runs else 0.0
    large = [run for run in runs if run.box.bottom - run.box.top > _MANY_LINES * height]
    return [run for run in large if sum(is_inside(one.box, run.box) for one in runs if one is not run) > _MANY_LINES]


def _beside_text(aside: Sequence[TextRun]) -> PageBlock:
    """Combine the line numbers, watermarks or tiny letters of a page into a block that is left out of the Markdown."""
    text, box = " ".join(run.text.strip() for run in aside), box_around([run.box for run in aside])
    return PageBlock(BlockKind.PARAGRAPH, text, box, aside[0].size, region=RegionKind.HEADER, confidence=0.8)


def _beside_tables(area: FigureArea, tables: Sequence[Box]) -> FigureArea | None:
    """Cut a picture so that it no longer overlaps any table.

    Returns the part above or below the tables. Returns None if too little of the picture remains.
    """
    left, top, right, bottom = area.box
    for table in (one for one in tables if overlaps(area.box, one)):
        if table.top + table.bottom < top + bottom:
            top = max(top, table.bottom + 1)
        else:
            bottom = min(bottom, table.top - 1)
    if (bottom - top) < _LEAST_LEFT * (area.box.bottom - area.box.top):
        return None
    return replace(area, box=Box(left, top, right, bottom))


def _is_plain(block: PageBlock) -> bool:
    """Whether a block is body text, or a line with wide gaps between its words, as in many headers and footers."""
    return block.region is RegionKind.BODY or (block.region, block.kind) == (RegionKind.TABLE, BlockKind.PARAGRAPH)


def _is_upright(run: TextRun) -> bool:
    return abs((run.rotation + 180) % 360 - 180) <= _UPRIGHT


class _PageMaker:
    """Arranges the contents of a page into blocks.

    First measures the line spacing and the font size of the body text.
    """

    def __init__(self, page: PageContent, right_text: RightText | None) -> None:
        self._page = page
        self._right_text = right_text
        self._segments = segments_of(page.runs)
        self._backwards = is_right_to_left("".join(one.text for one in self._segments))
        self._body = size_of(self._segments)
        self._leading = usual_leading(self._segments)
        self._authors: list[Segment] = []

    def tables(self, areas: Sequence[FigureArea]) -> list[Table]:
        if not self._may_have_tables():
            return []
        pictures = [area.box for area in areas if area.confidence >= _SURE_FIGURE and area.kind != "formula"]
        return [
            with_currencies(table)
            for table in page_tables(self._page, pictures, self._text_columns, has_cells=self._has_cells())
        ]

    def without_listings(self, tables: list[Table]) -> list[Table]:
        """Remove tables that are really program output: their text is monospaced, and they have no drawn lines.

        The tables are kept if most of the page is monospaced and contains no prompt such as `>>>`, because the page is
        then probably a typewritten document.
        """
        loose = [table for table in tables if table.confidence < _RULED_TABLE]
        typed = sum(len(one.text) for one in self._segments if one.mono) if loose else 0
        is_prose = typed < _MOSTLY_PROSE * sum(len(one.text) for one in self._segments)
        if not typed or not (is_prose or any(_PROMPT.match(one.text) for one in self._segments if one.mono)):
            return tables
        listings = [table for table in loose if self._is_typed(table.box)]
        return [table for table in tables if table not in listings]

    def without_authors(self, tables: list[Table]) -> list[Table]:
        """Remove tables that consist of authors side by side. Each author becomes a separate block."""
        kept: list[Table] = []
        for table in tables:
            authors = [Box(*author) for author in _author_boxes(table)] if table.confidence < _RULED_TABLE else []
            texts = [[one for one in self._segments if is_inside(one, box)] for box in authors]
            if len(texts) > 1 and all(texts):
                parts = tuple(part for text in texts for part in self._author(text))
                self._authors.append(Segment(*table.box, size=self._body, block=parts))
            else:
                kept.append(table)
        return kept

    def _author(self, segments: Sequence[Segment]) -> Iterator[Part]:
        lines = lines_of(segments)
        text = "\n".join(markup.plain(line.text) for line in lines)
        block = PageBlock(BlockKind.PARAGRAPH, text, box_around(lines), size_of(lines), lines=len(lines))
        yield Part(block, tuple(mark for line in lines for mark in line.marks))

    def _is_typed(self, box: Box) -> bool:
        inside = [one for one in self._segments if is_inside(one, box)]
        return sum(len(one.text) for one in inside if one.mono) > _TYPED * sum(len(one.text) for one in inside)

    def _text_columns(self) -> list[tuple[Box, ...]]:
        return list(text_columns(find_columns(self._segments, backwards=self._backwards)))

    def _may_have_tables(self) -> bool:
        """Quickly check whether the page may contain tables.

        Pages of prose have few drawn lines and few wide gaps between words.
        """
        if len(self._page.lines) + len(self._page.shapes) > _FEW_RULINGS:
            return True
        rows = Counter(round(one.bottom / 3) for one in self._segments)
        return sum(count > 1 for count in rows.values()) > _FEW_ROWS

    def _has_cells(self) -> bool:
        """Quickly check whether a line of the page has several wide gaps, like the header of a table."""
        rows: defaultdict[int, list[Segment]] = defaultdict(list)
        for one in self._segments:
            place = round((one.top + one.bottom) / _BAND)
            rows[place].append(one)
            rows[place + 1].append(one)
        level = (sorted(row) for row in rows.values() if len(row) >= _LEAST_FIGURES)
        return any(
            sum(other.left - one.right > one.size / 2 for one, other in pairwise(row)) >= _FEW_ROWS for row in level
        )

    def read_typed_text(self, *, has_tables: bool) -> None:
        """Treat the monospaced text of a page as ordinary text if most of the page is monospaced, but is not a program.

        Such a page contains tables or many sentences.
        """
        typed = sum(len(one.text) for one in self._segments if one.mono)
        least = _MOSTLY_TYPED if has_tables else _TYPED
        if not typed or typed <= least * sum(len(one.text) for one in self._segments):
            return
        sentences = len(_NEXT_SENTENCE.findall(" ".join(one.text for one in self._segments)))
        is_program = any(_PROGRAM.search(one.text) for one in self._segments)
        if not is_program and (has_tables or typed < _LONGEST_SENTENCE * sentences):
            self._segments = [one._replace(mono=False) for one in self._segments]

    def parts(self, tables: Sequence[Table], areas: Sequence[FigureArea]) -> list[Part]:
        taken = [table.box for table in tables] + [area.box for area in areas if self._holds_text(area)]
        authors = [Box(*one[:4]) for one in self._authors]
        labels = list(self._label_rows([*taken, *authors])) if self._may_have_labels() else []
        inside = [[one for one in self._segments if is_inside(one, box)] for box in taken]
        others = [*taken, *authors, *(one.box for one in labels)]
        free = [one for one in self._segments if not is_inside_any(one, others)] + self._authors
        if not frames_of(self._page, free):
            free = _with_code(free, least=_LONG_PROGRAM, share=_MOSTLY_PROGRAM)
        formulas = [area.box for area in areas if area.kind == "formula"]
        pictured = (one for part in inside[len(tables) :] for one in part if not is_inside_any(one, formulas))
        free += self._titles(list(pictured), free)
        free += self._left_out(tables, labels)
        made = [
            _table_part(table, self._right_text, size_of(text)) for table, text in zip(tables, inside, strict=False)
        ]
        made += [_label_part(one) for one in labels]
        texts = dict(zip(taken, inside, strict=True))
        made += [_figure_part(area, texts.get(area.box, [])) for area in areas]
        free += [_placed(part, part.block.box) for part in made if part.block.box]
        frames = frames_of(self._page, free)
        layouts = [
            (box, find_columns(_with_code([one for one in free if is_inside(one, box)]), backwards=self._backwards))
            for box in frames
        ]
        outside = [one for one in free if not is_inside_any(one, frames)]
        boxed = [Segment(*box, size=self._body, block=tuple(self._boxed(layout, box))) for box, layout in layouts]
        head, free, foot = split_edges([*outside, *boxed], self._page.height)
        parts = [part for layout in self._layouts(free) for part in self._build(layout)]
        top, bottom = (self._build(Flow(tuple(edge))) for edge in (head, foot))
        return [
            *self._as_edges(top, RegionKind.HEADER, head),
            *with_notes(
                [*map(self._as_page_number, parts), *self._as_edges(bottom, RegionKind.FOOTER, foot)], self._body
            ),
        ]

    def _as_page_number(self, part: Part) -> Part:
        """Mark a page number such as "Page 2/3" as a header or footer if it is near the upper or lower edge of the
        page.
        """
        block, height = part.block, self._page.height
        if block.box is None or block.region is not RegionKind.BODY or not _PAGE_OF_PAGES.fullmatch(block.text):
            return part
        if _PAGE_EDGE * height < block.box.top < (1 - _PAGE_EDGE) * height:
            return part
        kind = RegionKind.HEADER if block.box.top < height / 2 else RegionKind.FOOTER
        return part._replace(block=replace(block, region=kind, confidence=0.8))

    def _layouts(self, segments: Sequence[Segment]) -> Iterator[Layout]:
        """Divide the text of a page into columns. A title above the columns comes before them."""
        layout = find_columns(segments, backwards=self._backwards)
        bands = self._between_rules(segments) if not isinstance(layout, Flow) else []
        if len(bands) > 1:
            for band in bands:
                yield from self._layouts(band)
            return
        first = layout.parts[0] if isinstance(layout, Stack) else layout
        title, rest = self._split_title(segments) if isinstance(first, Columns) else ([], [])
        if not title or not rest:
            yield layout
            return
        yield Flow(tuple(title))
        yield find_columns(rest, backwards=self._backwards)

    def _between_rules(self, segments: Sequence[Segment]) -> list[list[Segment]]:
        """Divide text at the lines that are drawn across all columns, because no column continues below such a line."""
        left, right = min(one.left for one in segments), max(one.right for one in segments)
        drawn = [*self._page.lines, *(shape.box for shape in self._page.shapes[:_MOST_RULES] if shape.is_ruling)]
        wide = {round(one.top) for one in drawn if one.right - one.left > _ACROSS * (right - left)}
        cuts = sorted(at for at in wide if not any(one.top < at < one.bottom for one in segments))
        bands: list[list[Segment]] = [[] for _ in range(len(cuts) + 1)]
        for one in segments:
            bands[bisect_right(cuts, one.top)].append(one)
        return [band for band in bands if band]

    def _split_title(self, segments: Sequence[Segment]) -> tuple[list[Segment], list[Segment]]:
        """Split off a title in large letters that is above all other text, because it belongs to no column."""
        large = [one for one in segments if one.block is None and one.size >= _LARGE * self._body > 0]
        top = min((one.top for one in segments if one not in large), default=0.0)
        title = sorted(one for one in large if one.bottom <= top + _INSET)
        is_long = sum(len(one.text) for one in title) > _MOST_CHARACTERS
        if not title or is_long or any(other.left - one.right > one.size / 2 for one, other in pairwise(title)):
            return [], list(segments)
        return title, [one for one in segments if one not in title]

    def _titles(self, inside: Sequence[Segment], outside: Sequence[Segment]) -> list[Segment]:
        """Find the titles inside pictures, which stay in the text of the page.

        A title consists of several words in larger letters than the other text.
        """
        least = _TITLE * size_of(outside or self._segments)
        large = [one for one in inside if one.size >= least and len(one.text.split()) >= _TITLE_WORDS]
        return list(dict.fromkeys(large))

    def misses_letters(self, blocks: Sequence[PageBlock], areas: Sequence[FigureArea]) -> bool:
        """Whether a significant part of the page's text is missing from both the blocks and the pictures."""
        pictures = [area.box for area in areas]
        wanted = letters_in("".join(one.text for one in self._segments if not is_inside_any(one, pictures)))
        lost = wanted - letters_in("".join(block.text for block in blocks))
        return lost.total() > max(_FEW_LOST, _LOST_SHARE * wanted.total())

    def misses_rows(self, tables: Sequence[Table], areas: Sequence[FigureArea]) -> bool:
        """Whether a table was probably missed, because a line outside the tables and pictures looks like a row of
        numbers.
        """
        level = Counter(round(one.bottom / 3) for one in self._segments)
        if max(level.values(), default=0) < _LEAST_CELLS:
            return False
        taken = [*(table.box for table in tables), *(area.box for area in areas)]
        runs = (run for run in self._page.runs if not is_monospaced(run.font))
        words = [word for run in runs for word in run.words if not is_inside_any(word, taken)]
        lines = (line for line in text_lines(words) if len(line) >= _LEAST_CELLS)
        return any(sum(is_figure(part.text) for part in line) >= _LEAST_FIGURES for line in lines)

    def _left_out(self, tables: Sequence[Table], labels: Sequence[LabelRows]) -> Iterator[Segment]:
        """Find text that is printed inside a table or a list of labels and values, but is missing from the extracted
        text.
        """
        texts = [(one.box, " ".join(cell.text for row in one.rows for cell in row)) for one in tables]
        for box, text in [*texts, *((one.box, " ".join(one.texts)) for one in labels)]:
            inside = [one for one in self._segments if is_inside(one, box)]
            lost = letters_in("".join(one.text for one in inside)) - letters_in(text)
            if lost.total() < _FEW_LOST:
                continue
            words = set(text.split())
            yield from (
                one for one in inside if 2 * sum(word in words for word in one.text.split()) < one.text.count(" ") + 1
            )

    def _label_rows(self, taken: Sequence[Box]) -> Iterator[LabelRows]:
        return find_label_rows(self._page, taken, reads_code=not any(one.mono for one in self._segments))

    def _may_have_labels(self) -> bool:
        return not self._backwards and sum(one.text.endswith((":", "\uff1a")) for one in self._segments) > 1

    def _holds_text(self, area: FigureArea) -> bool:
        """Whether the text in an area belongs to the picture, and is not just printed over it.

        One or two lines are probably a title over the white edge of an image, and stay in the text.
        """
        if area.confidence < _SURE_FIGURE or area.kind in _PLOTTED or area.framed:
            return area.confidence >= _SURE_FIGURE
        inside = [one.text for one in self._segments if is_inside(one, area.box)]
        most = _LABEL if len(inside) > _FEW_OVER else _SHORT_LABEL
        return not any(len(text) > most for text in inside)

    def _boxed(self, layout: Layout, box: Box) -> Iterator[Part]:
        for part in self._build(layout):
            is_text = part.block.region in {RegionKind.BODY, RegionKind.LIST} and part.block.kind is not BlockKind.CODE
            block = replace(part.block, region=RegionKind.BOX) if is_text else part.block
            yield part._replace(block=block, anchor=box.top)

    def _build(self, layout: Layout) -> list[Part]:
        if isinstance(layout, Flow):
            lines = lines_of(self._with_terms(layout.segments), self._right_text)
            return parts_of(lines, self._leading, backwards=self._backwards)
        if not isinstance(layout, Columns):
            return [part for one in layout.parts for part in self._build(one)]
        parts = [part for one in layout.columns for part in self._build(one)]
        beside = [part for one in layout.beside for part in self._build(one)]
        if not layout.leading:
            return _insert(parts, _as_one([_as_box(part) for part in beside]), before=False)
        # Labels can be monospaced, and would then be one block of code.
        labels = [part for one in layout.beside for part in self._build(_as_text(one))]
        labelled, left = _with_labels(parts, labels)
        return _insert(labelled, left, before=True) if not left else _insert(parts, beside, before=True)

    def _with_terms(self, segments: Sequence[Segment]) -> Sequence[Segment]:
        """Replace terms, and the definitions beside them, with placeholders, so that each pair is read together."""
        found = list(find_terms(segments)) if len(segments) > _LEAST_TERMS and not self._backwards else []
        if not found:
            return segments
        taken = {one for terms in found for one in terms.segments}
        parts = [_term_parts(terms) for terms in found]
        placed = (Segment(*box_around([part.block.box for part in one if part.block.box]), block=one) for one in parts)
        return [*(one for one in segments if one not in taken), *placed]

    def _as_edges(self, parts: Sequence[Part], kind: RegionKind, segments: Sequence[Segment]) -> list[Part]:
        """Mark blocks as headers or footers.

        At the top of the page, small lines below a title in large letters are not marked.
        """
        made: list[Part] = []
        for part in parts:
            large = (one.block.region is RegionKind.BODY and one.block.size > _LARGE * self._body for one in made)
            titled = kind is RegionKind.HEADER and any(large)
            made.append(self._as_edge(part, kind, segments, titled=titled))
        return made

    def _as_edge(self, part: Part, kind: RegionKind, segments: Sequence[Segment], *, titled: bool) -> Part:
        block = part.block
        if part.note or not _is_plain(block) or block.lines > 2 or len(block.text) > _MOST_CHARACTERS:  # noqa: PLR2004
            return part
        if self._body and block.size > _LARGE * self._body:
            return part
        text = block.text
        level = [one for one in segments if block.box and block.box.top - 2 <= one.top <= block.box.bottom]
        gaps = (other.left - one.right for one, other in pairwise(sorted(level)))
        is_close = kind is RegionKind.HEADER and max(gaps, default=0.0) < _NEXT_TO_NUMBER * block.size
        is_heading = is_close and block.bold and block.size >= _TITLE * self._body
        numbered = len(level) > block.lines and _NUMBER_AT_END.search(text) is not None and not is_heading
        small = not titled and block.size < 0.9 * self._body and self._is_far_out(block) and not NOTE.match(text)
        ruled = any(TYPED_RULE.fullmatch(one.text) for one in segments)
        if PAGE_NUMBER.fullmatch(text) or numbered or small or ruled or _MANUAL_PAGE.fullmatch(text):
            return part._replace(block=replace(block, region=kind, confidence=0.8))
        return part

    def _is_far_out(self, block: PageBlock) -> bool:
        """Whether a block is a short line without a full stop, close to the upper or lower edge of the page."""
        if block.box is None or block.lines > 1 or len(block.text) > _MOST_OF_SMALL or block.text.endswith("."):
            return False
        height = self._page.height
        return block.box.bottom < _FAR_OUT * height or block.box.top > (1 - _FAR_OUT) * height


def _as_text(layout: Layout) -> Layout:
    """Treat the labels of a narrow column as ordinary text, even if they are monospaced."""
    if not isinstance(layout, Flow):
        return layout
    return Flow(tuple(one._replace(mono=False) for one in layout.segments))


def _with_code(boxed: list[Segment], least: int = _LEAST_PROGRAM, share: float = 0.5) -> list[Segment]:
    """Treat the text of a frame as code, in any font, if most of its lines look like a program."""
    lines = lines_of([one for one in boxed if one.block is None])
    program = sum(_PROGRAM.search(line.text) is not None for line in lines)
    if program < least or program <= share * len(lines):
        return boxed
    return [one._replace(mono=True) for one in boxed]


def _placed(part: Part, box: Box) -> Segment:
    """Make a placeholder for a finished block, such as a table, so that it can be sorted into columns like text.

    The placeholder is slightly narrower than the block, because frames can extend into the gap between columns.
    """
    inset = _INSET if box.right - box.left > _LEAST_FRAMED else 0.0
    return Segment(box.left + inset, box.top, box.right - inset, box.bottom, block=(part,))


def letters_in(text: str) -> Counter[str]:
    found = Counter(text.casefold())
    return Counter({letter: count for letter, count in found.items() if letter.isalnum()})


def _as_box(part: Part) -> Part:
    if part.block.region in {RegionKind.BODY, RegionKind.LIST}:
        return part._replace(block=replace(part.block, region=RegionKind.BOX))
    return part


def _as_one(beside: Sequence[Part]) -> list[Part]:
    """Mark the blocks of a side column that are kept together.

    These are several blocks that are close to each other, if one of them is a table or picture. Other blocks, such as
    notes in the margin, stay beside their paragraphs.
    """
    groups: list[list[Part]] = []
    for part in beside:
        before = groups[-1][-1].block.box if groups else None
        is_near = before and part.block.box and -_NEXT_IN_BOX < part.block.box.top - before.bottom < _NEXT_IN_BOX
        groups = [*groups[:-1], [*groups[-1], part]] if is_near else [*groups, [part]]
    made: list[Part] = []
    for group in groups:
        is_box = any(part.block.kind is BlockKind.TABLE or part.block.figure for part in group)
        top = group[0].block.box.top if group[0].block.box and is_box and len(group) > _FEW_ROWS else None
        made += [part if top is None or part.anchor is not None else part._replace(anchor=top) for part in group]
    return made


def _with_labels(parts: Sequence[Part], beside: Sequence[Part]) -> tuple[list[Part], list[Part]]:
    """Join the labels of a narrow column with the paragraphs beside them, such as "[3]" with a reference.

    Returns the paragraphs, and the remaining blocks of the narrow column. If any label has no paragraph that begins
    beside it, no labels are joined, because the column is probably not a list of labels.
    """
    tops = {round(part.block.box.top / 3): place for place, part in enumerate(parts) if part.block.box}
    labelled: dict[int, Part] = {}
    for label in beside:
        box = label.block.box
        near = (tops[at] for step in (0, -1, 1) if box and (at := round(box.top / 3) + step) in tops)
        place = next(near, None)
        if place is None or place in labelled or not _is_definition(label.block, parts[place].block):
            return list(parts), list(beside)
        labelled[place] = label
    return [_labelled(labelled.get(place), part) for place, part in enumerate(parts)], []


def _is_definition(label: PageBlock, block: PageBlock) -> bool:
    is_text = label.kind is block.kind is BlockKind.PARAGRAPH and block.region is RegionKind.BODY
    return is_text and label.lines == 1 and len(label.text) <= _MOST_OF_LABEL and label.region is RegionKind.BODY


def _labelled(label: Part | None, part: Part) -> Part:
    if label is None or label.block.box is None or part.block.box is None:
        return part
    box = box_around([label.block.box, part.block.box])
    text = f"{label.block.text} {part.block.text}"
    return part._replace(block=replace(part.block, text=text, box=box), marks=(*label.marks, *part.marks))


def _insert(parts: Sequence[Part], beside: Sequence[Part], *, before: bool) -> list[Part]:
    """Insert each block of a narrow column before or after the main block at the same height.

    The blocks of a text box stay together.
    """
    waiting: dict[int, list[Part]] = {}
    for part in beside:
        top = part.anchor if part.anchor is not None else part.block.box.top if part.block.box else 0.0
        waiting.setdefault(_place(parts, top, before=before), []).append(part)
    placed: list[Part] = []
    for index in range(len(parts) + 1):
        placed += waiting.get(index, ())
        placed += parts[index : index + 1]
    return placed


def _place(parts: Sequence[Part], top: float, *, before: bool) -> int:
    for index, part in enumerate(parts):
        box = part.block.box
        if box and box.bottom > top + 2:
            return index if before or box.top > top + 12 else index + 1
    return len(parts)


def _table_part(table: Table, right_text: RightText | None, size: float) -> Part:
    if any(has_right_to_left(cell.text) for row in table.rows for cell in row):
        table = replace(table, rows=tuple(tuple(_right_cell(cell, right_text) for cell in row) for row in table.rows))
    text = to_markdown(table)
    box = Box(*(round(side, 1) for side in table.box))
    block = PageBlock(BlockKind.TABLE, text, box, size, region=RegionKind.TABLE, confidence=round(table.confidence, 2))
    return Part(block)


def _label_part(rows: LabelRows) -> Part:
    text = "\n".join(markup.plain(clean_letters(text)) for text in rows.texts)
    box = Box(*(round(side, 1) for side in rows.box))
    return Part(PageBlock(BlockKind.PARAGRAPH, text, box, round(rows.height, 1), lines=len(rows.texts)))


def _term_parts(terms: Terms) -> tuple[Part, ...]:
    """Make a paragraph from each term and its definition.

    If most definitions have a single line, all terms become one paragraph.
    """
    entries = [[lines_of(row)[0] for row in entry] for entry in terms.entries]
    rows = sum(map(len, entries))
    groups = [[entry] for entry in entries] if 2 * rows > 3 * len(entries) else [entries]
    parts: list[Part] = []
    for group in groups:
        lines = [line for entry in group for line in entry]
        text = "\n".join(markup.plain(join_lines([line.text for line in entry])) for entry in group)
        block = PageBlock(BlockKind.PARAGRAPH, text, box_around(lines), size_of(lines), lines=len(lines))
        parts.append(Part(block, tuple(mark for line in lines for mark in line.marks)))
    return tuple(parts)


def _author_boxes(table: Table) -> Iterator[tuple[float, float, float, float]]:
    """Yield the area of each author if the table consists of authors and their addresses.

    In such a table, several cells of a row contain an email address, and no cell with text covers several columns.
    """
    columns: defaultdict[int, list[Cell]] = defaultdict(list)
    for row in table.rows:
        left = 0
        for cell in row:
            columns[left].append(cell)
            left += cell.columns
    mails = max(sum(_MAIL.search(cell.text) is not None for cell in row) for row in table.rows)
    is_wide = any(cell.columns > 1 and cell.text for row in table.rows for cell in row)
    if mails < max(_FEW_AUTHORS, len(columns) / 2) or len(table.rows) > _MOST_AUTHOR_ROWS or is_wide:
        return
    for cells in columns.values():
        boxes = [cell.box for cell in cells if cell.box]
        if boxes:
            whole = box_around(boxes)
            yield whole.left - _INSET, table.box.top - _INSET, whole.right + _INSET, table.box.bottom + _INSET


def _right_cell(cell: Cell, right_text: RightText | None) -> Cell:
    if cell.box is None or not has_right_to_left(cell.text):
        return cell
    return replace(cell, text=in_right_order(in_logical_order(cell.text.split()), cell.box, right_text))


def _figure_part(area: FigureArea, inside: Sequence[Segment]) -> Part:
    kind = RegionKind.FORMULA if area.kind == "formula" else RegionKind.FIGURE
    text = clean_letters(" ".join(one.text for one in inside))[:300] if area.kind == "formula" else ""
    box = Box(*(round(side, 1) for side in area.box))
    block = PageBlock(BlockKind.IMAGE, text, box, region=kind, confidence=round(area.confidence, 2), figure=area.kind)
    return Part(block)


def _aside(run: TextRun, page: PageContent) -> Iterator[Part]:
    """Make a block from text that is printed sideways or slanted on a page of upright text.

    It becomes a header if it is at the left or right edge of the page, or if it is very large slanted text, such as a
    stamp.
    """
    text = markup.plain(" ".join(clean_letters(run.text).split()))
    at_edge = run.box.right < 0.1 * page.width or run.box.left > 0.9 * page.width
    is_slanted = abs(run.rotation % 90 - 45) < 45 - 2 * _UPRIGHT
    at_edge = at_edge or (
        is_slanted and run.size > _STAMP * max(median([one.size for one in page.runs] or [run.size]), 1.0)
    )
    box = Box(*(round(side, 1) for side in run.box))
    region = RegionKind.HEADER if at_edge else RegionKind.BOX
    yield Part(PageBlock(BlockKind.PARAGRAPH, text, box, run.size, region=region, confidence=0.6))
