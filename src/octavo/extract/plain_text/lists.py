"""Reads lists in plain text: bullets, and consecutive numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from octavo.extract.markdown.escape import escape
from octavo.extract.plain_text.groups import Group, unwrap

_ITEM = re.compile(r"([ \t]*)(?:([-*+•‣◦▪●·\u2013])|(\d{1,3})([.)]))[ \t]+(?=\S)")


@dataclass(slots=True)
class Item:
    """A list item.

    `number` is None for a bullet. In `lines`, spaces replace the marker, so that lines keep their length.
    """

    indent: int
    number: int | None
    sign: str
    lines: list[str] = field(default_factory=list[str])

    @property
    def mark(self) -> str:
        return "-" if self.number is None else f"{self.number}{self.sign}"


def read_items(lines: Sequence[str]) -> list[Item]:
    """Read list items; none if the first line does not start an item.

    A line without a marker continues the item before it.
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
    """The index of the first line with a list marker."""
    return next((place for place, line in enumerate(lines) if _ITEM.match(line)), None)


def is_list(items: Sequence[Item], neighbours: Sequence[Group]) -> bool:
    """Whether the items form a list that Markdown would number in the same way.

    A single item is a list only if a neighbouring group continues it.
    """
    outer = [item for item in items if item.indent <= items[0].indent] if items else []
    if not outer or any(item.sign != outer[0].sign for item in outer) or not _counts_up(items):
        return False
    return len(items) > 1 or any(_continues(outer[0], group) for group in neighbours)


def _counts_up(items: Sequence[Item]) -> bool:
    """Whether the numbers are consecutive. Markdown renumbers list items, so other numbers would be lost."""
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
    """Whether Markdown would add the item to the list before it and give it a wrong number."""
    return item.number is not None and last.sign == item.sign and last.number not in {None, item.number - 1}


def _continues(item: Item, group: Group) -> bool:
    """Whether the neighbouring group starts with the previous or next item of the same list."""
    other = read_items(group.lines[:1])
    if not other or other[0].sign != item.sign or other[0].indent != item.indent:
        return False
    return item.number is None or other[0].number in {item.number - 1, item.number + 1}


def render_list(items: Sequence[Item], width: int) -> str:
    """Write the list as Markdown. Items with a deeper indent become children of the item above."""
    rendered: list[str] = []
    parents: list[tuple[int, int]] = []  # its original indent, and the indent of its children
    for item in items:
        while parents and parents[-1][0] >= item.indent:
            parents.pop()
        indent = parents[-1][1] if parents else 0
        inner = indent + len(item.mark) + 1
        parents.append((item.indent, inner))
        lines = f"  \n{' ' * inner}".join(map(escape, unwrap(item.lines, width)))
        rendered.append(f"{' ' * indent}{item.mark} {lines}")
    return "\n".join(rendered)
