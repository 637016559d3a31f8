"""Tables: merged cells stand in every place that they cover, as long as they are short."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from octavo.extract.office.pieces import MOST_REPEATED, Piece, one_line
from octavo.extract.office.xml import Element, attribute, child, name_of

MOST_COLUMNS = 200

Cell = list[Piece]


def read_table(element: Element, read: Callable[[Element], Cell]) -> list[list[Cell]]:
    """`read` reads what is in a cell."""
    grid = _Grid(read)
    return [row for one in _inside(element, "w:tr") if (row := grid.row(one))]


@dataclass(slots=True)
class _Grid:
    """`above`: what the cells of the last row hold, by column, for those that are merged with the next row's."""

    read: Callable[[Element], Cell]
    above: dict[int, Cell] = field(default_factory=dict[int, Cell])

    def row(self, element: Element) -> list[Cell]:
        properties = child(element, "w:trPr")
        if child(properties, "w:del") is not None:
            return []
        cells: list[Cell] = [[] for _ in range(_count(child(properties, "w:gridBefore"), 0))]
        for one in _inside(element, "w:tc"):
            about = child(one, "w:tcPr")
            content = self._content(one, about, len(cells))
            span = _count(child(about, "w:gridSpan"), 1)
            cells.append(content)
            if span > 1:
                cells += [content if len(one_line(content)) <= MOST_REPEATED else []] * (span - 1)
        self.above = dict(enumerate(cells))
        return cells[:MOST_COLUMNS]

    def _content(self, element: Element, about: Element | None, column: int) -> Cell:
        merged = child(about, "w:vMerge")
        is_further = merged is not None and attribute(merged, "w:val") != "restart"
        content = self.read(element)
        if content or not is_further:
            return content
        above = self.above.get(column, [])
        return above if len(one_line(above)) <= MOST_REPEATED else []


def _inside(element: Element, name: str) -> Iterator[Element]:
    """Rows or cells, also those that are wrapped in a content control or an insertion."""
    for one in element:
        if name_of(one) == name:
            yield one
        elif name_of(one) in {"w:sdt", "w:sdtContent", "w:ins", "w:moveTo", "w:customXml"}:
            yield from _inside(one, name)


def _count(element: Element | None, otherwise: int) -> int:
    written = attribute(element, "w:val") or ""
    return min(int(written), MOST_COLUMNS) if written.isdecimal() and len(written) < 7 else otherwise  # noqa: PLR2004
